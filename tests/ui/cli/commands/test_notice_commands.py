"""The command line's alarms, displays, upserts and progress."""

import json
from typing import Any

import httpx
import pytest
import typer
from typer.testing import CliRunner, Result

from ui.cli.commands.http_commands import app as common
from ui.cli.commands.notice_commands import alarm_app, display_app
from ui.cli.printing import ChangePrinter, UpsertPrinter

APP = typer.Typer()
APP.add_typer(alarm_app, name="alarm")
APP.add_typer(display_app, name="display")
ALARM = "CREATE ALARM hot AS SELECT rid, celsius FROM Temperature SEVERITY 'info'"


@pytest.fixture
def pando(console: Any) -> Any:
    """Run a command against the console."""

    def run(*arguments: str) -> Result:
        kind = APP if arguments[0] in ("alarm", "display") else common
        return CliRunner().invoke(kind, [*arguments, "--console", console.address])

    return run


def test_alarms_and_displays(pando: Any, console: Any, client: httpx.Client) -> None:
    script = f"{ALARM}; CREATE DISPLAY lobby WITH (x = 1, y = 2); "
    script += "SELECT mid FROM SeatSensor OUTPUT TO DISPLAY lobby"
    assert client.post("/api/statements", json={"text": script}).is_success
    console.do(lambda: console.coordinator.raise_alarm("hot", ("L101", 41.5)))
    (alarm,) = json.loads(pando("alarm", "list", "--format", "json").output)
    assert (alarm["alarm"], alarm["raised"]) == ("hot", 1)
    (row,) = json.loads(pando("alarm", "rows", "hot", "--format", "json").output)
    assert json.loads(pando("alarm", "rows", "cold", "--format", "json").output) == []
    answer = pando("alarm", "acknowledge", str(row["id"]))
    assert answer.output == f"row {row['id']} of alarm hot acknowledged\n"
    assert "L101" in pando("alarm", "rows").output
    assert pando("alarm", "acknowledge", "77").exit_code == 2
    console.do(lambda: console.coordinator.raise_alarm("hot", ("L102", 42.0), in_doubt=True))
    listed = pando("alarm", "list").output
    assert "hot: 1 row unknown, because gw-2 is offline" in listed
    for word in ("severity", "rows", "since", "for", "query", "acknowledge", "Temperature"):
        assert word in listed, "in 80 columns"
    assert "unknown" in pando("alarm", "rows").output
    console.coordinator.away = ("gw-1", "gw-2")
    assert "because gw-1, gw-2 are offline" in pando("alarm", "list").output
    console.coordinator.away = ()
    listed = " ".join(pando("alarm", "list").output.split())
    assert "1 row unknown, because its query has not settled since 2026-01-01 09:00:00" in listed
    answer = pando("alarm", "acknowledge", "--alarm", "hot")
    assert answer.output == "1 row of alarm hot acknowledged\n"
    assert pando("alarm", "acknowledge").exit_code == 2
    assert pando("alarm", "acknowledge", "1", "--alarm", "hot").exit_code == 2
    (display,) = json.loads(pando("display", "list", "--format", "json").output)
    assert [query["text"] for query in display["queries"]] == [
        "SELECT mid FROM SeatSensor OUTPUT TO DISPLAY lobby"
    ]
    assert "lobby" in pando("display", "list").output


def test_a_subscription_by_key_prints_upserts(pando: Any, coordinator: Any) -> None:
    coordinator.answers = lambda _text: [("m1", 0.5)]
    text = "SUBSCRIBE TO (SELECT mid, weightLevel FROM SeatSensor) ENVELOPE UPSERT (KEY (mid))"
    answer = pando("query", "run", text, "--until-settled", "--format", "json")
    assert answer.exit_code == 0, answer.output
    upsert = json.loads(answer.output.splitlines()[-1])
    assert (upsert["key"], upsert["row"]) == ({"mid": "m1"}, {"mid": "m1", "weightlevel": 0.5})


def test_a_key_that_is_not_unique_is_an_error(pando: Any, coordinator: Any) -> None:
    coordinator.answers = lambda _text: [("L1", 0.5), ("L1", 0.6)]
    text = "SUBSCRIBE TO (SELECT rid, celsius FROM Temperature) ENVELOPE UPSERT (KEY (rid))"
    answer = pando("query", "run", text, "--for", "20s")
    assert answer.exit_code == 2
    assert "rid = L1 has 2 rows" in answer.stderr
    assert "key_not_unique" in answer.stderr


@pytest.mark.parametrize(
    ("form", "lines"),
    [
        ("csv", ["ts,op,k,v", "t,upsert,a,1", "t,delete,a,"]),
        ("table", ["   k │ v", "=  a │ 1", "-  a │ ", "   complete up to noon"]),
        (
            "json",
            [
                '{"ts": "t", "key": {"k": "a"}, "row": {"k": "a", "v": 1}}',
                '{"ts": "t", "key": {"k": "a"}, "row": null}',
                '{"progress": "noon"}',
            ],
        ),
    ],
)
def test_upserts_in_all_formats(
    form: str, lines: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    printer = UpsertPrinter(form, ["k", "v"])
    printer.print({"ts": "t", "key": {"k": "a"}, "row": {"k": "a", "v": 1}})
    printer.print({"ts": "t", "key": {"k": "a"}, "row": None})
    printer.progress("noon")
    assert printer.printed == 2
    assert [line.rstrip() for line in capsys.readouterr().out.splitlines()] == [
        line.rstrip() for line in lines
    ]


def test_signed_rows_keep_their_heading(capsys: pytest.CaptureFixture[str]) -> None:
    ChangePrinter("csv", ["k"])
    assert capsys.readouterr().out == "ts,diff,k\n"
