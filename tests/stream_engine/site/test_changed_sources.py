"""A source's rows follow its definition by the names of columns; who read the former one ends."""

import msgspec
import pytest

from stream_engine.site.changed_sources import carried_over, conversion
from stream_engine.site.site_engine import SiteEngine
from streamsql.algebra.operators import Scan, SourceKind
from streamsql.data.events import SourceEvent
from streamsql.data.schema import Schema
from streamsql.data.types import DataType, Row
from streamsql.errors import DeploymentError
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle
from streamsql.wire.source_shapes import DIFFERENCE_CODE

TEXT, DOUBLE, TIME = DataType.TEXT, DataType.DOUBLE, DataType.TIMESTAMP
SECOND = 1_000_000


def scan(*columns: tuple[str, DataType], key: tuple[str, ...] = ("k",), **rest: object) -> Scan:
    schema = Schema.of(*columns)
    positions = tuple(schema.index_of(name) for name in key)
    return Scan("s", SourceKind.STREAM, schema, positions, **rest)  # type: ignore[arg-type]


OLD = scan(("k", TEXT), ("a", DOUBLE), ("b", TEXT))
WIDER = scan(("c", DOUBLE), ("k", TEXT), ("a", DOUBLE), ("b", TEXT))
RETYPED = scan(("k", TEXT), ("a", TEXT), ("b", TEXT))


def query(read: Scan, version: int = 1) -> FragmentBundle:
    fragment = Fragment("f", Engine.GATEWAY, read, ("here",))
    return FragmentBundle("q", version, (fragment,), read.columns)


def site(*rows: Row, declared: Scan = OLD) -> SiteEngine:
    made = SiteEngine("here", 1)
    made.declare(declared)
    made.ingest("s", [SourceEvent(row, number) for number, row in enumerate(rows, 1)])
    made.step(SECOND)
    return made


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        (WIDER, (None, "x", 1.0, "t")),
        (RETYPED, ("x", None, "t")),
        (scan(("b", TEXT), ("k", TEXT)), ("t", "x")),
        (scan(("k", TEXT), ("at", TIME), time_column=1), ("x", 7)),
    ],
)
def test_a_column_keeps_its_value_by_name_and_type(new: Scan, expected: Row) -> None:
    event = conversion(OLD, new)(SourceEvent(("x", 1.0, "t"), 7))
    assert event is not None
    assert (event.row, event.ts) == (expected, 7)


def test_an_event_without_its_key_is_none() -> None:
    assert conversion(OLD, scan(("n", TEXT), key=("n",)))(SourceEvent(("x", 1.0, "t"), 7)) is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (scan(("k", TEXT), key=()), scan(("k", TEXT), ("a", DOUBLE), key=())),
        (OLD, scan(("k", TEXT), ("a", DOUBLE), key=("k", "a"))),
        (OLD, scan(("k", TEXT), ("a", DOUBLE), ("b", TEXT), units=("m", "", ""))),
    ],
)
def test_rows_do_not_stay_without_the_same_key(old: Scan, new: Scan) -> None:
    row: Row = ("x", 1.0, "t")[: len(old.columns)]
    assert carried_over(old, new, {(1, row): 1}) == []


def test_rows_of_a_keyed_source_stay() -> None:
    made = site(("x", 1.0, "t"), ("y", 2.0, "u"))
    made.declare(WIDER)
    assert made.source_rows("s") == [(None, "x", 1.0, "t"), (None, "y", 2.0, "u")]
    made.ingest("s", [SourceEvent((5.0, "x", 1.5, "t"), 9)])
    made.step(2 * SECOND)
    assert set(made.source_rows("s")) == {(5.0, "x", 1.5, "t"), (None, "y", 2.0, "u")}


def test_events_that_wait_for_a_step_are_of_the_new_definition() -> None:
    made = site()
    made.ingest("s", [SourceEvent(("x", 1.0, "t"), 1)])
    made.declare(WIDER)
    made.step(2 * SECOND)
    assert made.source_rows("s") == [(None, "x", 1.0, "t")]


