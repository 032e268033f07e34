"""Time single updates of several contestants, who take turns update by update."""

import gc
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from benchmarks._recursive.product import Product
from benchmarks._recursive.recompute import Recompute, recomputers
from benchmarks._recursive.workloads import CHEAPEST, REACHABLE, Link, LinkTrace
from gateway.__main__ import COLLECTIONS

PATIENCE = 5
"""How many times as long as its peers ours may take, so that its tail is seen; and a process of its
own, whose time is that of the wall."""


class Contestant(Protocol):
    """Keeps a view under single updates of links."""

    def load(self, links: tuple[Link, ...]) -> None:
        """Insert many links without being timed."""

    def update(self, sign: int, link: Link) -> Any:
        """Insert (+1) or delete (-1) a link; afterwards the view is right and readable."""

    def digest(self) -> tuple[int, int]:
        """Return the number of rows and the sum of their costs."""


class ProductContestant:
    """The product with a given choice of how to maintain the recursion.

    Attributes:
        changed: How many rows of the view the last update changed.
    """

    def __init__(self, query: str, choice: str = "") -> None:
        script = REACHABLE if query == "reachable" else CHEAPEST
        self._product = Product(f"{script} WITH ({choice})" if choice else script)
        self._costs = query == "cheapest"
        self.changed = 0

    def load(self, links: tuple[Link, ...]) -> None:
        """Insert many links as one change."""
        self._product.update([("link", link, 1) for link in links])

    def update(self, sign: int, link: Link) -> None:
        """Insert or delete a link."""
        self.changed = self._product.update([("link", link, sign)])

    def digest(self) -> tuple[int, int]:
        """Return the number of rows and the sum of their costs."""
        view: Any = self._product.view
        return len(view), sum(row[2] for row in view) if self._costs else 0


Make = Callable[[LinkTrace], Contestant]


def product(query: str, choice: str = "") -> Make:
    """Return how to make the product."""
    return lambda _trace: ProductContestant(query, choice)


def peers(query: str) -> dict[str, Make]:
    """Return how to make the peers that recompute; each also with its changed rows listed."""

    def make(compute: Any, *, listed: bool) -> Make:
        return lambda trace: Recompute(trace, compute, listed=listed)

    found: dict[str, Make] = {}
    for name, compute in recomputers(query).items():
        found[f"recompute, {name}"] = make(compute, listed=False)
        found[f"recompute, {name}, rows listed"] = make(compute, listed=True)
    return found


