"""The text of a pattern, read into the pieces of a nondeterministic automaton after Thompson."""

from collections.abc import Callable

Ranges = tuple[tuple[int, int], ...]
"""Characters, as first and last code points of runs."""

MAX_STATES = 4_000
START, END = -1, -2
"""Marks of edges that need the beginning or the end of the text."""
MAX_REPEAT = 255
MAX_DEPTH = 50
_LAST = 0x10FFFF
_DIGIT: Ranges = ((48, 57),)
_WORD: Ranges = ((48, 57), (65, 90), (95, 95), (97, 122))
_SPACE: Ranges = ((9, 13), (32, 32))
_CONTROLS = {"n": 10, "t": 9, "r": 13, "f": 12}


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


def _opposite(ranges: Ranges) -> Ranges:
    found, next_free = [], 0
    for low, high in sorted(ranges):
        if low > next_free:
            found.append((next_free, low - 1))
        next_free = max(next_free, high + 1)
    if next_free <= _LAST:
        found.append((next_free, _LAST))
    return tuple(found)


_CLASSES = {"d": _DIGIT, "w": _WORD, "s": _SPACE}
_CLASSES |= {name.upper(): _opposite(ranges) for name, ranges in tuple(_CLASSES.items())}


class Reader:
    """A recursive-descent parser of patterns; `fold` takes A to Z for a to z."""

    def __init__(self, pattern: str, *, fold: bool) -> None:
        self._pattern = pattern
        self._fold = fold
        self._at = 0
        self._depth = 0

    def read(self) -> Piece:
        """Return the whole pattern as a piece.

        Raises:
            RegularExpressionError: It is malformed or not of the common subset.
        """
        piece = self._choice()
        if self._at < len(self._pattern):
            raise RegularExpressionError("a ) closes nothing")
        return piece

    def _next(self) -> str:
        return self._pattern[self._at : self._at + 1]

    def _take(self, text: str) -> bool:
        if not self._pattern.startswith(text, self._at):
            return False
        self._at += len(text)
        return True

    def _choice(self) -> Piece:
        branches = [self._sequence()]
        while self._take("|"):
            branches.append(self._sequence())
        if len(branches) == 1:
            return branches[0]

        def add(automaton: Automaton, start: int) -> int:
            end = automaton.state()
            for branch in branches:
                automaton.link(branch(automaton, fresh(automaton, start)), end)
            return end

        return add

    def _sequence(self) -> Piece:
        pieces = []
        while self._next() not in ("", "|", ")"):
            pieces.append(self._repeated())

        def add(automaton: Automaton, start: int) -> int:
            for piece in pieces:
                start = piece(automaton, start)
            return start

        return add

    def _repeated(self) -> Piece:
        if self._next() in ("*", "+", "?", "{"):
            raise RegularExpressionError(f"nothing precedes {self._next()}")
        anchor = self._next() in ("^", "$")
        piece = self._atom()
        bounds = self._bounds()
        if bounds is None:
            return piece
        if anchor or self._next() in ("*", "+", "?", "{"):
            raise RegularExpressionError(
                "repetitions are not repeated, and neither are ^ and $; lazy and possessive "
                "repetition is not supported"
            )
        return repeat(piece, *bounds)

    def _bounds(self) -> tuple[int, int | None] | None:
        for mark, bounds in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self._take(mark):
                return bounds
        if not self._take("{"):
            return None
        low = self._number()
        high: int | None = low
        if self._take(","):
            high = None if self._next() == "}" else self._number()
        if not self._take("}") or (high is not None and high < low):
            raise RegularExpressionError("a repetition is {2}, {2,} or {2,5}")
        return low, high

    def _number(self) -> int:
        start = self._at
        while self._next() in tuple("0123456789"):
            self._at += 1
        text = self._pattern[start : self._at]
        if not text or len(text) > 4 or int(text) > MAX_REPEAT:
            raise RegularExpressionError(f"repetitions are counted from 0 to {MAX_REPEAT}")
        return int(text)

    def _atom(self) -> Piece:
        if self._take("("):
            return self._group()
        if self._take("["):
            return one(self._set())
        if self._take("^"):
            return anchor(START)
        if self._take("$"):
            return anchor(END)
        if self._take("."):
            return one(_opposite(((10, 10),)))
        if self._take("\\"):
            return one(self._escaped())
        if self._next() in ("]", "}"):
            raise RegularExpressionError(f"write \\{self._next()} for the character itself")
        self._at += 1
        return one(self._cased(ord(self._pattern[self._at - 1])))

    def _group(self) -> Piece:
        if self._take("?") and not self._take(":"):
            raise RegularExpressionError("of groups (?…) only (?:…) is supported")
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise RegularExpressionError("groups are nested too deeply")
        piece = self._choice()
        if not self._take(")"):
            raise RegularExpressionError("a ( is not closed")
        self._depth -= 1
        return piece

    def _escaped(self) -> Ranges:
        mark = self._next()
        self._at += 1
        if mark in _CLASSES:
            return _CLASSES[mark]
        if mark in _CONTROLS:
            return ((_CONTROLS[mark],) * 2,)
        if not mark or mark.isalnum() or not mark.isascii():
            raise RegularExpressionError(f"\\{mark} is not supported")
        return ((ord(mark),) * 2,)

    def _set(self) -> Ranges:
        negated = self._take("^")
        found: list[tuple[int, int]] = []
        while not self._take("]"):
            low = self._member()
            single = len(low) == 1 and low[0][0] == low[0][1]
            if not single or not self._range_follows():
                found += low
                continue
            self._at += 1
            high = self._member()
            if len(high) != 1 or high[0][0] != high[0][1] or high[0][0] < low[0][0]:
                raise RegularExpressionError("a range goes from a lower to a higher character")
            found.append((low[0][0], high[0][0]))
        if not found:
            raise RegularExpressionError("a class [ ] is empty; write \\] for the character itself")
        ranges = tuple(part for low, high in found for part in self._cased(low, high))
        return _opposite(ranges) if negated else ranges

    def _range_follows(self) -> bool:
        return self._next() == "-" and self._pattern[self._at + 1 : self._at + 2] not in ("]", "")

    def _member(self) -> Ranges:
        mark = self._next()
        self._at += 1
        if mark == "\\":
            return self._escaped()
        if mark in ("", "[") or self._pattern[self._at - 1 : self._at + 1] in ("&&", "--"):
            raise RegularExpressionError(
                "a class is not closed, or holds [ && or --, which mean something else elsewhere; "
                "write \\[ for the character itself"
            )
        return ((ord(mark),) * 2,)

    def _cased(self, low: int, high: int | None = None) -> Ranges:
        high = low if high is None else high
        found = [(low, high)]
        if self._fold:
            for first, last, shift in ((65, 90, 32), (97, 122, -32)):
                if max(low, first) <= min(high, last):
                    found.append((max(low, first) + shift, min(high, last) + shift))
        return tuple(found)


def similar_pattern(pattern: str, escape: str = "\\") -> str:
    r"""Return the regular expression of a pattern of SIMILAR TO, which matches whole texts.

    Examples:
        >>> similar_pattern("r_%|s.")
        '^(?:r(?:.|\\n)(?:.|\\n)*|s\\.)$'

    Raises:
        RegularExpressionError: The pattern ends in its escape.
    """
    parts: list[str] = []
    characters = iter(pattern)
    inside = False
    for character in characters:
        if character == escape:
            taken = next(characters, "")
            if not taken:
                raise RegularExpressionError("the pattern ends in its escape")
            parts.append(taken if taken.isalnum() or not taken.isascii() else f"\\{taken}")
        elif inside:
            inside = character != "]"
            parts.append(character)
        elif character in "%_":
            parts.append("(?:.|\\n)*" if character == "%" else "(?:.|\\n)")
        elif character in "^$.\\":
            parts.append(f"\\{character}")
        else:
            inside = character == "["
            parts.append(character)
    return f"^(?:{''.join(parts)})$"
