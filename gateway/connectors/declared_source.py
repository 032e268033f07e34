"""A declared source as a connector sees it: its options, and payloads to readings."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Protocol, TypeVar

import msgspec

from gateway.connectors.mapping_thread import LARGE_PAYLOAD, mapping_thread
from gateway.connectors.options import convert_options
from gateway.connectors.reading import Reading
from host.clocks import Clock
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.types import Value

Options = TypeVar("Options", bound=msgspec.Struct)

MAX_REASON = 300
"""Characters of a problem's text."""


class MappedRows(Protocol):
    """Rows of a payload; see `streamsql.mapping.mapper`."""

    rows: list[dict[str, Value]]
    problems: list[str]
    refused: int
    ignored: bool


class RowMapper(Protocol):
    """Turns payloads into rows; see `streamsql.mapping.mapper`."""

    def map(self, payload: bytes, facts: Mapping[str, Value], arrival: int) -> MappedRows:
        """Return the rows of a payload."""

    def given(self, facts: Mapping[str, Value]) -> dict[str, Value]:
        """Return the columns that these facts alone give; NULL where a value is a wrong one."""

    def map_record(
        self, values: Mapping[str, object], facts: Mapping[str, Value], arrival: int
    ) -> MappedRows:
        """Return the rows of values by their addresses."""


