"""Folders in memory: these tests change thousands of small files, and each change waits for a disk.

What a disk keeps after a crash is none of what they test; that a file is synced at all is.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

MEMORY = Path("/dev/shm")  # noqa: S108 - absent but on Linux; then a disk will do


@pytest.fixture(scope="module", autouse=True)
def in_memory() -> Iterator[None]:
    """Put what `tempfile` makes into memory while a module's tests run."""
    place = MEMORY if MEMORY.is_dir() else None
    with (
        tempfile.TemporaryDirectory(dir=place) as folder,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(tempfile, "tempdir", folder)
        yield


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """Return a folder of the test's own."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)
