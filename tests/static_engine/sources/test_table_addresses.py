"""Addresses of databases by name."""

import sqlite3
from pathlib import Path

import pytest

from static_engine.sources.table_addresses import TableAddresses
from static_engine.sources.table_errors import TableError
from static_engine.sources.table_locations import Locations, database_url
from static_engine.sources.table_reader import read_table
from streamsql.algebra.operators import SourceKind
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.schema import Schema
from streamsql.data.types import DataType

ADDRESS = "postgresql://reader:s3cret@db.example/base"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "secrets"
    path.write_text(f"# of the library\nstaff = {ADDRESS}\n\n shop=sqlite:///shop.db\nempty =\n")
    path.chmod(0o600)
    return path


def test_a_name_stands_for_an_address(file: Path) -> None:
    secrets = TableAddresses(file, {})
    assert secrets.address("secret:staff") == ADDRESS
    assert secrets.address("secret:shop") == "sqlite:///shop.db"
    assert secrets.address(ADDRESS) == ADDRESS


def test_the_environment_comes_first(file: Path) -> None:
    environ = {"PANDO_SECRET_STAFF": "sqlite:///a.db", "PANDO_SECRET_A_B": "sqlite:///b.db"}
    secrets = TableAddresses(file, environ)
    assert secrets.address("secret:staff") == "sqlite:///a.db"
    assert secrets.address("secret:a-b") == "sqlite:///b.db"


@pytest.mark.parametrize("name", ["none", "empty", "# of the library", "../secrets", "", "a b"])
def test_what_is_no_secret_is_refused_by_name(file: Path, name: str) -> None:
    with pytest.raises(TableError, match=r"no secret|not the name of a secret"):
        TableAddresses(file, {}).address(f"secret:{name}")


def test_a_file_that_others_may_read_is_not_used(file: Path) -> None:
    file.chmod(0o640)
    with pytest.raises(TableError, match=r"may be read by others\nhint: chmod 600") as caught:
        TableAddresses(file, {}).address("secret:staff")
    assert "s3cret" not in str(caught.value)


def test_a_table_reads_through_a_secret_and_errors_do_not_tell_it(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "staff.db") as database:
        database.execute("CREATE TABLE t (a INTEGER)")
        database.execute("INSERT INTO t VALUES (7)")
    database.close()
    environ = {"PANDO_SECRET_STAFF": "sqlite:///staff.db", "PANDO_SECRET_FAR": ADDRESS}
    locations = Locations(tmp_path, secrets=TableAddresses(None, environ))
    options = (("source", "sql"), ("url", "secret:staff"), ("table", "t"))
    schema = Schema.of(("a", DataType.INTEGER))
    definition = SourceDefinition("t", SourceKind.TABLE, schema, options=options)
    (batch,) = read_table(definition, locations)
    assert batch.column(0).to_pylist() == [7]
    assert database_url("secret:far", locations).password == "s3cret"
    for told in (repr(locations), str(database_url("secret:far", locations))):
        assert "s3cret" not in told
