"""Addresses on which the process of the console listens."""

import socket

import pytest

from streamsql.errors import DeploymentError
from ui.__main__ import _listen
from ui.console_settings import ConsoleSettings


def settings(host: str, port: int = 0) -> ConsoleSettings:
    return ConsoleSettings(broker="mqtt://127.0.0.1:1", data_dir="unused", host=host, port=port)


@pytest.mark.parametrize(
    ("host", "family"), [("127.0.0.1", socket.AF_INET), ("::1", socket.AF_INET6)]
)
def test_it_listens_on_either_kind_of_address(host: str, family: socket.AddressFamily) -> None:
    with _listen(settings(host)) as listener:
        listener.listen()
        assert listener.family == family
        with socket.create_connection((host, listener.getsockname()[1]), timeout=10):
            pass


def test_a_busy_port_is_named() -> None:
    with _listen(settings("127.0.0.1")) as listener:
        listener.listen()
        port = listener.getsockname()[1]
        with pytest.raises(DeploymentError, match=f"cannot listen on 127.0.0.1 port {port}"):
            _listen(settings("127.0.0.1", port))
