"""A query that sequences register, in StreamSQL and for DuckDB."""

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Template:
    """A query.

    Attributes:
        text: StreamSQL.
        plain: The same for DuckDB.
    """

    text: str
    plain: str


def same(*texts: str) -> Iterator[Template]:
    """Yield queries whose texts are the same for both."""
    for text in texts:
        yield Template(text, text)
