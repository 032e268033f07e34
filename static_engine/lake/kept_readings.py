"""The layout of a kept source: one Iceberg table per source in the namespace `readings`.

Its own columns first, then those that say which reading a row is:

| column        | type        | meaning                                                        |
|---------------|-------------|----------------------------------------------------------------|
| `_gateway`    | string      | who sent it                                                    |
| `_epoch`      | long        | of that gateway, when its pack was made                        |
| `_seq`        | long        | of the pack in that epoch                                      |
| `_place`      | int         | of the row in the pack, from 0                                 |
| `_event_time` | timestamptz | when it was, in microseconds                                   |
| `_withdrawn`  | boolean     | whether the row was withdrawn, and did not arrive              |
| `_arrived`    | timestamptz | when the lander had it                                         |

Gateway, epoch, seq and place name a row: of equal names one is kept. Times are `timestamptz`,
intervals are microseconds in a `long`. Tables are parted by the day (UTC) of `_event_time`.
"""

from typing import Final

import pyarrow as pa
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema as IcebergSchema
from pyiceberg.transforms import DayTransform
from pyiceberg.types import (
    BooleanType,
    DoubleType,
    IcebergType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    TimestamptzType,
)

from streamsql.data.types import DataType

READINGS: Final = "readings"
"""The namespace of kept sources."""
GATEWAY: Final = "_gateway"
EPOCH: Final = "_epoch"
SEQ: Final = "_seq"
PLACE: Final = "_place"
EVENT_TIME: Final = "_event_time"
WITHDRAWN: Final = "_withdrawn"
ARRIVED: Final = "_arrived"
IDENTITY: Final = (GATEWAY, EPOCH, SEQ, PLACE)
"""What names a row."""

TIME: Final = pa.timestamp("us", tz="UTC")

_OWN: Final[tuple[tuple[str, pa.DataType, IcebergType], ...]] = (
    (GATEWAY, pa.string(), StringType()),
    (EPOCH, pa.int64(), LongType()),
    (SEQ, pa.int64(), LongType()),
    (PLACE, pa.int32(), IntegerType()),
    (EVENT_TIME, TIME, TimestamptzType()),
    (WITHDRAWN, pa.bool_(), BooleanType()),
    (ARRIVED, TIME, TimestamptzType()),
)
OWN_NAMES: Final = tuple(name for name, _, _ in _OWN)
"""Columns that every kept source has."""

_ARROW: Final = {
    DataType.BOOLEAN: pa.bool_(),
    DataType.INTEGER: pa.int64(),
    DataType.DOUBLE: pa.float64(),
    DataType.TEXT: pa.string(),
    DataType.TIMESTAMP: TIME,
    DataType.INTERVAL: pa.int64(),
    DataType.NULL: pa.string(),
}
_ICEBERG: Final[dict[DataType, IcebergType]] = {
    DataType.BOOLEAN: BooleanType(),
    DataType.INTEGER: LongType(),
    DataType.DOUBLE: DoubleType(),
    DataType.TEXT: StringType(),
    DataType.TIMESTAMP: TimestamptzType(),
    DataType.INTERVAL: LongType(),
    DataType.NULL: StringType(),
}


def arrow_type(dtype: DataType) -> pa.DataType:
    """Return the Arrow type in which values of a column are kept."""
    return _ARROW[dtype]


def iceberg_type(dtype: DataType) -> IcebergType:
    """Return the Iceberg type in which values of a column are kept."""
    return _ICEBERG[dtype]


def arrow_schema(columns: list[tuple[str, DataType]]) -> pa.Schema:
    """Return the schema of a kept source's files, from the names of its columns in the lake."""
    own = [(name, arrow) for name, arrow, _ in _OWN]
    return pa.schema([*((name, _ARROW[dtype]) for name, dtype in columns), *own])


def iceberg_schema(columns: list[tuple[str, DataType, str]]) -> IcebergSchema:
    """Return the schema of a new table.

    Args:
        columns: Name in the lake, type, and what it is, in words.
    """
    given = [(name, _ICEBERG[dtype], doc) for name, dtype, doc in columns]
    own = [(name, iceberg, "") for name, _, iceberg in _OWN]
    fields = [
        NestedField(number, name, kind, required=False, doc=doc or None)
        for number, (name, kind, doc) in enumerate([*given, *own], 1)
    ]
    return IcebergSchema(*fields)


def day_parts(schema: IcebergSchema) -> PartitionSpec:
    """Return the parts of a table: one a day of `_event_time`."""
    source = schema.find_field(EVENT_TIME).field_id
    return PartitionSpec(
        PartitionField(source_id=source, field_id=1000, transform=DayTransform(), name="day")
    )
