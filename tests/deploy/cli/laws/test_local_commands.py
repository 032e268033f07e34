"""`pando run --local` and `pando shell --local`: outputs, exit statuses, what goes where."""

import io
import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from deploy.cli.line_editor import is_complete, read_statements
from deploy.cli.main import app

SCRIPT = """
CREATE SOURCE s (k TEXT, v INTEGER);
INSERT INTO s VALUES ('a', 1), ('b', 2);
SELECT k FROM s WHERE v > 1;
DELETE FROM s WHERE k = 'b';
SELECT COUNT(*) AS n FROM s;
"""


def pando(*arguments: str, stdin: str | bytes | None = None) -> Result:
    return CliRunner().invoke(app, list(arguments), input=stdin)


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "my script.sql"
    path.write_text(SCRIPT)
    return path


@pytest.mark.parametrize(
    "options", [(), ("--sites", "3"), ("--engine", "reference"), ("--engine", "stream")]
)
def test_a_script_gives_the_settled_answer_at_each_select(
    script: Path, options: tuple[str, ...]
) -> None:
    done = pando("run", str(script), "--local", "--format", "json", *options)
    assert done.exit_code == 0
    assert [json.loads(line) for line in done.stdout.splitlines()] == [[{"k": "b"}], [{"n": 1}]]


def test_csv_and_table(script: Path) -> None:
    assert pando("run", str(script), "--local", "--format", "csv").stdout == "k\nb\nn\n1\n"
    table = pando("run", str(script), "--local").stdout
    assert "2 inserted" in table
    assert "│ b │" in table


def test_a_script_from_standard_input() -> None:
    done = pando("run", "-", "--local", "--format", "csv", stdin="SELECT 1 AS a")
    assert (done.exit_code, done.stdout) == (0, "a\n1\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nowhere.sql", "--local"), "cannot read nowhere.sql: No such file"),
        (("{folder}", "--local"), "Is a directory"),
        (("{script}", "--local", "--engine", "duckdb"), "use stream, reference, spark"),
        (("{script}", "--local", "--sites", "0"), "--sites 0; write a number from 1 to 64"),
        (("{script}", "--local", "--sites", "65"), "--sites 65"),
        (("{script}", "--local", "--engine", "reference", "--sites", "2"), "is not partitioned"),
        (("{script}", "--sites", "2"), "add --local"),
        (("{script}", "--engine", "reference"), "add --local"),
        (("{script}", "--local", "--format", "xml"), "use table, json, csv"),
        (("{script}", "--local", "--sites", "two"), "valid integer"),
        (("{script}", "--local", "--nonsense"), "No such option"),
    ],
)
def test_a_users_error_ends_with_status_2_on_stderr(
    script: Path, arguments: tuple[str, ...], said: str
) -> None:
    filled = [a.format(script=script, folder=script.parent) for a in arguments]
    done = pando("run", *filled)
    assert done.exit_code == 2
    assert said in done.stderr
    assert done.stdout == ""


def test_an_error_names_place_text_and_hint_after_what_was_done(tmp_path: Path) -> None:
    path = tmp_path / "wrong.sql"
    path.write_text(SCRIPT + "SELECT kk FROM s;\nSELECT k FROM s;")
    done = pando("run", str(path), "--local", "--format", "csv")
    assert done.exit_code == 2
    assert done.stdout == "k\nb\nn\n1\n"
    assert "line 7, column 8: kk" in done.stderr
    assert "hint" in done.stderr


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"SELECT '\xff'", "not UTF-8 text"), (b" " * 10_000_001, "larger than")],
)
def test_a_script_that_is_no_text_or_too_long(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "script.sql"
    path.write_bytes(content)
    assert said in pando("run", str(path), "--local").stderr
    done = pando("run", "-", "--local", stdin=content)
    assert done.exit_code == 2
    assert f"standard input is {said}" in done.stderr


def test_an_empty_script_does_nothing(tmp_path: Path) -> None:
    path = tmp_path / "empty.sql"
    path.write_text("-- nothing\n")
    done = pando("run", str(path), "--local")
    assert (done.exit_code, done.stdout, done.stderr) == (0, "", "")


def test_a_defect_of_ours_ends_with_status_1(monkeypatch: pytest.MonkeyPatch) -> None:
    from streamsql.errors import InternalError  # noqa: PLC0415

    def fail(*_: object) -> None:
        raise InternalError("a rule is wrong")

    monkeypatch.setattr("deploy.cli.local.run_local", fail)
    done = pando("run", "-", "--local", stdin="")
    assert done.exit_code == 1
    assert "a defect of Pando" in done.stderr


def test_the_shell_answers_and_goes_on_after_a_mistake() -> None:
    lines = "CREATE SOURCE s (k TEXT);\nINSERT INTO s\n VALUES ('a;');\nSELECT x\nFROM s;\n"
    done = pando("shell", "--local", stdin=lines + "SELECT k\nFROM s;\n\\q\nSELECT 1;\n")
    assert done.exit_code == 0
    assert "│ a; │" in done.stdout
    assert "no column 'x'" in done.stderr
    assert "column1" not in done.stdout


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("SELECT 1;", True),
        ("SELECT 1; -- said", True),
        ("SELECT 1; /* said */ ", True),
        ("SELECT 1 -- said;", False),
        ("SELECT 1 /* said; */", False),
        ("SELECT 1 /* said;", False),
        ("SELECT ';", False),
        ("SELECT ';';", True),
        ("SELECT 'it''s;", False),
        ("SELECT 'it''s';", True),
        ('SELECT ";";', True),
        ("SELECT '--' ;", True),
        ("", False),
    ],
)
def test_where_a_statement_ends(text: str, complete: bool) -> None:
    assert is_complete(text) is complete


def test_statements_from_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = "-- one\nSELECT\n1;\nSELECT 2; SELECT 3;\n\nSELECT 4\n"
    monkeypatch.setattr(sys, "stdin", io.StringIO(lines))
    assert [text.split() for text in read_statements()] == [
        ["--", "one", "SELECT", "1;"],
        ["SELECT", "2;", "SELECT", "3;"],
        ["SELECT", "4"],
    ]


@pytest.mark.parametrize("word", ["help", "HELP;", "\\h", "?"])
def test_a_shell_says_what_can_be_typed(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{word}\nSELECT 1\n+ 1;\nexit;\nSELECT 2;\n"))
    said: list[str] = []
    assert list(read_statements(said.append)) == ["SELECT 1\n+ 1;\n"]
    assert len(said) == 1
    assert "SHOW SOURCES" in said[0]


def test_a_comment_at_the_end_is_no_statement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("SELECT 1;\n-- done\n"))
    assert list(read_statements()) == ["SELECT 1;\n"]
