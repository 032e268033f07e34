"""Claims of the thesis about its figures, as comparisons with runs.

A comparison is made point by point over the seeds that both sides finished. Where one side did not
finish, what it had cost until then bounds the ratio, if the metric only grows.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from typing_extensions import override

from benchmarks._recursive.trials import Run, Runs
from benchmarks._recursive.virtual_network import Costs

BYTES, ANNOTATION = "bytes_per_site", "provenance_per_row"
STATE, TIME = "state_per_site", "seconds"
METRICS = {BYTES: "bytes", ANNOTATION: "annotation", STATE: "state", TIME: "time"}
GROWING = {BYTES, TIME}
"""Metrics of which a run that was stopped has had at least a part."""

ByFigure = Mapping[int, Runs]
Pair = tuple[str, Sequence[Run], Sequence[Run]]


@dataclass(frozen=True, slots=True)
class Point:
    """One point of a comparison.

    Attributes:
        label: On the horizontal axis.
        value: The ratio, "≥" or "≤" before a bound; or how many runs finished.
        holds: Whether the claim does; None where it cannot be told.
    """

    label: str
    value: str
    holds: bool | None


class Evidence(ABC):
    """Something that a claim rests on."""

    __slots__ = ()

    @property
    @abstractmethod
    def text(self) -> str:
        """The quantity that is compared, and the claimed bound."""

    @property
    def claimed(self) -> bool:
        """Whether the thesis claims a bound; without one the report lists the points."""
        return True

    @abstractmethod
    def points(self, figures: ByFigure) -> Iterator[Point]:
        """Yield the verdict of the runs, point by point."""


class Bounded(Evidence):
    """A ratio in a metric; claimed to be at least a number, or unclaimed (0)."""

    __slots__ = ()

    metric: str
    at_least: float

    @property
    @abstractmethod
    def ratio(self) -> str:
        """The compared schemes."""

    @property
    @override
    def text(self) -> str:
        bound = f" ≥ {self.at_least:.2g}" if self.at_least else ""
        return f"{self.ratio}, {METRICS[self.metric]}{bound}"

    @property
    @override
    def claimed(self) -> bool:
        return self.at_least > 0


@dataclass(frozen=True, slots=True)
class Ratio(Bounded):
    """One scheme over another at every point."""

    figure: int
    upper: str
    lower: str
    metric: str
    at_least: float = 1.0

    @property
    @override
    def ratio(self) -> str:
        return f"{self.upper} / {self.lower}"

    @override
    def points(self, figures: ByFigure) -> Iterator[Point]:
        upper, lower = figures[self.figure].get(self.upper), figures[self.figure].get(self.lower)
        for x in sorted({*(upper or {}), *(lower or {})}):
            pair = (f"{x:g}", (upper or {}).get(x, ()), (lower or {}).get(x, ()))
            yield compared(pair, self.metric, self.at_least)


@dataclass(frozen=True, slots=True)
class Trend(Bounded):
    """One scheme at one point over itself at another."""

    figure: int
    scheme: str
    metric: str
    upper: float
    lower: float
    at_least: float = 1.0

    @property
    @override
    def ratio(self) -> str:
        return self.scheme

    @override
    def points(self, figures: ByFigure) -> Iterator[Point]:
        points = figures[self.figure].get(self.scheme, {})
        label = f"{self.upper:g} over {self.lower:g}"
        pair = label, points.get(self.upper, ()), points.get(self.lower, ())
        yield compared(pair, self.metric, self.at_least)


@dataclass(frozen=True, slots=True)
class Across(Bounded):
    """A scheme at the last point of one figure over the same of another."""

    upper: int
    lower: int
    scheme: str
    metric: str
    at_least: float = 1.0

    @property
    @override
    def ratio(self) -> str:
        return f"{self.scheme}, figure {self.upper} / figure {self.lower}"

    @override
    def points(self, figures: ByFigure) -> Iterator[Point]:
        upper = figures.get(self.upper, {}).get(self.scheme, {})
        lower = figures.get(self.lower, {}).get(self.scheme, {})
        x = max([*upper, *lower], default=1.0)
        yield compared((f"{x:g}", upper.get(x, ()), lower.get(x, ())), self.metric, self.at_least)


@dataclass(frozen=True, slots=True)
class Both(Bounded):
    """Two schemes one after the other, over one that does the work of both."""

    figure: int
    first: str
    second: str
    lower: str
    metric: str
    at_least: float

    @property
    @override
    def ratio(self) -> str:
        return f"({self.first} + {self.second}) / {self.lower}"

    @override
    def points(self, figures: ByFigure) -> Iterator[Point]:
        runs = figures[self.figure]
        for x, lower in runs[self.lower].items():
            second = {run.seed: run.costs for run in runs[self.second].get(x, ())}
            added = [
                Run(run.seed, _sum(run.costs, second[run.seed]))
                for run in runs[self.first].get(x, ())
                if run.costs.finished and run.seed in second and second[run.seed].finished
            ]
            yield compared((f"{x:g}", added, lower), self.metric, self.at_least)


@dataclass(frozen=True, slots=True)
class Unfinished(Evidence):
    """A scheme that is claimed not to finish from a point on."""

    figure: int
    scheme: str
    since: float

    @property
    @override
    def text(self) -> str:
        return f"{self.scheme}, runs that finish (none from {self.since:g} on)"

    @override
    def points(self, figures: ByFigure) -> Iterator[Point]:
        for x, runs in sorted(figures[self.figure].get(self.scheme, {}).items()):
            if x >= self.since:
                done = sum(run.costs.finished for run in runs)
                yield Point(f"{x:g}", f"{done} of {len(runs)}", done == 0)


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of the thesis in our words, and what it rests on."""

    text: str
    evidence: tuple[Evidence, ...]


