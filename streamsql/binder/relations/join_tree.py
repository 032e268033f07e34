"""FROM and WHERE to a tree of joins.

Conditions are gathered first and every column keeps a number of its own, so that inner joins can
be put in an order in which each one has a key: a comma list is a product only when nothing
connects its parts.
"""

import itertools
from dataclasses import dataclass, field
from enum import StrEnum

from streamsql.algebra.expressions import (
    Call,
    Column,
    Expression,
    columns_of,
    conjunction,
    map_columns,
)
from streamsql.algebra.operators import (
    AsOfJoin,
    Filter,
    Join,
    JoinKind,
    Plan,
    Project,
    identity_columns,
)


class JoinType(StrEnum):
    """Joins as written; those with a `JoinKind` have its value."""

    INNER = "INNER"
    LEFT = "LEFT"
    RIGHT = "RIGHT"
    FULL = "FULL"
    SEMI = "SEMI"
    ANTI = "ANTI"
    ASOF = "ASOF"
    ASOF_LEFT = "ASOF LEFT"


@dataclass(slots=True)
class Condition:
    """A conjunct of WHERE or ON; it reads column numbers, not positions.

    Attributes:
        owner: Number of the join whose ON it belongs to, or None for WHERE.
    """

    predicate: Expression
    owner: int | None = None

    @property
    def reads(self) -> frozenset[int]:
        """Numbers of the columns it reads."""
        return columns_of(self.predicate)

    def before(self, number: int) -> bool:
        """Whether it belongs to the ON of a join before that of an item."""
        return self.owner is not None and self.owner < number

    def pair(self) -> tuple[int, int] | None:
        """Return the two columns it equates, if that is all it does and their types agree."""
        match self.predicate:
            case Call(function="=", arguments=(Column() as left, Column() as right)):
                return (left.position, right.position) if left.dtype == right.dtype else None
            case _:
                return None


@dataclass(frozen=True, slots=True)
class Part:
    """A plan and the numbers of its columns in order."""

    plan: Plan
    layout: tuple[int, ...]

    @staticmethod
    def of(plan: Plan) -> "Part":
        """Return a plan whose columns are numbered by their positions."""
        return Part(plan, tuple(range(len(plan.schema))))

    def position(self, number: int) -> int:
        """Return where a column stands."""
        return self.layout.index(number)

    def expression(self, expression: Expression) -> Expression:
        """Return an expression over column numbers as one over this plan's rows."""
        places = {number: position for position, number in enumerate(self.layout)}
        return map_columns(expression, lambda c: Column(places[c.position], c.name, c.dtype))

    def filtered(self, predicates: list[Expression]) -> "Part":
        """Return the rows for which all predicates hold."""
        together = conjunction([self.expression(p) for p in predicates])
        return self if together is None else Part(Filter(self.plan, together), self.layout)

    def restricted(self, numbers: tuple[int, ...]) -> "Part":
        """Return the rows with these columns only, in this order."""
        if numbers == self.layout:
            return self
        fields = self.plan.schema.fields
        places = [self.position(number) for number in numbers]
        columns = tuple(Column(place, fields[place].name, fields[place].dtype) for place in places)
        return Part(Project(self.plan, columns, tuple(c.name for c in columns)), numbers)

    def extended(self, columns: dict[int, Expression], label: str) -> "Part":
        """Return the rows with more columns, computed from the others, under new numbers."""
        if not columns:
            return self
        schema = self.plan.schema
        taken = set(schema.names)
        free = (n for i in itertools.count(1) if (n := f"{label}_{i}") not in taken)
        names = (*schema.names, *itertools.islice(free, len(columns)))
        computed = tuple(self.expression(e) for e in columns.values())
        plan = Project(self.plan, (*identity_columns(schema), *computed), names)
        return Part(plan, (*self.layout, *columns))


@dataclass(frozen=True, slots=True)
class AsOf:
    """The condition of an as-of join, over column numbers.

    Attributes:
        left_time: Number of the left row's time.
        right_time: Number of the right row's time.
        strict: Whether the right row must be older.
        keys: Pairs of numbers that must agree, left and right.
    """

    left_time: int
    right_time: int
    strict: bool
    keys: tuple[tuple[int, int], ...]


