"""Roll-ups: a row per interval and device, made again for the days whose readings have changed.

They are tables `rollups.SOURCE__1m`, `__1h` and `__1d`, parted by the day of `_from`. The property
`pando.rolled` of each says which state of which day it sums up, so a day is read again only when
readings came to it. Days that retention has dropped stay summed up.
"""

import hashlib
import pickle
from collections.abc import Sequence

import msgspec
import pyarrow as pa
from pyiceberg.conversions import from_bytes
from pyiceberg.exceptions import TableAlreadyExistsError
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema as IcebergSchema
from pyiceberg.table import FileScanTask, Table
from pyiceberg.transforms import DayTransform
from pyiceberg.types import (
    DoubleType,
    LongType,
    NestedField,
    StringType,
    TimestamptzType,
)

from static_engine.care.compaction import Progress
from static_engine.care.file_work import SumTask, sum_up
from static_engine.care.sums import FROM, SumsShape, arrow_schema
from static_engine.care.workers import Workers
from static_engine.lake.file_swaps import swap_files
from static_engine.lake.kept_columns import KeptColumns
from static_engine.lake.kept_readings import ARRIVED
from static_engine.lake.lake import Lake
from static_engine.lake.lake_commits import retried
from static_engine.lake.lake_errors import LakeError
from static_engine.lake.lake_scan import moment
from streamsql.catalog.keep_options import DAY, RollUp
from streamsql.data.types import EARLIEST, LATEST, DataType

ROLLUPS = "rollups"
"""The namespace of roll-ups."""
ROLLED = "pando.rolled"
SHAPE = "pando.shape"
MAX_DAYS = 40_000
"""Days of a source; a century has fewer."""
_NUMERIC = (DataType.DOUBLE, DataType.INTEGER)
_ICEBERG = {
    pa.int64(): LongType(),
    pa.float64(): DoubleType(),
    pa.string(): StringType(),
}


def rollup_name(source: str, rollup: RollUp) -> str:
    """Return the name of a roll-up's table."""
    return f"{source}__{rollup.suffix}"


def shape_of(kept: KeptColumns, rollup: RollUp, keys: Sequence[str]) -> SumsShape:
    """Return what a roll-up sums up.

    Args:
        kept: Columns of the source in the lake.
        rollup: Which one.
        keys: Columns of the source's key; none: all TEXT columns tell devices apart.

    Raises:
        LakeError: Two of its columns would have one name.
    """
    named = [each.column for each in kept.columns if each.name in keys]
    texts = [each.column for each in kept.columns if each.type == DataType.TEXT]
    devices = tuple(named or texts)
    numbers = tuple(
        each.column for each in kept.columns if each.type in _NUMERIC and each.column not in devices
    )
    shape = SumsShape(int(rollup), devices, numbers)
    names = arrow_schema(shape).names
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        raise LakeError(
            f"a roll-up would have two columns {doubled[0]}",
            hint="give the column of the source another name, or set rollup = 'no'",
        )
    return shape


def roll_up(  # noqa: PLR0913  (whose, of what, by whom)
    lake: Lake,
    source: str,
    rollup: RollUp,
    keys: Sequence[str],
    *,
    workers: Workers,
    progress: Progress,
    since: int | None = None,
    until: int = LATEST,
) -> int:
    """Sum up the days of a source that have changed; return how many.

    Args:
        lake: Where.
        source: Its name.
        rollup: The length of the intervals.
        keys: Columns of the source's key.
        workers: Who reads.
        progress: Takes days done and days due; returns whether to go on.
        since: Days that begin earlier are left as they are; microseconds since 1970.
        until: Days that begin later wait: they are of clocks that are ahead.

    Raises:
        LakeError: The source is not kept, or workers are gone.
    """
    table = lake.table(source)
    shape = shape_of(lake.columns_of(table), rollup, keys)
    target = _target(lake, rollup_name(source, rollup), shape)
    rolled = _rolled(target) if target.properties.get(SHAPE) == _shape_text(shape) else {}
    due = {
        day: tasks
        for day, tasks in _days(table, EARLIEST if since is None else since, until).items()
        if rolled.get(str(day)) != _state(table, tasks)
    }
    if not progress(0, len(due)) or not due:
        return 0
    days = sorted(due)
    io = dict(table.io.properties)
    tasks = [
        pickle.dumps(
            SumTask(
                table.metadata,
                io,
                tuple(due[day]),
                shape,
                f"{target.location()}/data/day={day_text(day)}",
            )
        )
        for day in days
    ]
    name = f"roll-up {rollup_name(source, rollup)}"
    for number, (day, address) in enumerate(
        zip(days, workers.run(sum_up, tasks, name), strict=True), 1
    ):
        new = [address.decode()] if address else []
        _replace_day(target, day, new, _state(table, due[day]), shape)
        if not progress(number, len(days)):
            return number
    return len(days)


