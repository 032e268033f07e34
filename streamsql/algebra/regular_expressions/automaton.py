"""Nondeterministic automata after Thompson, and the pieces that patterns are made of."""

from collections.abc import Callable

Ranges = tuple[tuple[int, int], ...]
"""Characters, as first and last code points of runs."""

MAX_STATES = 4_000
START, END = -1, -2
"""Marks of edges that need the beginning or the end of the text."""


class RegularExpressionError(ValueError):
    """A pattern is malformed or not of the common subset; the text says why."""


class Automaton:
    """States with edges over characters, and free ones that may need an end of the text."""

    def __init__(self) -> None:
        self.steps: list[tuple[Ranges, int] | None] = []
        self.free: list[list[tuple[int, int]]] = []

    def state(self) -> int:
        """Return a new state.

        Raises:
            RegularExpressionError: There are too many.
        """
        if len(self.steps) >= MAX_STATES:
            raise RegularExpressionError("the pattern is too large")
        self.steps.append(None)
        self.free.append([])
        return len(self.steps) - 1

    def link(self, source: int, target: int, needs: int = 0) -> None:
        """Add a free edge, which may need the beginning or the end of the text."""
        self.free[source].append((needs, target))


Piece = Callable[[Automaton, int], int]
"""Adds itself behind a state and returns the state after it; may be added several times."""


def fresh(automaton: Automaton, start: int) -> int:
    """Return a new state that is freely reached from another."""
    state = automaton.state()
    automaton.link(start, state)
    return state


def one(ranges: Ranges) -> Piece:
    """Return the piece that takes one character of some."""

    def add(automaton: Automaton, start: int) -> int:
        end = automaton.state()
        before = fresh(automaton, start)
        automaton.steps[before] = (ranges, end)
        return end

    return add


def anchor(needs: int) -> Piece:
    """Return the piece that takes nothing, at the beginning or the end of the text only."""

    def add(automaton: Automaton, start: int) -> int:
        end = automaton.state()
        automaton.link(start, end, needs)
        return end

    return add


def repeat(piece: Piece, low: int, high: int | None) -> Piece:
    """Return the piece that takes another so many times; None for any number of times."""

    def add(automaton: Automaton, start: int) -> int:
        for _ in range(low):
            start = piece(automaton, start)
        if high is None:
            loop = fresh(automaton, start)
            automaton.link(piece(automaton, loop), loop)
            return loop
        end = automaton.state()
        for _ in range(high - low):
            automaton.link(start, end)
            start = piece(automaton, start)
        automaton.link(start, end)
        return end

    return add
