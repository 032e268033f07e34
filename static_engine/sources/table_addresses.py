"""Addresses of databases by name, so that no statement holds a password."""

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from static_engine.sources.table_errors import TableError
from streamsql.catalog.table_options import secret_of

_MAX_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class TableAddresses:
    """Looks addresses up: first PANDO_SECRET_NAME in the environment, then the lines of a file.

    Attributes:
        file: Of lines `name = address`, for its owner's eyes only; None for none.
        environ: The environment.
    """

    file: Path | None = None
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)

    def address(self, url: str) -> str:
        """Return an address, looked up if it is `secret:NAME`.

        Raises:
            TableError: There is no such secret, or the file may be read by others.
        """
        try:
            name = secret_of(url)
        except ValueError as error:
            raise TableError(str(error)) from None
        if name is None:
            return url
        variable = f"PANDO_SECRET_{name.upper().replace('-', '_')}"
        found = self.environ.get(variable) or self._lines().get(name)
        if not found:
            where = f" or a line `{name} = …` in {self.file}" if self.file else ""
            raise TableError(
                f"there is no secret {name!r}",
                hint=f"set the variable of the static engine {variable}{where}",
                code="unknown_secret",
            )
        return found

    def _lines(self) -> dict[str, str]:
        if self.file is None:
            return {}
        try:
            with self.file.open("rb") as opened:
                if os.fstat(opened.fileno()).st_mode & (stat.S_IRWXG | stat.S_IRWXO):
                    raise TableError(
                        f"the secrets file {self.file} may be read by others",
                        hint=f"chmod 600 {self.file}",
                        code="unknown_secret",
                    )
                content = opened.read(_MAX_BYTES)
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise TableError(
                f"the secrets file {self.file} cannot be read: {error.strerror}",
                code="unknown_secret",
            ) from error
        found = {}
        for line in content.decode("utf-8", "replace").splitlines():
            name, equals, address = line.partition("=")
            if equals and not line.lstrip().startswith("#"):
                found[name.strip()] = address.strip()
        return found
