"""`pando trial`: queries and alarms tried on the past."""

from dataclasses import replace
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from federated_optimizer.alarm_life_cycle import AlarmState
from federated_optimizer.coordinator.contract.history_model import PastChange
from tests.ui.api.resources.test_history_routes import INFO, NOON
from ui.cli.commands.history_commands import trial_app


@pytest.fixture
def pando(console: Any) -> Any:
    """Run a command of `pando trial` against the console."""

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(trial_app, [*arguments, "--console", console.address])

    return run


DONE = replace(INFO, done=True, at=INFO.until)


def test_a_trial_is_followed_to_its_end(pando: Any, console: Any) -> None:
    changes = [
        PastChange(NOON, 1, ("r1", None)),
        PastChange(NOON + 2_000_000, -1, ("r1", None)),
    ]
    console.coordinator.past.put(replace(DONE, alarm=""), *changes)
    result = pando("follow", "5f2c")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[1].split() == ["2026-06-01T10:00:00Z", "+1", "r1", "│", "NULL"]
    assert lines[2].split()[:2] == ["2026-06-01T10:00:02Z", "-1"]
    assert "1,000 readings in 0.5 s (2,000/s)" in lines[3]
    assert "note: rows of Machines are those that are there now" in result.output


def test_of_an_alarm_its_own_changes_are_printed(pando: Any, console: Any) -> None:
    changes = [
        PastChange(NOON, 1, ("r1", None)),
        PastChange(NOON, 0, ("r1", None), AlarmState.RAISED),
        PastChange(NOON + 1, 0, ("r1", None), AlarmState.CLEARED),
    ]
    console.coordinator.past.put(DONE, *changes)
    result = pando("follow", "5f2c", "--format", "csv")
    rows = [line for line in result.stdout.splitlines() if line]
    assert rows == [
        "ts,diff,room,since",
        "2026-06-01T10:00:00Z,raised,r1,",
        "2026-06-01T10:00:00.000001Z,cleared,r1,",
    ]


def test_how_a_trial_failed_is_the_error_of_the_command(pando: Any, console: Any) -> None:
    console.coordinator.past.put(replace(DONE, problem="the disk is gone", hint="look at it"))
    result = pando("follow", "5f2c")
    assert result.exit_code != 0
    assert "the disk is gone" in result.output


def test_trials_are_listed_and_stopped(pando: Any, console: Any) -> None:
    console.coordinator.past.put(INFO)
    assert "50%" in pando("list").stdout
    assert "ended: it was stopped" in pando("stop", "5f2c").stdout
