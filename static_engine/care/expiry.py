"""Old snapshots of a table are discarded, and files that none of the others names.

A writer puts files into a table's folder before it names them in a commit, and a reader may read
files of a snapshot that is no longer there: both have time, `SPARED`.
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

import pyarrow.fs as pafs
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.table import Table

from static_engine.care.compaction import Progress
from static_engine.lake.lake_commits import retried
from static_engine.lake.lake_errors import LakeError

log = logging.getLogger(__name__)

SPARED = timedelta(hours=1)
"""Files younger than this stay, whether they are named or not."""
KEPT_SNAPSHOTS = timedelta(days=1)
"""How long a former state of a table may be read (time travel)."""
MAX_LISTED = 2_000_000
"""Files of one table that are looked at."""


@dataclass(frozen=True, slots=True)
class Expired:
    """Outcome: snapshots discarded, files removed, and their bytes."""

    snapshots: int = 0
    files: int = 0
    bytes: int = 0


def expire(
    table: Table,
    now: datetime,
    progress: Progress,
    *,
    kept: timedelta = KEPT_SNAPSHOTS,
    spared: timedelta = SPARED,
) -> Expired:
    """Discard snapshots older than `kept`, and files that no snapshot names.

    The present state always stays.

    Args:
        table: As loaded.
        now: The time.
        progress: Takes files removed and files to remove; returns whether to go on.
        kept: See `KEPT_SNAPSHOTS`.
        spared: See `SPARED`.

    Raises:
        LakeError: The folder cannot be listed, or others change the table all the time.
    """
    snapshots = _discard_snapshots(table, now - kept)
    table.refresh()
    named = named_files(table)
    orphans = [
        info for info in _listed(table) if info.path not in named and _age(info, now) > spared
    ]
    removed = size = 0
    fs = _filesystem(table)
    if orphans:  # a commit since then may name some, if they are younger than a clock says
        table.refresh()
        named = named_files(table)
        orphans = [info for info in orphans if info.path not in named]
    progress(0, len(orphans))
    for info in orphans:
        try:
            fs.delete_file(info.path)
        except FileNotFoundError:
            continue
        removed += 1
        size += info.size or 0
        if not progress(removed, len(orphans)):
            break
    return Expired(snapshots, removed, size)


def named_files(table: Table) -> set[str]:
    """Return the paths of all files that the table's metadata names, metadata included."""
    metadata = table.metadata
    found = {table.metadata_location}
    found |= {entry.metadata_file for entry in metadata.metadata_log}
    found |= {each.statistics_path for each in metadata.statistics}
    for snapshot in metadata.snapshots:
        found.add(snapshot.manifest_list)
        for manifest in snapshot.manifests(table.io):
            if manifest.manifest_path in found:
                continue
            found.add(manifest.manifest_path)
            for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True):
                found.add(entry.data_file.file_path)
    return {path_of(address) for address in found}


def path_of(address: str) -> str:
    """Return the path of an address within its store, as listings have it."""
    parts = urlsplit(address)
    if parts.scheme in {"", "file"}:
        return address.removeprefix("file://")
    return f"{parts.netloc}{parts.path}"


def _discard_snapshots(table: Table, before: datetime) -> int:
    count = 0

    def attempt() -> bool:
        nonlocal count
        table.refresh()
        head = table.current_snapshot()
        limit = before.timestamp() * 1_000
        old = [
            each.snapshot_id
            for each in table.metadata.snapshots
            if each.timestamp_ms < limit and each is not head
        ]
        count = len(old)
        if old:
            try:
                table.maintenance.expire_snapshots().older_than(before).commit()
            except ValueError as error:  # the pipeline has discarded one of them
                raise CommitFailedException(str(error)) from error
        return bool(old)

    retried(attempt, table)
    return count


def _listed(table: Table) -> Iterator[pafs.FileInfo]:
    folder = path_of(table.location())
    selector = pafs.FileSelector(folder, recursive=True, allow_not_found=True)
    try:
        infos = _filesystem(table).get_file_info(selector)
    except OSError as error:
        raise LakeError(
            f"the files of table {'.'.join(table.name())} cannot be listed: {error}",
            hint="look at the setting lake.warehouse and its options",
        ) from error
    if len(infos) > MAX_LISTED:
        raise LakeError(
            f"table {'.'.join(table.name())} has {len(infos)} files; the max is {MAX_LISTED}",
            hint="pando lake compact first",
        )
    return (info for info in infos if info.type == pafs.FileType.File)


def _filesystem(table: Table) -> pafs.FileSystem:
    if not isinstance(table.io, PyArrowFileIO):
        raise LakeError(f"files of table {'.'.join(table.name())} are not read by pyarrow")
    parts = urlsplit(table.location())
    return table.io.fs_by_scheme(parts.scheme or "file", parts.netloc or None)


def _age(info: pafs.FileInfo, now: datetime) -> timedelta:
    changed: datetime = info.mtime.astimezone(UTC)
    return now - changed
