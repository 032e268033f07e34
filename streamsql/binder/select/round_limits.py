"""A bound on the rounds of a recursion: every row carries the round that derives it first.

    r = base UNION step(r), at most n rounds
    ->  r' = (base, 1) UNION (step(r'), 1 + the latest round it reads, while that is below n),
        keeping per row the least round; then r' without its round

The relation after n rounds from nothing is just that: a row is there when some derivation of it is
at most n deep. It is an aggregate selection like any other (every row is a group of its own, the
round is isotone in the rounds it is made from and grows), so every engine keeps it exactly.

Where copies count (UNION ALL) every copy is there in the round that derives it.

With ERROR one more round is derived: a row of it means that n rounds do not reach the fixpoint.
"""

from dataclasses import dataclass

import msgspec

from streamsql.algebra.choices import Copies, OnMoreRounds, RoundLimit
from streamsql.algebra.expressions import Call, Column, Expression, Literal, map_columns
from streamsql.algebra.operators import (
    AggregateSelection,
    Best,
    Filter,
    Fixpoint,
    Join,
    Plan,
    Project,
    RecursiveReference,
    identity_columns,
    refers_to,
)
from streamsql.binder.aggregation.select_items import unique
from streamsql.data.schema import Field, Schema
from streamsql.data.types import DataType
from streamsql.errors import InternalError

_INTEGER = DataType.INTEGER


def within_rounds(fixpoint: Fixpoint, limit: RoundLimit) -> Plan:
    """Return the rows of a recursion after so many rounds."""
    width = len(fixpoint.columns)
    is_set = fixpoint.copies == Copies.ONE
    is_checked = limit.on_more == OnMoreRounds.ERROR
    derived = limit.rounds + 1 if is_checked else limit.rounds
    carrier = Carrier.of(fixpoint)
    everything = Fixpoint(
        fixpoint.name,
        carrier.schema,
        carrier.base(fixpoint),
        tuple(carrier.step(branch, derived) for branch in fixpoint.step),
        fixpoint.limit,
        AggregateSelection(tuple(range(width)), (Best(width),)) if is_set else None,
        rounds=limit,
        copies=fixpoint.copies,
    )
    plan: Plan = everything
    if is_checked:
        plan = Filter(plan, _at_most(carrier.column, limit.rounds))
    return Project(plan, identity_columns(fixpoint.columns), fixpoint.columns.names)


def _at_most(column: Column, bound: int) -> Expression:
    return Call("<=", (column, Literal(bound, _INTEGER)), DataType.BOOLEAN)


@dataclass(frozen=True, slots=True)
class _Carried:
    """A plan whose columns come first, and behind them the rounds of the rows it reads."""

    plan: Plan
    rounds: int


@dataclass(frozen=True, slots=True)
class Carrier:
    """Adds the round to a recursive relation.

    Attributes:
        name: Of the fixpoint.
        schema: With the round as the last column.
    """

    name: str
    schema: Schema

    @staticmethod
    def of(fixpoint: Fixpoint) -> "Carrier":
        """Return it for a fixpoint without rounds."""
        names = unique([*fixpoint.columns.names, "round"])
        return Carrier(
            fixpoint.name, Schema((*fixpoint.columns.fields, Field(names[-1], _INTEGER)))
        )

    @property
    def column(self) -> Column:
        """The round of a row."""
        return Column(len(self.schema) - 1, self.schema.names[-1], _INTEGER)

    def base(self, fixpoint: Fixpoint) -> tuple[Plan, ...]:
        """Return the base branches: round 1."""
        return tuple(self._closed(branch, Literal(1, _INTEGER)) for branch in fixpoint.base)

    def step(self, branch: Plan, most: int) -> Plan:
        """Return a step branch: one round after the latest that it reads, `most` at most."""
        carried = self._carry(branch)
        width = len(branch.schema)
        read = carried.plan.schema
        rounds = tuple(Column(p, read.names[p], _INTEGER) for p in range(width, len(read)))
        plan = carried.plan
        for column in rounds:
            plan = Filter(plan, _at_most(column, most - 1))
        latest = rounds[0] if len(rounds) == 1 else Call("GREATEST", rounds, _INTEGER)
        return self._closed(plan, Call("+", (latest, Literal(1, _INTEGER)), _INTEGER), width)

    def _closed(self, plan: Plan, of: Expression, width: int | None = None) -> Plan:
        """Return the first columns of a plan and a round."""
        own = identity_columns(plan.schema)[:width]
        return Project(plan, (*own, of), self.schema.names)

    def _carry(self, plan: Plan) -> _Carried:
        if not refers_to(plan, self.name):
            return _Carried(plan, 0)
        match plan:
            case RecursiveReference():
                return _Carried(RecursiveReference(self.name, self.schema), 1)
            case Filter(input=child):
                below = self._carry(child)
                return _Carried(msgspec.structs.replace(plan, input=below.plan), below.rounds)
            case Project(input=child):
                below = self._carry(child)
                added = identity_columns(below.plan.schema)[len(child.schema) :]
                names = unique([*plan.schema.names, *below.plan.schema.names[len(child.schema) :]])
                expressions = (*plan.expressions, *added)
                return _Carried(Project(below.plan, expressions, tuple(names)), below.rounds)
            case Join():
                return self._joined(plan)
            case _:
                raise InternalError(f"{type(plan).__name__} over a recursion with rounds")

    def _joined(self, join: Join) -> _Carried:
        left, right = self._carry(join.left), self._carry(join.right)
        first, second = len(join.left.schema), len(join.right.schema)
        shift = left.rounds
        residual = join.residual
        if residual is not None:
            residual = map_columns(
                residual,
                lambda c: c if c.position < first else Column(c.position + shift, c.name, c.dtype),
            )
        plan = Join(left.plan, right.plan, join.kind, join.keys, residual)
        if join.kind.is_filter:  # only its left side is shown, and the right reads no recursion
            return _Carried(plan, left.rounds)
        columns = identity_columns(plan.schema)
        width = len(left.plan.schema)
        own = (*columns[:first], *columns[width : width + second])
        rounds = (*columns[first:width], *columns[width + second :])
        read = plan.schema.names
        shown = (*read[:first], *read[width : width + second], *read[first:width])
        names = unique([*shown, *read[width + second :]])
        return _Carried(Project(plan, (*own, *rounds), tuple(names)), left.rounds + right.rounds)
