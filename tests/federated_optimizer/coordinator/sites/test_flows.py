"""Quiescence: settled means both ends of every channel agree and nobody is busy."""

import pytest
from msgspec.structs import replace

from federated_optimizer.coordinator.queries.running_warnings import slow_sentence
from federated_optimizer.coordinator.sites.flows import FlowReports
from streamsql.algebra.operators import RemoteSource, Scan, SourceKind
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle
from streamsql.wire.messages import FilterReport, FlowReport, SlowSite

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


AWAY = frozenset({"gw-1"})


def test_a_site_that_is_away_is_not_waited_for_once_its_rows_are_given_up() -> None:
    assert not heard(base=BASE).is_settled(BUNDLE, {"base": 4}, AWAY)
    given_up = FlowReport(3, 1, {"": 5}, {})
    assert not heard(base=given_up).is_settled(BUNDLE, {"base": 5})
    assert not heard(base=given_up).is_settled(BUNDLE, {"base": 4}, AWAY)
    for gateway in ({}, {"gw_1": GATEWAY}):
        assert heard(base=given_up, **gateway).is_settled(BUNDLE, {"base": 5}, AWAY)


def test_without_the_site_of_the_result_nothing_is_settled() -> None:
    flows = heard(base=BASE, gw_1=GATEWAY)
    assert not flows.is_settled(BUNDLE, {"base": 4}, frozenset({"base"}))


def test_disagreements_and_missing_inputs() -> None:
    flows = heard(base=BASE, gw_1=FlowReport(3, 1, {"base": 3}, {}))
    assert list(flows.disagreements({"base": 4})) == [("gw-1", "base", 3, 2)]
    assert next(iter(flows.disagreements({"base": 3}))) == ("base", "", 4, 3)
    assert flows.without_input(("base", "gw-1")) == set()
    unheard = heard(base=FlowReport(3, 1, {"": 4}, {}), gw_1=GATEWAY)
    assert list(unheard.disagreements({"base": 4})) == []
    assert unheard.without_input(("base", "gw-1")) == {"gw-1"}
    assert unheard.without_input(("base",)) == set()


def test_later_versions_are_noted() -> None:
    flows = heard(gw_1=FlowReport(9, 1, {}, {}), base=FlowReport(2, 1, {}, {}))
    assert flows.later == {"gw-1"}
    assert flows.heard_from() == frozenset()
    assert flows.hear("gw-1", GATEWAY, BUNDLE)
    assert flows.later == set()


def test_after_the_broker_was_away_every_report_is_outdated_until_the_next() -> None:
    flows = heard(base=BASE, gw_1=FlowReport(3, 2, {"base": 2}, {}))
    flows.lost_touch()
    assert flows.outdated == {"base", "gw-1"}
    flows.hear("base", BASE, BUNDLE)
    flows.hear("gw-1", GATEWAY, BUNDLE)  # of an earlier life
    assert flows.outdated == {"gw-1"}
    flows.hear("gw-1", FlowReport(3, 2, {"base": 2}, {}), BUNDLE)
    assert flows.outdated == set()
    flows.lost_touch()
    flows.clear()
    assert flows.outdated == set()


def test_the_report_of_a_site_that_was_away_is_outdated_until_the_next() -> None:
    flows = heard(base=BASE)
    flows.left("base")
    flows.left("gw-1")  # has never reported
    assert flows.outdated == {"base"}
    flows.hear("base", BASE, BUNDLE)
    assert flows.outdated == set()


def test_strangers_and_older_lives_do_not_count() -> None:
    flows = heard(gw_1=FlowReport(3, 2, {"base": 2}, {}))
    assert not flows.hear("gw-1", GATEWAY, BUNDLE)
    assert not flows.hear("gw-9", GATEWAY, BUNDLE)
    assert flows.heard_from() == {"gw-1"}


def test_counts_of_different_lives_agree_by_chance_only() -> None:
    live = FlowReport(3, 1, {"": 4}, {"gw-1": 2}, lives={"gw-1": 1})
    assert heard(base=live, gw_1=GATEWAY).is_settled(BUNDLE, {"base": 4}, lives={"base": 1})
    restarted = heard(base=live, gw_1=FlowReport(3, 2, {"base": 2}, {}))
    assert not restarted.is_settled(BUNDLE, {"base": 4}, lives={"base": 1})
    (wrong,) = restarted.disagreements({"base": 4}, {"base": 1})
    assert wrong[:3] == ("gw-1", "base", 2)
    again = heard(base=FlowReport(3, 2, {"": 4}, {"gw-1": 2}, lives={"gw-1": 1}), gw_1=GATEWAY)
    assert not again.is_settled(BUNDLE, {"base": 4}, lives={"base": 1})
    (wrong,) = again.disagreements({"base": 4}, {"base": 1})
    assert wrong[:3] == ("base", "", 4)
    assert again.is_settled(BUNDLE, {"base": 4}, lives={"base": 2})


def test_the_worst_that_is_said_of_a_slow_site_counts() -> None:
    slow = (SlowSite("gw-2", 40, 7), SlowSite("gw-1", 10, 8))
    flows = heard(
        base=replace(BASE, slow=slow), gw_1=replace(GATEWAY, slow=(SlowSite("gw-1", 20, 3),))
    )
    assert flows.slow() == {"gw-2": SlowSite("gw-2", 40, 7), "gw-1": SlowSite("gw-1", 20, 3)}


def test_a_slow_site_is_named_with_what_to_do() -> None:
    slow = SlowSite("gw-2", 600, 1_767_225_600_000_000)
    there = slow_sentence(slow, offline=False)
    assert there.startswith(
        "windows wait for gw-2, whose readings are 10 min behind those of others "
        "(slow since 2026-01-01"
    )
    assert "idle" in there
    assert "SHOW GATEWAYS" in there
    assert "offline" in slow_sentence(slow, offline=True)


def test_counts_of_filters_hold_until_the_site_tells_others() -> None:
    flows, first = FlowReports(), (FilterReport("f1", 0, 64, 5),)
    flows.hear("gw-1", replace(GATEWAY, filters=first), BUNDLE)
    flows.hear("gw-1", replace(GATEWAY, sent={"base": 3}), BUNDLE)
    assert tuple(flows.filters()) == first
    assert flows.batches("gw-1") == (3, 0)
    more = (FilterReport("f1", 0, 128, 5),)
    flows.hear("gw-1", replace(GATEWAY, filters=more), BUNDLE)
    assert tuple(flows.filters()) == more
    flows.hear("gw-1", replace(GATEWAY, epoch=2), BUNDLE)
    assert tuple(flows.filters()) == ()  # another incarnation counts from 0
