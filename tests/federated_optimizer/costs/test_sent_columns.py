"""Bytes of rows: counted ones for the columns that a plan sends, in any order."""

import pytest

from federated_optimizer.costs.estimates import row_bytes
from federated_optimizer.costs.sent_columns import sent_bytes, sent_columns
from federated_optimizer.cutting.taken_plans import Taken
from federated_optimizer.network.topology import Topology
from federated_optimizer.planning import normalize
from federated_optimizer.search.cut_prices import CutPrices
from federated_optimizer.statistics.default_facts import TEXT_BYTES
from federated_optimizer.statistics.planning_statistics import Statistics
from streamsql.algebra.operators import Plan
from streamsql.wire.codec import encode_packed
from tests.streamsql.from_text import bound_query, catalog_of

CATALOG = catalog_of(
    "CREATE SOURCE Heat (room TEXT, celsius DOUBLE, note TEXT);"
    "CREATE SOURCE Door (room TEXT, open BOOLEAN);"
)
SITES = Topology({"gw": frozenset({"heat", "door"})})


def plan_of(text: str) -> Plan:
    return normalize(bound_query(text, CATALOG).plan, SITES)


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("SELECT room, celsius FROM heat", ("heat", "celsius, room")),
        ("SELECT h.celsius, h.room AS r FROM heat h", ("heat", "celsius, room")),
        ("SELECT DISTINCT note FROM heat WHERE celsius > 3.0", ("heat", "note")),
        ("SELECT note FROM heat [RANGE 5 SECONDS]", ("heat", "note")),
        ("SELECT celsius * 2.0 AS twice FROM heat", None),
        ("SELECT room, COUNT(*) AS n FROM heat GROUP BY room", None),
        ("SELECT h.room FROM heat h JOIN door d ON h.room = d.room", None),
    ],
)
def test_plans_that_only_leave_out_send_columns(text: str, columns: tuple[str, str] | None) -> None:
    assert sent_columns(plan_of(text)) == columns


def test_counted_bytes_take_the_place_of_those_of_types() -> None:
    known = Statistics(row_bytes={("heat", "celsius, room"): 44.0})
    sent, other = plan_of("SELECT room, celsius FROM heat"), plan_of("SELECT note FROM heat")
    assert sent_bytes(sent, known) == 44.0
    assert sent_bytes(other, known) == row_bytes(other.schema)
    assert sent_bytes(sent, Statistics()) == row_bytes(sent.schema)


@pytest.mark.parametrize("size", [0.0, 5.0, 60.0, 3_000.0])
@pytest.mark.parametrize(
    "text",
    [
        "SELECT note FROM heat",
        "SELECT note, MAX(celsius) AS c FROM heat GROUP BY note",
        "SELECT h.note FROM heat h JOIN door d ON h.room = d.room",
    ],
)
def test_texts_are_as_long_as_they_were_counted(text: str, size: float) -> None:
    plan = plan_of(text)
    known = Statistics(text_bytes={("heat", "note"): size})
    written = len(encode_packed("x" * int(size)))
    assert sent_bytes(plan, known) - sent_bytes(plan, Statistics()) == written - TEXT_BYTES.value


def test_prices_of_shipments_follow_what_was_counted() -> None:
    plan = plan_of("SELECT room, celsius FROM heat")
    prices = [
        CutPrices.of(Taken(plan), SITES, Statistics(row_bytes=known)).bytes
        for known in ({}, {("heat", "celsius, room"): 1_000.0})
    ]
    assert prices[1] > 5 * prices[0]
