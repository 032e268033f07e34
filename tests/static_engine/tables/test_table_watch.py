"""Table versions: replaced only by successful readings; read when something changed."""

import os
from pathlib import Path

import msgspec
import pytest

from static_engine.evaluation.local_executor import LocalExecutor
from static_engine.evaluation.static_executor import EvaluationError
from static_engine.sources.databases.database_groups import NoGroupsError
from static_engine.sources.table_errors import TableError
from static_engine.sources.table_locations import Locations
from static_engine.sources.table_parts import Groups, Narrowed
from static_engine.tables.table_store import TableChangedError, TableStore
from static_engine.tables.table_watch import TableWatch
from streamsql.algebra.operators import Distinct, Scan, SourceKind
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.errors import UnsupportedError
from tests.settable_clock import SettableClock

SCHEMA = Schema.of(("a", DataType.INTEGER))
USED = frozenset({"t"})


def definition(name: str = "t", **options: str) -> SourceDefinition:
    chosen = {"source": "csv", "path": "t.csv", **options}
    return SourceDefinition(name, SourceKind.TABLE, SCHEMA, options=tuple(chosen.items()))


def write(folder: Path, *values: object) -> None:
    (folder / "t.csv").write_text("a\n" + "".join(f"{value}\n" for value in values))


@pytest.fixture
def store(tmp_path: Path) -> TableStore:
    return TableStore(Locations(tmp_path), tmp_path / "snapshots", memory_rows=100)


def version(store: TableStore) -> int:
    table = store.find("t")
    assert table is not None
    return table.version


def test_a_version_grows_only_when_rows_change(tmp_path: Path, store: TableStore) -> None:
    write(tmp_path, 1, 2)
    assert store.load(definition())
    first = version(store)
    write(tmp_path, 1, 2)
    assert not store.load(definition())
    assert version(store) == first
    write(tmp_path, 1, 3)
    assert store.load(definition())
    assert version(store) > first


def test_a_failed_reading_keeps_the_version(tmp_path: Path, store: TableStore) -> None:
    write(tmp_path, 1)
    store.load(definition())
    before = store.find("t")
    write(tmp_path, "x")
    with pytest.raises(TableError):
        store.load(definition())
    assert store.find("t") is before


def test_large_tables_become_snapshots_that_go_with_their_version(
    tmp_path: Path, store: TableStore
) -> None:
    write(tmp_path, *range(101))
    store.load(definition())
    table = store.find("t")
    assert table is not None
    assert table.snapshot is not None
    assert (table.row_count, table.data, table.snapshot.exists()) == (101, None, True)
    write(tmp_path, *range(150))
    store.load(definition())
    assert [file.name for file in (tmp_path / "snapshots").iterdir()] == ["t-2.parquet"]
    write(tmp_path, *range(150), "x")
    with pytest.raises(TableError):
        store.load(definition())
    assert [file.name for file in (tmp_path / "snapshots").iterdir()] == ["t-2.parquet"]
    store.discard("t")
    assert not list((tmp_path / "snapshots").iterdir())


def test_a_snapshot_that_holds_the_same_again_is_no_new_version(
    tmp_path: Path, store: TableStore
) -> None:
    write(tmp_path, *range(150))
    assert store.load(definition())
    before = store.find("t")
    for _ in range(3):
        write(tmp_path, *range(150))
        assert not store.load(definition())
        kept = store.find("t")
        assert kept is not None
        assert before is not None
        assert (kept.version, kept.snapshot) == (before.version, before.snapshot)
        assert kept.read > before.read  # freshness counts from the last reading
        assert [tmp_path / "snapshots" / "t-1.parquet"] == list((tmp_path / "snapshots").iterdir())
        assert kept.fingerprint == store.print_of(definition())
    write(tmp_path, *range(149), 7_000)
    assert store.load(definition())
    assert version(store) == 2


def test_without_snapshots_large_tables_are_refused(tmp_path: Path) -> None:
    store = TableStore(Locations(tmp_path), tmp_path / "s", max_rows=100, snapshots=False)
    write(tmp_path, *range(101))
    with pytest.raises(TableError, match="more than 100 rows"):
        store.load(definition())


def test_a_file_that_changes_while_it_is_read_is_not_taken(
    tmp_path: Path, store: TableStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, 1)
    read = store._read

    def slow(what: SourceDefinition, part: Narrowed | None) -> object:
        found = read(what, part)
        write(tmp_path, 1, 2)
        return found

    monkeypatch.setattr(store, "_read", slow)
    with pytest.raises(TableChangedError):
        store.load(definition())
    assert store.find("t") is None


@pytest.fixture
def clock() -> SettableClock:
    return SettableClock()


@pytest.fixture
def watch(store: TableStore, clock: SettableClock) -> TableWatch:
    return TableWatch(store, clock, lambda _seconds: None)


def test_only_tables_in_use_are_read(tmp_path: Path, store: TableStore, watch: TableWatch) -> None:
    write(tmp_path, 1)
    watch.define((definition(), definition("u", path="missing.csv")))
    assert watch.poll(frozenset())
    assert store.find("t") is None
    assert list(watch.problems()) == ["u"]
    assert watch.poll(USED)
    assert store.find("t") is not None
    assert not watch.poll(USED)


