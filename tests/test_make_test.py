"""`make test` names what passed only the second time, and shows both suites however it ends.

The Makefile is run with a program that stands for pytest.
"""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

MAKEFILE = Path(__file__).parent.parent / "Makefile"
# These tests may themselves run below `make`, which would tell the one inside of its level.
OUTSIDE = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
SECONDS = 20.0
PYTEST = """#!/bin/sh
case "$*" in
  *--last-failed*)
    for n in $(seq $AGAIN); do echo "tests/test_a.py::test_$n[a b] PASSED [ 10%]"; done
    exit $SECOND;;
  *"-m not"*) echo "said by fast tests"; [ "$HANG" = no ] || sleep 60; exit $FIRST;;
  *) [ "$HANG" = no ] || { touch hanging; sleep 60; }; echo "said by services"; exit 0;;
esac
"""


@pytest.fixture
def started(tmp_path: Path) -> Path:
    """A folder with the Makefile, and an environment that is ready."""
    shutil.copy(MAKEFILE, tmp_path)
    (tmp_path / "requirements").mkdir()
    for name in ("requirements/base.txt", "requirements/dev.txt", "pyproject.toml"):
        (tmp_path / name).touch()
    (tmp_path / ".venv/bin").mkdir(parents=True)
    program = tmp_path / ".venv/bin/pytest"
    program.write_text(PYTEST)
    program.chmod(0o755)
    for name in (".pando-runtime", ".pando-development"):
        (tmp_path / ".venv" / name).touch()
    return tmp_path


def run(folder: Path, *, first: int, second: int, again: int) -> tuple[int, list[str]]:
    """Return exit status and lines of `make test`."""
    said = {"FIRST": str(first), "SECOND": str(second), "AGAIN": str(again), "HANG": "no"}
    done = subprocess.run(
        ["make", "test"],
        cwd=folder,
        env=OUTSIDE | said,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    return done.returncode, done.stdout.splitlines()


def test_what_passes_at_once_is_not_told(started: Path) -> None:
    status, lines = run(started, first=0, second=0, again=0)
    assert status == 0
    assert lines[-1] == "said by fast tests"
    assert not any("second time" in line for line in lines)


def test_a_dry_run_touches_nothing_of_a_run_beside_it(started: Path) -> None:
    (started / "build").mkdir()
    said = started / "build" / "test-fast.txt"
    said.write_text("said by a run beside it")
    subprocess.run(
        ["make", "--dry-run", "test"], cwd=started, env=OUTSIDE, check=True, capture_output=True
    )
    assert said.read_text() == "said by a run beside it"


@pytest.mark.parametrize(("again", "failed"), [(2, False), (20, False), (21, True)])
def test_what_passed_the_second_time_is_told_last_and_may_be_few(
    started: Path, again: int, failed: bool
) -> None:
    status, lines = run(started, first=1, second=0, again=again)
    names = [f"tests/test_a.py::test_{n}[a b]" for n in range(1, again + 1)]
    told = [f"==> passed only the second time: {again}", *names]
    too_many = ["==> failed: more than 20 passed only the second time"] if failed else []
    assert lines[-len(told) - len(too_many) :] == told + too_many
    assert (status != 0) == failed


def test_what_fails_twice_fails(started: Path) -> None:
    status, _ = run(started, first=1, second=1, again=1)
    assert status != 0


def test_a_run_that_is_interrupted_shows_the_output_of_both(started: Path) -> None:
    said = {"FIRST": "0", "SECOND": "0", "AGAIN": "0", "HANG": "yes"}
    with (started / "out").open("wb") as out:
        made = subprocess.Popen(
            ["make", "test"], cwd=started, env=OUTSIDE | said, stdout=out, start_new_session=True
        )
        fast, deadline = started / "build/test-fast.txt", time.monotonic() + SECONDS
        while not ((started / "hanging").exists() and fast.exists() and fast.stat().st_size):
            assert time.monotonic() < deadline
            time.sleep(0.02)  # time passes: another process writes
        os.killpg(made.pid, signal.SIGTERM)
        assert made.wait(SECONDS) != 0
    deadline = time.monotonic() + SECONDS
    while "said by fast tests" not in (started / "out").read_text():
        assert time.monotonic() < deadline
        time.sleep(0.02)  # time passes: the shell of the recipe may end after make
