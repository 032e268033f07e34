"""One Spark session for the whole run, and one archive of classes for all other JVMs."""

import fcntl
from collections.abc import Iterator
from pathlib import Path

import pytest

from static_engine.spark.java import find_java
from static_engine.spark.spark_jvm import archive_name
from static_engine.spark.spark_session import RunningSpark, SessionSettings, start_session
from tests.static_engine.children import ARCHIVES, ends, jvm_of, spark_child


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningSpark]:
    """Start Spark once; it leaves no class archive, which takes longer to write than it saves."""
    folder = tmp_path_factory.mktemp("spark")
    settings = SessionSettings(folder, "local[2]", "1g", archive=False)
    running = start_session(settings, lambda _text: None)
    yield running
    running.stop()


@pytest.fixture(scope="session")
def class_archive(request: pytest.FixtureRequest) -> Path:
    """A folder with a class archive of this Java and Spark, kept in pytest's cache.

    Writing one may take longer than a JVM has whose process was killed.
    """
    assert request.config.cache is not None
    folder = Path(request.config.cache.mkdir("spark-class-archive")) / archive_name(find_java())
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not list(folder.glob(ARCHIVES)):
            with spark_child(folder, "stop") as (_child, said):
                assert ends(jvm_of(said))
            assert list(folder.glob(ARCHIVES))
    return folder