def compared(pair: Pair, metric: str, at_least: float) -> Point:
    """Return the ratio over the seeds that both sides finished, or a bound of it.

    Examples:
        >>> from benchmarks._recursive.virtual_network import Costs
        >>> def run(seed, size, finished=True):
        ...     return Run(seed, Costs(0.0, size, 0.0, 0.0, finished, 0))
        >>> compared(("1", [run(1, 4.0), run(2, 90.0)], [run(1, 2.0)]), BYTES, 3.0)
        Point(label='1', value='2.00', holds=False)
        >>> compared(("1", [run(1, 8.0, False)], [run(1, 2.0)]), BYTES, 3.0)
        Point(label='1', value='≥ 4.00', holds=True)
    """
    label, upper, lower = pair
    by_seed = {run.seed: run for run in lower}
    both = [(run, by_seed[run.seed]) for run in upper if run.seed in by_seed]
    whole = [(a, b) for a, b in both if a.costs.finished and b.costs.finished]
    if whole:
        value = _quotient(whole, metric)
        return Point(label, _text(value), value >= at_least)
    stopped = [(a, b) for a, b in both if b.costs.finished]
    if stopped and metric in GROWING:
        value = _quotient(stopped, metric)
        return Point(label, f"≥ {_text(value)}", True if value >= at_least else None)
    outlived = [(a, b) for a, b in both if a.costs.finished]
    if outlived and metric in GROWING:
        value = _quotient(outlived, metric)
        return Point(label, f"≤ {_text(value)}", False if value < at_least else None)
    return Point(label, "not finished", None)


def _sum(first: Costs, second: Costs) -> Costs:
    """Return the costs of one run after the other."""
    return replace(
        first,
        bytes_per_site=first.bytes_per_site + second.bytes_per_site,
        seconds=first.seconds + second.seconds,
        messages=first.messages + second.messages,
    )


def _quotient(pairs: Sequence[tuple[Run, Run]], metric: str) -> float:
    upper = sum(_of(run, metric) for run, _ in pairs)
    lower = sum(_of(run, metric) for _, run in pairs)
    return upper / lower if lower else float("inf")


def _of(run: Run, metric: str) -> float:
    return float(getattr(run.costs, metric))


def _text(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:,.0f}"


def _order(figure: int, upper: str, lower: str, *metrics: str) -> tuple[Ratio, ...]:
    return tuple(Ratio(figure, upper, lower, metric) for metric in metrics)


def _inserting(figure: int) -> tuple[Claim, ...]:
    """Return what is said of insertions, of links and of regions alike."""
    relative, absorption = "relative lazy", "absorption lazy"
    return (
        Claim(
            "without deletions DRed is cheapest",
            (
                *_order(figure, absorption, "DRed", BYTES, STATE, TIME),
                *_order(figure, relative, "DRed", BYTES, STATE, TIME),
            ),
        ),
        Claim(
            "relative provenance costs more than absorption in annotation, traffic and state",
            _order(figure, relative, absorption, ANNOTATION, BYTES, STATE),
        ),
        Claim(
            "lazy absorption is the best scheme with provenance",
            (
                *_order(figure, "absorption eager", absorption, ANNOTATION, BYTES, STATE, TIME),
                *_order(figure, relative, absorption, TIME),
            ),
        ),
    )


