"""Files that metadata name: each must be in an open folder, whatever the metadata say."""

import re
from pathlib import Path

from static_engine.sources.table_errors import TableError
from static_engine.sources.table_locations import Locations, resolve

_LOCAL = re.compile(r"file:(?://(?:localhost)?)?(/(?!/).*)", re.DOTALL)
_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:")


def open_file(address: str, locations: Locations) -> Path:
    """Return the real path of a file by its address in the metadata of a table.

    Raises:
        TableError: It is in no open folder, or no local file.
    """
    local = _LOCAL.fullmatch(address)
    if local is None and _SCHEME.match(address):
        raise TableError(
            f"the table's metadata name {address!r:.200}, which is not a local file",
            hint="copy the whole table into an open folder",
            code="outside_folders",
        )
    # Nothing is decoded: writers give the names that their files have, with any % in them.
    return resolve(local[1] if local is not None else address, locations)
