"""The sets of queries, each with the stream that it reads."""

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks._argus import analysts, cases_of_disease, chains_of_transfers, sums_of_transfers
from benchmarks._argus.arriving_rows import Sizes, Stream
from benchmarks._argus.asked import Asked
from benchmarks._argus.bank_transfers import transfers
from benchmarks._argus.hospital_admissions import admissions

DRAWN = 1_000
ANALYSTS = 50


@dataclass(frozen=True, slots=True)
class QuerySet:
    """Queries in the order in which they are registered.

    Attributes:
        title: For tables.
        stream: Makes the rows.
        history: Rows before the first query, in the thesis.
        queries: Makes the queries.
        step: Figures are taken after so many more queries.
        aggregates: The set is one of aggregates.
    """

    title: str
    stream: Callable[[Sizes, int], Stream]
    history: int
    queries: Callable[[], list[Asked]]
    step: int = 100
    aggregates: bool = False


FED_HISTORY, MED_HISTORY = 300_000, 600_000
"""Rows of the thesis; its text says 600,000 of MED."""
BATCH = 4_000

SETS = {
    "fed": QuerySet("FED by hand", transfers, FED_HISTORY, chains_of_transfers.by_hand),
    "med": QuerySet("MED", admissions, MED_HISTORY, cases_of_disease.selections_and_joins),
    "fed-sums": QuerySet(
        "FED aggregates", transfers, FED_HISTORY, sums_of_transfers.aggregates, 50, aggregates=True
    ),
    "med-sums": QuerySet(
        "MED aggregates", admissions, MED_HISTORY, cases_of_disease.aggregates, 50, aggregates=True
    ),
    "uniform": QuerySet(
        "FED uniform",
        transfers,
        FED_HISTORY,
        lambda: chains_of_transfers.drawn(chains_of_transfers.uniform, DRAWN, 1),
    ),
    "normal": QuerySet(
        "FED normal",
        transfers,
        FED_HISTORY,
        lambda: chains_of_transfers.drawn(chains_of_transfers.normal, DRAWN, 2),
    ),
    "mixture": QuerySet(
        "FED mixture",
        transfers,
        FED_HISTORY,
        lambda: chains_of_transfers.drawn(chains_of_transfers.mixture, DRAWN, 3),
    ),
    "analysts": QuerySet(
        "analysts", transfers, FED_HISTORY, lambda: analysts.sequences(ANALYSTS, 4)
    ),
}
"""By the name that `--sets` knows."""
