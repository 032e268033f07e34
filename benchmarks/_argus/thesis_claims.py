"""Claims of the thesis, and goals of the product, each against what was measured here."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple

from benchmarks._argus.configurations import OFF, WANTED_TWICE

ALL, MATCH_PLAN, NO_CANONICAL = "all", "match plan", "no canonical forms"
NEITHER, NO_JOINS = "match plan without canonical forms", "no joins"

Found = Mapping[str, Any]
LATEST = 0
"""The round with the most queries that both configurations have reached."""

_SIZE, _UPDATE, _RATE = "weighted", "update_ms_median", "registrations_a_second"
_EACH = "update_ms"
"""Of each batch of a round, in order: the same batches in all configurations."""


class Verdict(NamedTuple):
    """A claim, and what came of it.

    Attributes:
        words: The claim.
        thesis: The thesis' figure; empty: the claim is ours alone.
        ours: What was measured, in words.
        held: None: not measured.
        product: What was measured of the product's default, likewise; empty: not measured.
    """

    words: str
    thesis: str
    ours: str
    held: bool | None
    product: str = ""


class Ratio(NamedTuple):
    """A claim that a figure is so many times as large without something as with all sharing.

    Attributes:
        queries: Of the round; `LATEST` if the claim is of the end.
        least: The ratio that has to be reached.
    """

    set: str
    label: str
    without: str
    queries: int
    least: float

    def verdict(self, sets: Mapping[str, Found]) -> Verdict:
        """Return what came of it."""
        thing = "size" if self.label == _SIZE else "update"
        at = "at the end" if self.queries == LATEST else f"at {self.queries} queries"
        words = f"{self.set}: {thing} with “{self.without}” over “{ALL}”, {at}"
        measured = ratio_of(sets.get(self.set), self.label, self.without, self.queries)
        if measured is None:
            return Verdict(words, f"{self.least:g}", "not measured", None)
        queries, value = measured
        # A claim of the end says nothing of a part of the queries.
        whole = self.queries != LATEST or queries == sets[self.set]["queries"]
        held = value >= self.least if whole else None
        default = ratio_of(sets[self.set], self.label, self.without, self.queries, WANTED_TWICE)
        said = "" if default is None else f"{default[1]:.2f} ({default[0]} queries)"
        return Verdict(words, f"{self.least:g}", f"{value:.2f} ({queries} queries)", held, said)


RATIOS = (
    Ratio("fed", _SIZE, NO_JOINS, LATEST, 10.2),
    Ratio("fed", _SIZE, NO_CANONICAL, LATEST, 2.4),
    Ratio("fed", _SIZE, MATCH_PLAN, LATEST, 1.43),
    Ratio("fed", _UPDATE, NO_JOINS, 300, 39.6),
    Ratio("fed", _UPDATE, NO_JOINS, LATEST, 5.8),
    Ratio("fed", _UPDATE, NO_CANONICAL, 400, 21.6),
    Ratio("fed", _UPDATE, NO_CANONICAL, LATEST, 2.25),
    Ratio("fed", _UPDATE, NEITHER, 400, 22.7),
    Ratio("fed", _UPDATE, NEITHER, LATEST, 2.9),
    Ratio("fed", _UPDATE, MATCH_PLAN, 500, 4.65),
    Ratio("fed", _UPDATE, MATCH_PLAN, LATEST, 1.21),
    Ratio("med", _SIZE, NO_JOINS, LATEST, 2.11),
    Ratio("med", _SIZE, NO_CANONICAL, LATEST, 1.05),
    Ratio("med", _SIZE, MATCH_PLAN, LATEST, 1.02),
    Ratio("med", _UPDATE, NO_JOINS, 300, 1.9),
    Ratio("med", _UPDATE, NO_JOINS, LATEST, 1.86),
    Ratio("med", _UPDATE, NO_CANONICAL, LATEST, 1.08),
    Ratio("med", _UPDATE, MATCH_PLAN, 300, 1.36),
    Ratio("med", _UPDATE, MATCH_PLAN, LATEST, 1.1),
    Ratio("fed-sums", _UPDATE, OFF, 150, 40.3),
    Ratio("fed-sums", _UPDATE, OFF, LATEST, 35.2),
    Ratio("med-sums", _UPDATE, OFF, 250, 1.5),
    Ratio("med-sums", _UPDATE, OFF, LATEST, 1.27),
)
"""Claims of the thesis with its figures; the last round is the one with all queries."""

NEVER_SLOWER = 1.05
"""An update that takes this many times as long as another one counts as slower."""

REGISTRATIONS = 200.0
"""A second, at the end of a set."""


def verdicts(sets: Mapping[str, Found]) -> list[Verdict]:
    """Return all claims and what came of them."""
    return [
        *(claim.verdict(sets) for claim in RATIOS),
        *(_never_slower(name, sets[name]) for name in ("fed", "med") if name in sets),
        *(_registrations(name, sets[name]) for name in sets),
    ]


def ratio_of(
    found: Found | None, label: str, without: str, queries: int, shared: str = ALL
) -> tuple[int, float] | None:
    """Return the queries of a round, and a configuration's figure over that of a shared network.

    Returns:
        None: no round has both, or none has so many queries.
    """
    for queries_there, by_name in reversed(_both(found, without, label, shared)):
        if queries in (LATEST, queries_there):
            least = by_name[shared][label]
            return queries_there, by_name[without][label] / least if least else float("inf")
    return None


def _both(
    found: Found | None, other: str, label: str, shared: str = ALL
) -> list[tuple[int, Mapping[str, Found]]]:
    """Return the rounds in which a shared network and another configuration have a figure."""
    return [
        (each["queries"], each["configurations"])
        for each in (found or {"rounds": ()})["rounds"]
        if all(label in each["configurations"].get(name, ()) for name in (shared, other))
    ]


def _never_slower(name: str, found: Found) -> Verdict:
    """Judge by the median of what each batch took in one over the other.

    Batches of a round change up to three times as many rows as others: the medians of both may be
    of different batches, and on a busy machine differ by a quarter where no batch does.
    """
    words = f"{name}: “{ALL}” is never slower than “{MATCH_PLAN}”"
    both = _both(found, MATCH_PLAN, _EACH)
    if not both:
        return Verdict(words, "slower up to 300 (fed)", "not measured", None)
    slowest = max(
        (_median_ratio(by_name[ALL][_EACH], by_name[MATCH_PLAN][_EACH]), queries)
        for queries, by_name in both
    )
    told = f"at most {slowest[0]:.2f} times as long (at {slowest[1]} queries)"
    return Verdict(words, "slower up to 300 (fed)", told, slowest[0] <= NEVER_SLOWER)


def _median_ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    return median(mine / other for mine, other in zip(ours, theirs, strict=True))


def _registrations(name: str, found: Found) -> Verdict:
    words = f"{name}: {REGISTRATIONS:g} registrations a second in the last round"
    rounds = _both(found, ALL, _RATE)
    if not rounds:
        return Verdict(words, "", "not measured", None)
    queries, by_name = rounds[-1]
    rate = by_name[ALL][_RATE]
    whole = queries == found["queries"]
    told = f"{rate:g} ({queries} queries)"
    return Verdict(words, "", told, rate >= REGISTRATIONS if whole else None)
