"""`text LIKE pattern`: % stands for any characters, _ for one; nothing is ever tried twice.

Each part between two % matches at its first place behind the part before: a later place leaves
less for the rest. So a test takes time in proportion to text and pattern, not one that grows with a
power for every % as it does for an engine of regular expressions that backtracks.
"""

import re
import sys
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

_LONGEST_GAPPED = 10_000
"""Most characters from the first to the last letter of a part between two % that holds a _."""

_SHORT = 64
"""Most characters of a tail that is tried at every place of a text."""


class Part(NamedTuple):
    """Characters between two %; `None` is a _."""

    characters: tuple[str | None, ...]
    pieces: tuple[tuple[int, str], ...]
    """Runs of characters without _, with their places in the part."""

    def stands_at(self, text: str, place: int) -> bool:
        """Whether a text that is long enough has the part at a place."""
        return all(text.startswith(piece, place + offset) for offset, piece in self.pieces)

    def end_behind(self, text: str, place: int) -> int:
        """Return where the first occurrence ends that begins at a place or later; -1: none."""
        size = len(self.characters)
        if not self.pieces:
            return place + size if place + size <= len(text) else -1
        before, first = self.pieces[0]
        offset, last = self.pieces[-1]
        behind = size - offset - len(last)
        if len(self.pieces) == 1:
            found = text.find(first, place + before)
        else:
            found = _gapped(self.characters[before : size - behind], text, place + before)
        end = found - before + size
        return end if found >= 0 and end <= len(text) else -1


class LikePattern(NamedTuple):
    """A pattern cut at its %; without any there is no tail."""

    head: Part
    middle: tuple[Part, ...]
    tail: Part | None

    @property
    def is_too_long(self) -> bool:
        """Whether a test might take too long."""
        return any(
            len(part.pieces) > 1 and len(part.characters) > _LONGEST_GAPPED for part in self.middle
        )

    @property
    def prefix(self) -> str:
        """The characters that texts of the pattern begin with."""
        first = self.head.pieces[:1]
        return first[0][1] if first and not first[0][0] else ""

    @property
    def longest_piece(self) -> str:
        """The most characters in a row that texts of the pattern have somewhere."""
        parts = (self.head, *self.middle, *((self.tail,) if self.tail else ()))
        return max((piece for part in parts for _, piece in part.pieces), key=len, default="")

    def is_of(self, *texts: str) -> bool:
        """Return whether the pattern is some texts with a % between each two."""
        parts = (self.head, *self.middle, *((self.tail,) if self.tail else ()))
        return [part.characters for part in parts] == [tuple(text) for text in texts]

    def matches(self, text: str) -> bool:
        """Whether a whole text is of the pattern."""
        place, end = len(self.head.characters), len(text)
        if self.tail is None:
            return place == end and self.head.stands_at(text, 0)
        end -= len(self.tail.characters)
        if place > end or not (self.head.stands_at(text, 0) and self.tail.stands_at(text, end)):
            return False
        for part in self.middle:
            place = part.end_behind(text, place)
            if not 0 <= place <= end:
                return False
        return True


def like(text: str, pattern: str, escape: str = "") -> bool | None:
    r"""Return `text LIKE pattern ESCAPE escape`; an empty escape means none.

    A malformed pattern gives None, and so does one with more than 10,000 characters between two %
    of which one is a _.

    Examples:
        >>> like("room 12", "room%"), like("room 12", "r__m%2"), like("room", "r%x%")
        (True, True, False)
        >>> like("10%", r"10\%", "\\"), like("10 m", r"10\%", "\\"), like("10", "10\\", "\\")
        (True, False, None)
    """
    return like_test(pattern, escape)(text)


@lru_cache(maxsize=512)
def like_test(pattern: str, escape: str = "") -> Callable[[str], bool | None]:
    """Return the quickest test of a text that takes time in proportion to text and pattern.

    It returns what `like` does.
    """
    compiled = like_pattern(pattern, escape)
    if compiled is None or compiled.is_too_long:
        return lambda _text: None
    match compiled:
        case LikePattern(Part(()), (Part(pieces=((0, part),)) as only,), Part(())) if len(
            part
        ) == len(only.characters):
            return lambda text: part in text
        case LikePattern(_, (), Part(())) if compiled.is_of(compiled.prefix, ""):
            prefix = compiled.prefix
            return lambda text: text.startswith(prefix)
        case LikePattern(head, (), tail) if tail is None or len(tail.characters) <= _SHORT:
            # With one % or none an engine that backtracks tries the tail at every place; it is in
            # C: 0.4 us a text instead of 1.4 (machine%).
            ends = [head] if tail is None else [head, tail]
            fullmatch = re.compile(".*".join(map(_source, ends)), re.DOTALL).fullmatch
            return lambda text: fullmatch(text) is not None
        case _:
            return compiled.matches


def _source(part: Part) -> str:
    return "".join("." if c is None else re.escape(c) for c in part.characters)


def like_pattern(pattern: str, escape: str = "") -> LikePattern | None:
    """Return a pattern cut into parts; None if it is malformed."""
    if len(escape) > 1:
        return None
    parts: list[list[str | None]] = [[]]
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            taken = next(characters, None)
            if taken is None:
                return None
            parts[-1].append(taken)
        elif character == "%":
            parts.append([])
        else:
            parts[-1].append(None if character == "_" else character)
    head, *others = map(_part, parts)
    if not others:
        return LikePattern(head, (), None)
    middle = tuple(part for part in others[:-1] if part.characters)
    return LikePattern(head, middle, others[-1])


def _part(characters: list[str | None]) -> Part:
    pieces: list[tuple[int, list[str]]] = []
    inside = False
    for place, character in enumerate(characters):
        if character is not None and inside:
            pieces[-1][1].append(character)
        elif character is not None:
            pieces.append((place, [character]))
        inside = character is not None
    return Part(tuple(characters), tuple((place, "".join(piece)) for place, piece in pieces))


def _gapped(part: tuple[str | None, ...], text: str, place: int) -> int:
    """Return where a part with _ inside first begins, at a place or later; -1: nowhere.

    Bit i of `begun` says that the last i + 1 characters of text are the first of the part, after
    Baeza-Yates and Gonnet.
    """
    anything, masks = 0, dict[str, int]()
    for number, character in enumerate(part):
        if character is None:
            anything |= 1 << number
        else:
            masks[character] = masks.get(character, 0) | 1 << number
    masks = {character: mask | anything for character, mask in masks.items()}
    begun, whole = 0, 1 << len(part) - 1
    for end in range(place, len(text)):
        begun = (begun << 1 | 1) & masks.get(text[end], anything)
        if begun & whole:
            return end - len(part) + 1
    return -1


def text_behind(prefix: str) -> str | None:
    """Return the first text behind all that begin with a prefix; None if there is none.

    Texts are ordered by their code points, as Python's are.

    Examples:
        >>> text_behind("ab"), text_behind("")
        ('ac', None)
    """
    kept = prefix.rstrip(chr(sys.maxunicode))
    return kept[:-1] + chr(ord(kept[-1]) + 1) if kept else None
