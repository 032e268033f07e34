"""Logs of services: bounded, rotated, read from the end and followed."""

from pathlib import Path

import pytest

from deploy.local import service_logs
from deploy.local.service_logs import ServiceLogs, last_lines, log_file, new_lines
from streamsql.errors import DeploymentError


def test_the_newest_lines_are_read_over_rotated_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service_logs, "MAX_BYTES", 1_000)
    logs = ServiceLogs(tmp_path / "logs")
    for number in range(1_000):
        logs.write("gw-1", f"line {number}")
    logs.close()
    folder = tmp_path / "logs"
    assert last_lines(folder, "gw-1", 200) == [f"line {n}" for n in range(800, 1_000)]
    files = list(folder.iterdir())
    assert len(files) == 1 + service_logs.OLDER_FILES
    assert all(file.stat().st_size <= 1_000 for file in files)
    assert folder.stat().st_mode & 0o077 == 0


def test_a_line_of_any_text_is_one_line(tmp_path: Path) -> None:
    logs = ServiceLogs(tmp_path)
    for line in ("100 % of %s {x}", "é\udcff", ""):
        logs.write("gw-1", line)
    logs.close()
    assert last_lines(tmp_path, "gw-1", 9) == ["100 % of %s {x}", "é?", ""]


def test_lines_are_followed_over_a_rotation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service_logs, "MAX_BYTES", 60)
    logs = ServiceLogs(tmp_path)
    logs.write("gw-1", "before")
    lines = new_lines(tmp_path, "gw-1")
    assert next(lines) is None
    for number in range(12):
        logs.write("gw-1", f"line {number}")
        found = next(lines)
        while found is None:
            found = next(lines)
        assert found == f"line {number}"
    assert next(lines) is None
    logs.close()


def test_half_a_line_waits_for_its_end(tmp_path: Path) -> None:
    path = log_file(tmp_path, "gw-1")
    path.write_text("")
    lines = new_lines(tmp_path, "gw-1")
    assert next(lines) is None
    with path.open("a") as file:
        file.write("half")
        file.flush()
        assert next(lines) is None
        file.write(" and half\n")
        file.flush()
    assert next(lines) == "half and half"


def test_an_unknown_service_is_refused_with_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(DeploymentError, match="start a federation"):
        last_lines(tmp_path, "gw-1", 5)
    log_file(tmp_path, "base").write_text("x\n")
    with pytest.raises(DeploymentError, match="one of: base"):
        last_lines(tmp_path, "gw-1", 5)
    with pytest.raises(DeploymentError, match="--lines"):
        last_lines(tmp_path, "base", -1)


def test_a_folder_that_cannot_be_written_stops_nobody(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    logs = ServiceLogs(tmp_path / "file")
    logs.write("gw-1", "line")
    assert "gw-1" in logs.problem
