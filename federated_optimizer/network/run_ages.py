"""The age of runs: their names end with numbers that grow, so a name says which run is older."""


def age_of(run: str) -> tuple[int, str]:
    """Return a key that orders runs by age, oldest first.

    Examples:
        >>> sorted(["q10", "q9"], key=age_of)
        ['q9', 'q10']
    """
    return (len(run), run)


def is_older(run: str, other: str) -> bool:
    """Return whether a run was named before another one."""
    return age_of(run) < age_of(other)
