"""Rows of the past that plans read, as scans of the lake.

A plan is evaluated again when the version of one of its scans differs: when late rows have come
into its interval, or compaction has rewritten its files. The lake is looked at by one thread, as
often as the caller says, but for at most a twentieth of its time.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa
from pyiceberg.table import Table
from sqlalchemy.exc import SQLAlchemyError

from static_engine.history.kept_batches import KeptLayout, kept_batch, layout_of
from static_engine.history.table_versions import version_at
from static_engine.lake.kept_readings import READINGS
from static_engine.lake.lake import TABLES, Lake
from static_engine.lake.lake_errors import DAMAGE, LakeError, NotKeptError
from static_engine.lake.lake_scan import LakeScan, planned
from streamsql.algebra.operators import Plan, Scan, ScanPart
from streamsql.data.types import EARLIEST, LATEST
from streamsql.errors import DeploymentError, FederationError
from streamsql.history.past_plans import kept_scans, with_kept_rows

_PLANS = 256
_DAY = 86_400_000_000
_SHARE = 20.0


class NoLakeError(DeploymentError):
    """The past is asked for where nothing is kept."""

    code = "no_lake"


@dataclass(frozen=True, slots=True)
class PastScan:
    """The files that one scan reads now, and the places of its columns there.

    Attributes:
        lake: None: there was no reading yet, or the managed table had no rows then.
        metadata: Address of the table's metadata; the same while nobody has changed the table.
    """

    lake: LakeScan | None
    layout: KeptLayout
    metadata: str

    @property
    def version(self) -> str:
        """The same for the same rows."""
        return "" if self.lake is None else self.lake.version

    @property
    def rows(self) -> int:
        """At most so many rows are read."""
        return 0 if self.lake is None else self.lake.rows


class PastReadings:
    """Scans of the lake by what plans read of the past. One thread looks, others may ask.

    Args:
        lake: None: nothing is kept here.
        clock: Seconds, monotonic.
    """

    def __init__(self, lake: Lake | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._lake = lake
        self._clock = clock
        self._found: dict[Scan, PastScan | FederationError] = {}
        self._next = float("-inf")

    def look(self, plans: Iterable[Plan]) -> None:
        """Find out what scans of plans read now, and discard what other plans have read.

        What was found is trusted for some time where looking takes long.
        """
        wanted = dict.fromkeys(scan for plan in plans for scan in past_of(plan))
        began = self._clock()
        if began < self._next and wanted.keys() <= self._found.keys():
            self._found = {scan: self._found[scan] for scan in wanted}
            return
        tables: dict[str, Table] = {}
        self._found = {scan: self._planned(scan, tables) for scan in wanted}
        now = self._clock()
        self._next = now + _SHARE * (now - began)

    def scan(self, scan: Scan) -> PastScan:
        """Return what a scan reads: as of the last look, or now if it is new.

        Raises:
            NoLakeError: Nothing is kept here.
            LakeError: The lake cannot be read.
        """
        found = self._found.get(scan)
        if found is None:
            found = self._found[scan] = self._planned(scan, {})
        if isinstance(found, FederationError):
            raise found
        return found

    def versions(self, plan: Plan) -> tuple[tuple[str, str], ...] | None:
        """Return the versions of a plan's scans; None: one of them was not looked at, or fails."""
        found = [(scan, self._found.get(scan)) for scan in past_of(plan)]
        if not all(isinstance(each, PastScan) for _, each in found):
            return None
        return tuple(
            (f"{scan.source} {scan.history}", each.version)
            for scan, each in found
            if isinstance(each, PastScan)
        )

    def problem(self, plan: Plan) -> FederationError | None:
        """Return why the past of a plan cannot be read, or None."""
        found = (self._found.get(scan) for scan in past_of(plan))
        return next((each for each in found if isinstance(each, FederationError)), None)

    def rows(self, plan: Plan) -> int:
        """Return how many rows of the past a plan reads at most, as of the last look."""
        found = (self._found.get(scan) for scan in past_of(plan))
        return sum(each.rows for each in found if isinstance(each, PastScan))

    def likely_rows(self, plan: Plan) -> int:
        """Return how many rows of the past a plan reads if they are spread evenly over days."""
        found = ((scan, self._found.get(scan)) for scan in past_of(plan))
        return sum(
            round(each.rows * _share_of_days(scan))
            for scan, each in found
            if isinstance(each, PastScan)
        )

    def batches(self, scan: Scan) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a scan, columns c0, c1, … in its order.

        Raises:
            FederationError: They cannot be read.
        """
        past = self.scan(scan)
        if past.lake is None:
            return
        try:
            for batch in past.lake.batches():
                yield kept_batch(batch, past.layout)
        except (OSError, pa.ArrowException, *DAMAGE) as error:
            raise LakeError(
                f"cannot read the past of {scan.source}: {error}",
                hint="look whether the files of the lake are there",
            ) from error

    def _planned(self, scan: Scan, tables: dict[str, Table]) -> PastScan | FederationError:
        """Return what a scan reads; `tables` are those that were loaded for the same look."""
        if self._lake is None:
            return NoLakeError(
                f"the past of {scan.source} is not kept: this static engine has no lake",
                hint="set lake.catalog and lake.warehouse",
            )
        is_version = scan.part != ScanPart.KEPT
        try:
            key = f"{TABLES if is_version else READINGS}.{scan.source}"
            if key not in tables:
                tables[key] = self._lake.table(scan.source, TABLES if is_version else READINGS)
            table = tables[key]
            before = self._found.get(scan)
            if isinstance(before, PastScan) and before.metadata == table.metadata_location:
                return before
            layout = layout_of(scan, self._lake.columns_of(table))
            if is_version and scan.history is not None:
                then = version_at(table, scan.source, layout.read, scan.history.instant(0))
                return PastScan(then, layout, table.metadata_location)
            since, until = (None, None) if scan.history is None else scan.history.interval(0)
            first = EARLIEST if since is None else since
            last = LATEST if until is None else until
            found = planned(table, scan.source, layout.read, first, last)
        except NotKeptError:  # a table of the lake is there from its first row on
            return PastScan(None, KeptLayout(scan.schema, ()), "")
        except LakeError as error:
            return error
        except (OSError, pa.ArrowException, SQLAlchemyError, *DAMAGE) as error:
            reason = str(getattr(error, "orig", None) or error).strip()[:500]
            return LakeError(
                f"cannot read the lake: {reason}",
                hint="look whether its catalog and its files are there",
            )
        return PastScan(found, layout, table.metadata_location)


def _share_of_days(scan: Scan) -> float:
    """Return the length of an interval as a share of the days (UTC) that it touches."""
    since, until = (None, None) if scan.history is None else scan.history.interval(0)
    if scan.part != ScanPart.KEPT or since is None or until is None:
        return 1.0
    days = -(-until // _DAY) - since // _DAY
    return min((until - since) / (days * _DAY), 1.0) if days > 0 else 0.0


@lru_cache(_PLANS)
def past_of(plan: Plan) -> tuple[Scan, ...]:
    """Return what a plan reads of the lake."""
    return kept_scans(with_kept_rows(plan))
