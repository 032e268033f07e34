"""Filter each side of a join by what follows for it from the other side and the join's condition.

Precondition: filters are pushed and keys extracted, so that facts stand where they are looked for.

| join         | filtered   | why sound                                              |
|--------------|------------|--------------------------------------------------------|
| inner, semi  | both sides | a row without partner gives nothing                    |
| left, anti   | right side | such a right row matches no left row                   |
| full         | none       | rows without partner are padded, not dropped           |
| as-of, inner | both sides | a left row finds only rows that keep to it, or nothing |
| as-of, left  | right side | the same                                               |

What follows:

- bounds: from `a.x > 10 AND b.y >= a.x + 5` follows `b.y > 15`, and from `2 * b.y > a.x` follows
  `b.y > 5` (`canonical.linear_comparisons` says which arithmetic counts, and why rounding does no
  harm),
- orders within a side: from `a.x < b.y AND b.y <= a.z` follows `a.x < a.z`,
- any predicate over columns that equal columns of the other side: from `a.x = b.y` and
  `a.x LIKE 'L%'` follows `b.y LIKE 'L%'`. Columns of DOUBLE are left out (0.0 equals -0.0 but is
  not the same), and so are functions of users (they cost what nobody knows),
- an equality of both sides, where the join has no key: from `a.x <= b.y AND b.y <= a.x`,
- a contradiction: the join, or its right side, is empty.

A predicate that is derived is TRUE of every row that has a partner, never NULL, because the
comparisons that it comes from were TRUE.

What was found is pushed into its side at once, and the joins in there are filtered again with it:
one pass goes through all joins of a plan, however deep they are nested.

Nothing is derived that a side already says, or says more strictly. A bound that arithmetic has
shifted goes only to a side that has no bound in that direction: so circles such as
`a.x > b.y + 1 AND b.y > a.x + 1` come to rest, and a filter is not made a little stricter for the
price of another comparison. In a filter, a comparison of a column with a constant that another one
implies is left out; arithmetic stays, because it is NULL where it overflows. Joins that read a
recursion which is not complete stay as they are.

Example: `InnerJoin [rid = rid]` over `Filter s.rid = 'r1'` and `Scan r` filters r by `rid = 'r1'`.
"""

from collections.abc import Iterator
from itertools import chain

import msgspec

from federated_optimizer.canonical.column_ranges import Comparisons
from federated_optimizer.canonical.exact_cache import exactly_cached
from federated_optimizer.canonical.implications import bounds_of, equal_columns, is_within, named
from federated_optimizer.canonical.linear_comparisons import readings_of
from federated_optimizer.canonical.row_facts import (
    Facts,
    facts_above,
    facts_of_pairs,
    holds,
    is_small,
    limit_of,
)
from federated_optimizer.rules.merge_filters import filtered
from federated_optimizer.rules.push_filters import push_filters
from federated_optimizer.rules.rule import Rule
from streamsql.algebra.expressions import (
    Call,
    Column,
    Expression,
    columns_of,
    conjunction,
    conjuncts,
    map_columns,
    shifted,
)
from streamsql.algebra.operators import (
    AsOfJoin,
    Filter,
    Join,
    JoinKind,
    Plan,
    RecursiveReference,
    Values,
    is_open,
    walk_plan,
    with_inputs,
)
from streamsql.data.types import DataType


def transitive_predicates(plan: Plan) -> Plan:
    """Return the plan with filters that follow from others."""
    nodes = list(walk_plan(plan))
    if not any(isinstance(node, Filter | Join | AsOfJoin) for node in nodes):
        return plan
    if any(isinstance(node, RecursiveReference) for node in nodes):
        return _derived(plan, recursive=True)[0]
    return _closed(plan)[0]


def _closed(plan: Plan) -> tuple[Plan, Facts]:
    """Return a plan without recursive references with what follows in it, and its facts."""
    return _closed_join(plan) if isinstance(plan, Join) else _derived(plan, recursive=False)


# Chains of joins of a kind begin alike: half of the joins of 300 chains were those of others.
@exactly_cached(1_024)
def _closed_join(plan: Join) -> tuple[Plan, Facts]:
    return _derived(plan, recursive=False)


