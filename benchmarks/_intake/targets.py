"""What a gateway is to reach, and which figures do not."""

from collections.abc import Iterator, Mapping

Figures = Mapping[str, float | None]
"""Of one load, by label."""

REST_MB = 35.0
LOW_RATE, LOW_RATE_MS = 50, 3.0
"""A row is to come within so many milliseconds of its reading, as a median at the low rate."""
GOAL_RATE = 12_000
GOAL_LATE_S = 1.0


def unseen(loads: Mapping[str, Figures]) -> list[str]:
    """Return the loads of which rows or observations did not come, with how many."""
    found = []
    for name, figures in loads.items():
        for label in ("unseen rows", "unseen observations"):
            missing = figures[label] or 0
            if missing > 0:
                found.append(f"{name}: {missing:,.0f} {label}")
    return found


def missed(loads: Mapping[str, Figures]) -> list[str]:
    """Return the targets that are missed, in words."""
    return [*unseen(loads), *_above(loads)]


def _above(loads: Mapping[str, Figures]) -> Iterator[str]:
    for name, figures in loads.items():
        limits = {"MB at rest": REST_MB}
        if name.endswith(f" {LOW_RATE:,}/s"):
            limits["p50 ms"] = LOW_RATE_MS
        if name.endswith(f" {GOAL_RATE:,}/s"):
            limits["late s"] = GOAL_LATE_S
        for label, limit in limits.items():
            figure = figures[label]
            if figure is None:
                yield f"{name}: {label} is unknown; the target is {limit:g}"
            elif figure > limit:
                yield f"{name}: {label} {figure:.1f}; the target is {limit:g}"
