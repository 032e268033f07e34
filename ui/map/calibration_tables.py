"""The tables of positions: which are missing, and their files with nothing but a first line."""

import contextlib
from collections.abc import Collection
from pathlib import Path

from streamsql.catalog.open_folders import OpenFolders
from streamsql.errors import DeploymentError

TABLES = {
    "receiver": "receiver TEXT, room TEXT, floor INTEGER, x DOUBLE, y DOUBLE",
    "calibration_point": "point TEXT, room TEXT, floor INTEGER, x DOUBLE, y DOUBLE",
    "radio_map": "point TEXT, receiver TEXT, rssi DOUBLE",
}
"""Their columns as CREATE TABLE has them."""


def missing_tables(names: Collection[str]) -> tuple[str, ...]:
    """Return the tables of positions that are not among the relations of a catalog."""
    known = {name.lower() for name in names}
    return tuple(name for name in TABLES if name not in known)


def create_script(tables: Collection[str]) -> str:
    """Return the statements that create tables over CSV files of their names."""
    return ";\n".join(
        f"CREATE TABLE {name} ({TABLES[name]}) WITH (source = 'csv', path = '{name}.csv')"
        for name in tables
    )


def make_files(tables: Collection[str], folders: OpenFolders | None) -> Path:
    """Make the files that do not exist, with their column names; return their folder.

    Raises:
        DeploymentError: The console does not know the folder of tables, or cannot write there.
    """
    if folders is None:
        raise DeploymentError(
            "this console does not know the folder of the tables' files",
            hint="set base_dir in its settings, or write the CREATE TABLE statements yourself",
        )
    folder = Path(folders.base)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in tables:
            columns = [column.split()[0] for column in TABLES[name].split(", ")]
            with contextlib.suppress(FileExistsError), (folder / f"{name}.csv").open("x") as file:
                file.write(",".join(columns) + "\n")
    except OSError as error:
        raise DeploymentError(
            f"the files of the tables cannot be written in {folder}: {error.strerror or error}",
            hint="let the console write there, or create the files and write the CREATE TABLE "
            "statements yourself",
        ) from error
    return folder
