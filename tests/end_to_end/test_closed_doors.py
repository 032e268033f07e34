"""What a stranger's page, or another user of the machine, may not do to a federation that is up."""

import contextlib
import sqlite3
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.federation import Federation, federation

pytestmark = [pytest.mark.end_to_end, pytest.mark.timeout(600)]

TABLE = "CREATE TABLE {name} (line TEXT) WITH (source = '{kind}', {options})"


def rows_at(up: Federation, address: str) -> Any:
    return up.http.get(address).json()["rows"]


def test_names_files_passwords_and_modes(tmp_path: Path) -> None:
    project = tmp_path / "project"
    data = project / "pando-data"
    project.mkdir()
    (project / "mine.csv").write_text("line\nhere\n")
    with contextlib.closing(sqlite3.connect(project / "mine.db")) as database:
        database.execute("CREATE TABLE t (line TEXT)")
        database.execute("INSERT INTO t VALUES ('from a secret')")
        database.commit()
    with federation(data, "--no-spark", "--gateways", "1", folder=project) as up:
        (data / "secrets").write_text(f"mine = sqlite:///{project}/mine.db\n")
        (data / "secrets").chmod(0o600)

        def create(name: str, kind: str, options: str, **headers: str) -> tuple[int, str]:
            text = TABLE.format(name=name, kind=kind, options=options)
            answer = up.http.post("/api/statements", json={"text": text}, headers=headers)
            return answer.status_code, answer.text

        # A page whose own name resolves to this machine.
        stranger = {"Host": f"evil.example:{up.port}", "Origin": f"http://evil.example:{up.port}"}
        assert create("a", "csv", "path = 'rooms.csv'", **stranger)[0] == 421
        # Files elsewhere, and those of the federation itself.
        for path in ("/etc/passwd", f"{data}/run/console.json", "../../run/console.json"):
            status, said = create("b", "csv", f"path = '{path}'")
            assert (status, "outside_folders" in said) == (400, True), said
        catalog = data / "state" / "console" / "catalog.db"
        assert create("c", "sql", f"url = 'sqlite:///{catalog}', table = 't'")[0] == 400
        # A link in the folder it was started in, which only shows when it is opened.
        (project / "link.csv").symlink_to("/etc/passwd")
        assert create("linked", "csv", f"path = '{project}/link.csv'")[0] == 200
        query = up.start_query("SELECT line FROM linked")
        error = up.until(lambda: up.query(query)["error"])
        assert "is outside the folders that are open to tables" in error
        assert up.http.get(f"/api/queries/{query}/rows").json()["rows"] == []
        # What is open.
        assert create("mine", "csv", f"path = '{project}/mine.csv'")[0] == 200
        assert create("named", "sql", "url = 'secret:mine', table = 't'")[0] == 200
        for name, line in (("mine", "here"), ("named", "from a secret")):
            address = f"/api/queries/{up.start_query(f'SELECT line FROM {name}')}/rows"
            rows = up.until(partial(rows_at, up, address))
            assert rows == [{"line": line}]
        # Whose files they are.
        closed = [
            data / "run",
            *(data / "run").iterdir(),
            data / "state",
            *catalog.parent.iterdir(),
        ]
        assert catalog in closed
        assert {path for path in closed if path.stat().st_mode & 0o077} == set()
