"""The catalog database: what survives, who owns it, and what is said when it cannot be used."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace

from federated_optimizer.coordinator.contract.coordinator_model import Origin
from federated_optimizer.coordinator.store.catalog_store import CatalogStore
from federated_optimizer.coordinator.store.schema import catalog_schema as tables
from federated_optimizer.coordinator.store.schema.node_tables import add_nodes
from federated_optimizer.coordinator.store.stored_facts import store_facts, stored_facts
from federated_optimizer.coordinator.store.stored_runs import (
    RunChanges,
    StoredNode,
    StoredQuery,
    write_runs,
)
from federated_optimizer.statistics.fact import Origin as FactOrigin
from federated_optimizer.statistics.fact import Quantity, Subject, SubjectKind, exact
from streamsql.algebra.aggregates import AggregateFunction as F
from streamsql.algebra.operators import Scan, SourceKind
from streamsql.catalog.definitions import SourceDefinition, ViewDefinition
from streamsql.catalog.functions import FunctionDefinition
from streamsql.catalog.read_gate import Read
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.errors import DeploymentError
from streamsql.mapping.source_mapping import ColumnMapping, SourceMapping
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle

SOURCE = SourceDefinition(
    "seat",
    SourceKind.STREAM,
    Schema.of(("mid", DataType.TEXT), ("ts", DataType.TIMESTAMP)),
    key=(0,),
    ttl=90_000_000,
    options=(("connector", "motes"),),
    text="CREATE SOURCE seat …",
)
DECLARED = SourceDefinition(
    "climate",
    SourceKind.STREAM,
    Schema.of(("device", DataType.TEXT), ("open", DataType.BOOLEAN)),
    mapping=SourceMapping(
        "mqtt",
        "home",
        only=(("type", "sensor"), ("ENERGY", None)),
        columns=(ColumnMapping(), ColumnMapping("state", values=(("ON", True), ("?", None)))),
        options=(("topic", "tele/{device}/SENSOR"),),
    ),
    version=2,
)
FUNCTION = FunctionDefinition(
    "f", False, Schema.of(("x", DataType.DOUBLE)), DataType.TEXT, "m:f", on_null=True
)
MERGED = FunctionDefinition(
    "g", True, Schema.of(("x", DataType.DOUBLE)), DataType.DOUBLE, "m:G", merged_by=F.USER
)
VIEW = ViewDefinition("v", "SELECT mid FROM seat", ("mid",), text="CREATE VIEW v …")


LONG = Subject(SubjectKind.PREDICATE, "heat", "celsius > 30 AND " * 500)


def stored(query_id: str, version: int = 1, created: int = 5) -> StoredQuery:
    plan = Scan("seat", SourceKind.STREAM, SOURCE.schema)
    fragment = Fragment("f0", Engine.BASE, plan, ("base",))
    bundle = FragmentBundle(query_id, version, (fragment,), plan.schema, "SELECT 1")
    return StoredQuery(query_id, f"name-{query_id}", "SELECT 1", Origin.USER, created, bundle)


def node(run: str, version: int = 1) -> StoredNode:
    bundle = stored(run, version).bundle
    reads = frozenset({Read("seat"), Read("seat", "v")})
    return StoredNode(bundle, bundle.fragments[0].plan, reads, 5, whole_changes=True)


def test_queries_and_nodes_are_stored_together_or_not_at_all(tmp_path: Path) -> None:
    store = CatalogStore(f"sqlite:///{tmp_path}/catalog.db")
    store.claim(now=0)
    store.put_runs(RunChanges(queries=(stored("q1"),), nodes=(node("q2"),)))
    twice = (node("q3"), node("q3"))
    with pytest.raises(DeploymentError):
        store.put_runs(RunChanges(dropped=("q1",), ended=("q2",), nodes=twice))
    assert store.queries() == (stored("q1"),)
    assert store.nodes() == (node("q2"),)


def test_a_database_of_before_there_were_nodes(tmp_path: Path) -> None:
    path = tmp_path / "catalog.db"
    store = CatalogStore(f"sqlite:///{path}")
    store.claim(now=0)
    store.put_query(stored("q1"))
    store.close()
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TABLE pando_nodes")
        before = tables.MIGRATIONS.index(add_nodes)
        connection.execute("UPDATE pando_schema SET version = ?", (before,))
    connection.close()
    again = CatalogStore(f"sqlite:///{path}")
    again.claim(now=0)
    again.put_runs(RunChanges(nodes=(node("q2"),)))
    assert (again.queries(), again.nodes()) == ((stored("q1"),), (node("q2"),))
    again.close()


def server() -> Path | None:
    """The PostgreSQL programs, or None."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if folders:
        return folders[-1]
    found = shutil.which("initdb")
    return Path(found).parent if found else None


