"""Quiescence: settled means both ends of every channel agree and nobody is busy."""

import pytest

from federated_optimizer.coordinator.flows import FlowReports
from streamsql.algebra.operators import RemoteSource, Scan, SourceKind
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle
from streamsql.wire.messages import FlowReport

SCHEMA = Schema.of(("a", DataType.TEXT))
BUNDLE = FragmentBundle(
    "q1",
    3,
    (
        Fragment("f0", Engine.BASE, RemoteSource("f1", SCHEMA), ("base",)),
        Fragment(
            "f1", Engine.GATEWAY, Scan("s", SourceKind.STREAM, SCHEMA), ("gw-1",), "f0", ("base",)
        ),
    ),
    SCHEMA,
)
BASE = FlowReport(3, 1, {"": 4}, {"gw-1": 2})
GATEWAY = FlowReport(3, 1, {"base": 2}, {})


def heard(**reports: FlowReport) -> FlowReports:
    flows = FlowReports()
    for site, report in reports.items():
        flows.hear(site.replace("_", "-"), report, BUNDLE)
    return flows


def test_settled() -> None:
    assert heard(base=BASE, gw_1=GATEWAY).is_settled(BUNDLE, {"base": 4})


@pytest.mark.parametrize(
    ("reports", "received"),
    [
        ({"base": BASE}, {"base": 4}),
        ({"gw_1": GATEWAY}, {"base": 4}),
        ({"base": BASE, "gw_1": GATEWAY}, {"base": 3}),
        ({"base": BASE, "gw_1": GATEWAY}, {}),
        ({"base": BASE, "gw_1": FlowReport(3, 1, {"base": 3}, {})}, {"base": 4}),
        ({"base": BASE, "gw_1": FlowReport(3, 1, {"base": 2}, {}, busy=True)}, {"base": 4}),
        ({"base": BASE, "gw_1": FlowReport(2, 1, {"base": 2}, {})}, {"base": 4}),
        ({"base": FlowReport(3, 1, {"": 4}, {}), "gw_1": GATEWAY}, {"base": 4}),
    ],
    ids=[
        "a gateway is silent",
        "the base is silent",
        "a result batch is on its way",
        "no result yet",
        "a batch between sites is on its way",
        "a site is busy",
        "a report of another version",
        "a receiver knows nothing of the sender",
    ],
)
def test_not_settled(reports: dict[str, FlowReport], received: dict[str, int]) -> None:
    assert not heard(**reports).is_settled(BUNDLE, received)


def test_strangers_and_older_lives_do_not_count() -> None:
    flows = heard(gw_1=FlowReport(3, 2, {"base": 2}, {}))
    assert not flows.hear("gw-1", GATEWAY, BUNDLE)
    assert not flows.hear("gw-9", GATEWAY, BUNDLE)
    assert flows.heard_from() == {"gw-1"}
