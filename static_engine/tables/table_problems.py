"""Problems of tables as an alarm shows them: each the same from when it begins until it ends.

Words and counts of a problem differ from reading to reading: a file that grows again, a server that
refuses now and does not answer then. A row of an alarm that differs is another one, so a problem is
reported as it began.
"""

from collections.abc import Mapping

from static_engine.sources.table_errors import TableError
from static_engine.tables.table_store import TableShrunkenError
from static_engine.tables.table_watch import TableWatch
from streamsql.redaction import redacted
from streamsql.wire.site_messages import TableProblem

MAX_PROBLEMS = 500
"""The state of the static engine has them all: 200 kB of it."""
_MAX_DETAIL = 400


class TableProblems:
    """Remembers how the problems of tables have begun.

    Args:
        watch: Of the tables that are read.
    """

    def __init__(self, watch: TableWatch) -> None:
        self._watch = watch
        self._begun: dict[str, TableProblem] = {}

    def now(self, asked: Mapping[str, TableError]) -> dict[str, TableError]:
        """Return what is wrong now, by table; with that of tables that are not read but asked."""
        return {**asked, **self._watch.problems()}

    def as_begun(self, problems: Mapping[str, TableError]) -> tuple[TableProblem, ...]:
        """Return the problems that there are now, sorted by table, each as it began."""
        now = {name: self._problem(name, problems[name]) for name in sorted(problems)}
        self._begun = {
            name: before
            if (before := self._begun.get(name)) is not None
            and (before.shrunken, before.served is None) == (new.shrunken, new.served is None)
            else new
            for name, new in now.items()
        }
        return tuple(self._begun.values())[:MAX_PROBLEMS]

    def _problem(self, name: str, error: TableError) -> TableProblem:
        words = "; ".join(text for text in (error.message, error.hint) if text)
        detail = redacted(words)[:_MAX_DETAIL]
        if isinstance(error, TableShrunkenError):
            return TableProblem(name, True, error.before, error.found, detail)
        return TableProblem(name, served=self._watch.served(name), detail=detail)
