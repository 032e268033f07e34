"""Windows close by the least watermark of all sites, in whatever order the sites are heard."""

from collections.abc import Callable
from functools import partial

from hypothesis import given, settings
from hypothesis import strategies as st

from stream_engine.simulation.network import Faults, Network
from stream_engine.site.site_engine import SiteEngine
from stream_engine.site.step_result import StepResult
from stream_engine.snapshot.recorded_site import RecordedSite
from streamsql.algebra.operators import (
    Aggregate,
    AggregateCall,
    AggregateFunction,
    HopWindow,
    OnClose,
    Plan,
    RemoteSource,
    Scan,
    ScanPart,
    SourceKind,
)
from streamsql.data.delta import Delta
from streamsql.data.events import SourceEvent
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.reference import Database, evaluate
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle

COLUMNS = Schema.of(("k", DataType.TEXT), ("ts", DataType.TIMESTAMP))
GATEWAYS = ("g1", "g2", "g3")
COUNT = AggregateCall(AggregateFunction.COUNT_ALL, (), "n")
IDLE = 1_000


def scan(part: ScanPart = ScanPart.ROWS, idle: int | None = None) -> Scan:
    return Scan("s", SourceKind.STREAM, COLUMNS, (), 1, idle, 5, part)


def whole(rows: Plan, progress: Plan) -> OnClose:
    return OnClose(Aggregate(rows, (0, 3), (COUNT,)), progress, 1)


WINDOWS = HopWindow(scan(), 1, size=10, hop=5)


def bundle(gateways: tuple[str, ...] = GATEWAYS, idle: int | None = None) -> FragmentBundle:
    """Return the shape the optimizer makes: windows at gateways, rows before the progress."""
    progress = scan(ScanPart.PROGRESS, idle)
    plan = whole(RemoteSource("f1", WINDOWS.schema), RemoteSource("f2", progress.schema))
    return FragmentBundle(
        "q",
        1,
        (
            Fragment("f1", Engine.GATEWAY, WINDOWS, gateways, "f3", ("base",)),
            Fragment("f2", Engine.GATEWAY, progress, gateways, "f3", ("base",)),
            Fragment("f3", Engine.BASE, plan, ("base",)),
        ),
        plan.schema,
    )


def reading(key: str, ts: int) -> SourceEvent:
    return SourceEvent((key, ts), ts)


READINGS = st.lists(
    st.tuples(st.sampled_from(GATEWAYS), st.sampled_from("ab"), st.integers(0, 40)), max_size=30
)


def network(seed: int = 0, faults: Faults | None = None, idle: int | None = None) -> Network:
    made = Network(("base", *GATEWAYS), seed=seed, faults=faults)
    for gateway in GATEWAYS:
        made.declare(gateway, scan())
    made.install(bundle(idle=idle))
    return made


def expected(events: list[tuple[str, str, int]]) -> Delta:
    database = Database()
    for gateway, key, ts in events:
        database.append("s", [reading(key, ts)], gateway)
    return evaluate(whole(WINDOWS, scan(ScanPart.PROGRESS)), database, 0)


@settings(max_examples=60)
@given(READINGS, st.integers(0, 1_000), st.sampled_from([0.0, 0.2]), st.data())
def test_any_interleaving_gives_the_answer_of_the_reference(
    events: list[tuple[str, str, int]], seed: int, loss: float, data: st.DataObject
) -> None:
    """Messages are late, lost and repeated from the first one on, while sites are installed."""
    net = network(seed, Faults(loss, loss))
    first = [(gateway, "a", 0) for gateway in GATEWAYS]  # without one a gateway counts as idle
    for gateway, key, ts in first:
        net.ingest(gateway, "s", [reading(key, ts)])
    shown: Delta = {}
    for gateway, key, ts in events:
        net.ingest(gateway, "s", [reading(key, ts)])
        for _ in range(data.draw(st.integers(0, 4))):
            net.act()
        now = net.result("q")
        assert shown.items() <= now.items()  # nothing is taken back
        shown = now
    net.settle()
    assert net.result("q") == expected(first + events)


