"""Turn a wrapper's reading into a legal source event, or say what is wrong with it."""

from collections.abc import Mapping

from gateway.wrappers.wrapper import Reading
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.events import SourceEvent
from streamsql.data.types import EARLIEST, LATEST

MAX_TEXT = 4_000
MAX_FUTURE = 3_600_000_000


def event_of(
    reading: Reading, definition: SourceDefinition, now: int, correction: int = 0
) -> SourceEvent:
    """Return the event of a reading.

    Args:
        reading: As the wrapper gave it.
        definition: Of the reading's source.
        now: The gateway's time in microseconds.
        correction: Microseconds to add to an event time that the reading gives.

    Raises:
        ValueError: An unknown column, a value of the wrong type, a missing key, text longer than
            4,000 characters or that is no Unicode, an event time that is no number of microseconds
            or more than an hour ahead.
    """
    if not isinstance(reading.values, Mapping):
        raise ValueError(f"values {reading.values!r:.60} are not a mapping of columns")
    values = dict(reading.values)
    schema = definition.schema
    position = definition.time_column
    ts = now if reading.ts is None else _event_time(reading.ts) + correction
    if position is not None:
        given = values.get(schema.names[position])
        ts = ts if given is None else _event_time(given) + correction
        values[schema.names[position]] = ts
    if ts > now + MAX_FUTURE:
        raise ValueError(f"event time {ts} is more than an hour ahead of the gateway's clock")
    row = schema.coerce_row(values)
    for value, name in zip(row, schema.names, strict=True):
        if isinstance(value, str):
            _check_text(value, name)
    for key in definition.key:
        if row[key] is None:
            raise ValueError(f"key column {schema.names[key]} is missing")
    return SourceEvent(row, ts, reading.delete)


def _event_time(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and EARLIEST <= value < LATEST:
        return value
    raise ValueError(f"event time {value!r:.60} is not in microseconds within the years 1 to 9999")


def _check_text(value: str, name: str) -> None:
    if len(value) > MAX_TEXT:
        raise ValueError(f"column {name}: text of {len(value)} characters; the max is {MAX_TEXT}")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"column {name}: text is not Unicode at {error.start}") from None
