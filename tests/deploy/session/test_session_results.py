"""Exact outputs of the three formats."""

import io
import json

import pytest
from rich.console import Console

from deploy.session import LocalSession, Result
from deploy.session.session_results import print_result

ROWS = """
CREATE SOURCE r (k TEXT, v INTEGER, d DOUBLE, ok BOOLEAN, ts TIMESTAMP);
INSERT INTO r VALUES ('[red]x[/]', 2, 0.1, true, '2026-01-01T00:00:02.5Z');
INSERT INTO r VALUES (NULL, NULL, NULL, NULL, NULL), ('a "b", c', 1, 2.0, false,
  '2026-01-01T01:00:00+01:00');
"""


def printed(text: str, form: str, width: int = 120) -> str:
    session = LocalSession("reference")
    results = session.run(text)
    return shown(results[-1], form, width)


def shown(result: Result, form: str, width: int = 120) -> str:
    output = io.StringIO()
    print_result(result, form, Console(file=output, width=width, soft_wrap=form != "table"))
    return output.getvalue()


def test_json_is_one_array_a_line() -> None:
    text = printed(ROWS + "SELECT * FROM r", "json")
    assert text.endswith("]\n")
    assert text.count("\n") == 1
    assert json.loads(text) == [
        {"k": None, "v": None, "d": None, "ok": None, "ts": None},
        {"k": "[red]x[/]", "v": 2, "d": 0.1, "ok": True, "ts": "2026-01-01T00:00:02.500000Z"},
        {"k": 'a "b", c', "v": 1, "d": 2.0, "ok": False, "ts": "2026-01-01T00:00:00Z"},
    ]


def test_csv_quotes_where_needed() -> None:
    assert printed(ROWS + "SELECT * FROM r", "csv") == (
        "k,v,d,ok,ts\n"
        ",,,,\n"
        "[red]x[/],2,0.1,true,2026-01-01T00:00:02.500000Z\n"
        '"a ""b"", c",1,2.0,false,2026-01-01T00:00:00Z\n'
    )


def test_a_table_shows_values_as_they_are() -> None:
    assert printed(ROWS + "SELECT k, v, d, ok FROM r", "table") == (
        "┏━━━━━━━━━━━┳━━━━━━┳━━━━━━┳━━━━━━━┓\n"
        "┃ k         ┃ v    ┃ d    ┃ ok    ┃\n"
        "┡━━━━━━━━━━━╇━━━━━━╇━━━━━━╇━━━━━━━┩\n"
        "│ NULL      │ NULL │ NULL │ NULL  │\n"
        "│ [red]x[/] │ 2    │ 0.1  │ true  │\n"
        '│ a "b", c  │ 1    │ 2.0  │ false │\n'
        "└───────────┴──────┴──────┴───────┘\n"
        "3 rows\n"
    )


def test_a_narrow_table_loses_no_letter() -> None:
    long = "abcdefghijklmnopqrstuvwxyz" * 3
    text = printed(f"SELECT '{long}' AS k, 'x' AS y", "table", width=40)
    cells = [line.split("│")[1].strip() for line in text.splitlines() if "│" in line]
    assert "".join(cells) == long


def test_equal_names_get_numbers() -> None:
    text = ROWS + "SELECT x.v, y.v FROM r x JOIN r y ON x.v = y.v"
    assert json.loads(printed(text, "json")) == [{"v": 1, "v_2": 1}, {"v": 2, "v_2": 2}]
    assert printed(text, "csv").splitlines()[0] == "v,v_2"


def test_copies_are_shown_one_by_one() -> None:
    text = "CREATE SOURCE s (k TEXT); INSERT INTO s VALUES ('a'), ('a'); SELECT k FROM s"
    assert printed(text, "csv") == "k\na\na\n"


@pytest.mark.parametrize(
    ("form", "output"), [("json", "[]\n"), ("csv", "k\n"), ("table", "0 rows\n")]
)
def test_no_rows(form: str, output: str) -> None:
    assert printed("CREATE SOURCE s (k TEXT); SELECT k FROM s", form).endswith(output)


def test_messages_are_for_people_only() -> None:
    text = "CREATE SOURCE s (k TEXT)"
    assert printed(text, "table") == "source s created\n"
    assert printed(text, "json") == printed(text, "csv") == ""


def test_warnings_keep_their_brackets() -> None:
    text = ROWS + "SELECT x.k FROM r x JOIN r y ON x.k = y.k"
    assert "[RANGE 10 MINUTES]" in printed(text, "table", width=400)
    assert "warning" not in printed(text, "json")


def test_letters_of_any_language_stay() -> None:
    assert printed("SELECT 'größer 温度' AS k", "json") == '[{"k": "größer 温度"}]\n'
