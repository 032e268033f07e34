"""Does a recursion with expiring base rows run for ever in bounded memory?

Links between the nodes of a room are heard again and again, each time for 30 minutes (simulated);
what was not heard again expires. The view is who reaches whom. Three subjects: the fixpoint
operator alone, three sites computing together over encoded messages, and a whole site engine that
reads the links from a source with a time to live, each in a process of its own. Resident memory and
the size of everything that is kept are sampled; the second half of the run must not need more than
the first. The index from tokens to rows is cleared from time to time: a half in which that has not
happened says nothing about it, so it is judged only where it has, and how often is told.

    pando bench recursive_soak --quick
    python -m benchmarks.recursive_soak --out docs/results
"""

import argparse
import gc
import json
import multiprocessing
import random
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import psutil
from msgspec.structs import replace
from rich.console import Console
from rich.progress import track

from stream_engine.recursion.absorption.fixpoint_operator import FixpointOperator
from stream_engine.recursion.program.fixpoint_options import RecursionOptions
from stream_engine.simulation.fragmentations import everywhere
from stream_engine.site.site_engine import SiteEngine
from stream_engine.testing.recursion_ensembles import Ensemble
from stream_engine.testing.recursion_programs import LINK, reachable
from stream_engine.testing.recursion_sizes import sizes_of
from streamsql.algebra.choices import Shipping, Strategy
from streamsql.algebra.operators import Fixpoint, RecursionChoice
from streamsql.data.events import SourceEvent
from streamsql.data.types import Row

LIFE = 30 * 60 * 1_000_000
"""How long a link lives after it was heard, in microseconds."""

LEAST_BETWEEN = 250
"""Updates between two samples, which collect garbage first."""

ROOMS, NODES_A_ROOM, LINKS_ALIVE = 40, 6, 300
SAMPLES = 400
SLACK_SHARE, SLACK_COUNT, SLACK_BYTES = 0.15, 50, 3_000_000
SLACK = {"unswept tokens": 2_000}
"""What the second half may need more than the first: sizes vary with the random links alive, and
what is dead is cleared away from time to time."""

SAWTOOTH = "mentions"
"""The index that grows until it is cleared as a whole."""

SHARE = {"alone": 1.0, "sites": 0.6, "engine": 0.3}
"""Of the updates, by subject: those with messages and sources take longer."""


def heard(seed: int) -> Iterator[tuple[int, Row]]:
    """Yield times and links heard, for ever."""
    choice = random.Random(seed)
    now = 0
    while True:
        now += LIFE // LINKS_ALIVE
        room = choice.randrange(ROOMS)
        source, target = choice.sample(range(NODES_A_ROOM), 2)
        yield now, (f"r{room}n{source}", f"r{room}n{target}", 1)


class Subject(Protocol):
    """Something that keeps the view."""

    def hear(self, now: int, link: Row) -> None:
        """Take in a link heard; let pass what has expired."""

    def state(self) -> dict[str, int]:
        """Return the sizes of all that is kept."""

    def rows(self) -> set[Row]:
        """Return the view."""


class Expiring:
    """The links alive; tells which come and go."""

    def __init__(self) -> None:
        self.until: dict[Row, int] = {}

    def hear(self, now: int, link: Row) -> dict[Row, int]:
        """Return the change."""
        change: dict[Row, int] = {}
        for row, until in self.until.items():  # in the order of expiry
            if until > now:
                break
            change[row] = -1
        for row in change:
            del self.until[row]
        if self.until.pop(link, None) is None:
            change[link] = change.get(link, 0) + 1
        self.until[link] = now + LIFE
        return change


class Alone:
    """The operator at one site."""

    def __init__(self, options: RecursionOptions) -> None:
        self._links = Expiring()
        self._operator = FixpointOperator(
            reachable(), site="s", sites=("s",), epoch=1, options=options
        )

    def hear(self, now: int, link: Row) -> None:
        """Take in a link heard."""
        self._operator.apply(0, self._links.hear(now, link))
        self._operator.settle()

    def state(self) -> dict[str, int]:
        """Return the sizes of all that is kept."""
        return sizes_of(self._operator)

    def rows(self) -> set[Row]:
        """Return the view."""
        return set(self._operator.state_rows())


