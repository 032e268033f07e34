"""Rows of the past that plans read, as scans of the lake.

A plan is evaluated again when the version of one of its scans differs: when late rows have come
into its interval, or compaction has rewritten its files. The lake is looked at by one thread, at
most as often as the caller says.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa

from static_engine.history.kept_batches import KeptLayout, kept_batch, layout_of
from static_engine.lake.lake import Lake
from static_engine.lake.lake_errors import LakeError
from static_engine.lake.lake_scan import LakeScan
from streamsql.algebra.operators import Plan, Scan
from streamsql.data.types import EARLIEST, LATEST
from streamsql.errors import DeploymentError, FederationError
from streamsql.history.past_plans import kept_scans, with_kept_rows

_PLANS = 256


class NoLakeError(DeploymentError):
    """The past is asked for where nothing is kept."""

    code = "no_lake"


@dataclass(frozen=True, slots=True)
class PastScan:
    """The files that one scan reads now, and the places of its columns there."""

    lake: LakeScan
    layout: KeptLayout


class PastReadings:
    """Scans of the lake by what plans read of the past. One thread looks, others may ask.

    Args:
        lake: None: nothing is kept here.
    """

    def __init__(self, lake: Lake | None) -> None:
        self._lake = lake
        self._found: dict[Scan, PastScan | FederationError] = {}

    def look(self, plans: Iterable[Plan]) -> None:
        """Find out what scans of plans read now, and discard what other plans have read."""
        wanted = dict.fromkeys(scan for plan in plans for scan in past_of(plan))
        self._found = {scan: self._planned(scan) for scan in wanted}

    def scan(self, scan: Scan) -> PastScan:
        """Return what a scan reads: as of the last look, or now if it is new.

        Raises:
            NoLakeError: Nothing is kept here.
            LakeError: The lake cannot be read.
        """
        found = self._found.get(scan)
        if found is None:
            found = self._found[scan] = self._planned(scan)
        if isinstance(found, FederationError):
            raise found
        return found

    def versions(self, plan: Plan) -> tuple[tuple[str, str], ...] | None:
        """Return the versions of a plan's scans; None: one of them was not looked at, or fails."""
        found = [(scan, self._found.get(scan)) for scan in past_of(plan)]
        if not all(isinstance(each, PastScan) for _, each in found):
            return None
        return tuple(
            (f"{scan.source} {scan.history}", each.lake.version)
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
        return sum(each.lake.rows for each in found if isinstance(each, PastScan))

    def batches(self, scan: Scan) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a scan, columns c0, c1, … in its order.

        Raises:
            FederationError: They cannot be read.
        """
        past = self.scan(scan)
        try:
            for batch in past.lake.batches():
                yield kept_batch(batch, past.layout)
        except (OSError, pa.ArrowException) as error:
            raise LakeError(
                f"cannot read the past of {scan.source}: {error}",
                hint="look whether the files of the lake are there",
            ) from error

    def _planned(self, scan: Scan) -> PastScan | FederationError:
        if self._lake is None:
            return NoLakeError(
                f"the past of {scan.source} is not kept: this static engine has no lake",
                hint="set lake.catalog and lake.warehouse",
            )
        try:
            table = self._lake.table(scan.source)
            layout = layout_of(scan, self._lake.columns_of(table))
            since, until = (None, None) if scan.history is None else scan.history.interval(0)
            found = self._lake.plan(
                scan.source,
                EARLIEST if since is None else since,
                LATEST if until is None else until,
                layout.read,
            )
        except LakeError as error:
            return error
        except OSError as error:
            return LakeError(f"cannot read the lake: {error}")
        return PastScan(found, layout)


@lru_cache(_PLANS)
def past_of(plan: Plan) -> tuple[Scan, ...]:
    """Return what a plan reads of the lake."""
    return kept_scans(with_kept_rows(plan))
