"""Numbers about a column of a source, from what its gateways have counted of it."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import accumulate
from math import isfinite, sqrt

import msgspec

from federated_optimizer.statistics.fact import (
    DECILES,
    Fact,
    Origin,
    Quantity,
    Subject,
    share,
    sureness,
)
from streamsql.wire.bounds import MAX_PAYLOAD_BYTES
from streamsql.wire.site_messages import HASH_BYTES, MOST_HASHES, ColumnCount, SourceCount

_HASHES = 256**HASH_BYTES
_SURE = 1.96
"""Standard deviations of a range of 95 %."""
SAMPLED = 0.06
"""By how much a share may be wrong that is read off a sample of 256 readings."""
MERGED = 0.5
"""Tenths by which a decile may be off that is merged from deciles."""
_GUESSED = 2.0
"""Factor by which a number of values may be wrong that is estimated by some rows of a table."""
Part = tuple[SourceCount, ColumnCount]
"""Counts of a gateway: of the source, and of its column."""


def column_facts(
    subject: Subject, parts: Sequence[Part], at: int, origin: Origin = Origin.COUNTED
) -> list[Fact]:
    """Return the facts about a column, of which at least one gateway has seen readings.

    Sites may tell any numbers: a column has at most as many values as there are rows, and a text
    is at most as long as a message.

    Args:
        subject: The column.
        parts: Of gateways; of a stored table that of the static engine.
        at: When they were counted.
        origin: By whom.
    """
    rows = sum(source.rows for source, _ in parts)
    sampled = sum(source.sampled for source, _ in parts)
    hashes = [_hashes(column.hashes) for _, column in parts]
    told = [_told(part) if origin == Origin.TABLES else None for part in parts]
    sure = sureness(rows)

    def fact(quantity: Quantity, numbers: tuple[float, float, float]) -> Fact:
        return Fact(subject, quantity, *numbers, at, sure, origin)

    together = distinct({h for some in hashes for h in some})
    each = [
        _up_to(source.rows, distinct(some) if say is None else say)
        for (source, _), some, say in zip(parts, hashes, told, strict=True)
    ]
    whole = _up_to(rows, max([together, *(say for say in told if say is not None)]))
    found = [fact(Quantity.DISTINCT, whole)]
    mean, low, high = (sum(numbers) / len(each) for numbers in zip(*each, strict=True))
    found.append(fact(Quantity.LOCAL_DISTINCT, (mean, low, high)))
    if sampled:
        nulls = min(sum(column.nulls for _, column in parts), sampled)
        found.append(share(subject, Quantity.NULLS, nulls, sampled, at, origin))
        found.append(_common(subject, parts, whole[0], at, origin))
    compared = sum(source.compared for source, _ in parts)
    if compared:
        same = min(sum(column.same for _, column in parts), compared)
        found.append(share(subject, Quantity.SAME, same, compared, at, origin))
    sizes = [
        (source.rows, min(column.size / source.sampled, float(MAX_PAYLOAD_BYTES)))
        for source, column in parts
        if column.size is not None and source.sampled
    ]
    if sizes:
        size = sum(weight * each for weight, each in sizes) / sum(weight for weight, _ in sizes)
        means = [each for _, each in sizes]
        # Rounding must not put the mean beyond its ends.
        told_size = (size, min(*means, size), max(*means, size))
        found.append(fact(Quantity.TEXT_BYTES, told_size))
    deciles = merged_deciles([(source.rows, column.deciles) for source, column in parts])
    for place, (quantity, value) in enumerate(zip(DECILES, deciles, strict=False)):
        # The share of all readings below a decile is off by so many tenths.
        part = place / 10
        off = _SURE * sqrt(part * (1 - part) / max(_weighed(parts), 1.0)) * 10
        off += 0.0 if len(parts) == 1 else MERGED
        ends = (decile_at(deciles, place - off), decile_at(deciles, place + off))
        found.append(fact(quantity, (value, *ends)))
    return found


def _told(part: Part) -> tuple[float, float, float] | None:
    """Return how many values a column has, with the range, if that is not to be seen by hashes."""
    source, column = part
    if column.distinct is None:
        return None
    number = max(column.distinct, 0.0)
    off = 1.0 if source.sampled >= source.rows else _GUESSED
    return number, number / off, number * off


def _up_to(rows: int, numbers: tuple[float, float, float]) -> tuple[float, float, float]:
    """Return a number of values of so many rows, with its range."""
    value, low, high = (min(number, float(rows)) for number in numbers)
    return value, low, high


def _weighed(parts: Sequence[Part]) -> float:
    """Return how large one sample is that says as much as those of gateways, each by its rows."""
    rows = sum(source.rows for source, _ in parts)
    spread = sum(source.rows**2 / max(source.sampled, 1) for source, _ in parts)
    return rows**2 / spread if spread else 0.0


def _hashes(packed: bytes) -> set[int]:
    starts = range(0, len(packed) - HASH_BYTES + 1, HASH_BYTES)
    return {int.from_bytes(packed[start : start + HASH_BYTES], "big") for start in starts}


def distinct(hashes: Iterable[int]) -> tuple[float, float, float]:
    """Return how many values have these least hashes, with the range of 95 %.

    Examples:
        >>> distinct({7, 8, 9})
        (3.0, 3.0, 3.0)
        >>> [round(n) for n in distinct(range(2**26, 2**32, 2**26))]
        [63, 63, 63]
        >>> [round(n) for n in distinct(range(2**20, 2**27, 2**20))]
        [4032, 3028, 5036]
    """
    least = sorted(set(hashes))[:MOST_HASHES]
    if len(least) < MOST_HASHES:
        return (float(len(least)),) * 3
    # Of evenly spread hashes the k-th is at k / (number + 1).
    number = (MOST_HASHES - 1) * _HASHES / max(least[-1], 1)
    off = _SURE * number / sqrt(MOST_HASHES - 2)
    return number, max(number - off, float(MOST_HASHES)), number + off


def _common(
    subject: Subject, parts: Sequence[Part], values: float, at: int, origin: Origin
) -> Fact:
    """Return the share of the most common value; of each gateway only its own one is known."""
    rows = sum(source.rows for source, _ in parts)
    often: Counter[int] = Counter()
    for source, column in parts:
        # A sample stands for all readings of its gateway.
        often[column.common] += round(source.rows * column.often / max(source.sampled, 1))
    nulls = sum(column.nulls for _, column in parts) / sum(source.sampled for source, _ in parts)
    present, sampled = 1.0 - nulls, max(round(_weighed(parts)), 1)
    least = max(max(often.values()) / rows, max(present, 0.0) / max(values, 1.0))
    # All may have the same one, which is the second one elsewhere.
    most = max(sum(often.values()) / rows, least)
    low, high = (
        share(subject, Quantity.COMMON, round(min(part, 1.0) * sampled), sampled, at, origin)
        for part in (least, most)
    )
    return msgspec.structs.replace(low, high=high.high)


def merged_deciles(parts: Sequence[tuple[int, Sequence[float]]]) -> tuple[float, ...]:
    """Return the deciles of several samples; none if none has any.

    Args:
        parts: Of each the number of readings that it stands for, and its deciles.

    Examples:
        >>> ten = tuple(float(n) for n in range(11))
        >>> merged_deciles([(5, ten), (5, ten)]) == ten
        True
    """
    known = [
        (max(rows, 1), values)
        for rows, values in parts
        if len(values) == len(DECILES) and all(map(isfinite, values))
    ]
    if len(known) < 2:
        return tuple(known[0][1]) if known else ()
    points = sorted((value, rows) for rows, values in known for value in values)
    ends = list(accumulate(rows for _, rows in points))
    middles = [end - rows / 2 for end, (_, rows) in zip(ends, points, strict=True)]
    first, last = middles[0], middles[-1]
    wanted = [first + (last - first) * place / 10 for place in range(len(DECILES))]
    return tuple(points[min(bisect_left(middles, at), len(points) - 1)][0] for at in wanted)


def decile_at(deciles: Sequence[float], place: float) -> float:
    """Return the value at a place between deciles, from 0 to 10."""
    place = min(max(place, 0.0), len(deciles) - 1.0)
    low = int(place)
    high = min(low + 1, len(deciles) - 1)
    return deciles[low] + (place - low) * (deciles[high] - deciles[low])
