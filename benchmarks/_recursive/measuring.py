"""Time single updates of several contestants in one session, in rotating order."""

import gc
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from benchmarks._recursive.product import Product
from benchmarks._recursive.recompute import Recompute, recomputers
from benchmarks._recursive.workloads import CHEAPEST, REACHABLE, Link, LinkTrace

WORST_SPREAD = 2.0
"""A ratio of medians whose rounds differ by more than this factor is marked as unsure."""


class Contestant(Protocol):
    """Keeps a view under single updates of links."""

    def load(self, links: tuple[Link, ...]) -> None:
        """Insert many links without being timed."""

    def update(self, sign: int, link: Link) -> Any:
        """Insert (+1) or delete (-1) a link; afterwards the view is right and readable."""

    def digest(self) -> tuple[int, int]:
        """Return the number of rows and the sum of their costs."""


class ProductContestant:
    """The product with a given choice of how to maintain the recursion."""

    def __init__(self, query: str, choice: str = "") -> None:
        script = REACHABLE if query == "reachable" else CHEAPEST
        self._product = Product(f"{script} WITH ({choice})" if choice else script)
        self._costs = query == "cheapest"

    def load(self, links: tuple[Link, ...]) -> None:
        """Insert many links as one change."""
        self._product.update([("link", link, 1) for link in links])

    def update(self, sign: int, link: Link) -> int:
        """Insert or delete a link; return how many rows changed."""
        return self._product.update([("link", link, sign)])

    def digest(self) -> tuple[int, int]:
        """Return the number of rows and the sum of their costs."""
        view: Any = self._product.view
        return len(view), sum(row[2] for row in view) if self._costs else 0


Make = Callable[[LinkTrace], Contestant]


def product(query: str, choice: str = "") -> Make:
    """Return how to make the product."""
    return lambda _trace: ProductContestant(query, choice)


def peers(query: str) -> dict[str, Make]:
    """Return how to make the peers that recompute."""

    def make(compute: Any) -> Make:
        return lambda trace: Recompute(trace, compute)

    return {f"recompute, {name}": make(compute) for name, compute in recomputers(query).items()}


@dataclass(slots=True)
class Phase:
    """Milliseconds of the updates of one phase, by round."""

    rounds: list[list[float]] = field(default_factory=list)

    def quantile(self, share: float) -> float:
        """Return the median over rounds of a quantile."""
        return statistics.median(quantile(values, share) for values in self.rounds)

    @property
    def spread(self) -> float:
        """Largest median of a round over the smallest."""
        medians = [statistics.median(values) for values in self.rounds]
        return max(medians) / max(min(medians), 1e-9)

    def summary(self) -> dict[str, float]:
        """Return the figures that are printed."""
        return {
            "p50_ms": round(self.quantile(0.5), 4),
            "p99_ms": round(self.quantile(0.99), 3),
            "max_ms": round(max(map(max, self.rounds)), 3),
            "spread": round(self.spread, 2),
        }


@dataclass(slots=True)
class Timing:
    """What one contestant took.

    Attributes:
        insert: The last fifth of the insertions, one by one.
        delete: The deletions, one by one.
        digest: Of the view at the end; None where a time limit cut the trace short.
    """

    insert: Phase = field(default_factory=Phase)
    delete: Phase = field(default_factory=Phase)
    digest: tuple[int, int] | None = None

    def summary(self) -> dict[str, Any]:
        """Return the figures that are printed."""
        return {"insert": self.insert.summary(), "delete": self.delete.summary()}


def session(
    trace: LinkTrace, makers: dict[str, Make], *, rounds: int, cap: float = 20.0
) -> dict[str, Timing]:
    """Run all contestants `rounds` times in rotating order over a trace.

    Args:
        trace: What is done.
        makers: By name.
        rounds: At least one.
        cap: Seconds after which a phase of a contestant ends early; such a contestant has no
            digest, and its figures are of the updates it has done.

    Raises:
        AssertionError: Two contestants that finished have different views.
    """
    names = list(makers)
    found = {name: Timing() for name in names}
    for number in range(rounds):
        turn = number % len(names)
        for name in names[turn:] + names[:turn]:
            _run(makers[name](trace), trace, found[name], cap)
    digests = {name: t.digest for name, t in found.items() if t.digest is not None}
    if len(set(digests.values())) > 1:
        raise AssertionError(f"different views on {trace.name}: {digests}")
    return found


def _run(contestant: Contestant, trace: LinkTrace, timing: Timing, cap: float) -> None:
    measured = trace.measured_inserts
    contestant.load(trace.links[:-measured])
    contestant.update(1, trace.links[-measured])  # what is imported or compiled by first use
    gc.collect()
    inserted = _timed(contestant, 1, trace.links[len(trace.links) - measured + 1 :], cap)
    deleted = _timed(contestant, -1, trace.deletions, cap)
    timing.insert.rounds.append(inserted)
    timing.delete.rounds.append(deleted)
    complete = len(inserted) == measured - 1 and len(deleted) == len(trace.deletions)
    timing.digest = contestant.digest() if complete else None


def _timed(contestant: Contestant, sign: int, links: Sequence[Link], cap: float) -> list[float]:
    took: list[float] = []
    end = time.perf_counter() + cap
    for number, link in enumerate(links):
        start = time.perf_counter()
        contestant.update(sign, link)
        now = time.perf_counter()
        took.append((now - start) * 1_000)
        if now > end:
            for rest in links[number + 1 :]:
                _skip(contestant, sign, rest)
            break
    return took


def _skip(contestant: Contestant, sign: int, link: Link) -> None:
    """Change what a recomputing peer will compute from, without computing."""
    if isinstance(contestant, Recompute) and sign > 0:
        contestant.load((link,))


def quantile(values: Sequence[float], share: float) -> float:
    """Return a quantile of a non-empty sequence."""
    return sorted(values)[min(int(len(values) * share), len(values) - 1)]
