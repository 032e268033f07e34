"""A running query keeps its columns: `*` means those that there were when it started."""

import re
from dataclasses import replace

from streamsql.algebra.expressions import Column
from streamsql.algebra.operators import Distinct, Plan, Project, SetOperation, SortKey
from streamsql.binder.names.bound_query import BoundQuery
from streamsql.data.schema import Schema

_NUMBERED = re.compile(r"(.*)_\d+", re.DOTALL)


def with_columns(bound: BoundQuery, wanted: Schema) -> BoundQuery | None:
    """Return a query with the columns that it had before; None where it cannot have them.

    Args:
        bound: Bound with the definitions of now, so that `*` may stand for more columns.
        wanted: The columns it had: one that is missing, doubled or of another type cannot be had.
    """
    if bound.schema == wanted:
        return bound
    positions = _positions(bound.schema, wanted)
    if positions is None or isinstance(bound.plan, SetOperation):
        return None
    places = {position: place for place, position in enumerate(positions)}
    if any(key.position not in places for key in bound.order):
        return None
    order = tuple(
        SortKey(places[key.position], key.descending, key.nulls_first) for key in bound.order
    )
    plan = _narrowed(bound.plan, positions)
    return replace(bound, plan=plan, schema=plan.schema, order=order)


def _positions(schema: Schema, wanted: Schema) -> tuple[int, ...] | None:
    """Return where the wanted columns stand, or None where one does not stand there once."""
    if len(set(wanted.names)) < len(wanted):
        return None
    # The binder numbers columns of equal names: one more of them may have taken a wanted name.
    more = set(schema.names) - set(wanted.names)
    if any(_NUMBERED.fullmatch(name) and _unnumbered(name) in wanted.names for name in more):
        return None
    found = []
    for field in wanted.fields:
        places = [place for place, known in enumerate(schema.fields) if known.name == field.name]
        if len(places) != 1 or schema.dtypes[places[0]] != field.dtype:
            return None
        found.append(places[0])
    return tuple(found)


def _unnumbered(name: str) -> str:
    return _NUMBERED.sub(r"\1", name)


def _narrowed(plan: Plan, positions: tuple[int, ...]) -> Plan:
    if isinstance(plan, Distinct):  # rows that differ in a new column only are one row
        return Distinct(_narrowed(plan.input, positions))
    fields = plan.schema.fields
    columns = tuple(Column(p, fields[p].name, fields[p].dtype) for p in positions)
    return Project(plan, columns, tuple(fields[p].name for p in positions))
