"""The lake as trials on history read it: columns of definitions, states of gateways."""

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from typing_extensions import override

from deploy.history.happenings import Presence
from deploy.history.order_run import KeptPast
from host.heartbeats import TRUST_SECONDS
from static_engine.lake.kept_readings import ARRIVED, arrow_type
from static_engine.lake.lake import SYSTEM, Lake
from static_engine.lake.lake_errors import NotKeptError
from static_engine.lake.lake_scan import LakeScan, moment
from static_engine.lake.message_tables import SystemTable
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.types import EARLIEST
from streamsql.errors import WireError
from streamsql.wire.codec import decode_json
from streamsql.wire.site_messages import SiteRole, SiteState

STATES_BEFORE = 3_600_000_000
"""Microseconds before an interval from which states are read: gateways repeat theirs."""

SILENCE = int(TRUST_SECONDS * 1_000_000)


@dataclass(frozen=True, slots=True)
class LakePast(KeptPast):
    """The past of some sources."""

    lake: Lake
    definitions: Mapping[str, SourceDefinition]

    @override
    def kept_sources(self) -> list[str]:
        return self.lake.kept_sources()

    @override
    def presences(self, since: int, until: int) -> list[Presence]:
        first = max(since - STATES_BEFORE, EARLIEST)
        try:
            table = self.lake.table(SystemTable.STATES.value, SYSTEM)
        except NotKeptError:
            return []
        times = f"{ARRIVED} >= '{moment(first).isoformat()}' AND "
        times += f"{ARRIVED} < '{moment(until).isoformat()}'"
        scan = table.scan(row_filter=times, selected_fields=("site", "payload", ARRIVED))
        states: list[tuple[int, str, SiteState]] = []
        for batch in scan.to_arrow_batch_reader():
            columns = (
                batch.column("site").to_pylist(),
                batch.column("payload").to_pylist(),
                batch.column(ARRIVED).cast(pa.int64()).to_pylist(),
            )
            for site, payload, arrived in zip(*columns, strict=True):
                with contextlib.suppress(WireError):
                    states.append((arrived, site, decode_json(payload, SiteState)))
        return presences_of(sorted(states, key=lambda state: state[:2]))

    @override
    def plan(
        self, source: str, since: int, until: int, columns: Sequence[str] | None = None
    ) -> "_DefinedScan":
        definition = self.definitions[source]
        kept = self.lake.columns_of(self.lake.table(source)).of(definition)
        own = {
            field.name: None if column is None else column.column
            for field, column in zip(definition.schema.fields, kept, strict=True)
        }
        wanted = list(columns) if columns is not None else [*own]
        places = {name: own.get(name, name) for name in wanted}
        read = [place for place in places.values() if place is not None]
        types = {f.name: arrow_type(f.dtype) for f in definition.schema.fields}
        return _DefinedScan(self.lake.plan(source, since, until, read), places, types)


@dataclass(frozen=True, slots=True)
class _DefinedScan:
    """Rows with the columns of a definition; those that were never kept are NULL."""

    scan: LakeScan
    places: Mapping[str, str | None]
    types: Mapping[str, pa.DataType]

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows."""
        for batch in self.scan.batches():
            columns = [
                pa.nulls(batch.num_rows, self.types[name])
                if place is None
                else batch.column(batch.schema.get_field_index(place))
                for name, place in self.places.items()
            ]
            yield pa.RecordBatch.from_arrays(columns, names=list(self.places))


def presences_of(states: Iterable[tuple[int, str, SiteState]]) -> list[Presence]:
    """Return when gateways left and came back, from their states.

    A gateway repeats its state while it is there: one that was silent for too long was away,
    whether its will is known or not.

    Args:
        states: Arrival in microseconds, site and state, by arrival.
    """
    found: list[Presence] = []
    heard: dict[str, int] = {}
    for at, site, state in states:
        if state.role != SiteRole.GATEWAY:
            continue
        last = heard.get(site)
        if last is not None and at - last > SILENCE:
            found.append(Presence(last + SILENCE, site, online=False))
        found.append(Presence(at, site, online=state.online))
        if state.online:
            heard[site] = at
        else:
            heard.pop(site, None)
    return sorted(found, key=lambda presence: presence.at)