def _derived(plan: Plan, *, recursive: bool) -> tuple[Plan, Facts]:
    """Return a plan with what follows in it, and its facts.

    Args:
        plan: To be filtered.
        recursive: Whether there are recursive references in it.
    """
    parts = [_derived(each, recursive=True) if recursive else _closed(each) for each in plan.inputs]
    inputs, below = tuple(part[0] for part in parts), [part[1] for part in parts]
    plan = plan if inputs == plan.inputs else with_inputs(plan, inputs)
    match plan:
        case Filter() if not (recursive and is_open(plan)):
            plan = _tightened(plan, below[0])
        case Join() | AsOfJoin() if not (recursive and is_open(plan)):
            return _over_sides(plan, below)
        case _:
            pass
    return plan, facts_above(plan, below) if plan.inputs else ()


def _tightened(plan: Filter, below: Facts) -> Plan:
    """Return a filter without comparisons that others imply; nothing if they contradict."""
    parts = conjuncts(plan.predicate)
    if len(parts) + len(below) < 2:
        return plan
    if Comparisons(filter(is_small, (*parts, *below))).contradict:
        return Values((), plan.schema)
    needed = [p for n, p in enumerate(parts) if not _is_implied(p, parts[:n], parts[n + 1 :])]
    if len(needed) == len(parts):
        return plan
    return Filter(plan.input, conjunction(needed) or plan.predicate)


def _is_implied(predicate: Expression, before: list[Expression], after: list[Expression]) -> bool:
    """Whether another conjunct bounds the same column more; of equal ones the first counts.

    Only a column as it is: `a > 3` does not imply `a * 2 > 5`, which is NULL where it overflows.
    """
    mine = bounds_of(predicate) if _is_plain(predicate) else {}
    return bool(mine) and (
        any(is_within(bounds_of(other), mine, or_equal=True) for other in before)
        or any(is_within(bounds_of(other), mine, or_equal=False) for other in after)
    )


def _over_sides(plan: Join | AsOfJoin, below: list[Facts]) -> tuple[Plan, Facts]:
    """Return a join with its sides filtered by what follows, and its facts."""
    together = list(facts_of_pairs(plan, below))
    both = plan.kind in (JoinKind.INNER, JoinKind.SEMI)
    if plan.kind == JoinKind.FULL or any(isinstance(side, Values) for side in plan.inputs):
        return plan, facts_above(plan, below)
    known = Comparisons(together)
    if not _may_follow(together, known, plan):
        return plan, facts_above(plan, below)
    if known.contradict:
        if both:
            return Values((), plan.schema), ()
        below = [below[0], ()]
        plan = msgspec.structs.replace(plan, right=Values((), plan.right.schema))
        return plan, facts_above(plan, below)
    left = _Side(plan.left, 0, below[0])
    right = _Side(plan.right, len(plan.left.schema), below[1])
    sides = [left, right] if both else [right]
    while sum(side.derive(together, known) for side in sides):
        known = Comparisons(together)
    keys = plan.keys
    if isinstance(plan, Join) and not keys:
        keys = _key(known, right.offset)
    if keys != plan.keys or left.found or right.found:
        plan = msgspec.structs.replace(
            plan, left=left.filtered(), right=right.filtered(), keys=keys
        )
    return plan, facts_above(plan, [left.facts, right.facts])


def _may_follow(together: list[Expression], known: Comparisons, plan: Join | AsOfJoin) -> bool:
    """Whether facts may say more together; quick, as most joins only have a key and constants."""
    if isinstance(plan, AsOfJoin) or plan.residual is not None or not plan.keys:
        return True
    sources = known.sources
    if any(column in sources for column, _ in known.bounds):
        return True
    left, right = ({pair[side] for pair in plan.keys} for side in (0, 1))
    return len(left) > 1 or len(right) > 1 or not all(map(_is_plain, together))


def _key(known: Comparisons, width: int) -> tuple[tuple[int, int], ...]:
    """Return the first pair of columns of both sides that are equal."""
    for low, first in sorted(known.columns.items()):
        for high, second in sorted(known.columns.items()):
            same = first.dtype == second.dtype
            if low < width <= high and same and known.order(low, high) == "=":
                return ((low, high - width),)
    return ()


