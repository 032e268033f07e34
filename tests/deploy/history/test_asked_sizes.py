"""The process that says for EXPLAIN how much of the past is read: kept, ended, begun anew."""

import contextlib
import os
import pickle
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.history.asked_sizes import AskedSizes
from static_engine.lake.lake import Lake
from streamsql.algebra.operators import Plan
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.events import SourceEvent
from streamsql.history.past_plans import fixed
from tests.static_engine.lake.lake_rows import keep, lake_in
from tests.streamsql.from_text import bound_query, catalog_of

NOON = 20_000 * 86_400_000_000
pytestmark = pytest.mark.end_to_end

CATALOG = catalog_of("CREATE SOURCE door (room TEXT, ts TIMESTAMP)")
PLAN: Plan = fixed(bound_query("SELECT room FROM door FOR SYSTEM_TIME ALL", CATALOG).plan, NOON)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return lake_in(tmp_path)


@pytest.fixture
def asked(lake: Lake) -> Iterator[AskedSizes]:
    with contextlib.closing(AskedSizes(lake.settings, 60.0)) as made:
        yield made


def in_a_fork(asked: AskedSizes) -> list[str]:
    """Return what a forked process is told, which has no open file of ours, as EXPLAIN has none."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.closerange(3, writing)
        os.closerange(writing + 1, 1 << 16)
        os.write(writing, pickle.dumps(list(map(str, asked.sizes(PLAN)))))
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        content = pipe.read()
    os.waitpid(child, 0)
    found: list[str] = pickle.loads(content)  # noqa: S301  (of the fork)
    return found


def until_said(asked: AskedSizes, word: str) -> None:
    """Ask until the answer has a word in it; on a busy machine the process is not ready at once."""
    deadline = time.monotonic() + 60
    while not any(word in text for text in in_a_fork(asked)):
        assert time.monotonic() < deadline
        asked.get_ready()


def until_gone(asked: AskedSizes) -> None:
    deadline = time.monotonic() + 60
    while asked.process is not None:
        assert time.monotonic() < deadline
        time.sleep(0.01)  # time passes: a process ends


def test_one_process_answers_forks_as_the_lake_is_then_and_ends_with_the_console(
    asked: AskedSizes, lake: Lake
) -> None:
    asked.get_ready()
    assert asked.process is None  # who asks nothing of the past pays nothing
    assert in_a_fork(asked) == ["reads the past of door ALL: no files"]
    process = asked.process
    assert process is not None
    door = CATALOG.find("door")
    assert isinstance(door, SourceDefinition)
    keep(lake, door, [SourceEvent(("r1", NOON), NOON)])
    (text,) = in_a_fork(asked)
    assert text.startswith("reads the past of door ALL: at most 1 rows, ")
    asked.get_ready()
    assert asked.process == process
    running = asked._process
    assert running is not None
    assert running.stdin is not None
    running.stdin.close()  # as when the console is gone
    until_gone(asked)
    assert running.returncode == 0


def test_one_that_takes_too_long_is_ended_and_begins_anew(asked: AskedSizes, lake: Lake) -> None:
    asked._seconds = 1.0
    asked.get_ready()
    until_said(asked, "no files")
    first = asked.process
    with contextlib.closing(
        sqlite3.connect(lake.settings.catalog_url.partition("///")[2])
    ) as database:
        database.execute("BEGIN EXCLUSIVE")
        said = ["cannot read the past: the lake has not answered within 1 s; try again"]
        assert in_a_fork(asked) == said
        until_gone(asked)
        assert "try again" in str(asked.sizes(PLAN)[0])
        assert asked.sizes(PLAN) == ()  # of the same statement nobody waits again
        database.rollback()
    asked._seconds = 60.0
    assert in_a_fork(asked) == ["reads the past of door ALL: no files"]
    assert asked.process not in {None, first}


def test_a_folder_in_which_no_socket_can_be_made_is_said(
    asked: AskedSizes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path / ("x" * 100)
    deep.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    for _ in range(2):
        asked.get_ready()
        assert asked.process is None
        (text,) = map(str, asked.sizes(PLAN))
        assert text.startswith("cannot read the past: the lake was not asked: ")
    assert not list(deep.iterdir())


def test_before_it_is_ready_that_is_said(asked: AskedSizes) -> None:
    asked._seconds = 0.01
    asked.get_ready()
    (text,) = in_a_fork(asked)
    assert text.endswith("is still starting, or busy; try again in a few seconds")
    asked.close()
    assert "cannot read the past: the lake was not asked" in str(asked.sizes(PLAN)[0])
