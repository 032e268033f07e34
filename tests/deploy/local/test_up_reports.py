"""What `pando up` prints: lines for people, or one JSON object a line."""

import json
import os
import subprocess
import sys

import pytest

from deploy.local.up_reports import Reporter

TALK = """
import sys
from deploy.local.up_reports import Reporter
reporter = Reporter(sys.argv[1])
for _ in range(100_000):
    reporter.event("starting", "x" * 100)
    if reporter.gone:
        print("gone", file=sys.stderr)
        raise SystemExit(0)
raise SystemExit(1)
"""


def test_every_line_is_json(capsys: pytest.CaptureFixture[str]) -> None:
    reporter = Reporter("json")
    reporter.event("starting", "starting gw-1", service="gw-1")
    reporter.log("gw-1", '[red]größe[/] "quoted" \x1b[31m')
    reporter.ready("http://127.0.0.1:1", services={"gw-1": 7})
    reporter.error("it failed\nhint: do it", code="deployment_error")
    output = capsys.readouterr()
    lines = [json.loads(line) for line in output.out.splitlines()]
    assert [line["event"] for line in lines] == ["starting", "log", "ready", "error"]
    assert lines[0]["service"] == "gw-1"
    assert lines[1]["line"] == '[red]größe[/] "quoted" \x1b[31m'
    ready = lines[2]
    assert ready["ready"] is True
    assert ready["console"] == "http://127.0.0.1:1"
    assert ready["services"] == {"gw-1": 7}
    assert all(line["seconds"] >= 0 for line in lines if line["event"] != "log")
    assert lines[3]["code"] == "deployment_error"
    assert output.err == "error: it failed\nhint: do it\n"


def test_people_see_labelled_lines_without_markup(capsys: pytest.CaptureFixture[str]) -> None:
    reporter = Reporter("table")
    reporter.event("starting", "starting [gw-1]")
    reporter.log("gw-1", "INFO [bold]query q1[/] installed")
    reporter.event("died", "gw-1 was killed")
    reporter.ready("http://127.0.0.1:1")
    output = capsys.readouterr()
    assert "starting [gw-1]" in output.out
    assert "     gw-1 │ INFO [bold]query q1[/] installed" in output.out
    assert "Map      http://127.0.0.1:1/" in output.out
    assert "[/]" not in output.out.replace("q1[/]", "")
    assert output.err == ""


def test_errors_go_to_standard_error_only(capsys: pytest.CaptureFixture[str]) -> None:
    Reporter("table").error("port 1 is in use")
    output = capsys.readouterr()
    assert (output.out, output.err) == ("", "error: port 1 is in use\n")


@pytest.mark.parametrize("form", ["json", "table"])
def test_a_closed_pipe_is_noticed(form: str) -> None:
    reading, writing = os.pipe()
    command = [sys.executable, "-c", TALK, form]
    with subprocess.Popen(command, stdout=writing, stderr=subprocess.PIPE, text=True) as talker:
        os.close(writing)
        os.read(reading, 10)
        os.close(reading)
        _, said = talker.communicate(timeout=30)
    assert (talker.returncode, said) == (0, "gone\n")
