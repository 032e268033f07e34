"""Patterns of LIKE that match every text that another one matches."""

from federated_optimizer.canonical.regions.regions import Span
from streamsql.algebra.scalar_functions.like_patterns import LikePattern

_MANY = ""
"""Stands for any characters; None stands for one, as in `LikePattern`."""

_LONGEST = 200
"""Most characters of a pattern that is compared: the time grows with the product of two."""

Marks = tuple[str | None, ...]


def marks_of(pattern: LikePattern) -> Marks:
    """Return a pattern as characters, None for a `_` and "" for a `%`."""
    found = list(pattern.head.characters)
    if pattern.tail is not None:
        for part in (*pattern.middle, pattern.tail):
            found += [_MANY, *part.characters]
    return tuple(found)


def beginning(pattern: LikePattern) -> str:
    """Return the text that all texts of a pattern begin with."""
    found = ""
    for character in pattern.head.characters:
        if character is None:
            break
        found += character
    return found


def common_beginning(span: Span) -> str | None:
    """Return the text that all texts between two cuts begin with; None if there is none."""
    (_, low, _), (_, high, side) = span
    if not isinstance(low, str) or not isinstance(high, str):
        return None
    if low == high:
        return low
    found = ""
    for number, (one, other) in enumerate(zip(low, high, strict=False)):
        if one != other:
            # Up to before 'abd' all texts from 'abc' on begin with 'abc'.
            last = side < 0 and number == len(high) - 1 and ord(one) + 1 == ord(other)
            return found + one if last else found or None
        found += one
    return found or None


def includes(outer: Marks, inner: Marks) -> bool:
    """Return whether a pattern matches every text that another one matches; False: perhaps not.

    A `%` of the inner pattern is only matched by one of the outer pattern.
    """
    if max(len(outer), len(inner)) > _LONGEST:
        return False
    reached = _skipped({0}, outer)
    for mark in inner:
        following = set()
        for place in reached:
            if place == len(outer):
                continue
            own = outer[place]
            if own == _MANY:
                following.add(place)
            elif mark != _MANY and (own is None or own == mark):
                following.add(place + 1)
        reached = _skipped(following, outer)
    return len(outer) in reached


def _skipped(reached: set[int], outer: Marks) -> set[int]:
    """Return places with those behind a `%` that matches nothing."""
    found = set(reached)
    for place in sorted(reached):
        at = place
        while at < len(outer) and outer[at] == _MANY:
            at += 1
            found.add(at)
    return found


def prefix_marks(prefix: str) -> Marks:
    """Return the pattern of all texts that begin with one."""
    return (*prefix, _MANY)
