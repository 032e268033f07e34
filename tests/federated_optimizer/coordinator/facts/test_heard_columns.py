"""Facts about columns, from what gateways count."""

import pytest

from federated_optimizer.coordinator.facts import heard_columns
from federated_optimizer.coordinator.facts.heard_facts import LOOK_MICROSECONDS, HeardFacts
from federated_optimizer.coordinator.facts.planned_facts import KnownColumns, RowBytes, TextBytes
from federated_optimizer.coordinator.sites.published_links import LinkTable
from federated_optimizer.statistics.fact import DAY, Origin, Quantity, Subject, SubjectKind, exact
from federated_optimizer.statistics.fact_store import Facts
from federated_optimizer.statistics.planning_statistics import ColumnFacts
from streamsql.catalog.catalog import Catalog
from streamsql.wire.codec import decode_packed, encode_packed
from streamsql.wire.site_messages import ColumnCount, SourceCount
from tests.streamsql.from_text import catalog_of

SOURCES = "CREATE SOURCE Heat (room TEXT, level INTEGER);"
ROOM = ("heat", "room")


def hashes(*values: int) -> bytes:
    return b"".join(value.to_bytes(4, "big") for value in values)


def told(rooms: tuple[int, ...], rows: int = 1_000, source: str = "Heat") -> SourceCount:
    """The words of a gateway, as they are read at the coordinator."""
    room = ColumnCount(hashes(*rooms), rooms[0], 50, 0, 90)
    level = ColumnCount(hashes(1, 2), 1, 60, 10, 20, tuple(float(n) for n in range(11)))
    count = SourceCount(rows, 100, 100, {"room": room, "level": level}, source)
    return decode_packed(encode_packed(count), SourceCount)


class Heard:
    def __init__(self, catalog: Catalog, facts: Facts | None = None) -> None:
        self.facts = Facts() if facts is None else facts
        self.heard = HeardFacts(self.facts, catalog)
        self.moment = 0

    def hear(self, site: str, told: SourceCount, now: int = 0, *, stored: bool = False) -> None:
        self.heard.hear_columns(site, told, stored=stored)
        self.look(now)

    def look(self, now: int = 0) -> None:
        self.moment += LOOK_MICROSECONDS
        self.heard.look((), LinkTable(), now=now, moment=self.moment)

    def distinct(self) -> float | None:
        found = KnownColumns(self.facts, 0).get(ROOM)
        return None if found is None else found.distinct


def test_values_of_a_source_are_those_of_all_its_gateways() -> None:
    heard = Heard(catalog_of(SOURCES))
    heard.hear("gw-1", told((1, 2, 3)))
    assert heard.distinct() == 3
    heard.hear("gw-2", told((3, 4, 5)))
    room, level = (KnownColumns(heard.facts, 0)["heat", name] for name in ("room", "level"))
    assert (room.distinct, room.local, room.same) == (5, 3, 0.9)
    deciles = tuple(float(n) for n in range(11))
    assert level == ColumnFacts(2, 2, 0.6, level.most, 0.1, 0.2, deciles, level.unsure)
    assert 0.6 < level.most < 0.8
    assert set(KnownColumns(heard.facts, 0)) == {ROOM, ("heat", "level")}
    assert list(RowBytes(heard.facts)) == [], "facts of two kinds about columns"


def test_what_one_gateway_says_after_a_start_does_not_replace_what_all_said() -> None:
    before = Heard(catalog_of(SOURCES))
    for number in range(10):
        before.hear(f"gw-{number}", told((number, 100)))
    assert before.distinct() == 11
    after = Heard(catalog_of(SOURCES), Facts(before.facts))
    after.hear("gw-1", told((1, 100)))
    assert after.distinct() == 11
    after.hear("gw-1", told((1, 100), rows=2_000), now=2 * DAY)
    assert after.distinct() == 2, "what was counted two days ago is less sure"


