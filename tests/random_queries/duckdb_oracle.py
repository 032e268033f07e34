"""DuckDB as oracle: reads what we parsed, written in its dialect."""

import functools
from collections import Counter

import duckdb
from typing_extensions import override

from streamsql.data.types import Row
from streamsql.syntax import parse_script
from tests.conformance.duckdb_peer import Peer
from tests.random_queries.oracles import Held, Oracle, Tally
from tests.random_queries.queries import Case
from tests.random_queries.scopes import theirs

REFUSED_BY_PEER = (
    duckdb.NotImplementedException,
    duckdb.BinderException,
    duckdb.OutOfRangeException,
    duckdb.ConversionException,
    duckdb.SerializationException,  # of some subqueries in ON
)
"""What DuckDB cannot run, or stops at where a value here is NULL."""

LEAST = float(-(2**63))
"""What DuckDB 2.0.0 gives for some NULLs of ORDER BY … LIMIT; no value here is near it."""


@functools.cache
def shared_duckdb() -> "DuckDB":
    """Return one DuckDB for all cases: opening one takes longer than a case."""
    return DuckDB()


class DuckDB(Oracle):
    """A DuckDB in memory, emptied for every case."""

    name = "DuckDB"

    def __init__(self) -> None:
        self._peer = Peer("")
        self._peer._connection.execute("SET error_on_division_by_zero = false")

    @override
    def open(self, case: Case, tally: Tally) -> bool:
        self._peer._connection.execute(
            "DROP SCHEMA IF EXISTS one CASCADE; CREATE SCHEMA one; USE one"
        )
        try:
            for relation in case.relations:
                for statement in parse_script(relation.text):
                    self._peer.define(statement)
            self._define(case)
        except REFUSED_BY_PEER as error:
            tally.skipped[_reason(error)] += 1
            return False
        return True

    @override
    def refuses(self, case: Case) -> bool:
        return False  # It reads our tree, and there is none.

    @override
    def answer(self, case: Case, step: int, held: Held, tally: Tally) -> Counter[Row] | None:
        for relation in case.relations:
            self._peer.fill(relation.name, held(relation.name))
        try:
            for made in case.windows:
                if "{now}" in made[1]:
                    self._window(made, case.batches[step].now)
            answer = self._peer.answer(theirs(case.query))
        except REFUSED_BY_PEER as error:
            tally.skipped[_reason(error)] += 1
            return None
        if any(LEAST in row for row in answer):
            tally.skipped["DuckDB: its least number in place of NULL behind ORDER BY"] += 1
            return None
        return answer

    def _define(self, case: Case) -> None:
        """Create views and windows; either may read the other."""
        waiting: list[tuple[str, str] | str] = [*case.windows, *case.views]
        while waiting:
            later = []
            for made in waiting:
                try:
                    if isinstance(made, tuple):
                        self._window(made, 0)
                    else:
                        self._peer.define(parse_script(theirs(made))[0])
                except duckdb.CatalogException:
                    later.append(made)
            assert len(later) < len(waiting), later
            waiting = later

    def _window(self, made: tuple[str, str], now: int) -> None:
        name, text = made
        self._peer._connection.execute(f"CREATE OR REPLACE VIEW {name} AS {text.format(now=now)}")


def _reason(error: Exception) -> str:
    return f"DuckDB: {str(error).split(chr(10), maxsplit=1)[0][:80]}"
