"""Joins of a stream with a stored table by keys: what travels, and where it is not done.

The keys of the stream go to the static engine, which answers with what the join needs of these keys
only. `federated_optimizer.cutting.keyed_joins` says what becomes of it at the base.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from federated_optimizer.alternatives.method import Refused
from federated_optimizer.alternatives.pieces import Piece, StaticPiece
from federated_optimizer.alternatives.words import join_words, names_text
from federated_optimizer.network.topology import Topology
from streamsql.algebra.expressions import Call, Column, Expression
from streamsql.algebra.operators import (
    AsOfJoin,
    Distinct,
    Filter,
    Join,
    JoinKind,
    Plan,
    Project,
    SetOperation,
)
from streamsql.data.types import DataType


@dataclass(frozen=True, slots=True)
class Sides:
    """A join as the stream's side and the table's.

    Attributes:
        stream_keys: Positions in the stream's rows.
        table_keys: Positions in the table's rows.
        table_first: Whether the table is the left side.
    """

    stream: Piece
    table: StaticPiece
    stream_plan: Plan
    stream_keys: tuple[int, ...]
    table_keys: tuple[int, ...]
    table_first: bool


def sides_of(
    plan: Join | AsOfJoin | SetOperation, left: Piece, right: Piece, topology: Topology
) -> Sides | Refused | None:
    """Return the sides of a join by keys, or why it is not done so; None: no side is a table."""
    is_left, is_right = isinstance(left, StaticPiece), isinstance(right, StaticPiece)
    if is_left == is_right:
        return None
    table = left if isinstance(left, StaticPiece) else right
    assert isinstance(table, StaticPiece)  # noqa: S101  (one of them is)
    reason = _refused(plan, table, topology, table_first=is_left)
    if reason or not isinstance(plan, Join):
        return Refused(f"{join_words(plan)} by keys: {reason}")
    left_keys, right_keys = (tuple(pair[side] for pair in plan.keys) for side in (0, 1))
    if is_left:
        return Sides(right, table, plan.right, right_keys, left_keys, table_first=True)
    return Sides(left, table, plan.left, left_keys, right_keys, table_first=False)


def _refused(
    plan: Join | AsOfJoin | SetOperation,
    table: StaticPiece,
    topology: Topology,
    *,
    table_first: bool,
) -> str:
    if not isinstance(plan, Join):
        return "only joins by equal columns ask for keys"
    if not plan.keys:
        return "it compares no columns by ="
    if table.site != topology.static:
        return f"{names_text(table.tables)} is kept by the coordinator, which is asked for no keys"
    shows_all = plan.kind not in (JoinKind.INNER, JoinKind.SEMI)
    if plan.kind == JoinKind.FULL or (table_first and shows_all):
        return f"it shows rows of {names_text(table.tables)} that no key asks for"
    if shows_all and plan.residual is not None:
        return "whether a row has a partner depends on more than its key"
    return ""


def keys_of(stream: Plan, positions: Sequence[int], *, with_null: bool = False) -> Distinct:
    """Return the distinct keys of a stream; one with a NULL matches nothing, and may be left in."""
    fields = [stream.schema.fields[p] for p in positions]
    columns = [Column(p, f.name, f.dtype) for p, f in zip(positions, fields, strict=True)]
    rows: Plan = stream
    for column in () if with_null else dict.fromkeys(columns):
        rows = Filter(rows, _has_value(column))
    names = tuple(f"k{number}" for number in range(len(columns)))
    return Distinct(Project(rows, tuple(columns), names))


def estimated_keys(keys: Plan) -> Plan:
    """Return keys for an estimate: hardly a row has none, which a filter is not taken to say.

    Conditions of the query stay.
    """
    if not (isinstance(keys, Distinct) and isinstance(keys.input, Project)):
        return keys
    rows = keys.input.input
    for column in reversed(dict.fromkeys(keys.input.expressions)):
        if isinstance(rows, Filter) and rows.predicate == _has_value(column):
            rows = rows.input
    return Distinct(msgspec.structs.replace(keys.input, input=rows))


def _has_value(column: Expression) -> Call:
    return Call("IS NOT NULL", (column,), DataType.BOOLEAN)


def wanted_of(plan: Join, sides: Sides, keys: Plan, table: Plan) -> tuple[Plan, tuple[int, ...]]:
    """Return the static engine's plan, and the columns of its rows that are the keys."""
    positions = sides.table_keys
    own = tuple(range(len(positions)))
    by_key = plan.kind != JoinKind.INNER and plan.residual is None and not sides.table_first
    if by_key:
        return (Join(keys, table, plan.kind, tuple(zip(own, positions, strict=True))), own)
    pairs = tuple(zip(positions, own, strict=True))
    return (Join(table, keys, JoinKind.SEMI, pairs), positions)