def test_the_first_gateway_heard_closes_nothing() -> None:
    net = network()
    net.settle()
    net.ingest("g1", "s", [reading("a", 3), reading("a", 30)])
    net.ingest("g2", "s", [reading("a", 4)])
    net.ingest("g3", "s", [reading("a", 4)])
    for site in GATEWAYS:
        net.sites[site].step(1)  # what they send is lost
    net.kill("base")
    net.restart("base")  # as if it had crashed before its first snapshot
    base = net.sites["base"]
    base.step(1)

    def deliver(gateway: str) -> int:
        net.sites[gateway].resync("q", "base")
        for outgoing in net.sites[gateway].step(2).outgoing:
            base.receive("q", gateway, outgoing.batch)
        return sum(len(o.batch.deltas) for o in base.step(2).outgoing)

    assert deliver("g1") == 0
    assert deliver("g2") == 0
    assert deliver("g3") == 0  # the least watermark is -1
    net.ingest("g2", "s", [reading("a", 40)])
    net.ingest("g3", "s", [reading("a", 40)])
    assert deliver("g2") == 0
    assert deliver("g3") == 2  # [-5, 5) and [0, 10) with all four readings; [20, 30) is open


def test_a_gateway_that_is_lost_holds_back_nobody() -> None:
    net = network(seed=3)
    net.kill("g3", in_flight_survives=False)
    for gateway in ("g1", "g2"):
        net.ingest(gateway, "s", [reading("a", 3), reading("a", 30)])
    net.settle()
    assert net.result("q") == {("a", 5, 2): 1, ("a", 10, 2): 1}


def test_a_gateway_that_never_says_a_word_is_waited_for_as_long_as_it_may_be_idle() -> None:
    net = Network(("base", "g1", "g2"))
    for gateway in ("g1", "g2"):
        net.declare(gateway, scan())
    net.install(bundle(idle=IDLE))  # g3 is in the plan, and nowhere
    net.ingest("g1", "s", [reading("a", 3), reading("a", 30)])
    net.ingest("g2", "s", [reading("a", 30)])
    net.settle()
    assert net.result("q") == {}
    assert not net.sites["base"].flow("q").busy  # type: ignore[union-attr]
    assert net.sites["base"].next_wakeup() == IDLE
    net.advance(IDLE - 1)
    net.settle()
    assert net.result("q") == {}
    net.ingest("g2", "s", [reading("a", 31)])
    net.ingest("g1", "s", [reading("a", 31)])
    net.settle()
    net.advance(IDLE)
    net.settle()
    assert net.result("q") == {("a", 5, 1): 1, ("a", 10, 1): 1}
    assert net.sites["base"].next_wakeup() is None


@settings(max_examples=40)
@given(READINGS, st.permutations(GATEWAYS), st.integers(0, 99), st.data())
def test_windows_that_end_while_the_base_is_away_are_given_when_all_are_idle(
    events: list[tuple[str, str, int]], order: list[str], seed: int, data: st.DataObject
) -> None:
    """Whoever has been idle first: nobody is waited for, so the greatest watermark counts."""
    net = network(seed, idle=IDLE)
    events = [(gateway, "a", 0) for gateway in GATEWAYS] + events
    number = data.draw(st.integers(0, len(events)))
    for gateway, key, ts in events[:number]:
        net.ingest(gateway, "s", [reading(key, ts)])
    for _ in range(data.draw(st.integers(0, 20))):
        net.act()
    net.kill("base")
    for gateway, key, ts in events[number:]:
        net.ingest(gateway, "s", [reading(key, ts)])
    for delay, gateway in enumerate(order):
        net.advance(delay)
        net.ingest(gateway, "s", [reading("b", 41)])  # the last word of each, at its own time
        net.settle()
    if data.draw(st.booleans()):
        net.restart("base")
        net.settle()
        net.advance(2 * IDLE)
    else:
        net.advance(2 * IDLE)
        net.settle()
        net.restart("base")
    net.settle()
    everything = [*events, *((gateway, "b", 41) for gateway in order)]
    assert net.result("q") == expected(everything)