def test_a_lifetime_goes_on() -> None:
    ttl = 10 * SECOND
    made = site(("x", 1.0, "t"), declared=scan(("k", TEXT), ("a", DOUBLE), ("b", TEXT), ttl=ttl))
    made.declare(scan(("k", TEXT), ("a", DOUBLE), ttl=ttl))
    made.step(9 * SECOND)
    assert made.source_rows("s") == [("x", 1.0)]
    made.step(11 * SECOND)
    assert made.source_rows("s") == []


def test_values_in_another_unit_are_gone_and_who_reads_them_is_stopped() -> None:
    celsius, kelvin = (msgspec.structs.replace(OLD, units=("", unit, "")) for unit in ("Cel", "K"))
    made = site(("x", 1.0, "t"), declared=celsius)
    made.install(query(celsius))
    made.ingest("s", [SourceEvent(("y", 2.0, "u"), 5)])
    assert made.declare(kelvin) == [query(celsius)]
    assert made.step(3 * SECOND).outgoing == []
    assert made.source_rows("s") == [("x", None, "t"), ("y", None, "u")]
    with pytest.raises(DeploymentError, match="column a has the unit K, not the unit Cel"):
        made.install(query(celsius))
    with pytest.raises(DeploymentError, match="column a has the unit K, not no unit"):
        made.install(query(OLD))
    made.install(query(kelvin, 2))
    (outgoing,) = made.step(4 * SECOND).outgoing
    assert {d.row for d in outgoing.batch.deltas} == {("x", None, "t"), ("y", None, "u")}


def test_readings_of_a_bag_in_another_unit_are_gone() -> None:
    bag = scan(("k", TEXT), ("a", DOUBLE), key=(), ttl=60 * SECOND)
    made = site(("x", 1.0), ("x", 2.0), declared=bag)
    made.declare(msgspec.structs.replace(bag, units=("", "K")))
    made.step(2 * SECOND)
    assert made.source_rows("s") == []


def test_who_reads_the_former_definition_is_stopped_and_the_old_plan_refused() -> None:
    made = site(("x", 1.0, "t"))
    made.install(query(OLD))
    made.step(2 * SECOND)
    assert made.declare(WIDER) == [query(OLD)]
    assert not made.runs("q")
    with pytest.raises(DeploymentError) as caught:
        made.install(query(OLD))
    assert caught.value.code == DIFFERENCE_CODE
    made.install(query(WIDER, 2))
    (outgoing,) = made.step(3 * SECOND).outgoing
    assert [d.row for d in outgoing.batch.deltas] == [(None, "x", 1.0, "t")]


def test_who_reads_what_stays_goes_on() -> None:
    made = site(("x", 1.0, "t"))
    made.install(query(OLD))
    made.step(2 * SECOND)
    assert made.declare(scan(("k", TEXT), ("a", DOUBLE), ("b", TEXT), ttl=SECOND)) == []
    assert made.runs("q")


def test_a_site_that_only_reads_refuses_plans_of_other_definitions() -> None:
    base = SiteEngine("here", 1)
    assert base.define(OLD) == []
    base.install(query(OLD))
    assert base.define(WIDER) == [query(OLD)]
    with pytest.raises(DeploymentError, match="defined differently at site here"):
        base.install(query(OLD))
    base.install(query(WIDER, 2))


def test_a_source_that_is_not_declared_any_more_keeps_nothing() -> None:
    made = site(("x", 1.0, "t"))
    made.ingest("s", [SourceEvent(("y", 1.0, "t"), 2)])
    made.undeclare("s")
    assert made.source_rows("s") == []
    assert made.declared == frozenset()
    assert made.pending_events == 0
    made.undeclare("never there")
    with pytest.raises(DeploymentError, match="is not declared"):
        made.ingest("s", [SourceEvent(("y", 1.0, "t"), 2)])