class Sites:
    """Three sites; every one hears the links of its rooms, and nodes live anywhere."""

    names = ("s0", "s1", "s2")

    def __init__(self, options: RecursionOptions) -> None:
        self._links = Expiring()
        self._ensemble = Ensemble(reachable(), self.names, options)

    def hear(self, now: int, link: Row) -> None:
        """Take in a link heard; deliver all messages."""
        touched = set()
        for row, weight in self._links.hear(now, link).items():
            site = self.names[sum(map(ord, str(row[0]))) % len(self.names)]
            self._ensemble.apply(site, 0, {row: weight})
            touched.add(site)
        for site in sorted(touched):
            self._ensemble.step(site)
        self._ensemble.run()
        for view in self._ensemble.views.values():
            view.clear()

    def state(self) -> dict[str, int]:
        """Return the sizes of all that is kept, added up over the sites."""
        total: dict[str, int] = {}
        for operator in self._ensemble.operators.values():
            assert isinstance(operator, FixpointOperator)  # noqa: S101
            for what, size in sizes_of(operator).items():
                total[what] = total.get(what, 0) + size
        return total

    def rows(self) -> set[Row]:
        """Return the view."""
        return self._ensemble.rows()


class Engine:
    """A site engine with a source of links that expire by themselves."""

    def __init__(self, options: RecursionOptions) -> None:
        choice = RecursionChoice(strategy=Strategy.ABSORPTION, ship=str(options.shipping))
        source = replace(LINK, key=(0, 1), ttl=LIFE)
        node = replace(_over(reachable(), source), choice=choice)
        self._engine = SiteEngine("base", 1)
        self._engine.declare(source)
        self._engine.install(everywhere(node, ("base",)))
        self._view: dict[Row, int] = {}

    def hear(self, now: int, link: Row) -> None:
        """Take in a link heard and step."""
        self._engine.ingest("link", [SourceEvent(link, now)])
        result = self._engine.step(now)
        for outgoing in result.outgoing:
            for change in outgoing.batch.deltas:
                weight = self._view.pop(change.row, 0) + change.weight
                if weight:
                    self._view[change.row] = weight

    def state(self) -> dict[str, int]:
        """Return the rows that operators and sources keep."""
        (statistics,) = self._engine.statistics()
        kept = {entry.operator[:40]: entry.state_rows for entry in statistics.operators}
        return {"source rows": len(self._engine.source_rows("link")), **kept}

    def rows(self) -> set[Row]:
        """Return the view as its reader has it."""
        return set(self._view)


def _over(node: Fixpoint, source: object) -> Fixpoint:
    """Return the recursion over another definition of its source."""

    def swapped(plan: Any) -> Any:
        if plan == LINK:
            return source
        if isinstance(plan, tuple):
            return tuple(swapped(part) for part in plan)
        if hasattr(plan, "__struct_fields__"):
            fields = {name: swapped(getattr(plan, name)) for name in plan.__struct_fields__}
            return replace(plan, **fields)
        return plan

    found = swapped(node)
    assert isinstance(found, Fixpoint)  # noqa: S101
    return found


SUBJECTS: dict[str, Callable[[RecursionOptions], Subject]] = {
    "alone": Alone,
    "sites": Sites,
    "engine": Engine,
}


@dataclass
class Halves:
    """The most of everything in each half of a run."""

    first: dict[str, int] = field(default_factory=dict)
    second: dict[str, int] = field(default_factory=dict)
    cleared: list[int] = field(default_factory=lambda: [0, 0])
    _last: int = 0

    def note(self, sample: dict[str, int], *, late: bool) -> None:
        """Take a sample into account."""
        size = sample.get(SAWTOOTH, 0)
        self.cleared[late] += size < self._last * (1 - SLACK_SHARE)
        self._last = size
        half = self.second if late else self.first
        for what, size in sample.items():
            half[what] = max(half.get(what, 0), size)

    def grown(self) -> list[str]:
        """Return what the second half needed more of."""
        return [
            what
            for what, size in self.second.items()
            if what != SAWTOOTH or self.cleared[0]
            if size > self.first.get(what, 0) * (1 + SLACK_SHARE) + SLACK.get(what, SLACK_COUNT)
            or (what == "bytes" and size > self.first[what] + SLACK_BYTES)
        ]


