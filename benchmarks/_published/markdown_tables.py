"""Tables in Markdown."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Found = Mapping[str, Any]
"""The content of a file of figures."""


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |".replace("|  |", "| |") for line in lines)
