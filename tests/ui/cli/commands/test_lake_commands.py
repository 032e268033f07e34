"""`pando lake`: status, jobs with progress, exports."""

import json
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from streamsql.errors import DeploymentError
from streamsql.wire.stored_tables.lake_messages import JobState, LakeJob, LakeTask
from tests.ui.kept_readings import NOON, temperature
from ui.cli.commands import lake_commands
from ui.cli.commands.lake_commands import lake_app


@pytest.fixture
def pando(console: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run a command of `pando lake` against the console."""
    console.coordinator.lake.tables = (temperature(),)
    monkeypatch.setattr(lake_commands, "_POLL_SECONDS", 0.0)

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(lake_app, [*arguments, "--console", console.address])

    return run


def test_status_lists_tables_and_jobs(pando: Any, console: Any) -> None:
    console.coordinator.lake.jobs = [
        LakeJob("job-1-1", "export", "temperature", JobState.FAILED, message="the disk is full")
    ]
    shown = pando("status").output
    for word in (
        "readings.temperature",
        "86400",
        "1.5 MB",
        "12 (11 small)",
        "30 days",
        "1 min, 1 h",
    ):
        assert word in shown
    assert "the disk is full" in shown
    assert json.loads(pando("status", "--format", "json").output)["workers"] == "Spark 4"


def test_a_job_is_followed_to_its_end(pando: Any, console: Any) -> None:
    done = pando("compact", "temperature")
    assert done.exit_code == 0
    assert "done: 9 files became 2" in done.output
    assert console.coordinator.lake.asked[0].task == LakeTask.COMPACT
    for task in ("expire", "replay"):
        assert "done" in pando(task).output
    detached = pando("expire", "--detach").output
    assert detached.startswith("job job-1-4; pando lake status")


def test_an_export_says_which_interval(pando: Any, console: Any) -> None:
    exported = pando("export", "temperature", "--since", "2026-10-28T12:00Z", "--format", "csv")
    assert exported.exit_code == 0
    asked = console.coordinator.lake.asked[0]
    assert (asked.table, asked.since, asked.until, asked.form) == ("temperature", NOON, None, "csv")
    assert pando("export", "temperature", "--format", "xlsx").exit_code == 2
    assert pando("export", "temperature", "--since", "soon").exit_code != 0


def test_what_is_wrong_is_said(pando: Any, console: Any) -> None:
    console.coordinator.lake.problem = DeploymentError("there is no table x", code="not_kept")
    refused = pando("compact", "x")
    assert refused.exit_code == 2
    assert "there is no table x" in refused.output
    assert "not_kept" in refused.output