@pytest.fixture(scope="module")
def postgres_url() -> Iterator[str]:
    """A PostgreSQL of our own, reached over a socket in a temporary folder."""
    programs = server()
    assert programs is not None, "PostgreSQL is not installed (.ci/run installs it)"
    with tempfile.TemporaryDirectory(prefix="pg-") as name:
        folder = Path(name)
        prefix: list[str] = []
        if os.geteuid() == 0:
            shutil.chown(folder, "nobody")
            prefix = ["setpriv", "--reuid=nobody", "--clear-groups", "--no-new-privs"]

        def run(*command: str) -> None:
            subprocess.run([*prefix, *command], check=True, capture_output=True, timeout=150)

        run(str(programs / "initdb"), "-D", f"{folder}/data", "-U", "admin", "-A", "trust", "-N")
        control = [str(programs / "pg_ctl"), "-D", f"{folder}/data", "-w", "-t", "50"]
        options = f"-k {folder} -c listen_addresses='' -c fsync=off"
        run(*control, "-l", f"{folder}/log", "-o", options, "start")
        try:
            yield f"postgresql://admin@/postgres?host={folder}"
        finally:
            run(*control, "-m", "immediate", "stop")


def contract(url: str) -> None:
    """What any database must do, over a restart in the middle."""
    store = CatalogStore(url)
    first = store.claim(now=0)
    store.put_definition(SOURCE)
    store.put_definition(VIEW)
    store.put_definition(SOURCE)
    store.put_definition(FUNCTION)
    store.put_definition(MERGED)
    store.put_definition(DECLARED)
    assert [store.next_source_version("climate") for _ in range(2)] == [1, 2]
    assert store.next_source_version("hall", at_least=7) == 7
    number = store.next_query_number()
    store.put_query(stored("q2", created=6))
    store.put_query(stored("q1"))
    store.put_query(stored("q1", version=2))
    store.put_query(stored("q3"))
    waiting = [
        store.pending.add(partial(write_runs, changes=RunChanges(queries=(stored(name),))))
        for name in ("q4", "q5")
    ]
    store.ensure(waiting[1])
    assert [write.is_done for write in waiting] == [True, True]
    for name in ("q3", "q4", "q5", "unknown"):
        store.drop_query(name)
    store.put_runs(RunChanges(queries=(stored("q4"),), nodes=(node("q5"), node("q6"))))
    store.put_runs(RunChanges(dropped=("q4",), nodes=(node("q5", 2),), ended=("q6", "q7")))
    facts = [exact(LONG, quantity, 0.25, 7, FactOrigin.COUNTED) for quantity in Quantity]
    store_facts(store, {fact.key: fact for fact in facts})
    store_facts(store, {facts[0].key: None, facts[1].key: replace(facts[1], value=0.5)})
    store.close()

    again = CatalogStore(url)
    assert again.claim(now=0) > first
    assert again.next_query_number() == number + 1
    assert again.next_source_version("Climate", at_least=2) == 3
    # Replaced definitions move to the end: they may use what was made since.
    assert again.definitions() == (VIEW, SOURCE, FUNCTION, MERGED, DECLARED)
    assert again.queries() == (stored("q1", version=2), stored("q2", created=6))
    assert again.nodes() == (node("q5", 2),)
    found = {fact.quantity: fact.value for fact in stored_facts(again)}
    assert found == {fact.quantity: 0.25 for fact in facts[2:]} | {facts[1].quantity: 0.5}
    assert {fact.subject for fact in stored_facts(again)} == {LONG}
    again.drop_definition("V")
    assert again.definitions() == (SOURCE, FUNCTION, MERGED, DECLARED)
    again.close()


def test_sqlite_keeps_everything(tmp_path: Path) -> None:
    contract(f"sqlite:///{tmp_path}/catalog.db")


@pytest.mark.postgres
@pytest.mark.timeout(400)
def test_postgres_keeps_everything(postgres_url: str) -> None:
    contract(postgres_url)


def test_the_newest_owner_wins_and_the_older_cannot_write(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/catalog.db"
    older, newer = CatalogStore(url), CatalogStore(url)
    older.claim(now=0)
    older.put_definition(SOURCE)
    newer.claim(now=0)
    with pytest.raises(DeploymentError, match="another coordinator took over"):
        older.put_definition(VIEW)
    with pytest.raises(DeploymentError, match="another coordinator took over"):
        older.next_query_number()  # it has reserved none
    newer.put_definition(VIEW)
    assert newer.definitions() == (SOURCE, VIEW)
    older.close()
    newer.close()


def test_epochs_grow_with_time_across_catalogs(tmp_path: Path) -> None:
    store = CatalogStore(f"sqlite:///{tmp_path}/catalog.db")
    assert store.claim(now=7_000_000) == 7_000
    assert store.claim(now=6_000_000) == 7_001
    store.close()


def test_a_folder_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(DeploymentError, match="cannot open the catalog") as caught:
        CatalogStore(f"sqlite:///{tmp_path}/missing/catalog.db")
    assert "folder" in caught.value.hint


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "catalog.db").write_bytes(b"not a database at all" * 100)
    with pytest.raises(DeploymentError, match="not a database") as caught:
        CatalogStore(f"sqlite:///{tmp_path}/catalog.db")
    assert "move it away" in caught.value.hint


