"""Tables of the lake that are no sources: messages of services, and dead letters of the pipeline.

Both hold messages as they came. `digest` names one: of equal names one is kept. Tables are parted
by the day (UTC) on which messages arrived.
"""

from enum import StrEnum
from hashlib import blake2b
from typing import Final

import pyarrow as pa
from pyiceberg.exceptions import NoSuchTableError, TableAlreadyExistsError
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema as IcebergSchema
from pyiceberg.table import Table
from pyiceberg.transforms import DayTransform
from pyiceberg.types import BinaryType, NestedField, StringType, TimestamptzType

from static_engine.lake.kept_readings import ARRIVED, TIME
from static_engine.lake.lake import SYSTEM, TABLE_PROPERTIES, Lake


class SystemTable(StrEnum):
    """Tables of the namespace `system`."""

    BIRTHS = "births"
    STATES = "states"
    ALARMS = "alarms"
    DEAD_LETTERS = "dead_letters"


DIGEST: Final = "digest"
MESSAGE_SCHEMA: Final = pa.schema(
    [
        ("site", pa.string()),
        ("topic", pa.string()),
        ("payload", pa.binary()),
        ("reason", pa.string()),
        (DIGEST, pa.binary()),
        (ARRIVED, TIME),
    ]
)
"""Columns of all of them; `reason` is why a dead letter is one, and NULL elsewhere."""

_ICEBERG: Final = {
    "site": StringType(),
    "topic": StringType(),
    "payload": BinaryType(),
    "reason": StringType(),
    DIGEST: BinaryType(),
    ARRIVED: TimestamptzType(),
}


def digest_of(topic: str, payload: bytes) -> bytes:
    """Return the name of a message: 16 bytes."""
    return blake2b(
        topic.encode("utf-8", "surrogatepass") + b"\0" + payload, digest_size=16
    ).digest()


def ensure_system(lake: Lake, name: SystemTable) -> Table:
    """Return a table of the namespace `system`, made when it is missing."""
    try:
        return lake.catalog.load_table((SYSTEM, name.value))
    except NoSuchTableError:
        pass
    fields = [
        NestedField(number, column, _ICEBERG[column], required=False)
        for number, column in enumerate(MESSAGE_SCHEMA.names, 1)
    ]
    schema = IcebergSchema(*fields)
    day = PartitionField(
        source_id=schema.find_field(ARRIVED).field_id,
        field_id=1000,
        transform=DayTransform(),
        name="day",
    )
    try:
        return lake.catalog.create_table(
            (SYSTEM, name.value),
            schema=schema,
            partition_spec=PartitionSpec(day),
            properties=TABLE_PROPERTIES,
        )
    except TableAlreadyExistsError:
        return lake.catalog.load_table((SYSTEM, name.value))
