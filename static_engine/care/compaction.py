"""Small files of a table are put together, day by day; no row comes, goes or changes."""

import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from pyiceberg.exceptions import CommitFailedException, ValidationException
from pyiceberg.table import FileScanTask, Table
from pyiceberg.types import TimestamptzType

from static_engine.care.file_work import RewriteTask, rewrite
from static_engine.care.workers import Workers
from static_engine.lake.file_swaps import swap_files
from static_engine.lake.kept_readings import EVENT_TIME
from static_engine.lake.lake_commits import retried

TARGET_BYTES = 64 * 2**20
"""Of a file that compaction makes, compressed; a worker holds the rows of one."""
TARGET_ROWS = 4_000_000
LEAST_FILES = 8
"""Fewer small files of a day stay as they are, unless somebody asks."""
MAX_FILES = 5_000
"""Of one file that is made: each is opened."""

Progress = Callable[[int, int], bool]
"""Takes how much is done of how much; returns whether to go on."""


@dataclass(frozen=True, slots=True)
class FileGroup:
    """Small files of one part of a table that become one file.

    Attributes:
        files: At least two.
        day: The part, as in addresses of files, e.g. `day=2026-11-27`; empty: there are no parts.
    """

    files: tuple[FileScanTask, ...]
    day: str

    @property
    def rows(self) -> int:
        """Rows of all files."""
        return sum(task.file.record_count for task in self.files)


@dataclass(slots=True)
class Compacted:
    """Outcome of a compaction."""

    groups: int = 0
    files_before: int = 0
    files_after: int = 0
    overtaken: int = 0


def groups_of(table: Table, least: int = LEAST_FILES) -> list[FileGroup]:
    """Return what is worth to be put together, the oldest part first.

    Args:
        table: As loaded.
        least: Fewest small files of a part that are put together.
    """
    parts: dict[str, list[FileScanTask]] = {}
    spec = table.spec().spec_id
    for task in table.scan().plan_files():
        file = task.file
        small = file.file_size_in_bytes < TARGET_BYTES // 2 and file.record_count < TARGET_ROWS // 2
        if small and file.spec_id == spec and not task.delete_files:
            parts.setdefault(
                table.spec().partition_to_path(file.partition, table.schema()), []
            ).append(task)
    found = []
    for day, tasks in sorted(parts.items()):
        if len(tasks) >= max(least, 2):
            tasks.sort(key=lambda task: task.file.file_path)
            found += [FileGroup(files, day) for files in _bins(tasks) if len(files) > 1]
    return found


def compact(
    table: Table,
    workers: Workers,
    progress: Progress,
    least: int = LEAST_FILES,
) -> Compacted:
    """Put small files of a table together; readers see either the old ones or the new one.

    Each group is a commit of its own: what is done stays done if the rest is not.

    Raises:
        LakeError: Workers are gone, or others change the table all the time.
    """
    groups = groups_of(table, least)
    done = Compacted()
    total = len(groups)
    name = f"compaction of {'.'.join(table.name())}"
    if not progress(0, total):
        return done
    while groups:
        tasks = _tasks(table, groups)
        too_large: list[FileGroup] = []
        for group, address in zip(groups, workers.run(rewrite, tasks, name), strict=True):
            if not address:
                too_large.append(group)
            elif _replace(table, group.files, address.decode()):
                done.groups += 1
                done.files_before += len(group.files)
                done.files_after += 1
            else:
                done.overtaken += 1
                table.io.delete(address.decode())
            if not progress(min(done.groups + done.overtaken, total), total):
                return done
        groups = [half for group in too_large for half in _halves(group)]
    return done


def _tasks(table: Table, groups: Sequence[FileGroup]) -> list[bytes]:
    order = _order(table)
    return [
        pickle.dumps(
            RewriteTask(
                table.metadata,
                dict(table.io.properties),
                group.files,
                f"{table.location()}/data/{group.day}".rstrip("/"),
                order,
            )
        )
        for group in groups
    ]


def _halves(group: FileGroup) -> list[FileGroup]:
    """Return a group as two, without what is no group any more."""
    middle = len(group.files) // 2
    parts = (group.files[:middle], group.files[middle:])
    return [FileGroup(files, group.day) for files in parts if len(files) > 1]


def _replace(table: Table, old: Sequence[FileScanTask], address: str) -> bool:
    """Put one file in place of others; return False where one of them is gone already."""
    paths = {task.file.file_path for task in old}

    def attempt() -> bool:
        table.refresh()
        live = {task.file.file_path: task for task in table.scan().plan_files()}
        if any(path not in live or live[path].delete_files for path in paths):
            return False
        old = [live[path].file for path in paths]
        try:
            with table.transaction() as transaction:
                swap_files(transaction, old, [address], "compact")
        except ValidationException as error:
            # The pipeline has added a batch since: which files are there is looked at once more.
            raise CommitFailedException(str(error)) from error
        return True

    return retried(attempt, table)


def _bins(tasks: Sequence[FileScanTask]) -> Iterator[tuple[FileScanTask, ...]]:
    pending: list[FileScanTask] = []
    rows = size = 0
    for task in tasks:
        file = task.file
        full = (
            rows + file.record_count > TARGET_ROWS or size + file.file_size_in_bytes > TARGET_BYTES
        )
        if pending and (full or len(pending) >= MAX_FILES):
            yield tuple(pending)
            pending, rows, size = [], 0, 0
        pending.append(task)
        rows += file.record_count
        size += file.file_size_in_bytes
    if pending:
        yield tuple(pending)


def _order(table: Table) -> str:
    """Return the column that rows are sorted by: the time that the table is parted by."""
    for field in table.spec().fields:
        source = table.schema().find_field(field.source_id)
        if isinstance(source.field_type, TimestamptzType):
            return source.name
    names = [field.name for field in table.schema().fields]
    return EVENT_TIME if EVENT_TIME in names else ""
