"""An aggregate of users that has a value for no rows, as COUNT has."""


class Counted:
    """The number of values."""

    def init(self) -> int:
        """Return the state of no values."""
        return 0

    def step(self, state: int, _value: int) -> int:
        """Return the state with one more value."""
        return state + 1

    def retract(self, state: int, _value: int) -> int:
        """Return the state without a value."""
        return state - 1

    def merge(self, state: int, other: int) -> int:
        """Return the state of both."""
        return state + other

    def final(self, state: int) -> int:
        """Return the number."""
        return state
