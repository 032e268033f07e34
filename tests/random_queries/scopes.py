"""What a query under construction can see, and text that oracles read in another form."""

import re
from dataclasses import dataclass, field
from random import Random

from tests.random_queries.schemas import Columns, Relation

_DUAL = re.compile(r"«([^«»¦]*)¦([^«»¦]*)(?:¦([^«»¦]*))?»")


def dual(ours: str, theirs: str, postgres: str | None = None) -> str:
    """Return text that reads differently in DuckDB, and perhaps in PostgreSQL."""
    third = "" if postgres is None else f"¦{postgres}"
    return f"«{ours}¦{theirs}{third}»"


def ours(text: str) -> str:
    """Return a text in StreamSQL."""
    return _DUAL.sub(lambda match: match[1], text)


def theirs(text: str) -> str:
    """Return a text as DuckDB is asked."""
    return _DUAL.sub(lambda match: match[2], text)


def postgres(text: str) -> str:
    """Return a text as PostgreSQL is asked, but for `postgres_dialect`."""
    return _DUAL.sub(lambda match: match[1] if match[3] is None else match[3], text)


@dataclass(frozen=True)
class Item:
    """One relation of a FROM clause."""

    alias: str
    columns: tuple[tuple[str, str], ...]


@dataclass
class Workshop:
    """What the pieces of one case share.

    Attributes:
        random: Source of choices.
        relations: All sources and tables.
        windows: Relations only DuckDB needs: name to text, `{now}` being the time.
        views: Names to columns of the views that have been defined.
        beyond: Why DuckDB cannot say it.
        counted: Logs that a window by count stands on.
        user_function: Name of a function of the user, of two doubles, if there is one.
        user_aggregate: Name of an aggregate of the user, over doubles, if there is one.
        reading: What sources and tables a view reads.
        still: Tables that do not change: the instants of a stream see them as they are when they
            are worked on.
        for_postgres: Whether only what PostgreSQL has is written.
    """

    random: Random
    relations: list[Relation]
    windows: dict[str, str] = field(default_factory=dict)
    views: dict[str, Columns] = field(default_factory=dict)
    beyond: set[str] = field(default_factory=set)
    counted: set[str] = field(default_factory=set)
    user_function: str = ""
    user_aggregate: str = ""
    reading: dict[str, frozenset[str]] = field(default_factory=dict)
    still: set[str] = field(default_factory=set)
    aliases: int = 0
    for_postgres: bool = False

    def alias(self) -> str:
        """Return a new name."""
        self.aliases += 1
        return f"q{self.aliases}"

    def chance(self, share: float) -> bool:
        """Decide."""
        return self.random.random() < share


def columns_of(items: list[Item], kind: str) -> list[str]:
    """Return the qualified columns of a type."""
    return [
        f"{item.alias}.{name}" if item.alias else name
        for item in items
        for name, k in item.columns
        if k == kind
    ]


def items_of(groups: list[str], known: dict[str, list[str]]) -> list[Item]:
    """Return what a subquery in HAVING may read of the query around it."""
    found: dict[str, list[tuple[str, str]]] = {}
    for kind, names in known.items():
        for name in dict.fromkeys(names):
            if name in groups:
                alias, _, column = name.rpartition(".")
                found.setdefault(alias, []).append((column, kind))
    return [Item(alias, tuple(columns)) for alias, columns in found.items()]
