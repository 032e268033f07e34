"""Options of the connector file."""

import re
from enum import StrEnum
from pathlib import Path

import msgspec

from gateway.connectors.options import Seconds
from streamsql.errors import DeploymentError

MAX_PATTERN = 200
MAX_SKIP = 100
MAX_WILD = 4
"""Wildcards and names of one pattern: a name of a file is searched in that power of its length."""

_PIECE = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]{0,62})\}|([*?])")


class Each(StrEnum):
    """Unit of a file that is one payload."""

    LINE = "line"
    FILE = "file"


class Encoding(StrEnum):
    """Encoding of texts."""

    UTF_8 = "utf-8"
    LATIN_1 = "iso-8859-1"
    WINDOWS = "windows-1252"


class FileEndpoint(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which folder: its files are read, those of folders in it are not."""

    folder: str

    def __post_init__(self) -> None:
        _require(Path(self.folder).is_absolute(), "folder: write its whole path, beginning with /")


class FileSource(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which files, and what a row is in them.

    Attributes:
        files: Their names: * stands for any text, ? for a character, `{name}` for a text that
            feeds the column of that name.
        each: Whether each line is a payload, or each file as a whole.
        encoding: Of the text.
        interval: From one look at the folder to the next.
        skip: Lines at the beginning of each file that are no rows; what names columns comes after.
    """

    files: str
    each: Each = Each.LINE
    encoding: Encoding = Encoding.UTF_8
    interval: Seconds = Seconds(1)
    skip: int = 0

    def __post_init__(self) -> None:
        _require(self.interval >= 0.1, "interval: at least 0.1 s between looks")
        _require(0 <= self.skip <= MAX_SKIP, f"skip: 0 to {MAX_SKIP} lines")
        _require(
            0 < len(self.files) <= MAX_PATTERN and "/" not in self.files,
            f"files: a name of 1 to {MAX_PATTERN} characters without /, such as '{{device}}.csv'",
        )
        found = [name for name, _ in _PIECE.findall(self.files) if name]
        _require(len(set(found)) == len(found), "files: it has a {name} twice")
        _require(
            len(_PIECE.findall(self.files)) <= MAX_WILD,
            f"files: at most {MAX_WILD} wildcards and {{name}}s",
        )
        _require("{" not in _PIECE.sub("", self.files), "files: a brace is open; write {name}")

    def pattern(self) -> re.Pattern[str]:
        """Return the expression that names of files match, with its groups.

        Examples:
            >>> FileSource("{device}-*.csv").pattern().fullmatch("th16-2026.csv").groupdict()
            {'device': 'th16'}
        """
        parts: list[str] = []
        end = 0
        for match in _PIECE.finditer(self.files):
            name, wild = match.groups()
            parts.append(re.escape(self.files[end : match.start()]))
            parts.append(f"(?P<{name}>.+?)" if name else ".*" if wild == "*" else ".")
            end = match.end()
        return re.compile("".join(parts) + re.escape(self.files[end:]), re.DOTALL)


def _require(is_right: bool, text: str) -> None:
    if not is_right:
        raise DeploymentError(text)
