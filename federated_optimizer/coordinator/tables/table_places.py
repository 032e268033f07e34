"""Whether a stored table is in a folder that tables may name, as it is defined."""

import sqlalchemy as sa

from streamsql.catalog.open_folders import OpenFolders
from streamsql.errors import BindingError
from streamsql.syntax import CreateSource


def check_place(statement: CreateSource, folders: OpenFolders) -> None:
    """Check the file that a table names; where links lead is seen when it is opened.

    Raises:
        BindingError: It is in no open folder.
    """
    for option in statement.options:
        path = option.value if option.name == "path" else ""
        if option.name == "url":
            path = _file_of(option.value)
        if path and not folders.allow(folders.place(path)):
            raise BindingError(
                f"{path!r:.200} is outside the folders that are open to tables: {folders.shown}",
                span=option.value_span,
                hint="move the file there, or open its folder with --tables DIR (setting "
                "table_folders)",
                code="outside_folders",
            )


def _file_of(url: str) -> str:
    """Return the file of an SQLite address, or nothing."""
    try:
        parsed = sa.make_url(url)
    except (sa.exc.ArgumentError, ValueError):
        return ""  # the static engine says what is wrong with it
    return parsed.database or "" if parsed.get_backend_name() == "sqlite" else ""
