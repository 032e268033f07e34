"""Tables of the calibration's benchmark."""

from benchmarks._published.markdown_tables import Found, table


def calibration_figures(found: Found) -> str:
    """Return a line for each set of constants and place: ranks, errors, and the regret."""
    rows = [
        (
            name,
            where,
            each["points"],
            "-" if each["spearman"] is None else f"{each['spearman']:.2f}",
            f"{each['times off: median']:g}",
            f"{each['times off: most']:g}",
        )
        for name, places in found["figures"].items()
        for where, each in places.items()
        if where != "regret"
    ]
    head = ("constants", "where", "points", "rank correlation", "times off: median", "most")
    regrets = [
        (name, places["regret"]["queries"], places["regret"]["median"], places["regret"]["worst"])
        for name, places in found["figures"].items()
    ]
    regret = table(("constants", "queries", "regret: median", "worst"), regrets)
    return f"{table(head, rows)}\n\n{regret}"


def calibration_constants(found: Found) -> str:
    """Return a line for each constant that the run has calibrated."""
    rows = [
        (f"`{name}`", f"{value:.3g}", f"{low:.3g} to {high:.3g}")
        for name, (value, low, high) in found["constants"].items()
    ]
    return table(("constant", "median", "quartiles"), rows)


def calibration_worst(found: Found) -> str:
    """Return the estimates by the defaults that are wrong by most."""
    points = sorted(found["points"], key=lambda each: each["defaults off"], reverse=True)
    rows = [
        (
            f"`{each['query']}`",
            each["plan"],
            each["where"],
            *(f"{each[key]:.2f}" for key in ("measured", "guessed", "defaults", "calibrated")),
        )
        for each in points[:10]
    ]
    return table(
        ("query", "plan", "where", "measured, ms/s", "guessed", "defaults", "calibrated"), rows
    )
