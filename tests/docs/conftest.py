"""The building's catalog, which unmarked examples of the documentation are bound against."""

from collections.abc import Callable
from pathlib import Path

import pytest

from streamsql.binder import define
from streamsql.catalog.catalog import Catalog
from streamsql.library import library_views
from streamsql.syntax import CreateSource, CreateView, parse_script

SCHEMA = Path(__file__).resolve().parents[2] / "deploy" / "schema" / "building.sql"


@pytest.fixture
def building() -> Catalog:
    """Return a fresh catalog with the building's definitions and the library."""
    catalog = Catalog(library_views())
    for statement in parse_script(SCHEMA.read_text(encoding="utf-8")):
        assert isinstance(statement, CreateSource | CreateView)
        catalog.define(define(statement, catalog), replace=True)
    return catalog


@pytest.fixture
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Path]:
    """Return a function that moves into an empty folder."""

    def move() -> Path:
        monkeypatch.chdir(tmp_path)
        return tmp_path

    return move
