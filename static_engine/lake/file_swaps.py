"""Files of a table in place of others, in one commit."""

from collections.abc import Iterable, Sequence

from pyiceberg.io.pyarrow import parquet_file_to_data_file
from pyiceberg.manifest import DataFile
from pyiceberg.table import Transaction


def swap_files(
    transaction: Transaction, old: Sequence[DataFile], new: Iterable[str], reason: str
) -> None:
    """Put new files in place of old ones.

    Args:
        transaction: On the table as it is now.
        old: Files that it has; where one of them is gone by the commit, the commit is refused.
        new: Addresses of files that no table has yet.
        reason: For whoever reads the table's snapshots.
    """
    io = transaction._table.io  # noqa: SLF001  (a transaction does not show its table)
    added = [parquet_file_to_data_file(io, transaction.table_metadata, each) for each in new]
    if not old and not added:
        return
    with transaction.update_snapshot({"pando.care": reason}).overwrite() as snapshot:
        for file in old:
            snapshot.delete_data_file(file)
        for file in added:
            snapshot.append_data_file(file)
