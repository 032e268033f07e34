"""The command line against a served console: what it prints and its exit status."""

import asyncio
import csv
import io
import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from federated_optimizer.coordinator.contract.coordinator_model import QueryStatus
from ui.cli.client import ConsoleClient
from ui.cli.commands.http_commands import app

SEATS = "SELECT mid, weightLevel FROM SeatSensor"


@pytest.fixture
def pando(console: Any) -> Any:
    """Run a command against the console."""

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(app, [*arguments, "--console", console.address])

    return run


@pytest.fixture
def seats(coordinator: Any) -> None:
    """Seat queries begin with two rows."""
    rows = [("m1", 0.5), ("m2", 70.0)]
    coordinator.answers = lambda text: rows if text == SEATS else []


def objects(text: str) -> list[Any]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.usefixtures("seats")
def test_run_prints_one_object_per_change_and_stops_the_query(pando: Any, coordinator: Any) -> None:
    result = pando("query", "run", SEATS, "--limit", "2", "--format", "json")
    assert result.exit_code == 0
    changes = objects(result.stdout)
    assert [(c["diff"], c["row"]["mid"]) for c in changes] == [(1, "m1"), (1, "m2")]
    assert all(set(c) == {"ts", "diff", "row"} for c in changes)
    assert not coordinator.queries("session")


@pytest.mark.usefixtures("seats")
def test_run_until_settled_ends_by_itself(pando: Any) -> None:
    result = pando("query", "run", SEATS, "--until-settled", "--format", "csv")
    assert result.exit_code == 0
    rows = list(csv.reader(io.StringIO(result.stdout)))
    assert rows[0] == ["ts", "diff", "mid", "weightlevel"]
    assert [row[1:] for row in rows[1:]] == [["1", "m1", "0.5"], ["1", "m2", "70.0"]]


