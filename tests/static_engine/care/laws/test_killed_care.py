"""Care that is killed at any step loses no row, doubles none, and leaves no file behind."""

import os
import shutil
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from static_engine.care.compaction import compact
from static_engine.care.expiry import expire
from static_engine.care.workers import LocalWorkers
from static_engine.lake.lake import Lake
from tests.static_engine.care.dying_care import REMOVED
from tests.static_engine.care.test_compaction import filled, go_on, rows_of
from tests.static_engine.lake.lake_rows import lake_in

ROOT = Path(__file__).resolve().parents[4]
PATIENCE = 100.0
NOTHING = timedelta(0)


def killed(folder: Path, moment: str, time: int) -> None:
    """Let care of a lake begin in a process of its own, which is killed at a moment."""
    command = [sys.executable, "-m", "tests.static_engine.care.dying_care"]
    done = subprocess.run(
        [*command, str(folder), moment, str(time)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()


def all_files(folder: Path) -> set[str]:
    return {str(path) for path in (folder / "lake").rglob("*") if path.is_file()}


def data_files(folder: Path) -> set[str]:
    return {path for path in all_files(folder) if path.endswith(".parquet")}


def clean(lake: Lake, folder: Path) -> None:
    """Expire all that may go; check that nothing else is left than what is read."""
    expire(lake.table("heat"), datetime.now(UTC), go_on, kept=NOTHING, spared=NOTHING)
    assert data_files(folder) == planned(lake)


def planned(lake: Lake) -> set[str]:
    return {path.removeprefix("file://") for path in lake.plan("heat").paths}


@pytest.mark.end_to_end
@pytest.mark.parametrize(
    ("moment", "time", "files"),
    [  # nine files: four of a day become one, then five of the next
        ("half of a file is written", 1, 9),
        ("a file is written", 2, 6),
        ("a commit is prepared", 2, 6),
        ("a commit is done", 2, 2),
    ],
)
def test_a_killed_compaction_changes_no_row(
    moment: str, time: int, files: int, tmp_path: Path
) -> None:
    before = rows_of(filled(tmp_path))
    assert len(before) == 27
    killed(tmp_path, moment, time)
    lake = lake_in(tmp_path)
    assert rows_of(lake) == before
    assert len(planned(lake)) == files
    assert data_files(tmp_path) > planned(lake)
    compact(lake.table("heat"), LocalWorkers(), go_on, 2)
    assert len(planned(lake)) == 2
    clean(lake, tmp_path)
    assert rows_of(lake) == before


@pytest.mark.end_to_end
def test_a_killed_expiry_is_taken_up_again(tmp_path: Path) -> None:
    lake = filled(tmp_path)
    before = rows_of(lake)
    compact(lake.table("heat"), LocalWorkers(), go_on, 2)
    shutil.copy(next(iter(planned(lake))), tmp_path / "lake/readings/heat/data/nobodys.parquet")
    count = len(all_files(tmp_path))
    killed(tmp_path, REMOVED, 3)
    lake = lake_in(tmp_path)
    assert rows_of(lake) == before
    assert planned(lake) <= data_files(tmp_path)
    assert len(all_files(tmp_path)) < count
    clean(lake, tmp_path)
    assert rows_of(lake) == before