def test_the_last_windows_close_when_all_are_idle_whoever_is_behind() -> None:
    net = network(idle=IDLE)
    net.ingest("g1", "s", [reading("a", 3)])
    net.ingest("g2", "s", [reading("a", 4), reading("a", 30)])
    net.ingest("g3", "s", [reading("a", 2)])
    net.settle()
    assert net.result("q") == {}
    net.advance(1)
    net.ingest("g3", "s", [reading("a", 2)])  # so that it is the last one to be idle
    net.settle()
    net.advance(IDLE)
    net.settle()
    assert net.result("q") == {}, "g3 is waited for"
    net.advance(IDLE + 1)
    net.settle()
    assert net.result("q") == {("a", 5, 4): 1, ("a", 10, 4): 1}
    net.ingest("g1", "s", [reading("a", 12), reading("a", 50)])
    net.ingest("g3", "s", [reading("a", 50)])
    net.settle()
    assert net.result("q")[("a", 15, 1)] == 1, "what had no rows then had not closed"


def test_a_crash_while_windows_are_held_back() -> None:
    """The snapshot is taken while one of two gateways has not been heard yet."""
    gateways = {name: SiteEngine(name, 1) for name in ("g1", "g2")}
    base = RecordedSite("base", 1)
    plan = bundle(("g1", "g2"))
    for name, gateway in gateways.items():
        gateway.declare(scan())
        gateway.install(plan)
        gateway.ingest("s", [reading("a", 3), reading("a", 30 if name == "g1" else 9)])
    base.install(plan)
    base.step(0)

    def deliver(name: str) -> Delta:
        gateways[name].resync("q", "base")
        for outgoing in gateways[name].step(1).outgoing:
            base.receive("q", name, outgoing.batch)
        return {row.row: row.weight for o in base.step(1).outgoing for row in o.batch.deltas}

    assert deliver("g1") == {}
    assert base.is_at_rest
    saved = base.snapshot(None)
    base = RecordedSite("base", 2)
    base.restore(saved, [], 1)
    assert deliver("g1") == {}
    assert deliver("g2") == {}  # its watermark is 4
    gateways["g2"].ingest("s", [reading("a", 40)])
    assert deliver("g2") == {("a", 5, 2): 1, ("a", 10, 3): 1, ("a", 15, 1): 1}
    saved = base.snapshot(None)
    base = RecordedSite("base", 3)
    base.restore(saved, [], 1)
    gateways["g1"].ingest("s", [reading("a", 50)])
    again = {("a", 5, 2): 1, ("a", 10, 3): 1, ("a", 15, 1): 1}  # what was given, as a snapshot
    assert deliver("g1") == {**again, ("a", 35, 1): 1}  # where g2 was is in the snapshot
    assert deliver("g2") == {}


class SkewedNetwork(Network):
    """Sites whose clocks differ: what they take in is stamped with theirs, and so are steps."""

    def __init__(self, skews: dict[str, int], seed: int) -> None:
        super().__init__(("base", *GATEWAYS), seed=seed)
        for site, skew in skews.items():
            engine = self.sites[site]
            engine.step = partial(self._skewed, engine.step, skew)  # type: ignore[method-assign]

    @staticmethod
    def _skewed(step: Callable[[int], StepResult], skew: int, now: int) -> StepResult:
        return step(now + skew)


SKEWS = st.fixed_dictionaries({site: st.integers(0, 500) for site in ("base", *GATEWAYS)})


@settings(max_examples=40)
@given(
    SKEWS,
    st.lists(st.tuples(st.integers(0, 9), st.sampled_from(GATEWAYS)), max_size=30),
    st.integers(0, 99),
)
def test_clocks_that_differ_make_no_window_short(
    skews: dict[str, int], arrivals: list[tuple[int, str]], seed: int
) -> None:
    """Windows go by what readings say, and close when the gateway furthest behind has passed."""
    net = SkewedNetwork(skews, seed)
    for gateway in GATEWAYS:
        net.declare(gateway, scan())
    net.install(bundle())
    events = [(gateway, "a", skews[gateway]) for gateway in GATEWAYS]
    time = 0
    for pause, gateway in arrivals:
        time += pause
        events.append((gateway, "a", time + skews[gateway]))
    for number, (gateway, key, ts) in enumerate(events):
        net.ingest(gateway, "s", [reading(key, ts)])
        if number > len(GATEWAYS):
            net.advance(ts - skews[gateway])
            net.act()
    net.settle()
    assert net.result("q") == expected(events)
