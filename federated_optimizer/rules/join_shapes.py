"""Joins with exchanged sides, and sides that stand for a join."""

from streamsql.algebra.expressions import Column, Expression, Literal, map_columns
from streamsql.algebra.operators import AsOfJoin, Join, JoinKind, Plan, Project


def exchanged(join: Join, kind: JoinKind) -> Join:
    """Return a join of a kind with the right side as its left one."""

    def moved(column: Column) -> Expression:
        return Column(exchanged_position(join, column.position), column.name, column.dtype)

    residual = None if join.residual is None else map_columns(join.residual, moved)
    return Join(join.right, join.left, kind, tuple((b, a) for a, b in join.keys), residual)


def exchanged_position(join: Join, position: int) -> int:
    """Return where a column of both sides is after they are exchanged."""
    left = len(join.left.schema)
    return position + len(join.right.schema) if position < left else position - left


def padded(side: Plan, join: Join | AsOfJoin, first: int) -> Plan:
    """Return a side with the columns of a join, NULL in those that it does not have.

    Args:
        side: Has the columns of the join from `first` on.
        join: Whose columns there are to be.
        first: Position of the side's first column.
    """
    given = range(first, first + len(side.schema))
    expressions: list[Expression] = []
    for position, field in enumerate(join.schema.fields):
        known = Column(position - first, field.name, field.dtype)
        expressions.append(known if position in given else Literal(None, field.dtype))
    return Project(side, tuple(expressions), join.schema.names)