def _ours(figure: int, *beside: str) -> Claim:
    ratios = [
        Ratio(figure, "witness (ours)", other, metric, at_least=0.0)
        for other in beside
        for metric in (BYTES, ANNOTATION, STATE, TIME)
        if (other, metric) != ("DRed", ANNOTATION)
    ]
    return Claim("(not in the thesis) one witness a row", tuple(ratios))


_LAZY, _DRED = "absorption lazy", "DRed"

CLAIMS: dict[int, tuple[Claim, ...]] = {
    12: (
        *_inserting(12),
        Claim(
            "eager relative provenance does not finish from 0.75 on",
            (Unfinished(12, "relative eager", 0.75),),
        ),
        _ours(12, _DRED, _LAZY),
    ),
    13: (
        Claim(
            "DRed is an order of magnitude worse in traffic and time",
            (Ratio(13, _DRED, _LAZY, BYTES, 10), Ratio(13, _DRED, _LAZY, TIME, 10)),
        ),
        Claim(
            "relative provenance beats DRed in traffic and time, and loses to absorption",
            (
                *_order(13, _DRED, "relative lazy", BYTES, TIME),
                *_order(13, "relative lazy", _LAZY, BYTES, TIME, ANNOTATION, STATE),
            ),
        ),
        _ours(13, _DRED, _LAZY),
    ),
    14: (
        *_inserting(14),
        Claim(
            "less overhead than for links on all four metrics",
            tuple(Across(12, 14, _LAZY, m) for m in (ANNOTATION, BYTES, STATE, TIME)),
        ),
        _ours(14, _DRED, _LAZY),
    ),
    15: (
        Claim(
            "eager does not finish dense networks of 800 links",
            (Unfinished(15, "eager dense", 800),),
        ),
        Claim(
            "lazy is more than ten times better on dense networks",
            (
                Ratio(15, "eager dense", "lazy dense", BYTES, 10),
                Ratio(15, "eager dense", "lazy dense", TIME, 10),
            ),
        ),
        Claim(
            "(not in the thesis) one witness a row",
            tuple(
                Ratio(15, f"witness (ours) {net}", f"lazy {net}", BYTES, 0.0)
                for net in ("dense", "sparse")
            ),
        ),
    ),
    16: (
        Claim(
            "traffic, state and time a site fall with more sites",
            tuple(
                Trend(16, scheme, metric, upper=4, lower=lower)
                for scheme in (_LAZY, _DRED)
                for metric, lower in ((BYTES, 24), (STATE, 24), (TIME, 16))
            ),
        ),
        Claim(
            "time rises from 16 to 24 sites, as the second cluster hangs on a slow link",
            tuple(Trend(16, scheme, TIME, upper=24, lower=16) for scheme in (_LAZY, _DRED)),
        ),
        Claim("DRed has always more traffic and is slower", _order(16, _DRED, _LAZY, BYTES, TIME)),
        _ours(16, _DRED, _LAZY),
    ),
    17: (
        Claim(
            "depth-first order saves up to half of the provenance",
            tuple(
                Ratio(17, f"{ship}, arrival", f"{ship}, {order}", metric, 2.0)
                for ship in ("lazy", "eager")
                for order in ("dfs", "rebuild")
                for metric in (ANNOTATION, BYTES)
            ),
        ),
        Claim(
            "at about the same time (within a tenth)",
            tuple(
                Ratio(17, f"{ship}, arrival", f"{ship}, dfs", TIME, 1 / 1.1)
                for ship in ("lazy", "eager")
            ),
        ),
    ),
    18: (
        Claim(
            "without selection nothing finishes on dense networks",
            (Unfinished(18, "no selection", 4),),
        ),
        Claim(
            "selection saves at least ten times",
            tuple(
                Ratio(18, "no selection", "multi: hops and cost", metric, 10)
                for metric in (BYTES, TIME)
            ),
        ),
        Claim(
            "both aggregates together cost half of a single one",
            tuple(
                Ratio(18, single, "multi: hops and cost", metric, 2)
                for single in ("single: hops", "single: cost")
                for metric in (BYTES, TIME)
            ),
        ),
        Claim(
            "(not in the thesis) one after the other",
            tuple(
                Both(18, "single: hops", "single: cost", "multi: hops and cost", metric, 0.0)
                for metric in (BYTES, TIME)
            ),
        ),
    ),
}
"""By figure. Nothing here knows what will be measured."""
