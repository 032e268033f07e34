"""Counts of rows that a recursion derived and deleted, per round of its last change and in all."""

MAX_ROUNDS = 32
"""Rounds of one change that are told apart; later ones are added to the last."""


class RoundTrace:
    """Counts rows per round.

    A round may derive rows that the change deletes again, and delete rows that it derives again:
    only the sums over a change agree with what it does to the view.

    Attributes:
        last: (derived, deleted) per round of the last change that did anything.
    """

    __slots__ = ("_now", "deleted", "derived", "last")

    def __init__(self) -> None:
        self._now: list[tuple[int, int]] = []
        self.last: tuple[tuple[int, int], ...] = ()
        self.derived = 0
        self.deleted = 0

    def note(self, derived: int, deleted: int = 0) -> None:
        """Count a round."""
        self.derived += derived
        self.deleted += deleted
        if len(self._now) < MAX_ROUNDS:
            self._now.append((derived, deleted))
        else:
            before, gone = self._now[-1]
            self._now[-1] = (before + derived, gone + deleted)

    def end(self, come: int, gone: int) -> None:
        """Close a change.

        Args:
            come: Rows that entered the view.
            gone: Rows that left it; those that no round has counted left before the first.
        """
        derived = sum(round_[0] for round_ in self._now)
        deleted = sum(round_[1] for round_ in self._now)
        if gone > deleted:
            self.deleted += gone - deleted
            self._now.insert(0, (0, gone - deleted))
        if come > derived:  # an algorithm without rounds
            self.note(come - derived)
        if self._now:
            self.last, self._now = tuple(self._now), []
