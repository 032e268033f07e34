"""Counts of a site's queries: one message for all that changed, none while nothing does."""

from dataclasses import dataclass, field
from typing import Any, cast

import msgspec

from gateway.site.flow_reports import INTERVAL, REPEAT, FlowReports
from gateway.site.traffic import Traffic
from host.mqtt import MessageClient, QueueFull
from stream_engine.site.site_engine import SiteEngine
from stream_engine.site.step_result import Outgoing
from streamsql.wire.codec import decode_compressed_packed
from streamsql.wire.messages import DeltaBatch, FilterReport, FlowReport, WeightedRow
from streamsql.wire.site_messages import SiteFlows
from streamsql.wire.topics import Topics

TOPICS = Topics("demo")
STEP = 0.05


@dataclass
class World:
    """A site of queries whose counts a test sets, a broker that notes what comes, and a clock."""

    sent: dict[str, int] = field(default_factory=dict)
    heard: list[dict[str, FlowReport]] = field(default_factory=list)
    moved: list[str] = field(default_factory=list)
    is_full: bool = False
    connected: bool = True
    site: str = "gw-1"
    now: float = 1_000.0
    sizes: list[int] = field(default_factory=list)
    filters: dict[str, tuple[FilterReport, ...]] = field(default_factory=dict)
    version: int = 1

    def __post_init__(self) -> None:
        engine, client = cast(SiteEngine, self), cast(MessageClient, self)
        self.traffic = Traffic()
        self.reports = FlowReports(engine, client, TOPICS, self.traffic, lambda _query: False)

    @property
    def queries(self) -> dict[str, int]:
        return self.sent

    def changed_since(self, change: int) -> tuple[list[str], int]:
        """As `SiteEngine` does: the last first."""
        late = self.moved[change - 1 :] if change else [*self.sent]
        return list(dict.fromkeys(reversed(late))), len(self.moved) + 1

    def flow(self, query: str) -> FlowReport | None:
        if query not in self.sent:
            return None
        filters = self.filters.get(query, ())
        return FlowReport(self.version, 7, {"base": self.sent[query]}, {}, filters=filters)

    def publish(self, topic: str, payload: bytes, **options: Any) -> None:
        if self.is_full:
            raise QueueFull("full")
        assert (topic, options) == ("pando/v1/demo/gw/gw-1/flow", {"qos": 0})
        self.sizes.append(len(payload))
        self.heard.append(dict(decode_compressed_packed(payload, SiteFlows).reports))

    def send(self, *queries: str) -> None:
        for query in queries:
            self.sent[query] = self.sent.get(query, 0) + 1
            self.moved.append(query)

    def pass_by(self, seconds: float) -> list[dict[str, int]]:
        """Let time pass in small steps; return what was told meanwhile, by query."""
        self.heard.clear()
        for _ in range(round(seconds / STEP)):
            self.now += STEP
            self.reports.next_due(self.now)
            self.reports.publish(self.now)
        return [{q: r.sent["base"] for q, r in told.items()} for told in self.heard]


def test_one_message_tells_of_all_queries_that_changed_and_of_no_others() -> None:
    world = World()
    world.send("q1", "q2", "q3")
    assert world.pass_by(1.0) == [{"q1": 1, "q2": 1, "q3": 1}]
    world.send("q1", "q3")
    world.send("q3")
    assert world.pass_by(1.0) == [{"q1": 2, "q3": 3}]


def test_counts_are_told_soon_and_what_changes_meanwhile_with_them() -> None:
    world = World()
    world.pass_by(1.0)
    world.send("q1")
    assert world.pass_by(INTERVAL) == []
    world.send("q2")
    assert world.pass_by(2 * STEP) == [{"q1": 1, "q2": 1}]


def test_what_does_not_change_is_repeated_after_pauses_that_double() -> None:
    world = World()
    world.send("q1", "q2")
    assert world.pass_by(REPEAT / 2) == [{"q1": 1, "q2": 1}]
    world.send("q2")
    assert world.pass_by(2 * REPEAT) == [{"q2": 2}, {"q1": 1}, {"q2": 2}]
    told = world.pass_by(3_600)
    assert len(told) < 30, "two queries, every ten minutes in the end"
    assert all(counts in ({"q1": 1}, {"q2": 2}, {"q1": 1, "q2": 2}) for counts in told)
    assert 10 <= len(world.pass_by(3_600)) <= 12, "a loss is made good some time"


def test_the_first_repetition_comes_after_its_pause_wherever_the_comparison_stands() -> None:
    for since in (0.2, 3.0, 9.0):
        world = World()
        world.pass_by(since)
        world.send("q1")
        assert world.pass_by(1.0) == [{"q1": 1}]
        assert world.pass_by(REPEAT) == [{"q1": 1}], since


def test_what_time_alone_changes_is_told_with_the_next_comparison() -> None:
    world = World()
    world.send("q1")
    world.pass_by(4 * REPEAT)
    world.sent["q1"] = 5  # nothing has happened to the query
    assert world.pass_by(REPEAT) == [{"q1": 5}]


