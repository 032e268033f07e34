"""One Spark session for the whole run."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from static_engine.session import RunningSpark, SessionSettings, start_session


@pytest.fixture(scope="session")
def spark(request: pytest.FixtureRequest) -> Iterator[RunningSpark]:
    """Start Spark once; its class archive is kept in pytest's cache for the next run."""
    assert request.config.cache is not None
    folder = Path(request.config.cache.mkdir("spark"))
    running = start_session(SessionSettings(folder, "local[2]", "1g"), lambda _text: None)
    yield running
    running.stop()
