"""Ordered state in small pieces, so that few rows are enough to split and merge them."""

from collections.abc import Iterator

import pytest

from stream_engine.state import ranked_blocks


@pytest.fixture(scope="module")
def short_blocks() -> Iterator[None]:
    """Blocks of a few items, so that small lists split."""
    before, ranked_blocks.LOAD = ranked_blocks.LOAD, 2
    yield
    ranked_blocks.LOAD = before