def reached(links: Iterator[Row]) -> set[Row]:
    """Return the view from scratch."""
    after: dict[object, list[object]] = {}
    for source, target, _ in links:
        after.setdefault(source, []).append(target)
    found: set[Row] = set()
    for start, targets in after.items():
        todo, seen = list(targets), set()
        while todo:
            node = todo.pop()
            if node not in seen:
                seen.add(node)
                todo.extend(after.get(node, ()))
        found |= {(start, node) for node in seen}  # type: ignore[misc]
    return found


def soak(name: str, updates: int, options: RecursionOptions) -> tuple[Halves, float]:
    """Run one subject; return the most it needed, and its seconds.

    Raises:
        AssertionError: Its view is wrong in the end.
    """
    subject = SUBJECTS[name](options)
    process = psutil.Process()
    halves, links = Halves(), Expiring()
    every = max(updates // SAMPLES, LEAST_BETWEEN)
    started = time.monotonic()
    steps = zip(range(updates), heard(1), strict=False)
    console = Console(stderr=True)
    for number, (now, link) in track(steps, name, updates, console=console, transient=True):
        subject.hear(now, link)
        links.hear(now, link)
        if number % every == every - 1:
            gc.collect()
            sample = {**subject.state(), "bytes": process.memory_info().rss}
            halves.note(sample, late=number >= updates // 2)
    if subject.rows() != reached(iter(links.until)):
        raise AssertionError(f"{name}: the view is wrong after {updates} updates")
    return halves, time.monotonic() - started


def arguments() -> argparse.ArgumentParser:
    """Return the options; what is published was made with their defaults."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--updates", type=int, default=1_000_000)
    parser.add_argument("--quick", action="store_true", help="5,000 updates")
    parser.add_argument("--subjects", default=",".join(SUBJECTS))
    parser.add_argument("--ship", default="witness", help="witness, lazy or eager")
    parser.add_argument("--annotations", default="dnf", help="dnf or bdd")
    parser.add_argument("--out", type=Path, help="folder for soak.json; subjects not run are kept")
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


def settings(options: argparse.Namespace, subject: str) -> dict[str, Any]:
    """Return what decides over the outcome, as it stands beside every subject."""
    return {
        "updates": int(options.updates * SHARE[subject]),
        "ship": options.ship,
        "annotations": options.annotations,
    }


def main() -> None:
    """Run the soak; the exit status says whether anything grew."""
    options = arguments().parse_args()
    if options.quick:
        options.updates = 5_000
    how = RecursionOptions(
        strategy=Strategy.ABSORPTION,
        shipping=Shipping(options.ship),
        annotations=options.annotations,
    )
    file = None if options.out is None else options.out / "soak.json"
    report: dict[str, Any] = json.loads(file.read_text()) if file and file.exists() else {}
    failed = False
    spawn = multiprocessing.get_context("spawn")
    for name in options.subjects.split(","):
        told = settings(options, name)
        with ProcessPoolExecutor(1, mp_context=spawn) as pool:
            halves, seconds = pool.submit(soak, name, told["updates"], how).result()
        grown = halves.grown()
        failed = failed or bool(grown)
        report[name] = {
            "settings": told,
            "seconds": round(seconds, 1),
            "first half": halves.first,
            "second half": halves.second,
            "cleared": halves.cleared,
            "grown": grown,
        }
        if file:
            file.write_text(json.dumps(report, indent=1) + "\n")
        if not options.json:
            print(f"{name}: {told['updates']} updates in {seconds:.0f} s")
            print(
                f"  {SAWTOOTH} cleared in the first half {halves.cleared[0]} times, then "
                f"{halves.cleared[1]} times"
            )
            for what, size in halves.second.items():
                mark = "  GROWN" if what in grown else ""
                print(f"  {what:24}{halves.first.get(what, 0):>14}{size:>14}{mark}")
    if options.json:
        print(json.dumps(report, indent=1))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
