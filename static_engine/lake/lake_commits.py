"""Commits: files become rows of a table, in one step that says which batch it was."""

import time
from collections.abc import Callable, Sequence

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Table, Transaction

from static_engine.lake.lake_errors import LakeBusyError

ATTEMPTS = 20
_FIRST_PAUSE = 0.02
_LONGEST_PAUSE = 1.0


def batch_property(origin: str) -> str:
    """Return the table's property that says which batch of an origin it has last."""
    return f"pando.batch.{origin}"


def last_batch(table: Table, origin: str) -> int:
    """Return the number of the last batch that a table has of an origin; -1: none."""
    return int(table.properties.get(batch_property(origin), -1))


def add_batch(table: Table, files: Sequence[str], batch: int, origin: str) -> bool:
    """Add files to a table unless it has their batch; return whether it did.

    Args:
        table: As loaded; it is loaded again where others have changed it meanwhile.
        files: Addresses of Parquet files, which no table has yet.
        batch: Its number; numbers of an origin only grow.
        origin: Who numbers, e.g. "pipeline".

    Raises:
        LakeBusyError: Others changed the table at each attempt.
    """

    def add(transaction: Transaction) -> None:
        transaction.set_properties({batch_property(origin): str(batch)})
        if files:
            transaction.add_files(
                list(files),
                snapshot_properties={"pando.batch": str(batch), "pando.origin": origin},
                check_duplicate_files=False,  # reads every manifest; the number forbids it already
            )

    def attempt() -> bool:
        table.refresh()
        if batch <= last_batch(table, origin):
            return False
        with table.transaction() as transaction:
            add(transaction)
        return True

    return retried(attempt, table)


def retried(attempt: Callable[[], bool], table: Table) -> bool:
    """Return the outcome of the first attempt that no other commit has overtaken.

    Raises:
        LakeBusyError: Each was.
    """
    pause = _FIRST_PAUSE
    for _ in range(ATTEMPTS):
        try:
            return attempt()
        except CommitFailedException:
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
    name = ".".join(table.name())
    raise LakeBusyError(
        f"table {name} of the lake was changed by others at each of {ATTEMPTS} attempts",
        hint="try again; if it stays so, look for two pipelines of one lake",
    )
