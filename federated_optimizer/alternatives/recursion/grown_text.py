"""Text of a chain of links, grown at its other end.

    p(x) || p(y) || b(z)   in front of what is there: b(z), then p(y) b(z), …
    b(x) || q(y) || q(z)   behind it: b(x), then b(x) q(y), …

are equal if p(x) b(y) = b(x) q(y) for links that join, by their parts: src || '.' || path of paths
that begin as src || '.' || dst becomes path || '.' || dst, since the dst of a link is the src of
the next.
"""

from collections.abc import Iterator, Mapping

from streamsql.algebra.expressions import (
    Call,
    Column,
    Expression,
    Literal,
    columns_of,
    map_columns,
    shifted,
)
from streamsql.data.types import DataType

_SECOND = 1 << 30
"""Columns of the second of two links have positions from here on."""


def grown_text(
    head: Expression, base: Expression, own: Column, width: int, joined: Mapping[int, Column]
) -> Expression | None:
    """Return the text with that of a link at its other end; None: parts do not say what that is.

    Args:
        head: The text with that of a link at the end where it grows.
        base: That of a link alone.
        own: The text so far, as `head` reads it.
        width: Columns of a link; others are those of the relation.
        joined: By columns of a link, the column of the link before it that has the same value,
            not only an equal one.
    """
    parts, more, first = list(_parts(head)), list(_parts(base)), own.position
    reads = [isinstance(part, Column) and part.position == first for part in parts]
    if sum(reads) != 1 or not (reads[0] or reads[-1]):
        return None
    in_front = reads[-1]
    added = [part for part, is_own in zip(parts, reads, strict=True) if not is_own]
    if any(position >= width for part in added for position in columns_of(part)):
        return None
    if not in_front:  # read backwards it is the same
        added.reverse()
        more.reverse()
    rest = _rest(added, more, joined)
    if rest is None:
        return None
    return _concatenated([own, *rest] if in_front else [*reversed(rest), own], own.dtype)


def identical(one: Expression, other: Expression) -> bool:
    """Return whether expressions are equal, also as text: 0.0 equals -0.0, but reads otherwise."""
    return one == other and repr(one) == repr(other)


def _rest(
    added: list[Expression], base: list[Expression], joined: Mapping[int, Column]
) -> list[Expression] | None:
    """Return q(y): p(x) b(y) without the b(x) that it begins with."""
    back = {wanted.position: position for position, wanted in joined.items()}

    def of_first(read: Column) -> Expression:
        """Return the column of x that y is joined by, or y's own one, shifted behind those of x."""
        return joined.get(read.position) or shifted(read, _SECOND)

    def of_second(read: Column) -> Expression:
        known = read.position < _SECOND
        position = back[read.position] if known else read.position - _SECOND
        return Column(position, read.name, read.dtype)

    whole = [*added, *(map_columns(part, of_first) for part in base)]
    rest = whole[len(base) :]
    read = {position for part in rest for position in columns_of(part) if position < _SECOND}
    if not all(map(identical, whole, base)) or not read <= back.keys():
        return None
    return [map_columns(part, of_second) for part in rest]


def _parts(text: Expression) -> Iterator[Expression]:
    """Yield the parts of a concatenation, constants by character."""
    match text:
        case Call("||", arguments):
            for part in arguments:
                yield from _parts(part)
        case Literal(str() as value, dtype):
            yield from (Literal(each, dtype) for each in value)
        case _:
            yield text


def _concatenated(parts: list[Expression], dtype: DataType) -> Expression:
    """Return the concatenation of parts, neighbouring constants as one."""
    found = parts[0]
    for part in parts[1:]:
        match found, part:
            case Call("||", (before, Literal(str() as one))), Literal(str() as other):
                found = Call("||", (before, Literal(one + other, dtype)), dtype)
            case Literal(str() as one), Literal(str() as other):
                found = Literal(one + other, dtype)
            case _:
                found = Call("||", (found, part), dtype)
    return found
