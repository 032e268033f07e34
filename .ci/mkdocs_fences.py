"""A hook of MkDocs: its fences have no words for tests (`sql local`), which it cannot parse."""  # noqa: INP001

import re
from typing import Any

_WORDS = re.compile(r"^(```\w+)[ \t]+[^\n`]+$", re.MULTILINE)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Return a page's text with fences that name their language alone."""
    return _WORDS.sub(r"\1", markdown)
