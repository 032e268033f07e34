"""The browser that drives pages in tests."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@contextmanager
def headless_browser() -> Iterator[Browser]:
    """Run a headless Chromium."""
    if not CHROMIUM.exists():
        pytest.fail("browser tests need Debian's chromium: apt-get install chromium")
    with (
        sync_playwright() as playwright,
        closing(playwright.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)) as browser,
    ):
        yield browser
