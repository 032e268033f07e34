"""Values that a device offers, as its connector lists them."""

import math
from typing import Annotated

import msgspec
from msgspec import Meta

from streamsql.data.types import DataType

MAX_RECORDS = 100
MAX_VALUES = 2_000
"""Of all records of a device."""
MAX_RECORD_VALUES = 200
MAX_SAMPLE = 200
"""Characters of a value's sample."""
MAX_NAME = 200

_LARGEST_INTEGER, _LARGEST = 2**63, 1.7976931348623157e308
# Bounds of messages: they are made of these structs.
Text = Annotated[str, Meta(max_length=1_000)]
Sample = (
    bool
    | Annotated[int, Meta(ge=-_LARGEST_INTEGER, le=_LARGEST_INTEGER - 1)]
    | Annotated[float, Meta(ge=-_LARGEST, le=_LARGEST)]
    | Annotated[str, Meta(max_length=MAX_SAMPLE)]
    | None
)


class OfferedValue(msgspec.Struct, frozen=True):
    """One value that a column could hold.

    Attributes:
        name: As the device calls it.
        address: What FROM has to say; `@name` for a fact of the row, such as `@index`.
        type: Of the column; None: as the sample looks.
        unit: As the device, or its protocol, calls it; empty: not told.
        sample: What it is now; None: not read.
    """

    name: Text
    address: Text
    type: DataType | None = None
    unit: Text = ""
    sample: Sample = None


class OfferedRecord(msgspec.Struct, frozen=True):
    """Values that belong together: the columns of a table, the variables of a machine.

    Attributes:
        name: As the device calls it.
        values: At least one.
        options: Of the connector, for a source that reads them: table = '…'.
        key: Names of the values that tell rows apart; empty: a reading is a row.
    """

    name: Text
    values: Annotated[tuple[OfferedValue, ...], Meta(max_length=MAX_RECORD_VALUES)]
    options: Annotated[dict[Text, Text], Meta(max_length=20)] = {}
    key: Annotated[tuple[Text, ...], Meta(max_length=20)] = ()


def sample_of(value: object) -> bool | int | float | str | None:
    """Return a value as a message may hold it: short, finite, of 64 bits.

    Examples:
        >>> sample_of(21.5), sample_of(float("nan")), sample_of(2**70), len(sample_of("x" * 900))
        (21.5, None, '1180591620717411303424', 200)
    """
    match value:
        case None | bool():
            return value
        case int():
            return value if -_LARGEST_INTEGER <= value < _LARGEST_INTEGER else str(value)
        case float():
            return value if math.isfinite(value) else None
        case _:
            return str(value)[:MAX_SAMPLE]


def within_bounds(record: OfferedRecord, most: int) -> OfferedRecord:
    """Return a record of at most so many values, with names that a message may hold."""
    values = tuple(
        msgspec.structs.replace(
            value,
            name=value.name[:MAX_NAME],
            unit=value.unit[:MAX_NAME],
            sample=sample_of(value.sample),
        )
        for value in record.values
        # A cut address would be another one.
        if len(value.address) <= MAX_NAME * 5
    )
    return msgspec.structs.replace(
        record, name=record.name[:MAX_NAME], values=values[: min(most, MAX_RECORD_VALUES)]
    )