def test_unused_tables_are_forgotten_after_a_while_and_read_again(
    tmp_path: Path, store: TableStore, watch: TableWatch, clock: SettableClock
) -> None:
    write(tmp_path, 1)
    watch.define((definition(),))
    watch.poll(USED)
    clock.now = 599
    watch.poll(frozenset())
    assert store.find("t") is not None
    clock.now = 601
    watch.poll(frozenset())
    assert store.find("t") is None
    watch.poll(USED)
    assert store.find("t") is not None


def test_a_broken_file_is_tried_again_when_it_changes_or_after_a_while(
    tmp_path: Path,
    store: TableStore,
    watch: TableWatch,
    clock: SettableClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tries: list[float] = []
    load = store.load

    def counted(what: SourceDefinition, _conditions: object) -> bool:
        tries.append(clock.now)
        return load(what)

    monkeypatch.setattr(store, "load", counted)
    write(tmp_path, "x")
    watch.define((definition(),))
    for moment in (0, 1, 29, 31, 32, 62):
        clock.now = moment
        watch.poll(USED)
    assert tries == [0, 31, 62]
    write(tmp_path, 1)
    watch.poll(USED)
    assert watch.problem("t") is None
    assert tries == [0, 31, 62, 62]


def test_a_table_is_read_again_after_its_interval(
    tmp_path: Path, watch: TableWatch, clock: SettableClock
) -> None:
    write(tmp_path, 1)
    watch.define((definition(refresh="10 s"),))
    watch.poll(USED)
    before = (tmp_path / "t.csv").stat()
    write(tmp_path, 2)
    os.utime(tmp_path / "t.csv", ns=(before.st_atime_ns, before.st_mtime_ns))
    clock.now = 9
    assert not watch.poll(USED)
    clock.now = 10
    assert watch.poll(USED)
    clock.now = 19
    assert not watch.poll(USED)


@pytest.mark.parametrize("outcome", ["read", "changed", "broken"])
def test_who_asks_while_a_table_is_read_has_it_read_once_more(
    tmp_path: Path,
    store: TableStore,
    watch: TableWatch,
    monkeypatch: pytest.MonkeyPatch,
    outcome: str,
) -> None:
    """As for a table on a server, whose changes nothing tells."""
    write(tmp_path, 1)
    watch.define((definition(),))
    reads = []

    def load(what: SourceDefinition, _conditions: object) -> bool:
        reads.append(what.name)
        if len(reads) == 1:
            assert watch.read_again("t")
        if len(reads) == 1 and outcome != "read":
            raise TableChangedError("t") if outcome == "changed" else TableError("t")
        return True

    monkeypatch.setattr(store, "load", load)
    monkeypatch.setattr(store, "print_of", lambda _: None)
    for _ in range(4):
        watch.poll(USED)
    assert watch.problem("t") is None
    assert len(reads) >= 2


def test_a_table_declared_anew_is_read_anew(
    tmp_path: Path, store: TableStore, watch: TableWatch
) -> None:
    write(tmp_path, 1)
    (tmp_path / "u.csv").write_text("a\n5\n")
    watch.define((definition(),))
    watch.poll(USED)
    watch.define((definition(path="u.csv"),))
    assert watch.poll(USED)
    table = store.find("t")
    assert table is not None
    assert table.data is not None
    assert table.data.to_pylist() == [{"c0": 5}]
    watch.define(())
    watch.poll(frozenset())
    assert store.find("t") is None
    missing = watch.problem("t")
    assert missing is not None
    assert "no table t" in missing.message


def test_the_local_executor(tmp_path: Path, store: TableStore) -> None:
    write(tmp_path, 1, 2, 2)
    executor = LocalExecutor(store, max_result_rows=3)
    scan = definition().scan()
    with pytest.raises(TableError, match="has not been read"):
        executor.evaluate(scan)
    store.load(definition())
    assert executor.evaluate(scan) == {(1,): 1, (2,): 2}
    assert executor.evaluate(Distinct(scan)) == {(1,): 1, (2,): 1}
    with pytest.raises(TableError, match="but the table is now"):
        executor.evaluate(Scan("t", SourceKind.TABLE, Schema.of(("a", DataType.TEXT))))
    with pytest.raises(UnsupportedError, match="no streams"):
        executor.evaluate(Scan("t", SourceKind.STREAM, SCHEMA))
    write(tmp_path, 1, 2, 3, 4)
    store.load(definition())
    with pytest.raises(EvaluationError, match="more than 3 rows"):
        executor.evaluate(scan)


def test_a_server_that_does_not_answer_leaves_others_their_turn(
    store: TableStore, clock: SettableClock, watch: TableWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every reading of it waits a minute, during which nothing else is done."""
    options = (("source", "sql"), ("url", "postgresql://h/d"), ("table", "t"))
    watch.define(
        tuple(
            SourceDefinition(name, SourceKind.TABLE, SCHEMA, options=options)
            for name in ("t", "u", "v")
        )
    )
    tried: list[str] = []

    def load(wanted: SourceDefinition, _conditions: object) -> bool:
        tried.append(wanted.name)
        if wanted.name != "v":
            clock.now += 60
            raise TableError("has not answered for 60 s")
        return True

    monkeypatch.setattr(store, "load", load)
    used = frozenset({"t", "u", "v"})
    watch.poll(used)
    assert tried == ["t"]
    assert watch.is_unsettled("u")  # a view of it is not computed from what it held before
    watch.poll(used)
    assert tried == ["t", "u"]
    watch.poll(used)
    assert tried == ["t", "u", "v"]
    clock.now += 200
    watch.poll(used)
    assert tried == ["t", "u", "v"]
    clock.now += 50
    watch.poll(used)
    assert tried == ["t", "u", "v", "t"]
    watch.read_again("u")
    watch.poll(used)
    assert tried[-1] == "u"


def test_a_database_that_computed_no_groups_is_asked_again_after_pauses_that_double(
    store: TableStore, clock: SettableClock, watch: TableWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = (("source", "sql"), ("url", "postgresql://h/d"), ("table", "t"))
    table = SourceDefinition("t", SourceKind.TABLE, SCHEMA, options=options)
    watch.define((table,))
    groups = msgspec.structs.replace(table, name="t.groups")
    watch.narrow({groups.name: Narrowed("t", groups, (), Groups(table, (0,), ()))})
    computes = False

    def load(_wanted: SourceDefinition, _part: object, **_: object) -> bool:
        if not computes:
            raise NoGroupsError("has not answered for 60 s")
        return True

    def ask() -> None:
        assert watch.is_grouped("t")
        watch.poll(frozenset({groups.name}))

    monkeypatch.setattr(store, "load", load)
    day = 86_400.0
    for pause in [*(600.0 * 2**n for n in range(8)), day, day]:
        ask()
        clock.now += pause - 1
        assert not watch.is_grouped("t")
        watch.read_again("t")  # a view that is refreshed does not ask
        assert not watch.is_grouped("t")
        clock.now += 1
    ask()
    watch.read_again("t", accept=True)  # REFRESH TABLE
    ask()
    clock.now += 600.0
    computes = True
    ask()
    computes = False
    watch.read_again("t")
    ask()  # it has computed them meanwhile: the first pause
    clock.now += 600.0
    assert watch.is_grouped("t")


def test_a_table_that_loses_nearly_all_rows_keeps_them_for_a_while(
    tmp_path: Path, store: TableStore, clock: SettableClock, watch: TableWatch
) -> None:
    write(tmp_path, *range(2_000))
    watch.define((definition(),))
    watch.poll(frozenset({"t"}))
    before = version(store)
    write(tmp_path, 1)
    watch.poll(frozenset({"t"}))
    problem = watch.problem("t")
    assert problem is not None
    assert "1 rows and had 2,000" in problem.message
    for _ in range(9):
        clock.now += 60
        watch.poll(frozenset({"t"}))
    assert version(store) == before
    clock.now += 61
    watch.poll(frozenset({"t"}))
    assert watch.problem("t") is None
    table = store.find("t")
    assert table is not None
    assert table.row_count == 1


@pytest.mark.parametrize("how", ["it comes back", "we have changed it"])
def test_a_shrunken_table_that_is_right_again_or_ours_counts_at_once(
    tmp_path: Path, store: TableStore, watch: TableWatch, how: str
) -> None:
    write(tmp_path, *range(2_000))
    watch.define((definition(),))
    watch.poll(frozenset({"t"}))
    write(tmp_path, 1)
    if how == "we have changed it":
        watch.changed("t")
    watch.poll(frozenset({"t"}))
    assert (watch.problem("t") is None) == (how == "we have changed it")
    if how == "it comes back":
        write(tmp_path, *range(1_999))
        watch.poll(frozenset({"t"}))
        assert watch.problem("t") is None
    table = store.find("t")
    assert table is not None
    assert table.row_count == (1 if how == "we have changed it" else 1_999)


def test_what_is_accepted_is_what_is_there_now_not_what_comes_later(tmp_path: Path) -> None:
    clock = SettableClock(0.0)
    store = TableStore(Locations(tmp_path), tmp_path / "snapshots", memory_rows=100_000)
    watch = TableWatch(store, clock, pause=lambda _: None)
    watch.define((definition(),))

    def rows() -> int:
        watch.poll(USED)
        table = store.find("t")
        assert table is not None
        return table.row_count

    write(tmp_path, *range(5_000))
    assert rows() == 5_000
    (tmp_path / "t.csv").unlink()
    rows()
    assert watch.read_again("t", accept=True)  # it is missing: nothing is accepted by that
    rows()
    write(tmp_path, *range(10))
    assert rows() == 5_000
    assert "10 rows" in str(watch.problem("t"))
    assert watch.read_again("t", accept=True)
    assert rows() == 10
    write(tmp_path, *range(5_000))
    assert rows() == 5_000
    write(tmp_path, *range(3))
    assert rows() == 5_000  # it held for one reading
