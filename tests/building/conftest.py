"""Fixtures of the site tests: the sample building, and real maps where they are at hand."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from building.model.site_model import Site
from building.sample.sample_building import sample_building


@pytest.fixture(scope="session")
def sample() -> Site:
    return sample_building()


@pytest.fixture(scope="session")
def shared_file() -> Callable[[str], Path]:
    """Return a real input file by its path under the shared data, or skip."""
    root = Path(__file__).resolve().parents[2]
    data = Path(os.environ.get("PANDO_SHARED_DATA", root.parent / "shared" / "data"))

    def find(name: str) -> Path:
        path = data / name
        if not path.is_file():
            pytest.skip(f"real input {name} is not at hand (set PANDO_SHARED_DATA)")
        return path

    return find
