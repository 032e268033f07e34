"""Texts tested against a pattern, in time in proportion to their length."""

from collections.abc import Iterator
from functools import lru_cache

from streamsql.algebra.regular_expressions.pattern_reading import END, START, Automaton, Reader

_KEPT_STEPS = 20_000
_MOST_WORK = 100_000_000
"""Characters times states of the longest test."""
_MATCHED = -1
"""The number of all sets of states in which a match has been found."""


class Pattern:
    """A compiled pattern: a table of steps that is filled while texts are tested."""

    def __init__(self, pattern: str, *, fold: bool = False) -> None:
        automaton = Automaton()
        start = automaton.state()
        self._accept = Reader(pattern, fold=fold).read()(automaton, start)
        self._steps = automaton.steps
        self._free = automaton.free
        self._first = self._reached({start}, (0, START))
        self._again = self._reached({start}, (0,))
        empty = self._reached({start}, (0, START, END))
        self._matches_empty = self._accept in empty
        self._clear()

    def search(self, text: str) -> bool:
        """Whether some part of a text matches."""
        if not text:
            return self._matches_empty
        state = self._number(self._first)
        tables = self._tables
        for character in text:
            if state == _MATCHED:
                return True
            following = tables[state].get(character)
            if following is None:
                if self._kept > _KEPT_STEPS:
                    state = self._begin_table_at(state)
                    tables = self._tables
                following = self._after(state, character)
            state = following
        return state == _MATCHED or self._ends[state]

    @property
    def size(self) -> int:
        """How many states the automaton has."""
        return len(self._steps)

    def _clear(self) -> None:
        self._kept = 0
        self._numbers: dict[frozenset[int], int] = {}
        self._sets: list[frozenset[int]] = []
        self._tables: list[dict[str, int]] = []
        self._ends: list[bool] = []

    def _begin_table_at(self, state: int) -> int:
        """Discard the table, which one long text may fill; return the state's new number."""
        states = self._sets[state]
        self._clear()
        return self._number(states)

    def _number(self, states: frozenset[int]) -> int:
        if self._accept in states:
            return _MATCHED
        found = self._numbers.get(states)
        if found is None:
            found = self._numbers[states] = len(self._sets)
            self._sets.append(states)
            self._tables.append({})
            self._ends.append(self._accept in self._reached(set(states), (0, END)))
            self._kept += len(states) // 64  # a large set takes the memory of many steps
        return found

    def _after(self, state: int, character: str) -> int:
        code = ord(character)
        targets = {
            step[1]
            for position in self._sets[state]
            if (step := self._steps[position]) is not None
            and any(low <= code <= high for low, high in step[0])
        }
        found = self._number(self._reached(targets, (0,)) | self._again)
        self._tables[state][character] = found
        self._kept += 1
        return found

    def _reached(self, states: set[int], needs: tuple[int, ...]) -> frozenset[int]:
        waiting = list(states)
        while waiting:
            for target in self._ahead(waiting.pop(), needs):
                if target not in states:
                    states.add(target)
                    waiting.append(target)
        return frozenset(states)

    def _ahead(self, state: int, needs: tuple[int, ...]) -> Iterator[int]:
        return (target for needed, target in self._free[state] if needed in needs)


@lru_cache(maxsize=256)
def compile_pattern(pattern: str, flags: str = "") -> Pattern:
    """Return a pattern; with the flag `i` letters from a to z match in both cases.

    Raises:
        RegularExpressionError: It is malformed or not of the common subset.
    """
    return Pattern(pattern, fold=flags == "i")


def regexp_like(text: str, pattern: str, flags: str = "") -> bool | None:
    """Whether some part of a text matches a pattern; None if the test would take too long.

    Examples:
        >>> regexp_like("room 12", "^room [0-9]+$"), regexp_like("Room", "room")
        (True, False)
        >>> regexp_like("Room", "room", "i"), regexp_like("aab", "(a|aa)*$")
        (True, True)
    """
    compiled = compile_pattern(pattern, flags)
    return compiled.search(text) if len(text) * compiled.size <= _MOST_WORK else None
