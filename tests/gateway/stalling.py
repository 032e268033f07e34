"""A function of a user that never gives the interpreter back."""


def stall(weight: float) -> float:
    """Add numbers for hours, without calling Python once."""
    return weight + sum(range(10**13))