def test_a_database_that_is_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = "federated_optimizer.coordinator.store.catalog_database.BUSY_MILLISECONDS"
    monkeypatch.setattr(module, 100)
    path = tmp_path / "catalog.db"
    store = CatalogStore(f"sqlite:///{path}")
    store.claim(now=0)
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    with pytest.raises(DeploymentError, match="locked") as caught:
        store.put_definition(SOURCE)
    assert "another process" in caught.value.hint
    holder.execute("ROLLBACK")
    holder.close()
    store.put_definition(SOURCE)
    store.close()


def test_a_database_that_is_read_only(tmp_path: Path) -> None:
    path = tmp_path / "catalog.db"
    CatalogStore(f"sqlite:///{path}").close()
    store = CatalogStore(f"sqlite:///file:{path}?mode=ro&uri=true")
    with pytest.raises(DeploymentError, match="readonly") as caught:
        store.claim(now=0)
    assert "writable" in caught.value.hint
    store.close()


def test_a_database_of_a_newer_release(tmp_path: Path) -> None:
    path = tmp_path / "catalog.db"
    CatalogStore(f"sqlite:///{path}").close()
    connection = sqlite3.connect(path)
    connection.execute("UPDATE pando_schema SET version = 99")
    connection.commit()
    connection.close()
    with pytest.raises(DeploymentError, match="schema version 99"):
        CatalogStore(f"sqlite:///{path}")


def test_a_database_of_before_sources_were_declared(tmp_path: Path) -> None:
    path = tmp_path / "catalog.db"
    store = CatalogStore(f"sqlite:///{path}")
    store.claim(now=0)
    store.put_definition(SOURCE)
    store.close()
    connection = sqlite3.connect(path)
    connection.execute("DROP TABLE pando_source_versions")
    connection.execute("UPDATE pando_schema SET version = 3")
    (body,) = connection.execute("SELECT body FROM pando_definitions").fetchone()
    older = {k: v for k, v in json.loads(body).items() if k not in ("mapping", "version")}
    connection.execute("UPDATE pando_definitions SET body = ?", (json.dumps(older).encode(),))
    connection.commit()
    connection.close()

    again = CatalogStore(f"sqlite:///{path}")
    again.claim(now=0)
    assert again.definitions() == (SOURCE,)
    assert [again.next_source_version("seat") for _ in range(2)] == [1, 2]
    again.close()


def test_a_query_of_an_unknown_origin_names_itself(tmp_path: Path) -> None:
    path = tmp_path / "catalog.db"
    store = CatalogStore(f"sqlite:///{path}")
    store.claim(now=0)
    store.put_query(stored("q1"))
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE pando_queries SET origin = 'oracle'")
    connection.close()
    with pytest.raises(DeploymentError, match=r"query 'q1'.*'oracle'"):
        store.queries()
    store.close()


def test_a_damaged_row_names_itself(tmp_path: Path) -> None:
    path = tmp_path / "catalog.db"
    store = CatalogStore(f"sqlite:///{path}")
    store.claim(now=0)
    store.put_query(stored("q1"))
    store.put_definition(SOURCE)
    connection = sqlite3.connect(path)
    connection.execute("UPDATE pando_queries SET bundle = x'c1'")
    connection.execute("UPDATE pando_definitions SET body = x'7b'")
    connection.commit()
    connection.close()
    (query,) = store.queries()
    assert query.id == "q1"
    assert "cannot be read" in str(query.unreadable)
    with pytest.raises(DeploymentError, match="definition 'seat'"):
        store.definitions()
    store.close()


@pytest.mark.parametrize(
    "url", ["", "catalog.db", "nonsense://x", "postgresql://u:secret@127.0.0.1:1/x"]
)
def test_urls_that_lead_nowhere_keep_their_secret(url: str) -> None:
    with pytest.raises(DeploymentError, match="cannot open the catalog") as caught:
        CatalogStore(url)
    assert "secret" not in str(caught.value)
    assert caught.value.hint


def test_two_stores_of_a_process_and_one_elsewhere_share_all_changes(tmp_path: Path) -> None:
    # Opening and closing the file itself dropped the locks of the process, and the next process
    # to close the database deleted the log into which the first went on to write.
    file = tmp_path / "catalog.db"
    first, second = (CatalogStore(f"sqlite:///{file}") for _ in range(2))

    def counted_elsewhere() -> str:
        count = (
            "import sqlite3, sys; opened = sqlite3.connect(sys.argv[1]); "
            "print(opened.execute('SELECT count(*) FROM pando_definitions').fetchone()[0])"
        )
        return subprocess.check_output([sys.executable, "-c", count, file], text=True).strip()

    first.put_definition(SOURCE)
    assert counted_elsewhere() == "1"
    first.put_definition(VIEW)
    assert counted_elsewhere() == "2"
    assert len(second.definitions()) == 2
    first.close()
    second.close()
