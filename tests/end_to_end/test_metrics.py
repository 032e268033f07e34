"""Figures of real processes, the dashboard over them, and the health they tell."""

import json
import re
from collections.abc import Iterator

import httpx
import pytest

from broker.free_ports import HOST, free_port
from tests.end_to_end.federation import ROOT, Federation, federation
from tests.prometheus_text import ParsedFamily, parse

pytestmark = [pytest.mark.end_to_end, pytest.mark.timeout(600)]

DASHBOARD = ROOT / "deploy" / "grafana" / "pando.json"
SERVICES = ("gw-1", "base", "static")


@pytest.fixture(scope="module")
def running(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Federation, dict[str, str]]]:
    """A federation, and the addresses of its services' figures."""
    first = free_port()
    ports = {name: first + number for number, name in enumerate(SERVICES)}
    options = ("--no-spark", "--gateways", "1", "--metrics-port", str(first))
    with federation(tmp_path_factory.mktemp("figures") / "data", *options) as up:
        addresses = {name: f"http://{HOST}:{port}" for name, port in ports.items()}
        up.until(lambda: all(map(is_healthy, addresses.values())))
        yield up, {**addresses, "console": up.address}


def is_healthy(address: str) -> bool:
    """Whether a service says that it is well; one may still be starting."""
    try:
        answer = httpx.get(f"{address}/health", trust_env=False, timeout=30)
    except httpx.ConnectError:
        return False
    return bool(answer.json() == {"status": "ok"})


def figures(address: str) -> dict[str, ParsedFamily]:
    """Return the figures of a process."""
    answer = httpx.get(f"{address}/metrics", trust_env=False, timeout=30)
    assert answer.status_code == 200, answer.text
    return parse(answer.text)


def expressions() -> list[str]:
    """Return all queries of the dashboard."""
    found = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    return [target["expr"] for panel in found["panels"] for target in panel.get("targets", ())]


def named(expression: str) -> set[str]:
    """Return the metrics that a query names."""
    return set(re.findall(r"\b(?:pando|process)_[a-z0-9_]+", expression))


def test_every_metric_of_the_dashboard_is_exported(
    running: tuple[Federation, dict[str, str]],
) -> None:
    up, addresses = running
    sink = (
        "CREATE SINK seats FROM SELECT mid, weightLevel FROM SeatSensor "
        "WITH (connector = 'mqtt', topic = 'building/seats/{mid}')"
    )
    assert up.http.post("/api/statements", json={"text": sink}).status_code == 200
    wanted = {name for expression in expressions() for name in named(expression)}
    assert len(wanted) > 30

    def is_complete() -> bool:
        return wanted <= {name for address in addresses.values() for name in figures(address)}

    up.until(is_complete, 60)  # the broker tells its figures every ten seconds


def test_every_query_of_the_dashboard_names_a_metric_and_has_its_parentheses() -> None:
    for expression in expressions():
        assert named(expression), expression
        assert expression.count("(") == expression.count(")"), expression


def test_names_follow_the_conventions(running: tuple[Federation, dict[str, str]]) -> None:
    """As `promtool check metrics` asks: units in words, `_total` at counters, a help text."""
    _, addresses = running
    for address in addresses.values():
        for name, family in figures(address).items():
            assert name.startswith(("pando_", "process_"))
            assert name.endswith("_total") == (family.kind == "counter"), name
            assert family.help.endswith("."), name
            assert not re.search(r"_(ms|milliseconds|minutes|mb|kb|percent)(_|$)", name), name


def test_counters_of_a_gateway_are_those_of_its_state(
    running: tuple[Federation, dict[str, str]],
) -> None:
    up, addresses = running

    def readings() -> float:
        return sum(figures(addresses["gw-1"])["pando_gateway_readings_total"].values.values())

    def told() -> float:
        values = figures(addresses["console"])["pando_site_readings_total"].values
        return values[(("site", "gw-1"),)]

    first = readings()
    up.until(lambda: told() > first)
    assert told() <= readings()
