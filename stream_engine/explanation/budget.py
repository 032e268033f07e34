"""A bound on the work of one explanation."""

from streamsql.errors import FederationError

DEFAULT_WORK = 4_000_000
"""Rows read, derivations followed and sets compared; about ten seconds of one core."""


class ExplanationLimitError(FederationError):
    """An explanation needs more work than it may do."""

    code = "explanation_limit"


class Budget:
    """Counts work down; `left` units may still be spent."""

    def __init__(self, units: int = DEFAULT_WORK) -> None:
        self.units = units
        self.left = units

    def spend(self, units: int, doing: str) -> None:
        """Take units away; ExplanationLimitError says what was being done when none are left."""
        self.left -= units
        if self.left < 0:
            raise ExplanationLimitError(
                f"{doing} takes more than {self.units} steps",
                hint="ask about a smaller query: add a WHERE that keeps fewer rows",
            )

    def part(self, share: float) -> "Budget":
        """Return a separate budget of a share of what is left."""
        return Budget(max(int(self.left * share), 1))
