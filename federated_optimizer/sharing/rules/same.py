"""Rows that are there as they are wanted, in perhaps another order of columns.

Sound because plans of one form have the same rows, and columns of one name within it the same
values (`sharing.canonical_plan`).
"""

from federated_optimizer.sharing.forms.canonical_plan import canonical_plan
from streamsql.algebra.expressions import Column
from streamsql.algebra.operators import Plan, Project


def answer(wanted: Plan, offered: Plan, leaf: Plan) -> Plan | None:
    """Return a leaf with the columns that are wanted; None: its rows or columns are others."""
    ours, theirs = canonical_plan(wanted), canonical_plan(offered)
    if ours.form != theirs.form:
        return None
    places = {name: place for place, name in reversed(list(enumerate(theirs.columns)))}
    if not all(name in places for name in ours.columns):
        return None
    return shown(leaf, tuple(places[name] for name in ours.columns), wanted)


def shown(leaf: Plan, places: tuple[int, ...], wanted: Plan) -> Plan:
    """Return some columns of a leaf under the names that are wanted."""
    schema = wanted.schema
    if places == tuple(range(len(leaf.schema))) and leaf.schema == schema:
        return leaf
    columns = tuple(
        Column(place, leaf.schema.names[place], field.dtype)
        for place, field in zip(places, schema.fields, strict=True)
    )
    return Project(leaf, columns, schema.names)
