"""From payloads to rows: the mapping of one source, compiled once.

Nothing that comes from a device makes a mapper raise: a bad value is NULL and a problem, a row
without its key is refused, a payload that cannot be read is one problem.
"""

from collections.abc import Iterable, Mapping
from typing import Protocol

import msgspec

from streamsql.data.schema import Schema
from streamsql.data.types import Value
from streamsql.mapping.conversions import scalar_text
from streamsql.mapping.field_path import MISSING
from streamsql.mapping.payloads.payload_reader import MAX_PAYLOAD, MAX_ROWS, Element, RefusedRow
from streamsql.mapping.payloads.payload_readers import reader_of
from streamsql.mapping.row_columns import Condition, RowColumn, compile_columns, conditions_of
from streamsql.mapping.row_conditions import passes, row_conditions_of
from streamsql.mapping.shown_values import shown
from streamsql.mapping.source_mapping import SourceMapping
from streamsql.mapping.time_formats import is_time

MAX_PROBLEMS = 20
MAX_PROBLEM_TEXT = 200


class MappedSource(Protocol):
    """A source's definition as a mapper needs it."""

    @property
    def schema(self) -> Schema:
        """Its columns."""

    @property
    def key(self) -> tuple[int, ...]:
        """Positions of the columns without which a row is refused."""

    @property
    def time_column(self) -> int | None:
        """Position of the event time."""

    @property
    def mapping(self) -> SourceMapping | None:
        """Origin of the values."""


class Mapped(msgspec.Struct):
    """Rows and problems of a payload.

    Attributes:
        rows: Values by column; every column is there.
        problems: What was wrong, at most 20 texts of at most 200 characters.
        refused: Rows that are not there since something was wrong; an unreadable payload is one.
        ignored: The payload is empty or does not match the option `only`, or none of its rows
            meets `only_rows`: nothing was wrong.
        some_ignored: A row does not meet `only_rows`.
    """

    rows: list[dict[str, Value]]
    problems: list[str]
    refused: int = 0
    ignored: bool = False
    some_ignored: bool = False

    def report(self, problem: str) -> None:
        """Keep the text of a problem, if there are not too many."""
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(problem[:MAX_PROBLEM_TEXT])


