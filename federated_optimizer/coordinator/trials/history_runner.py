"""The engine that runs queries on the past, handed in from outside: its orders and its messages.

The coordinator binds the query and knows the sites; the stream engine and the lake, which this
package does not import, are another process's.
"""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Protocol

import msgspec
from typing_extensions import override

from federated_optimizer.alarm_life_cycle import AlarmState
from federated_optimizer.coordinator.queries.planning.filled_windows import PastSizes
from federated_optimizer.network.topology import Topology
from streamsql.algebra.operators import Plan
from streamsql.binder import BoundQuery
from streamsql.catalog.definitions import SourceDefinition
from streamsql.catalog.notice_definitions import AlarmDefinition
from streamsql.data.types import Row, Value


@dataclass(frozen=True, slots=True)
class HistoryOrder:
    """A query to be run on the past. Times and durations are in microseconds.

    Attributes:
        topology: The sites as they are; gateways of the past join them.
        sources: The definitions of what the query reads.
        tables: Rows of the stored tables that it reads, by name.
        lookback: How far before `since` rows are looked for that count then.
        grace: How long the rows of a gateway that is away stay.
        speed: Seconds of the past in one; None: as fast as it can.
        alarm: What the rows of the query raise; None: nothing.
        seconds: It may take so long.
        memory: It may take so many bytes.
    """

    query: BoundQuery
    topology: Topology
    sources: tuple[SourceDefinition, ...]
    since: int
    until: int
    lookback: int
    tables: Mapping[str, tuple[Row, ...]]
    grace: int
    speed: float | None = None
    alarm: AlarmDefinition | None = None
    seconds: float = 3_600.0
    memory: int = 2_000_000_000


class HistoryChanges(msgspec.Struct, frozen=True, array_like=True, tag="changes"):
    """The result changes: (weight, row) pairs; at the beginning all rows there are."""

    at: int
    rows: tuple[tuple[int, tuple[Value, ...]], ...]


class HistoryAlarm(msgspec.Struct, frozen=True, array_like=True, tag="alarm"):
    """A row raises the alarm, is cleared, or nobody can tell."""

    at: int
    state: AlarmState
    row: tuple[Value, ...]


class HistoryProgress(msgspec.Struct, frozen=True, array_like=True, tag="progress"):
    """Progress: the time in the past, readings so far, and seconds that it took.

    Attributes:
        notes: What the reader of the answer should know, in sentences.
    """

    at: int
    readings: int
    seconds: float
    notes: tuple[str, ...] = ()


class HistoryEnd(msgspec.Struct, frozen=True, array_like=True, tag="end"):
    """It is over; with a problem it failed."""

    code: str = ""
    problem: str = ""
    hint: str = ""


HistoryMessage = HistoryChanges | HistoryAlarm | HistoryProgress | HistoryEnd


@dataclass(frozen=True, slots=True)
class PastSize:
    """Bounds of a scan of the past, or why it cannot be read.

    Attributes:
        scan: In words.
        bytes: Of whole files, compressed.
    """

    scan: str
    files: int = 0
    rows: int = 0
    bytes: int = 0
    problem: str = ""

    def __str__(self) -> str:
        """Return it as EXPLAIN shows it."""
        if self.problem:
            return f"cannot read {self.scan}: {self.problem}"
        if not self.files:
            return f"reads {self.scan}: no files"
        return (
            f"reads {self.scan}: at most {self.rows:,} rows, {self.bytes:,} bytes of "
            f"{self.files:,} files"
        )


class HistoryRunner(PastSizes, Protocol):
    """Runs queries on the past."""

    @override
    def sizes(self, plan: Plan) -> tuple[PastSize, ...]:
        """Return what a plan reads of the past, one per scan; blocking.

        Args:
            plan: Its scans of the past stand still.
        """
        raise NotImplementedError

    def run(self, order: HistoryOrder) -> AsyncIterator[HistoryMessage]:
        """Yield messages, `HistoryEnd` last; closing the iterator ends the run at once.

        Raises:
            DeploymentError: There is no lake, or the process cannot be started.
        """
        ...
