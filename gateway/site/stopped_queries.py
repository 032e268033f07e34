"""The queries that this site runs no more, kept on disk: a restart must not run them again."""

import logging
from pathlib import Path

import msgspec

from host.files.atomic_file import replace_file
from host.files.json_file import read_kept
from streamsql.errors import FederationError, StepBudgetError
from streamsql.wire.fragments import FragmentBundle

log = logging.getLogger(__name__)

MAX_STOPPED = 1_000
MAX_BYTES = 4_000_000
DEATHS = 2
"""How often the site may die in a long step of a query before it is not run again: once may be an
operator's doing, or the machine's."""


class Stopped(msgspec.Struct):
    """Why a query does not run.

    Attributes:
        text: The statement; None where only the id is known. Another statement of the same id is
            another query, of a new catalog.
        deaths: How often the site has died in a long step of it, without being sure of the cause.
    """

    text: str | None = None
    message: str = ""
    hint: str = ""
    deaths: int = 0


class StoppedQueries:
    """The stopped queries on disk; the file is written at every change.

    A file that cannot be read counts as none: stopped queries will run again.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        kept = read_kept(path, dict[str, Stopped], "stopped queries", max_bytes=MAX_BYTES)
        self._known = kept or {}

    def refusal(self, bundle: FragmentBundle) -> FederationError | None:
        """Return why a query is not run, or None."""
        found = self._known.get(bundle.query)
        if found is None or not found.message:
            return None
        if found.text is None:
            found.text = bundle.text
            self._write()
        if found.text != bundle.text:
            return None
        return StepBudgetError(found.message, hint=found.hint)

    def add(self, query: str, text: str | None, error: FederationError) -> None:
        """Run a query no more."""
        self._known.pop(query, None)
        while len(self._known) >= MAX_STOPPED:
            del self._known[next(iter(self._known))]
        self._known[query] = Stopped(text, error.message, error.hint)
        self._write()

    def died_in(self, query: str) -> int:
        """Note that the site died in a long step of a query; return how often it did."""
        found = self._known.setdefault(query, Stopped())
        found.deaths += 1
        self._write()
        return found.deaths

    def survived(self, query: str) -> None:
        """Note that a long step of a query came to its end."""
        found = self._known.get(query)
        if found is not None and found.deaths and not found.message:
            self.discard(query)

    def discard(self, query: str) -> None:
        """Forget a query that was dropped."""
        if self._known.pop(query, None) is not None:
            self._write()

    def _write(self) -> None:
        try:
            replace_file(self._path, msgspec.json.encode(self._known))
        except OSError as error:
            log.warning("the list of stopped queries cannot be saved: %s", error)