@pytest.mark.usefixtures("seats")
def test_run_until_settled_reads_everything_however_late_it_comes(
    pando: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = ConsoleClient.events

    def late(self: ConsoleClient, path: str) -> Iterator[tuple[str, Any]]:
        time.sleep(1)  # time passes: a slow answer
        for event in events(self, path):
            time.sleep(0.2)  # time passes: a slow event
            yield event

    monkeypatch.setattr(ConsoleClient, "events", late)
    result = pando("query", "run", SEATS, "--until-settled", "--format", "json")
    assert result.exit_code == 0
    assert [c["row"]["mid"] for c in objects(result.stdout)] == ["m1", "m2"]


def test_run_for_a_while_prints_what_comes_meanwhile(pando: Any, console: Any) -> None:
    timer = threading.Timer(0.5, lambda: console.push("mine", (1, ("m9", 1.0))))
    timer.start()
    result = pando("query", "run", SEATS, "--name", "mine", "--for", "2s", "--format", "json")
    timer.join()
    assert result.exit_code == 0
    assert [c["row"]["mid"] for c in objects(result.stdout)] == ["m9"]


@pytest.mark.usefixtures("seats")
def test_a_table_has_a_header_and_signs(pando: Any) -> None:
    result = pando("query", "run", SEATS, "--limit", "1")
    assert result.stdout.splitlines() == ["   mid │ weightlevel", "+  m1 │ 0.5"]


def test_a_wrong_query_is_the_users_error(pando: Any) -> None:
    result = pando("query", "run", "SELECT nope FROM SeatSensor")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "line 1, column 8: nope" in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("query", "run", "SHOW TABLES"),
        ("query", "run", f"{SEATS}; {SEATS}"),
        ("query", "run", SEATS, "--for", "soon"),
        ("explain", SEATS, "--type", "none"),
        ("explain", f"{SEATS}; DROP VIEW FreeMachines"),
        ("query", "run", SEATS, "--format", "xml"),
        ("query", "show", "none"),
        ("query", "list", "--format", "csv"),
        ("gateway", "show", "none"),
        ("table", "describe", "none"),
        ("simulate", "sit", "none"),
    ],
)
def test_wrong_use_is_the_users_error_too(pando: Any, arguments: tuple[str, ...]) -> None:
    result = pando(*arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")


@pytest.mark.parametrize(
    "text", ["CREATE TABLE t (a INTEGER)", f"{SEATS}; CREATE TABLE t (a INTEGER)"]
)
def test_running_a_query_carries_out_nothing_else(pando: Any, coordinator: Any, text: str) -> None:
    names = {definition.name for definition in coordinator.definitions()}
    assert pando("query", "run", text).exit_code == 2
    assert pando("explain", f"{SEATS}; {text}").exit_code == 2
    assert {definition.name for definition in coordinator.definitions()} == names
    assert not coordinator.queries("session")


def test_a_limit_is_at_least_one(pando: Any) -> None:
    result = pando("query", "run", SEATS, "--limit", "0")
    assert result.exit_code == 2
    assert "--limit" in result.stderr


def test_why_a_query_waits_is_told_once(pando: Any, console: Any, coordinator: Any) -> None:
    def degrade() -> None:
        console.push("mine", (1, ("m1", 1.0)))  # waits until the query is there
        degraded = QueryStatus.DEGRADED
        for _ in range(2):
            console.do(lambda: coordinator.set_status("mine", degraded, "no such file x.csv"))

    timer = threading.Timer(0.4, degrade)
    timer.start()
    result = pando("query", "run", SEATS, "--name", "mine", "--for", "6s")
    timer.join()
    assert result.exit_code == 0
    assert result.stderr.count("warning: no such file x.csv") == 1


def test_a_query_that_fails_ends_with_its_reason(
    pando: Any, console: Any, coordinator: Any
) -> None:
    def fail() -> None:
        console.push("mine", (1, ("m1", 1.0)))
        failed = QueryStatus.FAILED
        console.do(lambda: coordinator.set_status("mine", failed, "recursion grew too large"))

    timer = threading.Timer(0.4, fail)
    timer.start()
    result = pando("query", "run", SEATS, "--name", "mine", "--for", "20s")
    timer.join()
    assert result.exit_code == 2
    assert "recursion grew too large" in result.stderr


def test_an_unreachable_console_is_explained() -> None:
    result = CliRunner().invoke(app, ["query", "list", "--console", "http://127.0.0.1:9"])
    assert result.exit_code == 2
    assert "pando up" in result.stderr


def test_the_consoles_own_defect_is_ours(pando: Any, coordinator: Any) -> None:
    def broken(_origin: Any = None) -> Any:
        raise RuntimeError("boom")

    coordinator.queries = broken
    assert pando("query", "list").exit_code == 1


def test_lists_are_json_arrays(pando: Any) -> None:
    queries = json.loads(pando("query", "list", "--format", "json").stdout)
    assert {"id", "name", "status", "rows", "text"} <= set(queries[0])
    assert all(query["origin"] == "map" for query in queries)
    gateways = json.loads(pando("gateway", "list", "--format", "json").stdout)
    assert [g["site"] for g in gateways] == ["gw-1", "gw-2", "gw-3"]
    for kind, name in (("source", "seatsensor"), ("table", "rooms"), ("view", "freemachines")):
        listed = json.loads(pando(kind, "list", "--format", "json").stdout)
        assert name in {d["name"] for d in listed}
        described = json.loads(pando(kind, "describe", name, "--format", "json").stdout)
        assert described["text"].upper().startswith("CREATE")


def test_lists_are_readable_tables(pando: Any) -> None:
    assert "gw-1" in pando("gateway", "list").stdout
    assert "motes" in pando("gateway", "show", "gw-1").stdout
    described = pando("source", "describe", "seatsensor").stdout
    assert re.search(r"weightlevel\s+│\s+DOUBLE", described)


def test_a_running_query_is_shown_followed_explained_and_stopped(
    pando: Any, console: Any, coordinator: Any
) -> None:
    asyncio.run(coordinator.execute(SEATS, name="mine"))
    console.push("mine", (1, ("m1", 0.5)))
    shown = json.loads(pando("query", "show", "mine", "--format", "json").stdout)
    assert shown["rows"] == [{"mid": "m1", "weightlevel": 0.5}]
    tail = pando("query", "tail", "mine", "--limit", "1", "--format", "json")
    assert objects(tail.stdout)[0]["row"] == {"mid": "m1", "weightlevel": 0.5}
    assert "Fragment" in pando("query", "explain", "mine").stdout
    assert pando("query", "explain", "mine", "--format", "dot").stdout.startswith("digraph")
    assert json.loads(pando("query", "explain", "mine", "--format", "json").stdout)
    assert "stopped" in pando("query", "stop", "mine").stdout
    assert pando("query", "show", "mine").exit_code == 2


def test_explain_prints_the_fragments(pando: Any) -> None:
    result = pando("explain", SEATS, "--type", "federated")
    assert (result.exit_code, result.stdout) == (0, "Fragment f0 [BASE: base] -> result\n")


def test_errors_of_explain_name_the_statements_own_place(pando: Any) -> None:
    result = pando("explain", "SELECT mid,\n  nope FROM SeatSensor")
    assert result.exit_code == 2
    assert "line 2, column 3: nope" in result.stderr


def test_simulation_reaches_the_gateway(pando: Any, coordinator: Any, site: Any) -> None:
    machine = next(iter(site.machines))
    assert machine in pando("simulate", "sit", machine).stdout
    assert coordinator.commands[0][2] == {"action": "sit", "mid": machine}


def test_a_closed_pipe_is_no_error(console: Any, coordinator: Any) -> None:
    coordinator.answers = lambda _text: [(f"m{n}", float(n)) for n in range(900)]
    command = [sys.executable, "-c", "from ui.cli.commands.http_commands import app; app()"]
    arguments = ["query", "run", SEATS, "--for", "20s", "--console", console.address]
    with subprocess.Popen(
        [*command, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        query = console.do(lambda: coordinator.queries("session")[0].id)
        for number in range(5):
            console.push(query, (1, ("late", float(number))))
        assert process.wait(30) == 0
        assert "Traceback" not in process.stderr.read()


# --- questions about rows -------------------------------------------------------------------------


@pytest.fixture
def reach(coordinator: Any, console: Any) -> str:
    """A running query over two links, one behind the other."""
    coordinator.base["link"] = [("a", "b", 1.0, 1.0, 0), ("b", "c", 2.0, 0.5, 0)]
    text = "SELECT src, dst FROM reachable"
    (started,) = asyncio.run(coordinator.execute(text, name="reach"))
    assert console.address
    return str(started.query.id)


def test_why_prints_what_a_row_rests_on(pando: Any, reach: str) -> None:
    result = pando("query", "why", reach, "a", "c")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "('a', 'c') stays while all of these base rows exist:",
        "  link('a', 'b', 1.0, 1.0)",
        "  link('b', 'c', 2.0, 0.5)",
    ]
    sure = pando("query", "why", "reach", "a", "c", "--confidence", "link.pdr", "--format", "json")
    assert objects(sure.stdout)[0]["confidence"]["probability"] == 0.5
    missing = pando("query", "why", reach, "c", "a")
    assert missing.stdout == "('c', 'a') is not in the result.\n"


@pytest.mark.usefixtures("reach")
def test_confidence_and_what_if_print_rows(pando: Any) -> None:
    listed = pando("query", "confidence", "reach", "link.pdr", "--limit", "2").stdout.splitlines()
    assert [line.split() for line in listed[1:3]] == [
        ["1.0000", "('a',", "'b')"],
        ["0.5000", "('a',", "'c')"],
    ]
    assert listed[3] == "2 of 3 rows; LIMIT n shows more."
    changed = pando("query", "what-if", "link", "a", "b")
    assert changed.stdout.splitlines()[:4] == [
        "Without link('a', 'b', 1.0, 1.0):",
        "query reach: 2 of 3 rows go, 0 come",
        "  - ('a', 'b')",
        "  - ('a', 'c')",
    ]
    lonely = pando("query", "what-if", "--node", "b")
    assert lonely.stdout.startswith("Without node b (2 base rows):\nquery reach: 3 of 3 rows go")


@pytest.mark.usefixtures("reach")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("why", "nothing", "a"), "there is no query 'nothing'"),
        (("why", "reach", "a"), "1 values for 2 columns"),
        (("what-if", "link", "z"), "no base row has these values, so nothing would change"),
        (("what-if",), "no deletion is given"),
        (("what-if", "--gateway", "gw-99"), "no gateway 'gw-99'"),
        (("confidence", "reach", "link.src"), "no numeric column"),
        (("why", "reach", "a", "c", "--format", "csv"), "--format"),
    ],
)
def test_wrong_questions_end_with_status_2(
    pando: Any, arguments: tuple[str, ...], said: str
) -> None:
    result = pando("query", *arguments)
    assert result.exit_code == 2
    assert said in result.stderr