@dataclass(slots=True)
class JoinTree:
    """Builds the plan item by item, from left to right.

    Attributes:
        parts: Items waiting to be joined by inner joins.
        conditions: Conditions that are not applied yet.
    """

    conditions: list[Condition]
    parts: list[Part] = field(default_factory=list)

    def before(self, number: int, *, where: bool) -> Part:
        """Return the items so far as one, to be joined with an item at once.

        Args:
            number: Of the item; conditions of later joins must wait where that matters.
            where: Whether WHERE conditions may be used for the joins so far. They may below a LEFT
                JOIN. A RIGHT or FULL JOIN here or later would bring back, padded with NULLs, what
                they removed.
        """
        current = self._collapse(number, where=where)
        # ON conditions of inner joins must hold before an outer join pads rows.
        own = [c for c in self.conditions if c.before(number) and c.reads <= set(current.layout)]
        self.conditions = [c for c in self.conditions if c not in own]
        return current.filtered([condition.predicate for condition in own])

    def as_of(
        self, part: Part, condition: AsOf, kind: JoinKind, *, number: int, where: bool
    ) -> None:
        """Add an item by ASOF JOIN; `kind` is INNER or LEFT."""
        left = self.before(number, where=where)
        times = left.position(condition.left_time), part.position(condition.right_time)
        keys = tuple((left.position(a), part.position(b)) for a, b in condition.keys)
        plan = AsOfJoin(left.plan, part.plan, kind, *times, condition.strict, keys)
        self.parts = [Part(plan, left.layout + part.layout)]

    def finish(self) -> Part:
        """Return the whole join with every remaining condition applied."""
        current = self._collapse(None, where=True)
        rest, self.conditions = self.conditions, []
        return current.filtered([condition.predicate for condition in rest])

    def _collapse(self, number: int | None, *, where: bool) -> Part:
        remaining = list(self.parts)
        current = remaining.pop(0)
        while remaining:
            chosen = next((p for p in remaining if self._connected(current, p)), remaining[0])
            remaining.remove(chosen)
            current = self._join(current, chosen, number, where=where)
        return current

    def _connected(self, left: Part, right: Part) -> bool:
        return any(
            condition.pair() is not None and _crosses(condition, left, right)
            for condition in self.conditions
        )

    def _join(self, left: Part, right: Part, number: int | None, *, where: bool) -> Part:
        usable = [
            condition
            for condition in self.conditions
            if (where or number is None or condition.before(number))
            and _crosses(condition, left, right)
        ]
        self.conditions = [c for c in self.conditions if c not in usable]
        return joined(left, right, [c.predicate for c in usable], JoinKind.INNER)


def _crosses(condition: Condition, left: Part, right: Part) -> bool:
    reads = condition.reads
    return (
        reads <= set(left.layout) | set(right.layout)
        and bool(reads & set(left.layout))
        and bool(reads & set(right.layout))
    )


def joined(left: Part, right: Part, conditions: list[Expression], kind: JoinKind) -> Part:
    """Join two parts; equalities of columns become keys, everything else the residual."""
    keys: list[tuple[int, int]] = []
    residual: list[Expression] = []
    for predicate in conditions:
        key = _key(predicate, left, right)
        if key is None:
            residual.append(predicate)
        elif key not in keys:
            keys.append(key)
    both = Part(left.plan, left.layout + right.layout)
    rest = conjunction([both.expression(p) for p in residual])
    plan = Join(left.plan, right.plan, kind, tuple(keys), rest)
    return Part(plan, left.layout if kind.is_filter else both.layout)


def _key(predicate: Expression, left: Part, right: Part) -> tuple[int, int] | None:
    pair = Condition(predicate).pair()
    if pair is None:
        return None
    first, second = pair
    if first in right.layout and second in left.layout:
        first, second = second, first
    if first in left.layout and second in right.layout:
        return left.position(first), right.position(second)
    return None
