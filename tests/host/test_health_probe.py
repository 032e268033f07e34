"""The probe of health checks."""

import asyncio

import pytest

from broker.free_ports import HOST, free_port
from host.health_probe import main, problem_of
from host.metrics.status_server import serving_status


def asked(health: str, address: str) -> str:
    """Return what the probe says of a service that is as well as `health` says."""

    async def ask() -> str:
        port = free_port()
        async with serving_status(HOST, port, lambda: (), lambda: health):
            return await asyncio.to_thread(problem_of, address.format(port=port))

    return asyncio.run(ask())


def test_a_service_that_is_well_has_no_problem() -> None:
    assert asked("", "http://127.0.0.1:{port}/health") == ""
    assert asked("", "http://127.0.0.1:{port}") == ""
    assert asked("ill", "tcp://127.0.0.1:{port}") == ""


def test_what_is_wrong_is_said() -> None:
    said = asked("no connection to the broker", "http://127.0.0.1:{port}/health")
    assert said.startswith("status 503: ")
    assert "no connection to the broker" in said
    assert "404" in asked("", "http://127.0.0.1:{port}/other")


@pytest.mark.parametrize("scheme", ["http", "tcp"])
def test_a_service_that_is_not_there_is_a_problem(
    scheme: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([f"{scheme}://127.0.0.1:{free_port()}"]) == 1
    assert "does not answer" in capsys.readouterr().err


@pytest.mark.parametrize("address", ["", "127.0.0.1:80", "ftp://127.0.0.1:80", "http://h:x/"])
def test_what_is_no_address_is_refused(address: str) -> None:
    assert "is no address" in problem_of(address)


def test_one_address_is_wanted() -> None:
    assert main([]) == main(["a", "b"]) == 1
