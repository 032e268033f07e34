"""Sets of tokens as integers with one bit per token: union is OR, inclusion one AND."""

from collections.abc import Collection, Iterable, Iterator

Mask = int


def bits_of(mask: Mask) -> Iterator[int]:
    """Yield the positions of a mask, ascending.

    Examples:
        >>> list(bits_of(0b1010))
        [1, 3]
    """
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def by_size(mask: Mask) -> tuple[int, int]:
    """Return a sort key: smaller sets first."""
    return (mask.bit_count(), mask)


def is_absorbed(mask: Mask, others: Collection[Mask]) -> bool:
    """Whether one of the others is inside a mask.

    Examples:
        >>> is_absorbed(0b111, [0b101]), is_absorbed(0b110, [0b101])
        (True, False)
    """
    for other in others:  # noqa: SIM110 - half the time of any() over a generator
        if other & mask == other:
            return True
    return False


def least(masks: Iterable[Mask], width: int) -> list[Mask]:
    """Return the minimal ones, smallest first; one more than `width` when there are more."""
    kept: list[Mask] = []
    for mask in sorted(masks, key=by_size):
        if not is_absorbed(mask, kept):
            kept.append(mask)
            if len(kept) > width:
                break
    return kept
