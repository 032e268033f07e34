"""How many lives the recursions of queries have had at a site that have been stopped here."""

from streamsql.wire.fragments import FragmentBundle

MAX_REMEMBERED = 1_000
"""Stopped recursive queries whose lives are remembered."""


class RecursionLives:
    """What peers of a recursion may know of its former lives, for if the query comes back.

    State: two numbers for each of the recursive queries stopped last.
    """

    def __init__(self) -> None:
        self._lives: dict[str, tuple[int, int]] = {}

    def stopped(self, bundle: FragmentBundle, lives: int) -> None:
        """Note how many lives the recursions of a plan have had; 0: it has none with peers."""
        if not lives:
            return
        self._lives.pop(bundle.query, None)
        self._lives[bundle.query] = (bundle.version, lives)
        if len(self._lives) > MAX_REMEMBERED:
            del self._lives[next(iter(self._lives))]

    def next(self, bundle: FragmentBundle) -> int:
        """Return the first life of a plan's recursions that peers of its version do not know."""
        version, lives = self._lives.get(bundle.query, (0, 0))
        return lives if version == bundle.version else 0
