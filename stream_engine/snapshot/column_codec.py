"""State of operators as bytes: values column by column, so that most of the work is done in C.

Rows, dicts of rows, groups and ordered lists are taken apart kind by kind: all keys of all dicts
at one place become one column, all values another, and so do the attributes of all objects of one
class. A column of plain values is MessagePack. Restored values cannot run code: they are plain, or
objects of classes of this package that are imported already.
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from enum import IntEnum
from itertools import chain, islice
from operator import itemgetter
from typing import Any

import msgspec

from stream_engine.state.row_order import GREATEST, LEAST
from streamsql.errors import FederationError, InternalError

PACKAGE = "stream_engine"
_SCALARS: frozenset[type] = frozenset((type(None), bool, int, float, str, bytes))
_MAX_DEPTH = 60
_BOUND = type(LEAST)

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode
_decode_rows: Callable[[bytes], list[tuple[Any, ...]]] = msgspec.msgpack.Decoder(
    list[tuple[Any, ...]]
).decode

_FEW = 64
"""Max items that have a column each: so few may be of as many different kinds."""
_WIDEST = 32
"""Max columns that tuples or lists of one length are taken apart into."""

Column = list[Any]
"""A code and its parameters."""


class _Code(IntEnum):
    """How a column is written; saved in snapshots."""

    PLAIN = 0
    ROWS = 1
    EVEN = 2
    TUPLES = 3
    LISTS = 4
    DICTS = 5
    SETS = 6
    OBJECTS = 7
    MIXED = 8
    HUGE = 9
    BOUNDS = 10
    EACH = 11
    PICKERS = 12


class UnsavableError(FederationError):
    """Some state is of a kind that cannot be made bytes."""

    code = "unsavable_state"


def is_engine_object(value: object) -> bool:
    """Whether something is an instance of a class of this package that is no plain value."""
    cls = type(value)
    return cls.__module__.partition(".")[0] == PACKAGE and not isinstance(value, type)


def attributes(cls: type, value: object) -> list[str]:
    """Return the names of all attributes that an object has, slots and others."""
    slots = (
        name
        for base in cls.__mro__
        for name in _slots_of(base)
        if name not in ("__weakref__", "__dict__")
    )
    return sorted({*slots, *getattr(value, "__dict__", ())})


def _slots_of(cls: type) -> Iterable[str]:
    slots = cls.__dict__.get("__slots__", ())
    return (slots,) if isinstance(slots, str) else slots


def pack(value: object) -> bytes:
    """Return a value made of plain values, containers and objects of this package as bytes.

    Raises:
        UnsavableError: It holds something else; says what.
    """
    return _encode(_column([value], 0))


def unpack(content: bytes) -> Any:
    """Return what `pack` was given: equal, of the same types, nothing of it shared.

    Raises:
        InternalError: These bytes are not what `pack` returns, or a class is not known any more.
    """
    try:
        (value,) = _values(_decode(content), 0)
    except (msgspec.MsgspecError, ValueError, TypeError, LookupError, AttributeError) as error:
        raise InternalError(f"saved state cannot be read: {error!r:.300}") from error
    except (StopIteration, RecursionError) as error:
        raise InternalError("saved state cannot be read: it is cut") from error
    return value


def _column(items: list[Any], depth: int) -> Column:
    """Return items, in order, as one column."""
    if depth > _MAX_DEPTH:
        raise UnsavableError(f"state is nested deeper than {_MAX_DEPTH} levels")
    kinds: set[type] = set(map(type, items))
    if kinds <= _SCALARS:
        try:
            return [_Code.PLAIN, _encode(items)]
        except OverflowError:
            return _huge(items) if kinds == {int} else _mixed(items, depth, by_type=True)
    if 1 < len(items) <= _FEW:
        return [_Code.EACH, [_column([item], depth + 1) for item in items]]
    if len(kinds) > 1:
        return _mixed(items, depth)
    (kind,) = kinds
    if kind is tuple:
        return _rows(items) or _sequences(_Code.TUPLES, items, depth)
    if kind is list:
        return _sequences(_Code.LISTS, items, depth)
    if kind is dict:
        keys = list(chain.from_iterable(items))
        entries = list(chain.from_iterable(map(dict.values, items)))
        return [_Code.DICTS, _lengths(items), _column(keys, depth + 1), _column(entries, depth + 1)]
    if kind in (set, frozenset):
        members = list(chain.from_iterable(items))
        return [_Code.SETS, _lengths(items), _column(members, depth + 1), kind is frozenset]
    if kind is _BOUND:
        return [_Code.BOUNDS, _encode([item is LEAST for item in items])]
    if kind is itemgetter:
        return [_Code.PICKERS, _encode(list(map(_positions, items)))]
    if is_engine_object(items[0]):
        return _objects(kind, items, depth)
    raise UnsavableError(f"a {kind.__module__}.{kind.__qualname__} cannot be saved")


def _rows(items: list[Any]) -> Column | None:
    """Return tuples as they are, or None if they hold more than plain values."""
    if not set(map(type, chain.from_iterable(items))) <= _SCALARS:
        return None
    try:
        return [_Code.ROWS, _encode(items)]
    except OverflowError:
        return None


def _sequences(code: int, items: list[Any], depth: int) -> Column:
    """Return tuples or lists by their positions if all are equally short, else one by one."""
    width = len(items[0])
    if 0 < width <= _WIDEST < len(items) and set(map(len, items)) == {width}:
        parts = [_column(list(part), depth + 1) for part in zip(*items, strict=True)]
        return [_Code.EVEN, code == _Code.LISTS, parts]
    return [code, _lengths(items), _column(list(chain.from_iterable(items)), depth + 1)]


def _positions(picker: Any) -> list[int | list[int]]:
    """Return what an `itemgetter` picks: positions, and slices as their two ends."""
    parts = picker.__reduce__()[1]
    return [[part.start, part.stop] if isinstance(part, slice) else part for part in parts]


def _picker(positions: list[int | list[int]]) -> Any:
    return itemgetter(*(slice(*part) if isinstance(part, list) else part for part in positions))


def _lengths(items: list[Any]) -> bytes:
    return _encode(list(map(len, items)))


def _objects(cls: type, items: list[Any], depth: int) -> Column:
    """Return the attributes of objects of one class, column by column.

    A class may leave some out: `UNSAVED` maps them to what they are after reading back.
    """
    unsaved = getattr(cls, "UNSAVED", {})
    names = [name for name in attributes(cls, items[0]) if name not in unsaved]
    columns = []
    for name in names:
        try:
            values = [getattr(item, name) for item in items]
        except AttributeError:
            raise UnsavableError(f"not every {cls.__qualname__} has {name}") from None
        columns.append(_column(values, depth + 1))
    return [_Code.OBJECTS, cls.__module__, cls.__qualname__, len(items), names, columns]


def _mixed(items: list[Any], depth: int, *, by_type: bool = False) -> Column:
    """Return items of several kinds: which kind each is, then a column per kind.

    Plain values are one kind, if not each type of them is to be one.
    """
    kinds: list[object] = list(map(type, items))
    if not by_type:
        kinds = [_Code.PLAIN if kind in _SCALARS else kind for kind in kinds]
    numbers = {kind: number for number, kind in enumerate(dict.fromkeys(kinds))}
    if len(numbers) > 256:
        raise UnsavableError("state of more than 256 kinds at one place")
    which = bytes(map(numbers.__getitem__, kinds))
    columns = [
        _column([item for item, own in zip(items, which, strict=True) if own == number], depth + 1)
        for number in numbers.values()
    ]
    return [_Code.MIXED, which, columns]


def _huge(items: list[int]) -> Column:
    """Return integers beyond 64 bits; exact sums of doubles end in a thousand zero bits."""
    shifts = [max((item & -item).bit_length() - 1, 0) for item in items]
    odd = [item >> shift for item, shift in zip(items, shifts, strict=True)]
    digits = [item.to_bytes(item.bit_length() // 8 + 1, "little", signed=True) for item in odd]
    return [_Code.HUGE, _encode(shifts), _encode(digits)]


def _values(column: Column, depth: int) -> list[Any]:
    """Return the items of a column."""
    if depth > _MAX_DEPTH:
        raise ValueError("nested too deeply")
    code, *parts = column
    match code:
        case _Code.PLAIN:
            return list(_decode(parts[0]))
        case _Code.ROWS:
            return _decode_rows(parts[0])
        case _Code.EVEN:
            even = zip(*[_values(part, depth + 1) for part in parts[1]], strict=True)
            return list(map(list, even)) if parts[0] else list(even)
        case _Code.TUPLES:
            return list(map(tuple, _cut(parts[0], _values(parts[1], depth + 1))))
        case _Code.LISTS:
            return list(_cut(parts[0], _values(parts[1], depth + 1)))
        case _Code.DICTS:
            return _dicts(parts[0], *(_values(part, depth + 1) for part in parts[1:]))
        case _Code.SETS:
            make = frozenset if parts[2] else set
            return list(map(make, _cut(parts[0], _values(parts[1], depth + 1))))
        case _Code.OBJECTS:
            return _made(parts, depth)
        case _Code.MIXED:
            groups = [iter(_values(part, depth + 1)) for part in parts[1]]
            return [next(groups[number]) for number in parts[0]]
        case _Code.HUGE:
            whole = [int.from_bytes(digits, "little", signed=True) for digits in _decode(parts[1])]
            return [item << shift for item, shift in zip(whole, _decode(parts[0]), strict=True)]
        case _Code.BOUNDS:
            return [LEAST if least else GREATEST for least in _decode(parts[0])]
        case _Code.EACH:
            return [_values(part, depth + 1)[0] for part in parts[0]]
        case _Code.PICKERS:
            return list(map(_picker, _decode(parts[0])))
        case _:
            raise ValueError(f"unknown code {code!r:.40}")


def _dicts(lengths: bytes, keys: list[Any], entries: list[Any]) -> list[dict[Any, Any]]:
    """Return dicts from all their keys and values; most are of one entry, or there is one."""
    numbers = _decode(lengths)
    if len(numbers) == 1:
        return [dict(zip(keys, entries, strict=True))]
    if set(numbers) == {1}:
        return [{key: entry} for key, entry in zip(keys, entries, strict=True)]
    pairs = zip(_cut(lengths, keys), _cut(lengths, entries), strict=True)
    return [dict(zip(k, e, strict=True)) for k, e in pairs]


def _cut(lengths: bytes, items: list[Any]) -> Iterator[list[Any]]:
    """Yield runs of items of the given lengths."""
    rest = iter(items)
    return (list(islice(rest, length)) for length in _decode(lengths))


def _made(parts: list[Any], depth: int) -> list[Any]:
    """Return objects of one class with their attributes."""
    module, qualname, count, names, columns = parts
    cls = _class(module, qualname)
    made: list[Any] = [object.__new__(cls) for _ in range(count)]
    put = object.__setattr__  # also into frozen ones
    for name, column in zip(names, columns, strict=True):
        for item, value in zip(made, _values(column, depth + 1), strict=True):
            put(item, name, value)
    for name, value in getattr(cls, "UNSAVED", {}).items():
        for item in made:
            put(item, name, value)
    return made


def _class(module: str, qualname: str) -> type:
    """Return a class of this package that has been imported."""
    found: Any = sys.modules.get(module) if module.startswith(f"{PACKAGE}.") else None
    for name in qualname.split("."):
        found = getattr(found, name)
    if not isinstance(found, type) or found.__module__ != module:
        raise ValueError(f"{module}.{qualname} is no class of the engine")
    return found
