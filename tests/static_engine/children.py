"""Processes that start Spark, so that tests can end them in every way."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SECONDS = 180.0
"""That a JVM may take to end after writing its class archive, on a machine that does much else."""
ARCHIVES = "spark-classes-*"

_STARTS = """
import sys, time
from pathlib import Path
from static_engine.spark.spark_session import SessionSettings, start_session

spark = start_session(SessionSettings(Path(sys.argv[1]), "local[1]", "512m"), print)
print("jvm", spark.jvm_pid, flush=True)
if sys.argv[2] == "stop":
    spark.stop()
    print("stopped", flush=True)
time.sleep(600)
"""


@contextmanager
def spark_child(folder: Path, then: str) -> "Iterator[tuple[subprocess.Popen[str], list[str]]]":
    """Run a process that starts Spark; yields it and what it said so far.

    Args:
        folder: Its data directory.
        then: "stop" to stop Spark and stay, "sleep" to stay with Spark.
    """
    child = subprocess.Popen(
        [sys.executable, "-c", _STARTS, str(folder), then],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    )
    assert child.stdout is not None
    last = "stopped" if then == "stop" else "jvm "
    with child, child.stdout:
        try:
            said: list[str] = []
            for line in iter(child.stdout.readline, ""):
                said.append(line.strip())
                if line.startswith(last):
                    break
            yield child, said
        finally:
            child.kill()


def jvm_of(said: list[str]) -> int:
    """Return the process id of the JVM that a child has told."""
    return next(int(line.split()[1]) for line in said if line.startswith("jvm "))


def runs(pid: int) -> bool:
    """Whether a process, of whomever, still runs."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"  # nobody waits for it here, but it has ended


def ends(pid: int) -> bool:
    """Wait for a process's end; return whether it came."""
    deadline = time.monotonic() + SECONDS
    while runs(pid) and time.monotonic() < deadline:
        time.sleep(0.1)
    return not runs(pid)


def lend_archive(archive: Path, folder: Path) -> Path:
    """Give a data directory the archive of another; return the directory.

    Without it the first JVM of a directory takes ten seconds to write one as it ends.
    """
    folder.mkdir(exist_ok=True)
    for file in archive.glob(ARCHIVES):
        (folder / file.name).symlink_to(file)
    return folder
