"""Tables of the optimizer's gate."""

from benchmarks._published.markdown_tables import Found, table


def optimizer_goals(found: Found) -> str:
    """Return a line for each goal."""
    rows = [
        (goal["words"], goal["wanted"], goal["value"], "yes" if goal["met"] else "**no**")
        for goal in found["goals"]
    ]
    return table(("goal", "wanted", "reached", "met"), rows)


def optimizer_worlds(found: Found) -> str:
    """Return a line for each world: what was run, and how good estimates and choices are."""
    one = next(iter(found["worlds"].values()))
    ranks = table(
        ("world", "queries", "plans", *(f"ranks: {name}" for name in one["spearman"])),
        [
            (name, world["queries"], f"{world['plans']:,}", *map(_rank, world["spearman"].values()))
            for name, world in found["worlds"].items()
        ],
    )
    regrets = table(
        ("world", *one["regret"], *(f"by {name}" for name in one["regret by metric"])),
        [
            (
                name,
                *map(_spread, world["regret"].values()),
                *map(_spread, world["regret by metric"].values()),
            )
            for name, world in found["worlds"].items()
        ],
    )
    return f"{ranks}\n\n{regrets}"


def _rank(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _spread(regret: Found) -> str:
    return f"{regret['median']:g}, {regret['worst']:g}"


def optimizer_queries(found: Found) -> str:
    """Return a line for each query."""
    rows = [
        (
            each["world"],
            f"`{each['query']}`",
            each["plans"],
            each["chosen"],
            *(f"{each[key]:,}" for key in ("estimated", "measured", "best")),
            *(f"{each[key]:.2f}" for key in ("regret", "regret in energy")),
            f"{each['milliseconds']:.0f}",
        )
        for each in found["queries"]
    ]
    head = ("world", "query", "plans", "chosen", "estimated B/s", "measured B/s", "best B/s",
            "regret", "in energy", "ms")  # fmt: skip
    return table(head, rows)


def optimizer_planning(found: Found) -> str:
    """Return quantiles of planning times, and those beside sqlglot's optimizer."""
    planning = found["planning"]
    times = table(
        ("queries", "number", "p50 ms", "p95 ms", "most ms"),
        [
            (name, *(planning[name][key] for key in ("queries", "p50 ms", "p95 ms", "most ms")))
            for name in ("building", "ten relations")
        ],
    )
    beside = table(
        ("statement", "choose", "text to fragments", "sqlglot's optimizer alone"),
        [
            (
                name,
                *(
                    f"{each[key]:.1f}"
                    for key in ("choose", "text to fragments", "sqlglot optimize")
                ),
            )
            for name, each in planning["beside sqlglot"].items()
        ],
    )
    return f"{times}\n\n{beside}"
