"""The building's catalog, which unmarked examples of the documentation are bound against."""

from collections.abc import Callable
from pathlib import Path

import pytest

from streamsql.catalog.catalog import Catalog
from tests.streamsql.from_text import catalog_of

SCHEMA = Path(__file__).resolve().parents[2] / "deploy" / "schema" / "building.sql"


@pytest.fixture
def building() -> Catalog:
    """Return a fresh catalog with the building's definitions and the library."""
    return catalog_of(SCHEMA.read_text(encoding="utf-8"), library=True)


@pytest.fixture
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Path]:
    """Return a function that moves into an empty folder."""

    def move() -> Path:
        monkeypatch.chdir(tmp_path)
        return tmp_path

    return move
