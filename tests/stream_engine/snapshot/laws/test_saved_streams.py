"""A stream goes on after a restart of its site where it was: nothing twice, nothing missing."""

from hypothesis import given, settings
from hypothesis import strategies as st

from stream_engine.snapshot.recorded_site import RecordedSite
from stream_engine.testing.histories import COLUMNS, SECOND, rows
from streamsql.algebra.operators import (
    Aggregate,
    AggregateCall,
    AggregateFunction,
    Plan,
    Scan,
    ScanPart,
    SourceKind,
    StreamKind,
    StreamWindow,
    TopN,
    ToStream,
    Window,
    WindowKind,
)
from streamsql.algebra.streams import Emit
from streamsql.data.delta import Delta
from streamsql.data.events import SourceEvent
from streamsql.reference import Database, evaluate
from streamsql.wire.channel_protocol import ReceivingChannel
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle

SOURCE = Scan("s", SourceKind.STREAM, COLUMNS, ttl=4 * SECOND, lateness=SECOND)
COUNT = AggregateCall(AggregateFunction.COUNT_ALL, (), "n")
GROUPS = Aggregate(Window(SOURCE, WindowKind.RANGE, 2 * SECOND), (0,), (COUNT,))
FIRST = TopN(Window(SOURCE, WindowKind.ROWS, 3), (), 1)


def stream(kind: StreamKind, query: Plan) -> ToStream:
    parts = [
        Scan("s", SourceKind.STREAM, COLUMNS, lateness=SECOND, part=part)
        for part in (ScanPart.EVENTS, ScanPart.PROGRESS)
    ]
    return ToStream(kind, query, (SOURCE,), (parts[0],), (parts[1],))


def nested(kind: StreamKind, query: Plan) -> ToStream:
    inner = stream(StreamKind.DSTREAM, query)
    window = StreamWindow(inner, len(inner.schema) - 1, WindowKind.RANGE, SECOND)
    return stream(kind, Aggregate(window, (), (COUNT,)))


class Life:
    """A site with a disk, and a reader who outlives it."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.epoch, self.now = 0, 0
        self.saved: bytes | None = None
        self.records: list[bytes] = []
        self.result = ReceivingChannel(version=1, streams={"f0"})
        self.seen: list[Delta] = []
        self.site = self.fresh()
        fragment = Fragment("f0", Engine.BASE, plan, ("here",))
        self.site.install(FragmentBundle("q", 1, (fragment,), plan.schema, emit=Emit.STREAM))
        self.step(0)

    def fresh(self) -> RecordedSite:
        self.epoch += 1
        return RecordedSite("here", self.epoch, self.records.append)

    def step(self, now: int) -> None:
        self.now = now
        done = self.site.step(now)
        assert not done.failures
        for outgoing in done.outgoing:
            _reception, delta = self.result.accept(outgoing.batch)
            self.seen.append(delta)

    def save(self) -> None:
        self.saved = self.site.snapshot({})
        self.records.clear()

    def crash(self) -> None:
        self.site = self.fresh()
        assert not self.site.restore(self.saved, list(self.records), self.now).unsaved


@settings(max_examples=60)
@given(
    st.sampled_from(tuple(StreamKind)),
    st.sampled_from((GROUPS, FIRST)),
    st.booleans(),
    st.lists(st.tuples(rows(COLUMNS), st.integers(-3, 3)), min_size=6, max_size=12),
    st.lists(st.sampled_from(("", "save", "crash")), min_size=12, max_size=12),
)
def test_a_stream_goes_on_after_a_crash(
    kind: StreamKind,
    query: Plan,
    inside: bool,
    readings: list[tuple[tuple[object, ...], int]],
    fates: list[str],
) -> None:
    plan = nested(kind, query) if inside else stream(kind, query)
    life, database = Life(plan), Database()
    for number, ((row, offset), fate) in enumerate(zip(readings, fates, strict=False)):
        event = SourceEvent(row, number * SECOND + offset * SECOND // 4)  # type: ignore[arg-type]
        database.append("s", [event])
        life.site.ingest("s", [event])
        life.step(number * SECOND)
        if fate == "save":
            life.save()
        if fate == "crash":
            life.crash()
            life.step(number * SECOND)
    given_rows: Delta = {}
    for delta in life.seen:
        for given_row, weight in delta.items():
            assert weight > 0
            given_rows[given_row] = given_rows.get(given_row, 0) + weight
    assert given_rows == evaluate(plan, database, life.now)