@dataclass(slots=True)
class Phase:
    """Milliseconds of the updates of one phase, by round.

    A contestant that had no time left did fewer updates than others, from the first on.

    Attributes:
        rounds: On the wall, of every update that was done.
        cpu: Of this process, of the same updates: what other programs take is not in it.
        visible: Which updates changed the view, also those that were not done.
    """

    rounds: list[list[float]] = field(default_factory=list)
    cpu: list[list[float]] = field(default_factory=list)
    visible: list[list[bool]] = field(default_factory=list)

    def first(self, counts: Sequence[int]) -> "Phase":
        """Return the first updates of every round."""
        rounds = [values[:count] for values, count in zip(self.rounds, counts, strict=True)]
        cpu = [values[:count] for values, count in zip(self.cpu, counts, strict=True)]
        return Phase(rounds, cpu, self.visible)

    def all_cpu(self) -> list[float]:
        """Return the milliseconds of processor time of all updates."""
        return [value for values in self.cpu for value in values]

    def all(self) -> list[float]:
        """Return the milliseconds of all updates."""
        return [value for values in self.rounds for value in values]

    def seen(self) -> list[float]:
        """Return the milliseconds of the updates that changed the view."""
        pairs = zip(self.rounds, self.visible, strict=True)
        return [
            value
            for values, marks in pairs
            for value, mark in zip(values, marks, strict=False)
            if mark
        ]

    def summary(self) -> dict[str, float]:
        """Return the figures that are printed."""
        values, seen, cpu = self.all(), self.seen(), self.all_cpu()
        return {
            "updates": len(values),
            "visible": len(seen),
            "p50_ms": round(quantile(values, 0.5), 4),
            **({"visible_p50_ms": round(quantile(seen, 0.5), 4)} if seen else {}),
            "mean_ms": round(statistics.fmean(values), 4),
            "p99_ms": round(quantile(values, 0.99), 3),
            "max_ms": round(max(values), 3),
            "mean_cpu_ms": round(statistics.fmean(cpu), 4),
            "max_cpu_ms": round(max(cpu), 3),
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
        parts = {"insert": self.insert, "delete": self.delete}
        return {name: phase.summary() for name, phase in parts.items() if phase.all()}


def same_updates(over: Phase, under: Phase) -> tuple[Phase, Phase]:
    """Return two phases cut to the updates that both have done."""
    counts = [min(len(a), len(b)) for a, b in zip(over.rounds, under.rounds, strict=True)]
    return over.first(counts), under.first(counts)


def session(
    trace: LinkTrace, makers: dict[str, Make], *, rounds: int, cap: float = 20.0
) -> dict[str, Timing]:
    """Let all contestants follow a trace, taking turns at every update in rotating order.

    Args:
        trace: What is done.
        makers: By name. One of them is the product, which says what updates change.
        rounds: At least one.
        cap: Seconds of processor time that a contestant may take for a phase, so that the load of
            the machine does not decide; `PATIENCE` times as much for ours, and for another process
            on the wall. One that has taken more does no more of it, has no digest, and its figures
            are of what it has done.

    Raises:
        AssertionError: Two contestants that finished have different views.
    """
    found = {name: Timing() for name in makers}
    for _ in range(rounds):
        _round(trace, makers, found, cap)
    digests = {name: t.digest for name, t in found.items() if t.digest is not None}
    if len(set(digests.values())) > 1:
        raise AssertionError(f"different views on {trace.name}: {digests}")
    return found


def _round(trace: LinkTrace, makers: dict[str, Make], found: dict[str, Timing], cap: float) -> None:
    measured = trace.measured_inserts
    made = {name: make(trace) for name, make in makers.items()}
    for contestant in made.values():
        contestant.load(trace.links[:-measured])
        contestant.update(1, trace.links[-measured])  # what is imported or compiled by first use
    threshold = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECTIONS)  # as in a site's process
    try:
        inserted = trace.links[len(trace.links) - measured + 1 :]
        _take_turns(made, 1, inserted, {n: t.insert for n, t in found.items()}, cap)
        late = [name for name in made if len(found[name].insert.rounds[-1]) < len(inserted)]
        for name in late:
            made[name].load(tuple(inserted[len(found[name].insert.rounds[-1]) :]))
            made[name].digest()  # a peer that recomputes does so only when it is asked
        _take_turns(made, -1, trace.deletions, {n: t.delete for n, t in found.items()}, cap)
    finally:
        gc.set_threshold(*threshold)
        gc.unfreeze()
    for name, contestant in made.items():
        complete = len(found[name].delete.rounds[-1]) == len(trace.deletions)
        found[name].digest = contestant.digest() if complete else None
        _close(contestant)


def _take_turns(
    made: dict[str, Contestant],
    sign: int,
    links: Sequence[Link],
    phases: dict[str, Phase],
    cap: float,
) -> None:
    names, left = list(made), dict.fromkeys(made, cap)
    for name, contestant in made.items():
        if isinstance(contestant, ProductContestant) or hasattr(contestant, "close"):
            left[name] *= PATIENCE
    took: dict[str, list[float]] = {name: [] for name in names}
    cpu: dict[str, list[float]] = {name: [] for name in names}
    visible: list[bool] = []
    teller = next(c for c in made.values() if isinstance(c, ProductContestant))
    telling = next(name for name, contestant in made.items() if contestant is teller)
    for number, link in enumerate(links):
        if left[telling] <= 0:
            break
        turn = number % len(names)
        for name in names[turn:] + names[:turn]:
            if left[name] <= 0:
                continue
            start, worked = time.perf_counter(), time.process_time()
            made[name].update(sign, link)
            seconds, worked = time.perf_counter() - start, time.process_time() - worked
            cpu[name].append(worked * 1_000)
            took[name].append(seconds * 1_000)
            left[name] -= seconds if hasattr(made[name], "close") else worked
        visible.append(teller.changed > 0)
    for name in names:
        phases[name].rounds.append(took[name])
        phases[name].cpu.append(cpu[name])
        phases[name].visible.append(visible)


def _close(contestant: Contestant) -> None:
    """End a contestant that is a process of its own."""
    close = getattr(contestant, "close", None)
    if close is not None:
        close()


def quantile(values: Sequence[float], share: float) -> float:
    """Return a quantile of a non-empty sequence."""
    return sorted(values)[min(int(len(values) * share), len(values) - 1)]
