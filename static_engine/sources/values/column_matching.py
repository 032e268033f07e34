"""Declared columns against the ones a file or database has."""

import difflib
from collections.abc import Sequence

from static_engine.sources.table_errors import TableError
from streamsql.catalog.definitions import SourceDefinition

_SHOWN = 30


def match_columns(
    definition: SourceDefinition, found: Sequence[str], where: str
) -> tuple[int, ...]:
    """Return the position in the file of every declared column; others are ignored.

    Names match without regard to case, as everywhere in StreamSQL.

    Raises:
        TableError: A declared column is missing, or two columns of the file fit it.
    """
    folded = [name.strip().lower() for name in found]
    positions: list[int] = []
    missing: list[str] = []
    for name in definition.schema.names:
        count = folded.count(name.lower())
        if count > 1:
            raise TableError(f"table {definition.name}: {where} has {count} columns {name!r}")
        if count:
            positions.append(folded.index(name.lower()))
        else:
            missing.append(name)
    if missing:
        declared = {name.lower() for name in definition.schema.names}
        spare = [name for name in found if name.strip().lower() not in declared]
        raise TableError(
            f"table {definition.name}: {where} has no column {', '.join(missing)}; "
            f"it has {_listed(found)}, declared are {_listed(definition.schema.names)}",
            hint=_suggestion(missing, spare),
        )
    return tuple(positions)


def _suggestion(missing: list[str], spare: list[str]) -> str:
    if len(missing) == len(spare) == 1:
        return f"was {missing[0]} renamed to {spare[0]}?"
    by_folded = {name.strip().lower(): name for name in spare}
    renamed = []
    for name in missing:
        close = difflib.get_close_matches(name.lower(), by_folded, n=1)
        if close:
            renamed.append(f"was {name} renamed to {by_folded[close[0]]}?")
    return " ".join(renamed) or "correct the file, or drop the table and declare it again"


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(f"{name:.60}" for name in names[:_SHOWN]) + more