def test_after_a_start_facts_hold_until_all_gateways_of_a_source_have_told_theirs() -> None:
    facts = Facts()
    before = Heard(catalog_of(SOURCES), facts)
    for number in range(3):
        site = f"gw-{number}"
        facts.put(
            exact(Subject(SubjectKind.SOURCE, "heat", site), Quantity.SENSORS, 1, 0, Origin.COUNTED)
        )
        before.hear(site, told((number, 100)))
    assert before.distinct() == 4

    def restarted() -> Heard:
        after = Heard(catalog_of(SOURCES), Facts(facts))
        for site in ("gw-0", "gw-1"):
            # They have counted more by now than all three before.
            after.hear(site, told((7, 100), rows=100_000))
            assert after.distinct() == 4
        return after

    all_told = restarted()
    all_told.hear("gw-2", told((7, 100), rows=100_000))
    assert all_told.distinct() == 2
    without = restarted()
    without.look(now=heard_columns.AWAITED_MICROSECONDS)
    assert without.distinct() == 2, "one that stays away is not waited for"
    removed = restarted()
    removed.heard.forget("gw-2")
    removed.look()
    assert removed.distinct() == 2


def test_sources_that_the_catalog_does_not_have_are_not_counted() -> None:
    catalog = catalog_of(SOURCES)
    heard = Heard(catalog)
    heard.hear("gw-1", told((1, 2), source="elsewhere"))
    assert len(heard.facts) == 0
    heard.hear("gw-1", told((1, 2)))
    assert heard.distinct() == 2
    catalog.define(catalog_of("CREATE SOURCE Heat (room TEXT);").sources[0], replace=True)
    heard.look()
    assert heard.distinct() is None
    heard.hear("gw-2", told((7, 8, 9)))
    assert heard.distinct() == 3, "without the rooms of the source before"


def test_a_gateway_that_is_removed_counts_no_more() -> None:
    heard = Heard(catalog_of(SOURCES))
    heard.hear("gw-1", told((1, 2, 3)))
    heard.heard.forget("gw-1")
    heard.hear("gw-2", told((3, 4), rows=5_000))
    assert heard.distinct() == 2


def test_facts_of_columns_stand_in_the_store_with_their_origin() -> None:
    heard = Heard(catalog_of(SOURCES))
    heard.hear("gw-1", told((1, 2, 3)), now=7)
    fact = heard.facts.find(Subject(SubjectKind.COLUMN, *ROOM), Quantity.DISTINCT)
    assert fact is not None
    assert (fact.value, fact.at, fact.origin) == (3, 7, Origin.COUNTED)
    bytes_of = Subject(SubjectKind.COLUMN, "heat", "level, room")
    heard.facts.put(exact(bytes_of, Quantity.ROW_BYTES, 9.0, 0, Origin.COUNTED))
    assert heard.distinct() == 3


NOTES = "CREATE TABLE Big (id INTEGER, note TEXT); CREATE SOURCE Heat (room TEXT, level INTEGER);"


def of_table(rows: int, values: float) -> SourceCount:
    note = ColumnCount(often=30, nulls=10, size=6_000, distinct=values)
    count = SourceCount(rows, 100, 0, {"note": note}, "Big")
    return decode_packed(encode_packed(count), SourceCount)


def test_columns_of_tables_are_told_by_the_static_engine() -> None:
    heard = Heard(catalog_of(NOTES))
    heard.hear("static", of_table(20_000, 300.0), now=7, stored=True)
    found = KnownColumns(heard.facts, 0)["big", "note"]
    assert (found.distinct, found.common, found.nulls, found.same) == (300, 0.3, 0.1, None)
    assert dict(TextBytes(heard.facts)) == {("big", "note"): 60.0}
    fact = heard.facts.find(Subject(SubjectKind.COLUMN, "big", "note"), Quantity.DISTINCT)
    assert fact is not None
    assert (fact.low, fact.high, fact.at) == (150, 600, 7), "most rows were not looked at"
    assert fact.origin == Origin.TABLES
    heard.hear("static", of_table(100, 2.0), stored=True)
    found = KnownColumns(heard.facts, 0)["big", "note"]
    assert found.distinct == 2, "the table is smaller now, and that is sure"


def test_gateways_count_no_tables_and_the_static_engine_no_sources() -> None:
    heard = Heard(catalog_of(NOTES))
    heard.hear("gw-1", of_table(20_000, 300.0))
    heard.hear("static", told((1, 2, 3)), stored=True)
    assert len(heard.facts) == 0


def test_counts_are_kept_up_to_a_number_of_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    heard = Heard(catalog_of(NOTES))
    monkeypatch.setattr(heard_columns, "MAX_BYTES", 3_500)
    for number in range(40):
        heard.hear(f"gw-{number}", told((number,)))
    assert heard.distinct() == 2, "counts of two gateways are kept"
    heard.heard.forget("gw-0")
    heard.hear("gw-39", told((7, 8, 9), rows=5_000))
    assert heard.distinct() == 4, "there is room for another one"