def test_a_reader_that_asks_is_told_of_everything_at_once() -> None:
    world = World()
    world.send("q1", "q2")
    world.pass_by(3 * REPEAT)
    world.reports.forget()
    assert world.pass_by(STEP) == [{"q1": 1, "q2": 1}]


def test_what_a_full_queue_refuses_is_told_later() -> None:
    world = World()
    world.send("q1", "q2")
    world.is_full = True
    assert world.pass_by(1.0) == []
    world.is_full = False
    assert world.pass_by(1.0) == [{"q1": 1, "q2": 1}]
    world.is_full = True
    assert world.pass_by(REPEAT) == []
    world.is_full = False
    assert world.pass_by(REPEAT) == [{"q1": 1, "q2": 1}], "the repetition is not forgotten"


def test_nothing_is_told_while_the_broker_is_away() -> None:
    world = World()
    world.send("q1")
    world.connected = False
    assert world.pass_by(2 * REPEAT) == []
    world.connected = True
    assert world.pass_by(STEP) == [{"q1": 1}]


def test_a_query_that_is_gone_is_not_repeated() -> None:
    world = World()
    world.send("q1", "q2")
    world.pass_by(1.0)
    del world.sent["q1"]
    assert world.pass_by(2 * REPEAT) == [{"q2": 1}]
    world.reports.forget()
    del world.sent["q2"]
    assert world.pass_by(10 * REPEAT) == []


def test_what_channels_cost_is_told_with_the_counts() -> None:
    world = World()
    world.send("q1")
    batch = DeltaBatch(1, 1, 0, "f1", (WeightedRow((1,), 1),))
    world.traffic.sent(Outgoing("q1", "base", batch), 250)
    world.pass_by(1.0)
    assert (world.heard[0]["q1"].traffic.batches, world.heard[0]["q1"].traffic.bytes) == (1, 250)


def test_a_site_of_thousands_of_queries_tells_them_in_several_messages() -> None:
    world = World()
    world.send(*(f"q{number}" for number in range(2_500)))
    told = world.pass_by(1.0)
    assert {query for each in told for query in each} == set(world.sent)
    assert sum(map(len, told)) == 2_500
    assert all(len(each) <= 1_000 for each in told)


def test_large_counts_make_smaller_messages(monkeypatch: Any) -> None:
    world = World()
    world.send("q1", "q2", "q3", "q4")
    wide = {f"gateway-{number}": 1 for number in range(6_000)}
    flow = world.flow

    def large(query: str) -> FlowReport | None:
        report = flow(query)
        return report and msgspec.structs.replace(report, received=wide)

    monkeypatch.setattr(world, "flow", large)
    told = world.pass_by(1.0)
    assert sorted(query for each in told for query in each) == ["q1", "q2", "q3", "q4"]
    assert max(world.sizes) <= 200_000
    assert len(told) < 4, "several fit one message"


def test_the_messages_are_a_fifth_of_one_per_query_with_names() -> None:
    """Oracle: what was sent before, a map with names per query on a topic of its own."""
    world = World()
    world.send(*(f"q{number}" for number in range(11)))
    world.pass_by(1.0)
    before = sum(
        len(f"pando/v1/demo/q/{query}/flow/gw-1") + len(msgspec.msgpack.encode(_named(report)))
        for query, report in world.heard[0].items()
    )
    assert (len(TOPICS.flow("gw-1")) + world.sizes[0]) * 5 < before


def _named(report: FlowReport) -> dict[str, Any]:
    plain = msgspec.structs.asdict(report)
    return plain | {"traffic": msgspec.structs.asdict(report.traffic)}


def test_counts_of_filters_are_told_when_they_change_and_now_and_then() -> None:
    world = World()

    def told(*queries: str, seconds: float = 1.0) -> list[dict[str, tuple[int, ...]]]:
        world.send(*queries)
        world.pass_by(seconds)
        return [
            {query: tuple(f.rows_in for f in r.filters) for query, r in reports.items()}
            for reports in world.heard
        ]

    world.filters["q1"] = (FilterReport("f1", 0, 64, 5), FilterReport("f1", 1, 80, 5))
    assert told("q1") == [{"q1": (64, 80)}]
    assert told("q1") == [{"q1": ()}]
    world.filters["q1"] = (FilterReport("f1", 0, 128, 5), FilterReport("f1", 1, 80, 5))
    assert told("q1") == [{"q1": (128, 80)}]
    again = [told("q1") for _ in range(4 * round(REPEAT))]
    assert 3 <= again.count([{"q1": (128, 80)}]) <= 4  # the broker may have dropped them
    assert again.count([{"q1": ()}]) >= 4 * REPEAT - 4
    world.version = 2
    assert told("q1") == [{"q1": (128, 80)}]  # another plan has counted as many
    world.is_full = True
    world.filters["q1"] = (FilterReport("f1", 0, 256, 5),)
    assert told("q1") == []
    world.is_full = False
    assert told() == [{"q1": (256,)}]
    world.reports.forget()
    assert told() == [{"q1": (256,)}]
