"""Costs of the ways to compute a recursion over gateways, and the goals they reach."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field

GOAL_MILLISECONDS = 50.0
GOAL_BYTES = 2 << 30


@dataclass
class Bytes:
    """Bytes sent, by direction.

    Attributes:
        between: From site to site.
        reader: Changed rows to the reader of the answer.
        wire: Of all clients to the broker.
    """

    between: int = 0
    reader: int = 0
    wire: int = 0

    def __add__(self, other: Bytes) -> Bytes:
        """Return the sum."""
        return Bytes(
            self.between + other.between, self.reader + other.reader, self.wire + other.wire
        )

    def __sub__(self, other: Bytes) -> Bytes:
        """Return the difference."""
        return Bytes(
            self.between - other.between, self.reader - other.reader, self.wire - other.wire
        )

    def line(self, count: int) -> str:
        """Return it as text, divided by a count."""
        parts = (("between sites", self.between), ("reader", self.reader), ("wire", self.wire))
        return "  ".join(f"{name} {value / count:9,.0f} B" for name, value in parts)


@dataclass
class Phase:
    """Changes of one kind: milliseconds each, and bytes of all."""

    milliseconds: list[float] = field(default_factory=list)
    bytes: Bytes = field(default_factory=Bytes)

    @property
    def p50(self) -> float:
        """The median of milliseconds."""
        return statistics.median(self.milliseconds)

    def line(self, name: str) -> str:
        """Return it as text."""
        count = len(self.milliseconds)
        mean = statistics.fmean(self.milliseconds)
        return (
            f"  {name:<7} p50 {self.p50:6.1f} ms  mean {mean:6.1f}  "
            f"max {max(self.milliseconds):6.1f}   each {self.bytes.line(count)}"
        )


@dataclass
class Fault:
    """Costs of a fault: seconds, and snapshots in batches and bytes."""

    name: str
    seconds: float
    batches: int
    bytes: int


@dataclass
class Outcome:
    """Result of one way."""

    way: str
    description: str = ""
    load: float = 0.0
    build_seconds: list[float] = field(default_factory=list)
    build: Bytes = field(default_factory=Bytes)
    delete: Phase = field(default_factory=Phase)
    insert: Phase = field(default_factory=Phase)
    faults: list[Fault] = field(default_factory=list)
    memory: dict[str, int] = field(default_factory=dict)


def show(outcome: Outcome) -> None:
    """Print what came of a way."""
    total = sum(outcome.memory.values())
    rounds = len(outcome.build_seconds)
    print(f"{outcome.way}: {outcome.description}; load {outcome.load:.1f}")
    print(
        f"  built   {statistics.median(outcome.build_seconds):6.2f} s   "
        f"each {outcome.build.line(rounds)}"
    )
    print(outcome.delete.line("delete"))
    print(outcome.insert.line("insert"))
    for fault in outcome.faults:
        print(
            f"  {fault.name:<15} right after {fault.seconds:5.1f} s; snapshots: "
            f"{fault.batches} batches, {fault.bytes:,} bytes"
        )
    print(
        f"  memory  {total / 2**20:,.0f} MiB in {len(outcome.memory)} processes "
        f"(largest {max(outcome.memory.values()) / 2**20:.0f} MiB)",
        flush=True,
    )


def judged(outcomes: list[Outcome]) -> list[str]:
    """Return goals with what was reached (E3, E4 and B3)."""
    by_way = {outcome.way: outcome for outcome in outcomes}
    lines = []
    dred = by_way.get("dred")
    for way, outcome in by_way.items():
        if way == "dred":
            continue
        p50 = outcome.delete.p50
        verdict = "pass" if p50 <= GOAL_MILLISECONDS else "miss"
        text = f"E3 {way}: deleted link gone in {p50:.1f} ms p50 (goal <= 50): {verdict}"
        text += f"; at most {max(outcome.delete.milliseconds):,.0f} ms"
        if dred is not None:
            text += f"; DRed takes {dred.delete.p50 / p50:.1f} times as long (goal >= 10)"
            ratio = dred.delete.bytes.between / max(outcome.delete.bytes.between, 1)
            text += f", {ratio:.1f} times the bytes between sites"
        lines.append(text)
    most = max(sum(outcome.memory.values()) for outcome in outcomes)
    verdict = "pass" if most <= GOAL_BYTES else "miss"
    lines.append(f"E4: {most / 2**20:,.0f} MiB for all processes (goal <= 2,048): {verdict}")
    references = [by_way[w] for w in ("flood", "centre") if w in by_way]
    if references:
        cheapest = min(references, key=lambda outcome: _total(outcome).between)
        for way, outcome in by_way.items():
            alone = _total(outcome).between / _total(cheapest).between
            both = [_total(o).between + _total(o).reader for o in (outcome, cheapest)]
            lines.append(
                f"B3 {way}: {alone:.1f} x min(flood, centre) between sites, "
                f"{both[0] / both[1]:.1f} x with the reader's rows"
            )
    return lines


def _total(outcome: Outcome) -> Bytes:
    return outcome.build + outcome.delete.bytes + outcome.insert.bytes