class DeclaredSource:
    """One source of a connector.

    Args:
        definition: With a mapping.
        mapper: Made from the definition.
        clock: The gateway's time.
        facts: What is the same for all rows: gateway, endpoint.
        on_problem: Called with each reason why a value, a row or a payload is missing.
        hide: Returns a text without the endpoint's secrets.

    Attributes:
        name: Of the source.
        options: The connector's own options of the WITH clause; all of them are texts.
        payloads: Payloads and records so far.
        rows: Rows made of them.
        bad: Problems: bad payloads, refused rows, values that are NULL for a reason.
        ignored: Payloads that `only` leaves out.
        last_bad: The last problem.
    """

    def __init__(  # noqa: PLR0913, PLR0917  (what it is, and what it tells whom)
        self,
        definition: SourceDefinition,
        mapper: RowMapper,
        clock: Clock,
        facts: Mapping[str, Value],
        on_problem: Callable[[str], None],
        hide: Callable[[str], str] = str,
    ) -> None:
        assert definition.mapping is not None  # noqa: S101  (else it is not a declared source)
        self.name = definition.name
        self.definition = definition
        self.options: Mapping[str, str] = dict(definition.mapping.options)
        self.payloads = 0
        self.rows = 0
        self.bad = 0
        self.ignored = 0
        self.last_bad = ""
        self._mapper = mapper
        self._clock = clock
        self._facts = dict(facts)
        self._on_problem = on_problem
        self._hide = hide
        self._sensor = _sensor_column(definition)

    def options_as(self, kind: type[Options]) -> Options:
        """Return the connector's options of the WITH clause as its struct.

        Raises:
            DeploymentError: One is missing, unknown or wrong; names it.
        """
        return convert_options(self.options, kind, f"source {self.name}", texts=True)

    def addresses(self) -> tuple[tuple[str, str], ...]:
        """Return (column, address) of the columns that a record connector has to read.

        The address is the text of FROM, or the column's own name without one. Columns that are
        facts (`@…`) are left out.
        """
        assert self.definition.mapping is not None  # noqa: S101
        columns = zip(self.definition.schema.names, self.definition.mapping.columns, strict=True)
        return tuple(
            (name, column.path or name)
            for name, column in columns
            if not column.path.startswith("@")
        )

    def read(
        self, payload: bytes, levels: Mapping[str, str] | None = None, /, **facts: Value
    ) -> list[Reading]:
        """Return the readings of a payload; what is wrong with it is counted and reported.

        Never raises on a payload, whatever is in it.

        Args:
            payload: As the device sent it.
            levels: Parts of the topic or path by the names that its pattern gives them.
            facts: What is known of the message, by name without `@`: topic="a/b", retained=True.
        """
        arrival = self._clock()
        return self._readings(self._mapper.map(payload, self._known(levels, facts), arrival))

    async def read_aside(
        self, payload: bytes, levels: Mapping[str, str] | None = None, /, **facts: Value
    ) -> list[Reading]:
        """Return the readings of a payload as `read` does; a large one is mapped in a thread.

        A source's payloads are given one after the other: some formats know the ones before.
        """
        if len(payload) <= LARGE_PAYLOAD:
            return self.read(payload, levels, **facts)
        arrival, known = self._clock(), self._known(levels, facts)
        mapping = partial(self._mapper.map, payload, known, arrival)
        return self._readings(await mapping_thread().run(mapping))

    def read_record(
        self,
        values: Mapping[str, object],
        levels: Mapping[str, str] | None = None,
        device: str = "",
        /,
        **facts: Value,
    ) -> list[Reading]:
        """Return the reading of values by their addresses; see `read`.

        Args:
            values: As the device has them.
            levels: See `read`.
            device: Whose last value it is; empty: the key's, where that is one column.
            facts: See `read`. `time`, in microseconds since 1970, is the event time of a row whose
                columns give none.
        """
        readings = self._readings(self._record(values, levels, facts))
        if not device and "time" not in facts:
            return readings
        return [_of(reading, device, facts) for reading in readings]

    def withdraw_record(
        self,
        values: Mapping[str, object],
        levels: Mapping[str, str] | None = None,
        /,
        **facts: Value,
    ) -> list[Reading]:
        """Return what takes the row of a record away.

        Values are by their addresses, as in `read_record`; those of the key's columns are enough.
        """
        mapped = self._record(values, levels, facts)
        self._complain(mapped.problems)
        found = (Reading(self.name, row, delete=True) for row in mapped.rows)
        return [_of(reading, "", facts) for reading in found]

    def given(self, levels: Mapping[str, Value]) -> dict[str, Value]:
        """Return the columns that parts of a topic or path alone give; see `RowMapper.given`."""
        return self._mapper.given(levels)

    def read_decoded(
        self, payload: bytes, values: Mapping[str, object], /, **facts: Value
    ) -> list[Reading]:
        """Return the reading of values that were found in a payload and in those before it.

        Args:
            payload: For people who look at it; only the values are read.
            values: By their names.
            facts: See `read`; with `time` in microseconds where the payload has one.
        """
        del payload
        return self.read_record(values, **facts)

    def now(self) -> int:
        """Return the gateway's time in microseconds since 1970."""
        return self._clock()

    def go_on(self, former: "DeclaredSource") -> None:
        """Count on from what was counted of this source before its connector was restarted."""
        self.payloads, self.rows = former.payloads, former.rows
        self.bad, self.ignored, self.last_bad = former.bad, former.ignored, former.last_bad

    def problem(self, text: str) -> None:
        """Report a fault of this source in plain words, such as an address its device lacks."""
        self.bad += 1
        self.last_bad = self._hide(text)[:MAX_REASON]
        self._on_problem(self.last_bad)

    def _record(
        self,
        values: Mapping[str, object],
        levels: Mapping[str, str] | None,
        facts: Mapping[str, Value],
    ) -> MappedRows:
        return self._mapper.map_record(values, self._known(levels, facts), self._clock())

    def _known(
        self, levels: Mapping[str, str] | None, facts: Mapping[str, Value]
    ) -> Mapping[str, Value]:
        if not levels and not facts:
            return self._facts
        return {**self._facts, **facts, **(levels or {})}

    def _readings(self, mapped: MappedRows) -> list[Reading]:
        self.payloads += 1
        self.ignored += mapped.ignored
        self.rows += len(mapped.rows)
        if mapped.problems:
            self._complain(mapped.problems)
        name, sensor = self.name, self._sensor
        if sensor is None:
            return [Reading(name, row) for row in mapped.rows]
        return [Reading(name, row, sensor=_text(row.get(sensor))) for row in mapped.rows]

    def _complain(self, problems: Iterable[str]) -> None:
        for text in problems:
            self.problem(text)


def _sensor_column(definition: SourceDefinition) -> str | None:
    """Return the column that names the device: a key of one column."""
    return definition.schema.names[definition.key[0]] if len(definition.key) == 1 else None


def _of(reading: Reading, device: str, facts: Mapping[str, Value]) -> Reading:
    """Return a reading of a device, at the time that a fact says."""
    time = facts.get("time")
    ts = time if type(time) is int else reading.ts
    return msgspec.structs.replace(reading, sensor=device or reading.sensor, ts=ts)


def _text(value: Value) -> str:
    return value if isinstance(value, str) else ""
