"""`pando run` and `pando shell` on a federation: what is asked of the console, what is printed."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import deploy.cli.remote
from deploy.cli.main import app
from streamsql.errors import BindingError, DeploymentError, Span

Object = dict[str, Any]
COLUMNS = [{"name": "mid", "type": "TEXT"}, {"name": "w", "type": "DOUBLE"}]


def answer(kind: str, **facts: Any) -> Object:
    empty: Object = {"message": "", "query": None, "columns": [], "rows": [], "text": ""}
    return {"kind": kind, **empty, "data": None, "warnings": [], **facts}


class FakeConsole:
    """A console that knows one source and one query."""

    address = "http://127.0.0.1:1"
    rows: tuple[Object, ...] = ({"mid": "m1", "w": None}, {"mid": "m2", "w": 1.5})

    def __init__(self) -> None:
        self.asked: list[Object] = []
        self.deleted: list[str] = []
        self.polls: Iterator[Object] = iter(())

    def settling(self, *shown: Object) -> None:
        self.polls = iter(shown)

    def post(self, path: str, body: Object, *, seconds: float = 30.0) -> list[Object]:
        assert seconds > 0
        assert path == "/api/statements"
        self.asked.append(body)
        text = body["text"]
        if "nothing" in text:
            line = text[: text.index("nothing")].count("\n") + 1
            raise BindingError("there is no 'nothing'", span=Span(line, 8, "nothing"))
        if "SHOW" in text:
            return [answer("rows", columns=["source"], rows=[["seat"], ["[red]"]])]
        if "EXPLAIN" in text:
            return [answer("text", text="Scan", data={"plan": []})]
        if "CREATE" in text:
            return [answer("done", message="view v created", warnings=["nobody [offers] it"])]
        query = {"id": "q7", "columns": COLUMNS, "text": text.strip()}
        return [answer("query", query=query)]

    def get(self, path: str, **_: str) -> Object:
        if path.endswith("/rows"):
            return {"query": {}, "rows": list(self.rows)}
        if path.startswith("/api/queries/"):
            return next(self.polls, {"status": "running", "settled": True, "waiting_for": []})
        return {}

    def delete(self, path: str) -> Object:
        self.deleted.append(path)
        return {}

    def close(self) -> None:
        pass


@pytest.fixture
def console(monkeypatch: pytest.MonkeyPatch) -> FakeConsole:
    fake = FakeConsole()
    monkeypatch.setattr(deploy.cli.remote, "ConsoleClient", lambda _: fake)
    monkeypatch.setattr(deploy.cli.remote, "POLL_SECONDS", 0.0)
    return fake


def run(script: str, *options: str) -> Result:
    return CliRunner().invoke(app, ["run", "-", *options], input=script)


SCRIPT = "SHOW SOURCES;\nCREATE VIEW v AS SELECT mid FROM seat;\nSELECT mid, w FROM seat;\n"


def test_json_is_a_line_per_statement(console: FakeConsole) -> None:
    done = run(SCRIPT + "EXPLAIN SELECT mid FROM seat; SUBSCRIBE TO v", "--format", "json")
    assert done.exit_code == 0, done.stderr
    assert [json.loads(line) for line in done.stdout.splitlines()] == [
        [{"source": "seat"}, {"source": "[red]"}],
        {"message": "view v created"},
        list(FakeConsole.rows),
        {"plan": []},
        {"id": "q7", "columns": COLUMNS, "text": "SUBSCRIBE TO v"},
    ]
    assert done.stderr == "warning: nobody [offers] it\n"
    assert console.deleted == ["/api/queries/q7"], "what SELECT started ends, SUBSCRIBE goes on"
    origins = [body.get("origin") for body in console.asked]
    assert origins == [None, None, "session", None, None]


@pytest.mark.parametrize("command", [("run", "-"), ("shell",)])
def test_another_console_can_be_named(
    command: tuple[str, ...], console: FakeConsole, monkeypatch: pytest.MonkeyPatch
) -> None:
    addresses: list[str] = []

    def connect(address: str) -> FakeConsole:
        addresses.append(address)
        return console

    monkeypatch.setattr(deploy.cli.remote, "ConsoleClient", connect)
    options = [*command, "--console", "http://127.0.0.1:9/"]
    done = CliRunner().invoke(app, options, input="SHOW SOURCES;\n")
    assert done.exit_code == 0, done.stderr
    assert addresses == ["http://127.0.0.1:9"]


def test_a_query_on_a_display_goes_on(console: FakeConsole) -> None:
    done = run("SELECT mid FROM seat OUTPUT TO DISPLAY lobby")
    assert done.exit_code == 0, done.output
    assert [body.get("origin", "user") for body in console.asked] == ["user"]
    assert console.deleted == []


def test_benchmarks_are_listed_with_what_they_ask() -> None:
    done = CliRunner().invoke(app, ["bench", "list"])
    assert done.exit_code == 0
    assert (
        "\nrecursive_soak      Does a recursion with expiring base rows run for ever" in done.stdout
    )


def test_csv_has_rows_only(console: FakeConsole) -> None:
    assert run(SCRIPT, "--format", "csv").stdout == "source\nseat\n[red]\nmid,w\nm1,\nm2,1.5\n"
    assert len(console.asked) == 3


def test_tables_and_sentences(console: FakeConsole) -> None:
    done = run(SCRIPT + "SUBSCRIBE TO v")
    assert "│ [red]  │" in done.stdout
    assert "view v created" in done.stdout
    assert "│ m1  │ NULL │" in done.stdout
    assert "query q7 runs; follow it with: pando query tail q7" in done.stdout
    assert console.asked


def test_an_error_names_the_line_of_the_script(console: FakeConsole) -> None:
    done = run("SHOW SOURCES;\n\nSELECT nothing FROM seat;\nSHOW TABLES", "--format", "csv")
    assert done.exit_code == 2
    assert done.stdout.startswith("source\n")
    assert "line 3, column 8" in done.stderr
    assert len(console.asked) == 2


def test_an_error_tells_what_stays_of_the_statements_before_it(console: FakeConsole) -> None:
    done = run(SCRIPT + "SUBSCRIBE TO v;\nSELECT nothing FROM seat")
    assert done.exit_code == 2
    lines = done.stderr.splitlines()
    assert [line for line in lines if line.startswith("already done: ")] == [
        "already done: line 2: view v created; DROP VIEW v removes it",
        "already done: line 4: query q7 runs; DROP QUERY q7 stops it",
    ], "nothing of what only asked, and of the query that was stopped"
    assert "already done" not in run("SHOW SOURCES; SELECT nothing FROM seat").stderr
    assert console.asked


def test_a_syntax_error_stops_the_script_before_anything_is_asked(console: FakeConsole) -> None:
    done = run("SHOW SOURCES;\nSELEC 1")
    assert done.exit_code == 2
    assert "line 2" in done.stderr
    assert console.asked == []


def test_a_query_that_fails_or_never_settles_is_stopped(
    console: FakeConsole, monkeypatch: pytest.MonkeyPatch
) -> None:
    console.settling(
        {"status": "failed", "error": "A running recursion exceeded its bound", "settled": False}
    )
    failed = run("SELECT mid, w FROM seat")
    assert failed.exit_code == 2
    assert "A running recursion exceeded its bound" in failed.stderr
    monkeypatch.setattr(deploy.cli.remote, "SETTLE_SECONDS", -1.0)
    console.settling({"status": "starting", "settled": False, "waiting_for": ["static"]})
    late = run("SELECT mid, w FROM seat")
    assert late.exit_code == 2
    assert "it waits for static" in late.stderr
    assert console.deleted == ["/api/queries/q7"] * 2


def test_an_answer_counts_once_it_stays_settled(console: FakeConsole) -> None:
    states = (False, True, False, True, True)
    console.settling(*({"status": "running", "settled": s, "waiting_for": []} for s in states))
    assert run("SELECT mid, w FROM seat", "--format", "csv").exit_code == 0
    assert list(console.polls) == []


def test_no_console_is_the_users_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PANDO_CONSOLE", "http://127.0.0.1:9")
    for command in (["run", "-"], ["shell"]):
        done = CliRunner().invoke(app, command, input="SHOW SOURCES;")
        assert done.exit_code == 2
        assert "no console answers at http://127.0.0.1:9" in done.stderr
        assert "pando up" in done.stderr
        assert done.stdout == ""


def test_the_shell_follows_queries_and_runs_the_rest(
    console: FakeConsole, monkeypatch: pytest.MonkeyPatch
) -> None:
    followed: list[tuple[str, bool]] = []

    def follow(_client: object, text: str, _name: str, until: Any, _form: str) -> None:
        followed.append((text, until.settled))
        if "seat" not in text:
            raise DeploymentError("no such source")

    monkeypatch.setattr(deploy.cli.remote, "run_query", follow)
    lines = "-- mine\nSELECT mid FROM seat;\nSHOW SOURCES;\nSELECT 1 FROM x;\nSELEC;\n"
    lines += "SHOW TABLES;\n"
    done = CliRunner().invoke(app, ["shell"], input=lines)
    assert done.exit_code == 0
    assert followed == [("SELECT mid FROM seat", True), ("SELECT 1 FROM x", True)]
    assert done.stdout.count("│ seat   │") == 2
    assert "no such source" in done.stderr
    assert "SELEC" in done.stderr
    assert len(console.asked) == 2
