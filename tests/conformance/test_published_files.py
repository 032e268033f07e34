"""SQLite's own sqllogictest files on our engines: fetched by hash, a sample of every file run.

`PANDO_SQLLOGICTEST_QUERIES` is how many queries of each file are run: every fifth from the start.
"""

import contextlib
import hashlib
import io
import os
import sys
import tarfile
from pathlib import Path

import pytest

from deploy.session import LocalSession
from tests.conformance.logic_tests import Report, run
from tests.conformance.published_files import FOLDER, NotReachedError, fetched, unpacked
from tests.static_engine.children import ends

QUERIES = int(os.environ.get("PANDO_SQLLOGICTEST_QUERIES", "20"))
EVERY = 5
FILES = 29
LARGE_FILES = 17
"""Those that have as many queries as are run of a file."""
LEAST_SHARE = 0.9
"""Of their queries, how many must be answered; the others use what StreamSQL has not."""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    try:
        return fetched(tmp_path_factory.mktemp("published"))
    except NotReachedError as error:
        pytest.skip(f"the published files cannot be fetched: {error}")


@pytest.mark.published
@pytest.mark.timeout(900)
@pytest.mark.parametrize("engine", ["reference", "stream"])
def test_published_queries_give_the_published_rows(
    files: list[Path], engine: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert len(files) == FILES
    report = Report()
    for file in files:
        with contextlib.closing(LocalSession(engine)) as session:
            run(file, session, report, family="sqlite", most=QUERIES, every=EVERY)
    with capsys.disabled():
        sys.stdout.write(f"\n{engine}: {len(files)} files: {report}\n")
    assert not report.differing
    assert report.queries >= LEAST_SHARE * LARGE_FILES * QUERIES


def _archive(folder: Path, *members: tuple[str, bytes]) -> Path:
    target = folder / "package.tgz"
    with tarfile.open(target, "w:gz") as tar:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return target


def test_another_archive_is_refused(tmp_path: Path) -> None:
    archive = _archive(tmp_path, (FOLDER + "a.test", b"halt\n"))
    with pytest.raises(ValueError, match="has the hash"):
        unpacked(archive, tmp_path)


def test_an_archive_that_was_cut_on_its_way_was_not_fetched(tmp_path: Path) -> None:
    archive = _archive(tmp_path, (FOLDER + "a.test", b"halt\n" * 1000))
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    whole = archive.read_bytes()
    for length in (0, 5, len(whole) // 2, len(whole) - 1):
        archive.write_bytes(whole[:length])
        with pytest.raises(NotReachedError, match="was cut"):
            unpacked(archive, tmp_path, digest)
    archive.write_bytes(b"<html>busy</html>")
    with pytest.raises(ValueError, match="has the hash"):
        unpacked(archive, tmp_path, digest)


def test_only_test_files_are_unpacked(tmp_path: Path) -> None:
    archive = _archive(
        tmp_path,
        (FOLDER + "one/b.test", b"halt\n"),
        (FOLDER + "a.test", b"halt\n"),
        (FOLDER + "../../away.test", b"halt\n"),
        (FOLDER + "run.js", b"exit()\n"),
        ("package/other.test", b"halt\n"),
    )
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    found = unpacked(archive, tmp_path, digest)
    assert [file.relative_to(tmp_path).as_posix() for file in found] == ["a.test", "one/b.test"]
    assert {path.name for path in tmp_path.rglob("*.*")} == {"a.test", "b.test", "package.tgz"}


def test_without_npm_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NotReachedError, match="no npm"):
        fetched(tmp_path)


def test_a_registry_that_does_not_answer_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    npm = tmp_path / "npm"
    npm.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    npm.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(NotReachedError, match="exit 1"):
        fetched(tmp_path)


def test_a_registry_that_never_ends_is_given_up_with_all_its_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    npm = tmp_path / "bin" / "npm"
    # It has begun to write the package, and its child outlives it unless it is ended, too.
    npm.write_text("#!/bin/sh\necho half > a.tgz\nsleep 600 &\necho $! > child\nwait\n")
    npm.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    with pytest.raises(NotReachedError, match="in 3 s"):
        fetched(tmp_path, seconds=3.0)
    assert ends(int((tmp_path / "child").read_text()))