class Mapper:
    """The mapping of one source, compiled."""

    def __init__(self, source: MappedSource) -> None:
        """Compile a source's mapping.

        Raises:
            ValueError: A path, format, unit, zone or option is wrong; the text names the column or
                option and says what is right.
        """
        if source.mapping is None:
            raise ValueError("the source has no mapping: its rows do not come from a connector")
        mapping = source.mapping
        names = source.schema.names
        self._reader = reader_of(mapping)
        self._columns = compile_columns(mapping, source.schema, source.time_column, self._reader)
        self._conditions = conditions_of(mapping, self._reader)
        self._row_conditions = row_conditions_of(mapping, self._reader)
        self._key = tuple(names[position] for position in source.key)
        self._blank: dict[str, Value] = dict.fromkeys(names)
        self._fed = len(self._columns.of_element)

    def map(self, payload: bytes, facts: Mapping[str, Value], arrival: int) -> Mapped:
        """Return the rows of a payload.

        Args:
            payload: As the device sent it; of more than 1 MB nothing is read.
            facts: Of the message: `topic`, `retained`, the `{names}` of the topic, ….
            arrival: When it came, in microseconds since 1970: the event time of rows without one.
        """
        if not payload:
            return Mapped([], [], ignored=True)
        if len(payload) > MAX_PAYLOAD:
            return _unreadable(f"{len(payload):,} bytes; the max is {MAX_PAYLOAD:,}")
        try:
            return self._mapped(self._reader.decode(payload, arrival), facts, arrival)
        except ValueError as error:
            return _unreadable(str(error))

    def map_record(
        self, values: Mapping[str, object], facts: Mapping[str, Value], arrival: int
    ) -> Mapped:
        """Return the rows of values that a connector read: by address, or a decoded payload."""
        try:
            return self._mapped(dict(values), facts, arrival)
        except ValueError as error:
            return _unreadable(str(error))

    def given(self, facts: Mapping[str, Value]) -> dict[str, Value]:
        """Return the columns that these facts alone give; NULL where a value is a wrong one."""
        row: dict[str, Value] = {}
        for column in self._columns.of_facts:
            if column.get(facts) is not None:
                row[column.name] = None
                _fill(row, (column,), facts, Mapped([], []), "")
        return row

    def _mapped(self, root: object, facts: Mapping[str, Value], arrival: int) -> Mapped:
        mapped = Mapped([], [])
        if self._columns.need_arrival:
            facts = {**facts, "arrival": arrival}
        if self._conditions and not _matches(self._conditions, root, facts):
            mapped.ignored = True
            return mapped
        elements = self._reader.elements(root)
        row = self._blank.copy()
        if elements is None:
            self._add_row(mapped, row, root, facts, arrival, "")
        else:
            # Once for all rows: a page may have ten thousand, and each look at it is long.
            _fill(row, self._columns.of_root, root, mapped, "")
            self._add_rows(mapped, row, elements, facts, arrival)
        mapped.ignored = mapped.some_ignored and not mapped.rows and not mapped.refused
        return mapped

    def _add_rows(
        self,
        mapped: Mapped,
        shared: dict[str, Value],
        elements: Iterable[Element],
        facts: Mapping[str, Value],
        arrival: int,
    ) -> None:
        for number, (own, element) in enumerate(elements, 1):
            if number > MAX_ROWS:
                mapped.refused += 1
                if number == MAX_ROWS + 1:
                    mapped.problems.insert(
                        0, f"more than {MAX_ROWS:,} rows; the others are refused"
                    )
                    del mapped.problems[MAX_PROBLEMS:]
            elif isinstance(element, RefusedRow):
                mapped.refused += 1
                mapped.report(f"row {number}: {element.reason}")
            else:
                row, place = shared.copy(), f"row {number}: "
                self._add_row(mapped, row, element, {**facts, **own}, arrival, place)

    def _add_row(  # noqa: PLR0913, PLR0917 - one call a row: an object for them costs as much as the row
        self,
        mapped: Mapped,
        row: dict[str, Value],
        element: object,
        facts: Mapping[str, Value],
        arrival: int,
        place: str,
    ) -> None:
        columns = self._columns
        if self._row_conditions and not self._counts(mapped, element, facts, place):
            return
        if _fill(row, columns.of_element, element, mapped, place) == self._fed != 0:
            mapped.refused += 1
            mapped.report(f"{place}no column's field is there; it is {shown(element)}")
            return
        _fill(row, columns.of_facts, facts, mapped, place)
        if columns.time is not None:
            subject = facts if columns.time_is_fact else element
            if row[columns.time.name] is None:
                _fill(row, (columns.time,), subject, mapped, place)
            if row[columns.time.name] is None:
                row[columns.time.name] = _own_time(facts, arrival)
        for name in self._key:
            if row[name] is None:
                mapped.refused += 1
                mapped.report(f"{place}the key column {name} has no value")
                return
        mapped.rows.append(row)

    def _counts(
        self, mapped: Mapped, element: object, facts: Mapping[str, Value], place: str
    ) -> bool:
        """Whether a row meets the option `only_rows`; one that cannot be told is refused."""
        try:
            counts = passes(self._row_conditions, element, facts)
        except ValueError as error:
            mapped.refused += 1
            mapped.report(f"{place}{error}")
            return False
        mapped.some_ignored |= not counts
        return counts


def _fill(
    row: dict[str, Value],
    columns: tuple[RowColumn, ...],
    subject: object,
    mapped: Mapped,
    place: str,
) -> int:
    """Put the values of columns into a row; return how many have no field there."""
    missing = 0
    for name, get, convert in columns:
        value = get(subject)
        if value is None:
            continue
        if value is MISSING:
            missing += 1
            continue
        try:
            row[name] = convert(value)
        except ValueError as error:
            mapped.report(f"{place}column {name}: {error}")
    return missing


def _own_time(facts: Mapping[str, Value], arrival: int) -> int:
    """Return the time that the format itself gives a row, such as SenML's, or the arrival."""
    time = facts.get("time")
    return time if type(time) is int and is_time(time) else arrival


def _matches(conditions: tuple[Condition, ...], root: object, facts: Mapping[str, Value]) -> bool:
    for get, is_fact, wanted in conditions:
        value = get(facts if is_fact else root)
        if value is MISSING or (value is None and is_fact):
            return False
        if wanted is not None and scalar_text(value) != wanted:
            return False
    return True


def _unreadable(reason: str) -> Mapped:
    return Mapped([], [f"payload: {reason}"[:MAX_PROBLEM_TEXT]], refused=1)