def _replace_day(target: Table, day: int, new: Sequence[str], state: str, shape: SumsShape) -> None:
    text = _shape_text(shape)

    def attempt() -> bool:
        target.refresh()
        rolled = _rolled(target) if target.properties.get(SHAPE) == text else {}
        rolled[str(day)] = state
        old = [file.file for file in _days(target).get(day, [])]
        with target.transaction() as transaction:
            transaction.set_properties({ROLLED: msgspec.json.encode(rolled).decode(), SHAPE: text})
            swap_files(transaction, old, new, "rollup")
        return True

    retried(attempt, target)


def _days(
    table: Table, since: int = EARLIEST, until: int = LATEST
) -> dict[int, list[FileScanTask]]:
    """Return the files of each day that begins in an interval, in days since 1970."""
    days: dict[int, list[FileScanTask]] = {}
    for task in table.scan().plan_files():
        day = int(task.file.partition[0])
        if since <= day * DAY <= until:
            days.setdefault(day, []).append(task)
    if len(days) > MAX_DAYS:
        raise LakeError(
            f"table {'.'.join(table.name())} has readings of {len(days)} days; the max is "
            f"{MAX_DAYS}",
            hint="look for devices whose clocks are wrong, and set keep",
        )
    return days


def _state(table: Table, tasks: Sequence[FileScanTask]) -> str:
    """Return what changes with the rows of a day, and not when its files are put together."""
    field = table.schema().find_field(ARRIVED)
    rows, last = 0, 0
    for task in tasks:
        rows += task.file.record_count
        bound = (task.file.upper_bounds or {}).get(field.field_id)
        if bound is not None:
            last = max(last, int(from_bytes(TimestamptzType(), bound)))
    return f"{rows}:{last}"


def _target(lake: Lake, name: str, shape: SumsShape) -> Table:
    """Return the table of a roll-up, with all columns that its sums have."""
    lake.catalog.create_namespace_if_not_exists(ROLLUPS)
    arrow = arrow_schema(shape)
    fields = [
        NestedField(
            number,
            field.name,
            TimestamptzType() if field.name == FROM else _ICEBERG[field.type],
            required=False,
        )
        for number, field in enumerate(arrow, 1)
    ]
    schema = IcebergSchema(*fields)
    parts = PartitionSpec(
        PartitionField(source_id=1, field_id=1000, transform=DayTransform(), name="day")
    )
    try:
        return lake.catalog.create_table(
            (ROLLUPS, name),
            schema=schema,
            partition_spec=parts,
            properties={
                "write.parquet.compression-codec": "zstd",
                "schema.name-mapping.default": schema.name_mapping.model_dump_json(),
            },
        )
    except TableAlreadyExistsError:
        table = lake.catalog.load_table((ROLLUPS, name))
    known = {field.name for field in table.schema().fields}
    missing = [field for field in fields if field.name not in known]
    if missing:
        with table.update_schema() as update:
            for field in missing:
                update.add_column(field.name, field.field_type)
    return table


def _rolled(target: Table) -> dict[str, str]:
    text = target.properties.get(ROLLED)
    try:
        return msgspec.json.decode(text, type=dict[str, str]) if text else {}
    except msgspec.MsgspecError:
        return {}  # every day is summed up again


def _shape_text(shape: SumsShape) -> str:
    text = repr((shape.width, shape.keys, shape.numbers))
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def day_text(day: int) -> str:
    """Return a day since 1970 as ISO text."""
    return moment(day * DAY).date().isoformat()
