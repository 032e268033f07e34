"""Bytes of rows: counted ones for the columns that a plan sends, in any order."""

from statistics import fmean

import msgspec
import pytest

from federated_optimizer.costs.relations.estimates import row_bytes
from federated_optimizer.costs.relations.size_and_motion import Estimate
from federated_optimizer.costs.sent_columns import sent_bytes, sent_columns
from federated_optimizer.costs.shipments import ROW_BYTES
from federated_optimizer.cutting.taken_plans import Taken
from federated_optimizer.network.topology import Topology
from federated_optimizer.planning import normalize
from federated_optimizer.search.cut_prices import CutPrices
from federated_optimizer.statistics.default_facts import TEXT_BYTES
from federated_optimizer.statistics.planning_statistics import ColumnFacts, Statistics
from streamsql.algebra.operators import Join, JoinKind, Plan, Scan, ScanPart, walk_plan
from streamsql.wire.codec import encode_packed
from streamsql.wire.messages import DeltaBatch, WeightedRow
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


def counted(*numbers: float) -> ColumnFacts:
    return ColumnFacts(float(len(set(numbers))), 1.0, same=0.1, deciles=tuple(sorted(numbers)))


@pytest.mark.parametrize("numbers", [(20.5,) * 11, (1 / 3,) * 11, (5.0,) * 6 + (1234.5678,) * 5])
def test_numbers_are_as_long_as_the_encoder_writes_them(numbers: tuple[float, ...]) -> None:
    plan = plan_of("SELECT celsius FROM heat")
    known = Statistics(columns={("heat", "celsius"): counted(*numbers)})
    batches = [DeltaBatch(1, 1, 1, "f", (WeightedRow((n,), 1),)) for n in numbers]
    empty = len(encode_packed(DeltaBatch(1, 1, 1, "f")))
    written = fmean(len(encode_packed(batch)) - empty for batch in batches)
    assert sent_bytes(plan, known) + ROW_BYTES == pytest.approx(written)


def test_of_a_row_in_the_place_of_another_one_only_what_differs_is_sent() -> None:
    plan = plan_of("SELECT note, celsius FROM heat")
    facts = {("heat", "note"): ColumnFacts(9.0, 9.0, same=0.75), ("heat", "celsius"): counted(20.5)}
    known = Statistics(columns=facts, text_bytes={("heat", "note"): 40.0})
    alone, paired = (Estimate(10.0, 1.0, 1.0, replaced=share) for share in (0.0, 1.0))
    whole = sent_bytes(plan, known, alone)
    assert whole == sent_bytes(plan, known)
    text, number = 42.0, whole - 2.0 - 42.0
    saved = text * 0.75 + number * 0.1
    assert sent_bytes(plan, known, paired) == pytest.approx(whole - saved / 2)


def test_rows_of_a_group_have_its_columns_once() -> None:
    plan = plan_of("SELECT note, MAX(celsius) AS c FROM heat GROUP BY note")
    known = Statistics(text_bytes={("heat", "note"): 40.0})
    paired = Estimate(10.0, 1.0, 1.0, replaced=1.0)
    assert sent_bytes(plan, known, paired) == sent_bytes(plan, known) - 42.0 / 2


def test_a_source_whose_progress_is_read_beside_it_keeps_its_columns() -> None:
    """Progress has other columns: the third one of the source is beyond them."""
    known = Statistics(text_bytes={("heat", "note"): 60.0})
    rows = plan_of("SELECT note FROM heat")
    (scan,) = (node for node in walk_plan(rows) if isinstance(node, Scan))
    progress = msgspec.structs.replace(scan, part=ScanPart.PROGRESS)
    joined = Join(rows, progress, JoinKind.INNER, keys=((0, 0),))
    longer = sent_bytes(joined, known) - sent_bytes(joined, Statistics())
    assert longer == sent_bytes(rows, known) - sent_bytes(rows, Statistics()) > 50
