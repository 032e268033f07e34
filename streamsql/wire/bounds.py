"""Bounds of everything that a message may hold.

Fields of messages are declared with these types, and the decoder refuses what lies outside. Plans
and definitions are declared without bounds, because they are made by the binder as well: what holds
them is walked once after decoding (`check_tree`).
"""

import math
from functools import lru_cache
from typing import Annotated, Any

import msgspec
from msgspec import Meta, inspect

MAX_EPOCH = 2**53
"""Every JSON reader can hold a number below this."""
MAX_DEPTH = 64
"""Levels of a JSON payload."""
MAX_TREE_DEPTH = 800
"""Levels of plans and expressions, structs and lists counted: the parser allows 160 of its own."""
MAX_TREE_TEXT = 1_000_000
MAX_PAYLOAD_BYTES = 8_000_000
MAX_OBSERVED_BYTES = 2_000_000
"""Of a pack of observations or of system rows, as JSON; gateways make smaller ones."""
MAX_ITEMS = 100_000
MAX_NAMES = 10_000
_LARGEST = 1.7976931348623157e308
_INTEGER = 2**63

Integer = Annotated[int, Meta(ge=-_INTEGER, le=_INTEGER - 1)]
Count = Annotated[int, Meta(ge=0, le=_INTEGER - 1)]
Epoch = Annotated[int, Meta(ge=0, lt=MAX_EPOCH)]
Time = Annotated[int, Meta(ge=-(2**62), le=2**62)]
"""Microseconds since 1970; sums with another time fit 64 bits."""
Token = Annotated[int, Meta(ge=0)]
"""Below 2**64, as MessagePack has no larger numbers."""
Number = Annotated[float, Meta(ge=-_LARGEST, le=_LARGEST)]
"""Finite: NaN compares with nothing."""
Name = Annotated[str, Meta(max_length=1_000)]
Text = Annotated[str, Meta(max_length=100_000)]
RowText = Annotated[str, Meta(max_length=MAX_PAYLOAD_BYTES)]
RowValue = bool | Integer | Number | RowText | None
"""`streamsql.data.types.Value`, within the ranges stated there."""
Packed = Annotated[bytes, Meta(max_length=MAX_PAYLOAD_BYTES)]
MANY = Meta(max_length=MAX_ITEMS)
WireRow = Annotated[tuple[RowValue, ...], Meta(max_length=MAX_NAMES)]
Names = Annotated[tuple[Name, ...], Meta(max_length=MAX_NAMES)]
Counts = Annotated[dict[Name, Count], Meta(max_length=MAX_NAMES)]
RowValues = Annotated[dict[Name, RowValue], Meta(max_length=1_000)]


@lru_cache(maxsize=64)
def is_bounded(kind: Any) -> bool:
    """Whether the type of a message bounds every number, text, list and level in it."""
    return _is_bounded(inspect.type_info(kind), frozenset())


def check_tree(value: object) -> None:
    """Check every number and text of a decoded message, and how deep it is.

    Raises:
        ValueError: Something is out of bounds; says what.
    """
    depth, level = 0, [value]
    while level:
        depth += 1
        if depth > MAX_TREE_DEPTH:
            raise ValueError(f"nested deeper than {MAX_TREE_DEPTH} levels")
        below: list[Any] = []
        for item in level:
            _check_leaf(item)
            if isinstance(item, msgspec.Struct):
                below += [getattr(item, name) for name in item.__struct_fields__]
            elif isinstance(item, tuple | list | frozenset | set):
                below += item
            elif isinstance(item, dict):
                below += item.keys()
                below += item.values()
        level = below


def _check_leaf(item: object) -> None:
    if isinstance(item, int):
        if not -_INTEGER <= item < _INTEGER:
            raise ValueError("a number does not fit 64 bits")
    elif isinstance(item, float):
        if not math.isfinite(item):
            raise ValueError("a number is not finite")
    elif isinstance(item, str) and len(item) > MAX_TREE_TEXT:
        raise ValueError(f"a text of {len(item)} characters; the max is {MAX_TREE_TEXT}")


def _is_bounded(info: inspect.Type, above: frozenset[type]) -> bool:
    match info:
        case inspect.StructType(cls=cls, fields=fields):
            return cls not in above and all(
                _is_bounded(field.type, above | {cls}) for field in fields
            )
        case inspect.IntType():
            return info.ge is not None and (info.ge >= 0 or info.le is not None)
        case inspect.FloatType():
            return info.ge is not None and info.le is not None
        case inspect.StrType() | inspect.BytesType():
            return info.max_length is not None
        case inspect.VarTupleType(item_type=item):
            return info.max_length is not None and _is_bounded(item, above)
        case inspect.TupleType(item_types=items):
            return all(_is_bounded(item, above) for item in items)
        case inspect.DictType(key_type=key, value_type=item):
            return info.max_length is not None and all(_is_bounded(t, above) for t in (key, item))
        case inspect.UnionType(types=types):
            return all(_is_bounded(item, above) for item in types)
        case _:
            return isinstance(info, inspect.BoolType | inspect.NoneType | inspect.EnumType)
