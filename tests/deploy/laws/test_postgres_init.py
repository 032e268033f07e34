"""The deployment's database script, run on a real PostgreSQL server."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

SCRIPT = Path(__file__).resolve().parents[3] / "deploy" / "postgres" / "init.sql"
PASSWORDS = {
    "PANDO_CATALOG_PASSWORD": "catalog'secret",
    "PANDO_TABLES_PASSWORD": "tables-secret",
    "PANDO_READER_PASSWORD": "reader-secret",
}

pytestmark = [pytest.mark.postgres, pytest.mark.timeout(400)]


def server_programs() -> Path:
    """Return the folder of initdb and pg_ctl; Debian keeps it off the PATH."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    on_path = shutil.which("initdb")
    assert folders or on_path, "PostgreSQL is not installed (.ci/run installs it)"
    return folders[-1] if folders else Path(on_path or "").parent


def server_user() -> str | None:
    """Return whom to run the server as: PostgreSQL refuses root; others stay themselves."""
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


def run_as_server_user(command: list[str], **environment: str) -> None:
    """Run a program of the server."""
    # A server that pg_ctl starts keeps its standard streams; a pipe would never end.
    ended = subprocess.run(
        command,
        user=server_user(),
        env={**os.environ, **environment},
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        timeout=150,
        check=False,
    )
    assert ended.returncode == 0, command


@pytest.fixture(scope="module")
def sockets() -> Iterator[str]:
    """Start a server that listens on a socket file only, run the script, yield its folder."""
    # pytest's own folders are closed to other users, and too deep for the name of a socket.
    with tempfile.TemporaryDirectory(prefix="pando-pg-") as name:
        user = server_user()
        if user is not None:
            shutil.chown(name, user)
        yield from run_server(Path(name))


def run_server(folder: Path) -> Iterator[str]:
    """Run a server below a folder until the generator is resumed."""
    programs, data = server_programs(), folder / "data"
    run_as_server_user(
        [str(programs / "initdb"), "-D", str(data), "-U", "admin", "-A", "trust", "--no-sync"]
    )
    access = data / "pg_hba.conf"
    access.write_text("local all admin trust\nlocal all all scram-sha-256\n", encoding="utf-8")
    control = [str(programs / "pg_ctl"), "-D", str(data), "-w", "-l", str(folder / "log")]
    run_as_server_user([*control, "-o", f"-k {folder} -c listen_addresses='' -F", "start"])
    try:
        script = folder / "init.sql"
        shutil.copy(SCRIPT, script)
        script.chmod(0o644)
        psql = [str(programs / "psql"), "-X", "-h", str(folder), "-U", "admin", "-d", "postgres"]
        run_as_server_user([*psql, "-f", str(script)], **PASSWORDS)
        yield str(folder)
    finally:
        run_as_server_user([*control, "-m", "immediate", "stop"])


def connect(sockets: str, database: str, user: str, password: str) -> psycopg.Connection:
    """Connect over the socket file."""
    return psycopg.connect(host=sockets, dbname=database, user=user, password=password)


def test_the_coordinator_owns_its_catalog(sockets: str) -> None:
    with connect(sockets, "pando_catalog", "pando_catalog", "catalog'secret") as session:
        session.execute("CREATE TABLE query (id text PRIMARY KEY)")
        session.execute("INSERT INTO query VALUES ('q1')")
        assert session.execute("SELECT id FROM query").fetchall() == [("q1",)]


def test_a_reader_sees_new_tables_and_cannot_change_them(sockets: str) -> None:
    with connect(sockets, "pando_tables", "pando_tables", "tables-secret") as owner:
        owner.execute("CREATE TABLE software (machine text, name text)")
        owner.execute("INSERT INTO software VALUES ('m1', 'Word')")
    with connect(sockets, "pando_tables", "pando_reader", "reader-secret") as reader:
        assert reader.execute("SELECT name FROM software").fetchall() == [("Word",)]
    with connect(sockets, "pando_tables", "pando_reader", "reader-secret") as reader:
        reader.execute("SET default_transaction_read_only = off")
        reader.commit()
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            reader.execute("DELETE FROM software")


@pytest.mark.parametrize("user", ["pando_tables", "pando_reader"])
def test_others_cannot_enter_the_catalog(sockets: str, user: str) -> None:
    password = {"pando_tables": "tables-secret", "pando_reader": "reader-secret"}[user]
    with pytest.raises(psycopg.OperationalError, match="permission denied"):
        connect(sockets, "pando_catalog", user, password)
