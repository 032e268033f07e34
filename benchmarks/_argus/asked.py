"""A query of a set."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest


@dataclass(frozen=True, slots=True)
class Asked:
    """A query that somebody registers.

    Attributes:
        category: Of the set; queries of different categories are registered in turns.
        text: In StreamSQL.
    """

    category: str
    text: str


def in_duckdb(text: str) -> str:
    """Return a text as DuckDB means it: there whole numbers are divided without rest by `//`."""
    return text.replace(" / ", " // ")


def select(
    values: Sequence[str], relations: Sequence[str], conditions: Sequence[str], rest: str = ""
) -> str:
    """Return the text of a query."""
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return f"SELECT {', '.join(values)} FROM {', '.join(relations)}{where}{rest}"


def in_turns(categories: Iterable[Iterable[Asked]]) -> Iterator[Asked]:
    """Yield a query of each category in turns, until all are through."""
    for turn in zip_longest(*categories):
        yield from (asked for asked in turn if asked is not None)
