"""The goals of the gate, and what was reached."""

from typing import NamedTuple

from benchmarks._optimizer.regrets import ALL, Found

LEAST_CORRELATION = 0.9
MEDIAN_REGRET = 1.0
WORST_REGRET = 1.5
MOST_OVER_END = 1.05
BUILDING_MS = 50.0
TEN_RELATIONS_MS = 1_000.0


class Goal(NamedTuple):
    """A goal: what, where it must be, where it is.

    Attributes:
        always: A run of few queries can reach it, too.
    """

    words: str
    wanted: str
    value: str
    met: bool
    always: bool = False


def goals(choice: Found, planning: Found) -> list[Goal]:
    """Return all goals."""
    worlds = choice["worlds"]
    found = [
        Goal(
            "queries of which a plan gave other rows",
            "none",
            ", ".join(worlds[ALL]["other rows"]) or "none",
            not worlds[ALL]["other rows"],
            always=True,
        ),
        _most(
            "chosen plan over the better of pushing and shipping everything",
            worlds[ALL]["over the better end"],
            MOST_OVER_END,
        ),
    ]
    for name, world in worlds.items():
        value = world["spearman"]["bytes"]
        met = value is not None and value >= LEAST_CORRELATION
        wanted = f"at least {LEAST_CORRELATION}"
        found.append(Goal(f"{name}: rank correlation in bytes", wanted, f"{value}", met))
        regret = world["regret"]["chosen"]
        found.append(_most(f"{name}: median regret", regret["median"], MEDIAN_REGRET))
        found.append(_most(f"{name}: worst regret", regret["worst"], WORST_REGRET))
    for name, most in (("building", BUILDING_MS), ("ten relations", TEN_RELATIONS_MS)):
        found.append(_most(f"{name}: planning, p95 ms of CPU", planning[name]["p95 ms"], most))
    return found


def _most(words: str, value: float, most: float) -> Goal:
    return Goal(words, f"at most {most:g}", f"{value:g}", value <= most)
