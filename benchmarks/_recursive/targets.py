"""What the recursive engine is meant to reach, and whether it did in this session."""

from dataclasses import dataclass

TARGETS: dict[str, tuple[str, str, float, float]] = {
    "P1": ("delete p50, faster own DRed / default, 400 links", ">=", 30, 100),
    "P2": ("delete p50, faster own DRed / default, 1,600 links", ">=", 300, 1_000),
    "P3a": ("delete p50, Pathway / default, reachable, 400 links", ">=", 10, 100),
    "P3b": ("delete p50, Pathway / default, reachable, 1,600 links", ">=", 10, 100),
    "P5a": ("delete p50, best recompute / default, cheapest, 1,600 links", ">=", 5, 100),
    "P5b": ("delete p50, best recompute / default, cheapest, 6,400 links", ">=", 20, 500),
    "P6": ("delete p50, best recompute / default, reachable, 6,400 links", ">=", 5, 50),
    "P7": ("delete p50, default / rustworkx, reachable, 400 links", "<=", 2, 0.5),
    "P8": ("delete p99, default / recompute p50, reachable, 6,400 links, CPU", "<=", 3, 1.2),
    "P10a": (
        "delete that changes, p50, best recompute with rows listed / default, 400",
        ">=",
        1,
        10,
    ),
    "P10b": ("the same at 1,600 links", ">=", 1, 10),
    "P10c": ("the same at 6,400 links", ">=", 1, 10),
    "P11a": ("delete mean, best recompute / default, cheapest, 1,600 links, CPU", ">=", 3, 30),
    "P11b": ("the same at 6,400 links", ">=", 3, 30),
    "P9": ("insert p50, provenance / set execution, 400 links", "<=", 5, 2),
    "B1": ("bytes deleting, DRed / witness, 400 links, 12 sites", ">=", 16, 100),
    "B2": ("bytes in all, lazy BDD / witness, 400 links, 12 sites", ">=", 3, 10),
    "B3": ("bytes in all, the planner's way / cheaper of flooding and centring", "<=", 2, 1),
    "B4": ("bytes deleting, DRed / witness, 200 links, sparse, 12 sites", ">=", 500, 2_000),
    "B5": ("bytes of eager BDD, arrival order / depth-first order, 240 links", ">=", 1.18, 1.67),
    "B6": ("bytes in all, eager BDD / lazy BDD, 240 links", ">=", 10, 10),
    "B7": ("peak resident MB of a process with regions at 5 m under absorption", "<=", 200, 200),
    "A1": ("rows shipped, one aggregate alone / both pushed together", ">=", 1, 2),
    "W2": ("update p50, breadth-first recompute / default, 400 sensors", ">=", 10, 20),
    "W3a": ("updates a second, 100,000 points", ">=", 10_000, 100_000),
    "W3b1": ("update p50, scipy recompute / default, 10,000 points", ">=", 30, 200),
    "W3b2": ("update p50, scipy recompute / default, 100,000 points", ">=", 200, 2_000),
    "W3c": ("p99 in ms at 1,000 updates a second, 100,000 points", "<=", 2, 1),
}
"""By letter of the performance goals: what is measured, in which direction, goal, stretch."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A target with what came of it.

    Attributes:
        value: Measured, or None where it was not.
        note: Why not, or what to know.
    """

    letter: str
    value: float | None
    note: str = ""

    @property
    def verdict(self) -> str:
        """Return "stretch", "pass", "miss" or "not measured"."""
        if self.value is None:
            return "not measured"
        _, direction, goal, stretch = TARGETS[self.letter]
        for word, bound in (("stretch", stretch), ("pass", goal)):
            if self.value >= bound if direction == ">=" else self.value <= bound:
                return word
        return "miss"

    def record(self) -> dict[str, object]:
        """Return everything as JSON has it."""
        text, direction, goal, stretch = TARGETS[self.letter]
        return {
            "what": text,
            "goal": f"{direction} {goal:g}",
            "stretch": f"{direction} {stretch:g}",
            "value": None if self.value is None else float(f"{self.value:.4g}"),
            "verdict": self.verdict,
            **({"note": self.note} if self.note else {}),
        }
