"""Files that metadata name: each must be in an open folder, whatever the metadata say."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

from static_engine.sources.table_errors import TableError
from static_engine.sources.table_locations import Locations, resolve


def open_file(address: str, locations: Locations) -> Path:
    """Return the real path of a file by its address in the metadata of a table.

    Raises:
        TableError: It is in no open folder, or no local file.
    """
    parts = urlsplit(address)
    if parts.scheme not in ("", "file") or parts.netloc not in ("", "localhost"):
        raise TableError(
            f"the table's metadata name {address!r:.200}, which is not a local file",
            hint="copy the whole table into an open folder",
            code="outside_folders",
        )
    path = unquote(parts.path) if parts.scheme else address
    return resolve(path, locations)