class _Side:
    """A side of a join, and what was derived for it.

    Attributes:
        offset: Of its columns in rows of both sides.
        facts: Over its own columns; with what was found.
        found: Predicates that were derived, over its own columns.
    """

    def __init__(self, plan: Plan, offset: int, facts: Facts) -> None:
        self.offset = offset
        self.facts = facts
        self.found: list[Expression] = []
        self._plan = plan
        self._fields = plan.schema.fields
        self._own: Comparisons | None = None

    @property
    def own(self) -> Comparisons:
        """What its own facts say."""
        if self._own is None:
            self._own = Comparisons(self.facts)
        return self._own

    def filtered(self) -> Plan:
        """Return the side with what was found where it goes, and what follows from it there."""
        if not self.found:
            return self._plan
        return transitive_predicates(push_filters(filtered(self._plan, self.found)))

    def derive(self, together: list[Expression], known: Comparisons) -> int:
        """Derive what follows from the facts of both sides, add it to them and count it.

        Args:
            together: Facts over rows of both sides; those found are added.
            known: The same.
        """
        before = len(self.found)
        for predicate in chain(
            self._bounds(known), self._orders(known), self._equals(together, known)
        ):
            self.found.append(predicate)
            self.facts = (*self.facts, predicate)
            self._own = None
            together.append(shifted(predicate, self.offset))
        return len(self.found) - before

    def _bounds(self, known: Comparisons) -> Iterator[Expression]:
        for shifts in (False, True) if known.shift else (False,):
            ranges = known.ranges(shifted=shifts)
            for position, upper in sorted(ranges):
                column = self._column(position)
                if column is None:
                    continue
                limit = ranges[position, upper]
                has = self.own.ranges(shifted=shifts).get((column.position, upper))
                if not limit.is_stronger(has, upper=upper) or (shifts and has is not None):
                    continue
                says = limit_of(self._plan, column, upper=upper)
                if not limit.is_stronger(says, upper=upper) or (shifts and says is not None):
                    continue
                if ranges.get((position, not upper)) == limit and not limit.strict:
                    predicate = known.equal(column, limit)
                else:
                    predicate = known.predicate(column, limit, upper=upper)
                if predicate is not None:
                    yield predicate

    def _orders(self, known: Comparisons) -> Iterator[Expression]:
        ends = ((self._column(d.low), self._column(d.high)) for d in known.differences)
        linked = {a or b for a, b in ends if (a is None) != (b is None)}
        if len(linked) < 2:  # no way leads through the other side and back
            return
        for first, second in known.related:
            low, high = self._column(first), self._column(second)
            if low is None or high is None:
                continue
            order = known.order(first, second)
            swapped = order == "=" and low.position > high.position
            if order is None or low.dtype != high.dtype or swapped:
                continue
            if self.own.order(low.position, high.position) in (order, "<", "="):
                continue
            predicate = Call(order, (low, high), DataType.BOOLEAN)
            if not holds(self._plan, predicate):
                yield predicate

    def _equals(self, together: list[Expression], known: Comparisons) -> Iterator[Expression]:
        further = [fact for fact in together if not _is_plain(fact)]
        equal = equal_columns(together, known) if further else {}
        if not equal:
            return
        have = {named(shifted(fact, self.offset), equal) for fact in self.facts}
        for fact in further:
            moved = self._moved(fact, equal)
            if moved is None or named(fact, equal) in have or holds(self._plan, moved):
                continue
            if (bounds := bounds_of(moved)) and is_within(self.own.bounds, bounds, or_equal=True):
                continue
            have.add(named(fact, equal))
            yield moved

    def _moved(self, fact: Expression, equal: dict[int, list[int]]) -> Expression | None:
        """Return a fact over columns of this side that equal its own; None if there are none."""
        columns: dict[int, Expression] = {}
        for position in columns_of(fact):
            mine = [c for c in map(self._column, equal.get(position, [position])) if c is not None]
            if not mine:
                return None
            columns[position] = mine[0]
        if len(set(columns.values())) < len(columns):
            return None
        return map_columns(fact, lambda column: columns[column.position])

    def _column(self, position: int) -> Column | None:
        """Return a column of this side by its position in rows of both sides."""
        fields = self._fields
        mine = position - self.offset
        if not 0 <= mine < len(fields):
            return None
        return Column(mine, fields[mine].name, fields[mine].dtype)


def _is_plain(fact: Expression) -> bool:
    """Whether it compares columns with constants or with columns only, as they are."""
    plain = isinstance(fact, Call) and not any(isinstance(a, Call) for a in fact.arguments)
    return plain and bool(readings_of(fact))


TRANSITIVE_PREDICATES = Rule("transitive_predicates", transitive_predicates)
