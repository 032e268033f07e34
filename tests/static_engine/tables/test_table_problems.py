"""Problems of tables: reported as they began, until they end; also those of parts of tables."""

from pathlib import Path

from static_engine.sources.table_errors import TableError
from static_engine.sources.table_locations import Locations
from static_engine.sources.table_parts import Narrowed
from static_engine.tables.table_problems import MAX_PROBLEMS, TableProblems
from static_engine.tables.table_store import TableShrunkenError, TableStore
from static_engine.tables.table_watch import TableWatch
from streamsql.wire.site_messages import TableProblem
from tests.static_engine.tables.test_table_watch import definition, write


def watch_of(folder: Path) -> TableWatch:
    return TableWatch(TableStore(Locations(folder), folder / "snapshots"), pause=lambda _: None)


def test_a_problem_is_reported_as_it_began_until_it_ends(tmp_path: Path) -> None:
    problems = TableProblems(watch_of(tmp_path))
    refused = TableError("the server refuses", hint="ask its operator")
    first = problems.as_begun({"t": refused})
    assert first == (TableProblem("t", detail="the server refuses; ask its operator"),)
    assert problems.as_begun({"t": TableError("the server does not answer")}) == first
    shrunken = problems.as_begun({"t": TableShrunkenError("t", 2_000, 90)})
    assert [(p.shrunken, p.served, p.found) for p in shrunken] == [(True, 2_000, 90)]
    assert problems.as_begun({"t": TableShrunkenError("t", 2_000, 95)}) == shrunken
    assert problems.as_begun({}) == ()
    assert problems.as_begun({"t": TableShrunkenError("t", 2_000, 95)}) != shrunken


def test_at_most_so_many_are_reported(tmp_path: Path) -> None:
    problems = TableProblems(watch_of(tmp_path))
    found = problems.as_begun({f"t{n}": TableError("x" * 10_000) for n in range(MAX_PROBLEMS + 9)})
    assert len(found) == MAX_PROBLEMS
    assert max(len(problem.detail) for problem in found) < 1_000


def test_a_part_of_a_table_counts_as_the_table(tmp_path: Path) -> None:
    watch = watch_of(tmp_path)
    problems = TableProblems(watch)
    write(tmp_path, *range(2_000))
    watch.define((definition(),))
    watch.narrow({"t.1": Narrowed("t", definition("t.1"), ())})
    watch.poll(frozenset({"t.1"}))
    assert problems.as_begun(problems.now({})) == ()
    write(tmp_path, 1)
    watch.poll(frozenset({"t.1"}))
    (shrunken,) = problems.as_begun(problems.now({}))
    assert (shrunken.table, shrunken.served, shrunken.found) == ("t", 2_000, 1)
    assert shrunken.detail.startswith("table t has 1 rows and had 2,000")
    (tmp_path / "t.csv").unlink()
    watch.poll(frozenset({"t.1"}))
    (missing,) = problems.as_begun(problems.now({}))
    assert (missing.table, missing.shrunken, missing.served) == ("t", False, 2_000)


def test_a_table_that_nobody_uses_any_more_has_no_problem_and_is_read_when_it_is_used(
    tmp_path: Path,
) -> None:
    watch = watch_of(tmp_path)
    write(tmp_path, "x")
    watch.define((definition(),))
    watch.poll(frozenset({"t"}))
    assert list(watch.problems()) == ["t"]
    watch.poll(frozenset())
    assert watch.problems() == {}
    watch.poll(frozenset({"t"}))
    assert list(watch.problems()) == ["t"]
