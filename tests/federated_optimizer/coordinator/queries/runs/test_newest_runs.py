"""The newest run that reads a source, as by looking at all of them, for little work."""

from collections.abc import Collection
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from federated_optimizer.coordinator.queries.runs.newest_runs import NewestRuns
from tests.streamsql.from_text import bound_query, catalog_of

CATALOG = catalog_of(
    "CREATE SOURCE A (n INTEGER); CREATE SOURCE B (n INTEGER); CREATE SOURCE C (n INTEGER);"
)
TEXTS = (
    "SELECT n FROM A",
    "SELECT n FROM B",
    "SELECT n FROM C",
    "SELECT A.n FROM A JOIN B ON A.n = B.n",
    "SELECT B.n FROM B JOIN C ON B.n = C.n",
)
PLANS = {text: bound_query(text, CATALOG).plan for text in TEXTS}
READ = dict(zip(TEXTS, ("A", "B", "C", "AB", "BC"), strict=True))


class Runs:
    """Runs with one query each."""

    def __init__(self) -> None:
        self.changes = 0
        self.looks = 0
        self.queries: dict[str, Any] = {}

    def add(self, run: str, text: str, *, alone: str = "", tried: bool = False) -> Any:
        self.changes += 1
        query = SimpleNamespace(
            run=run, text=text, logical=PLANS[text], alone=alone, is_tried=tried
        )
        self.queries[run] = query
        return query

    def remove(self, run: str) -> None:
        self.changes += 1
        del self.queries[run]

    def names(self) -> Collection[str]:
        return self.queries.keys()

    def all(self) -> tuple[str, ...]:
        self.looks += 1
        return tuple(sorted(self.queries, key=lambda run: (len(run), run)))

    def leader(self, run: str) -> Any:
        return self.queries.get(run)

    def is_tried(self, query: Any) -> bool:
        return bool(query.is_tried)


def by_looking(runs: Runs, asks: Any) -> str:
    for run in reversed(runs.all()):
        query = runs.queries[run]
        counts = run != asks.run and not query.alone and not query.is_tried
        if counts and {*READ[query.text]} & {*READ[asks.text]}:
            return run
    return ""


@pytest.mark.parametrize("seed", range(5))
def test_it_is_the_one_that_looking_at_all_would_find(seed: int) -> None:
    random, runs = Random(seed), Runs()
    newest = NewestRuns(runs)
    for number in range(1, 60):
        why = random.choice(("", "", "", "it reads the past"))
        tried = random.random() < 0.2
        runs.add(f"q{number}", random.choice(TEXTS), alone=why, tried=tried)
        if len(runs.queries) > 12 and random.random() < 0.8:
            runs.remove(random.choice(tuple(runs.queries)))
        for query in runs.queries.values():
            assert newest.beside(query) == by_looking(runs, query)


def test_all_runs_are_looked_at_once_for_all_that_ask() -> None:
    runs = Runs()
    newest = NewestRuns(runs)
    asking = [runs.add(f"q{number}", TEXTS[number % 5]) for number in range(1, 200)]
    for query in asking:
        newest.beside(query)
    assert runs.looks == 1
    runs.add("q200", TEXTS[0])
    assert newest.beside(asking[4]) == "q200"
    assert runs.looks == 2
    gone = next(query for query in asking if query.text == TEXTS[2])
    runs.remove(gone.run)
    newest.beside(asking[0])
    assert gone.run not in newest._sources, "nothing is kept of runs that are gone"
