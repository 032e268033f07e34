"""Facts about a column that several gateways have counted, against counts of all readings."""

import random
from collections import Counter

import pytest

from federated_optimizer.statistics.fact import (
    DECILES,
    Fact,
    Origin,
    Quantity,
    Subject,
    SubjectKind,
)
from federated_optimizer.statistics.merged_columns import column_facts, merged_deciles
from stream_engine.site.site_sources import SiteSources
from streamsql.data.events import SourceEvent
from streamsql.wire.bounds import MAX_PAYLOAD_BYTES
from streamsql.wire.site_messages import MOST_HASHES, ColumnCount, SourceCount
from tests.streamsql.from_text import catalog_of

SUBJECT = Subject(SubjectKind.COLUMN, "log", "n")
SCAN = catalog_of("CREATE SOURCE log (n INTEGER);").sources[0].scan()
SECOND = 1_000_000


def counted(numbers: list[int | None]) -> SourceCount:
    """Counts that a gateway makes of readings that come one a second."""
    sources, told = SiteSources("gw"), SourceCount(0, 0, 0, {})
    sources.declare(SCAN, 0)
    for number, value in enumerate(numbers):
        now = number * SECOND
        sources.ingest("log", [SourceEvent((value,), now)], "")
        sources.advance(now)
        told = sources.columns.report(now).get("log", told)
    # What came since the last report is told with the next one.
    return sources.columns.report((len(numbers) + 1_000) * SECOND).get("log", told)


def facts_of(*counts: SourceCount) -> dict[Quantity, Fact]:
    parts = [(count, count.columns["n"]) for count in counts]
    return {fact.quantity: fact for fact in column_facts(SUBJECT, parts, 5)}


def test_values_of_all_gateways_are_counted_once() -> None:
    first = counted([n % 20 for n in range(400)])
    second = counted([10 + n % 20 for n in range(400)])
    found = facts_of(first, second)
    for quantity, value in ((Quantity.DISTINCT, 30), (Quantity.LOCAL_DISTINCT, 20)):
        fact = found[quantity]
        assert (fact.value, fact.low, fact.high) == (value, value, value)
    assert (found[Quantity.LEAST].value, found[Quantity.GREATEST].value) == (0, 29)
    assert Quantity.SAME not in found, "a log has no reading before"


@pytest.mark.parametrize("seed", range(12))
def test_numbers_are_in_their_ranges(seed: int) -> None:
    chance = random.Random(seed)
    weights = [1 / (k + 1) ** chance.choice((0.0, 1.0, 1.5)) for k in range(500)]
    parts = [
        [
            None if chance.random() < 0.1 else value
            for value in chance.choices(range(500), weights, k=count)
        ]
        for count in (700, 1_500, 300)
    ]
    found = facts_of(*map(counted, parts))
    every = [value for part in parts for value in part]
    present = sorted(value for value in every if value is not None)

    def holds(quantity: Quantity, value: float) -> None:
        fact = found[quantity]
        # A range of 95 % is left now and then, but not by much.
        off = (fact.high - fact.low) / 2 + 0.01 * abs(value)
        assert fact.low - off <= value <= fact.high + off, (quantity, value, fact)

    holds(Quantity.DISTINCT, len(set(present)))
    holds(Quantity.LOCAL_DISTINCT, sum(len(set(p) - {None}) for p in parts) / 3)
    holds(Quantity.COMMON, max(Counter(present).values()) / len(every))
    holds(Quantity.NULLS, every.count(None) / len(every))
    for place, quantity in enumerate(DECILES[1:-1], start=1):
        holds(quantity, present[round(place / 10 * (len(present) - 1))])


def test_a_common_value_of_one_gateway_weighs_as_its_readings() -> None:
    found = facts_of(counted([1] * 90), counted([n % 10 + 2 for n in range(900)]))
    assert found[Quantity.COMMON].value == pytest.approx(0.1, abs=0.03)


def test_a_mean_text_is_that_of_all_readings_and_earlier_gateways_do_not_say_it() -> None:
    few, many, silent = (
        SourceCount(rows, 10, 0, {"n": ColumnCount(size=size)})
        for rows, size in ((100, 500), (300, 100), (900, None))
    )
    found = facts_of(few, many, silent)[Quantity.TEXT_BYTES]
    assert (found.value, found.low, found.high) == (20.0, 10.0, 50.0)
    assert Quantity.TEXT_BYTES not in facts_of(silent)


def test_what_makes_no_sense_is_no_fact_of_more_than_there_is() -> None:
    """Counts come from other sites: they may say anything."""
    absurd = ColumnCount(b"abc", 5, often=900, nulls=800, same=700, deciles=(1.0, 2.0))
    found = facts_of(SourceCount(10, 0, 3, {"n": absurd}), SourceCount(10, 5, 3, {"n": absurd}))
    assert found[Quantity.DISTINCT].value == 0
    for quantity in (Quantity.COMMON, Quantity.NULLS, Quantity.SAME):
        assert 0.0 <= found[quantity].value <= 1.0
    assert Quantity.MEDIAN not in found


@pytest.mark.parametrize("origin", [Origin.COUNTED, Origin.TABLES])
def test_a_column_has_no_more_values_than_rows_and_no_text_longer_than_a_message(
    origin: Origin,
) -> None:
    least = b"".join(number.to_bytes(4, "big") for number in range(MOST_HASHES))
    for told in (ColumnCount(least), ColumnCount(size=2**62, distinct=1e308)):
        parts = [(SourceCount(rows, 1, 0, {"n": told}), told) for rows in (2, 3)]
        found = {fact.quantity: fact for fact in column_facts(SUBJECT, parts, 5, origin)}
        whole, local = found[Quantity.DISTINCT], found[Quantity.LOCAL_DISTINCT]
        assert 0 <= whole.low <= whole.value <= whole.high <= 5
        assert 0 <= local.low <= local.value <= local.high <= 2.5
        if told.size is not None:
            size = found[Quantity.TEXT_BYTES]
            assert size.low == size.value == size.high == MAX_PAYLOAD_BYTES


def test_how_many_values_a_stream_has_is_not_told_but_follows_from_hashes() -> None:
    told = ColumnCount(bytes(4), distinct=900.0)
    parts = [(SourceCount(1_000, 100, 0, {"n": told}), told)]
    gateway, static = (
        {fact.quantity: fact.value for fact in column_facts(SUBJECT, parts, 5, origin)}
        for origin in (Origin.COUNTED, Origin.TABLES)
    )
    assert gateway[Quantity.DISTINCT] == gateway[Quantity.LOCAL_DISTINCT] == 1
    assert static[Quantity.DISTINCT] == static[Quantity.LOCAL_DISTINCT] == 900


def test_deciles_of_gateways_with_more_readings_weigh_more() -> None:
    low, high = (tuple(start + float(n) for n in range(11)) for start in (0.0, 100.0))
    assert merged_deciles([(900, low), (100, high)])[5] < 11
    assert merged_deciles([(100, low), (900, high)])[5] > 99
    assert merged_deciles([(5, ()), (5, (1.0,))]) == ()
