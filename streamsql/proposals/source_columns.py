"""The columns of a proposed source, by the form of its payloads."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from streamsql.data.types import DataType
from streamsql.proposals.column_types import TIME_NAMES, typed
from streamsql.proposals.payload_fields import PayloadField
from streamsql.proposals.proposal import TIME, ProposedColumn
from streamsql.proposals.topic_shapes import identifier
from streamsql.proposals.unit_words import UNIT_FIELDS, unit_of_field

MAX_COLUMNS = 40
IDS = (
    "device", "device_id", "deviceid", "dev_id", "dev_eui", "deveui", "sensor", "sensor_id", "id",
    "mac", "address", "node", "node_id", "serial", "uid", "uuid", "name", "tag", "key", "badge",
)  # fmt: skip
"""Names of columns that tell devices apart, the best first."""


class Fed(msgspec.Struct):
    """A column and the field that feeds it; `of_root` beside rows that are elements."""

    column: ProposedColumn
    field: PayloadField
    of_root: bool = False


class Origin(msgspec.Struct, frozen=True):
    """Origin of payloads.

    Attributes:
        pattern: Of the topics.
        beside: Fields of a payload's root, which may say units.
        zone: Of times that name none.
    """

    pattern: str = ""
    beside: Mapping[str, object] = {}
    zone: str = ""


def columns_of_fields(
    fields: Iterable[PayloadField],
    origin: Origin,
    taken: set[str],
    *,
    verbatim: bool = False,
    of_root: bool = False,
) -> list[Fed]:
    """Return a column for each field, in their order.

    Args:
        fields: With values.
        origin: Where the payloads come from.
        taken: Names of other columns; those of the new ones are added.
        verbatim: Whether FROM is the field's name as it is, as of Sparkplug's metrics.
        of_root: Whether paths begin at the payload's root beside `rows`.
    """
    found: list[Fed] = []
    for field in [field for field in fields if field.steps[-1] not in UNIT_FIELDS][:MAX_COLUMNS]:
        name = _free_name(field.steps, taken)
        path = field.steps[-1] if verbatim else field.path
        if verbatim and (path != path.strip() or path.startswith("@") or not path):
            continue
        kind = typed(name, field.values, origin.zone)
        if kind is None:
            continue
        dtype, clauses = kind
        unit = clauses.unit
        if dtype.is_numeric and not unit:
            unit = unit_of_field(field.path, name, origin.pattern, origin.beside)
        written = f"$.{path}" if of_root and not path.startswith("[") else path
        written = f"${path}" if of_root and path.startswith("[") else written
        mapping = msgspec.structs.replace(
            clauses, path="" if written == name else written, unit=unit
        )
        taken.add(name)
        found.append(Fed(ProposedColumn(name, dtype, mapping), field, of_root))
    return found


def with_event_time(columns: list[Fed], taken: set[str]) -> list[Fed]:
    """Name the column that holds the reading's time `ts`, and put it last."""
    if TIME in taken and not any(fed.column.name == TIME for fed in columns):
        return columns  # a level of the topic
    for name in TIME_NAMES:
        for fed in columns:
            if fed.column.name == name and fed.column.dtype == DataType.TIMESTAMP:
                return [*(each for each in columns if each is not fed), _renamed(fed, TIME)]
    for fed in columns:
        if fed.column.name == TIME:
            # It is no time, so it must not have the name of one.
            return [_renamed(each, "ts_value") if each is fed else each for each in columns]
    return columns


def id_column(columns: Sequence[Fed], payloads: int) -> str:
    """Return the name of the column that tells devices apart and is always there, or empty."""
    by_name = {fed.column.name: fed for fed in columns}
    for name in IDS:
        fed = by_name.get(name)
        if fed is not None and _is_word(fed) and len(set(fed.field.places)) == payloads:
            return name
    return ""


def row_id(columns: Sequence[Fed], places: Sequence[int]) -> str:
    """Return the name of a column that tells the rows of each payload apart, or empty.

    Args:
        columns: Of the rows.
        places: For each row the number of its payload.
    """
    for fed in sorted(columns, key=_order_of_ids):
        if fed.of_root or not _is_word(fed) or fed.field.places != list(range(len(places))):
            continue
        seen = {(places[row], value) for row, value in enumerate(map(str, fed.field.values))}
        if len(seen) == len(places):
            return fed.column.name
    return ""


def _renamed(fed: Fed, name: str) -> Fed:
    column = fed.column
    path = column.origin.path or column.name
    origin = msgspec.structs.replace(column.origin, path="" if path == name else path)
    return Fed(ProposedColumn(name, column.dtype, origin), fed.field, fed.of_root)


def _free_name(steps: tuple[str, ...], taken: set[str]) -> str:
    for begin in range(len(steps) - 1, -1, -1):
        name = identifier("_".join(steps[begin:]))
        if name and name not in taken:
            return name
    stem, number = identifier(steps[-1]) or "field", 2
    if stem not in taken:
        return stem
    while f"{stem}_{number}" in taken:
        number += 1
    return f"{stem}_{number}"


def _is_word(fed: Fed) -> bool:
    return fed.column.dtype in (DataType.TEXT, DataType.INTEGER)


def _order_of_ids(fed: Fed) -> int:
    name = fed.column.name
    return IDS.index(name) if name in IDS else len(IDS)
