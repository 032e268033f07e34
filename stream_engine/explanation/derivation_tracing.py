"""The derivations of a row of a result, down to base rows.

| operator                | a row rests on                                                        |
|-------------------------|-----------------------------------------------------------------------|
| Scan, Window            | its base row                                                          |
| Filter, Project         | the row, or any of the rows, it was made of                           |
| Distinct, UnionAll      | any of the equal rows                                                 |
| Join                    | both parts                                                            |
| outer Join, no partner  | its row, and that no partner is there                                 |
| semi Join               | its left row, and any of its partners                                 |
| anti Join, EXCEPT       | its left row, and that no partner is there                            |
| INTERSECT               | any of the equal rows of each side                                    |
| as-of Join              | both parts, and that nothing between them is there                    |
| HopWindow, TopN,        |                                                                       |
| Materialize             | the row it was                                                        |
| SessionWindow           | the row it was, and all rows of its session                           |
| MIN, MAX, ARG_MIN, …    | any of the rows that have the chosen value                            |
| COUNT, SUM, AVG         | all rows that are counted or added, every copy of them                |
| … DISTINCT              | for each value, any of the rows that have it                          |
| Fixpoint                | any of its derivations by a rule, from rows of the view as it is now  |
"""

from collections.abc import Iterable, Iterator
from itertools import product

from stream_engine.explanation.budget import Budget
from stream_engine.explanation.derivation_trees import DerivationGraph
from stream_engine.explanation.faithfulness import unexplained
from stream_engine.explanation.plan_evaluation import Relation
from stream_engine.explanation.recursion_tracing import RecursionTracer
from streamsql.algebra.expressions import columns_of
from streamsql.algebra.operators import (
    Aggregate,
    AggregateCall,
    AggregateFunction,
    AsOfJoin,
    Distinct,
    Filter,
    Fixpoint,
    HopWindow,
    Join,
    JoinKind,
    Materialize,
    Plan,
    Project,
    Scan,
    SessionWindow,
    SetKind,
    SetOperation,
    TopN,
    UnionAll,
    Values,
    Window,
)
from streamsql.algebra.row_explanations import BaseRow, Leaf, scan_of, sources_of
from streamsql.algebra.scalar_functions.scalar import (
    compile_expression,
    compile_predicate,
    compile_row,
    key_of,
)
from streamsql.data.delta import sort_key
from streamsql.data.types import Row, Value

_CHOOSING = (
    AggregateFunction.MIN,
    AggregateFunction.MAX,
    AggregateFunction.ARG_MIN,
    AggregateFunction.ARG_MAX,
)


class Tokens:
    """Numbers for base rows, from 1 upwards in order of first use."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, Row], int] = {}
        self._rows: list[BaseRow] = []

    def of(self, leaf: Leaf, row: Row) -> int:
        """Return the token of a leaf's row."""
        scan = scan_of(leaf)
        key = (scan.source, row)
        number = self._numbers.get(key)
        if number is None:
            self._rows.append(BaseRow(scan, row))
            number = self._numbers[key] = len(self._rows)
        return number

    def base_row(self, token: int) -> BaseRow:
        """Return the base row of a token."""
        return self._rows[token - 1]

    def __iter__(self) -> Iterator[int]:
        """Yield all tokens given so far."""
        return iter(range(1, len(self._rows) + 1))


class Tracer:
    """Builds the derivation graph of rows on request.

    State: the graph, the node of every row visited, and notes on what supports cannot express.
    """

    def __init__(self, graph: DerivationGraph, tokens: Tokens, budget: Budget) -> None:
        self.notes: dict[str, None] = {}
        self._graph = graph
        self._tokens = tokens
        self._budget = budget
        self._memo: dict[tuple[Relation, Row, bool], tuple[int, ...]] = {}
        self._recursions: dict[Relation, RecursionTracer] = {}

    def node(self, relation: Relation, row: Row) -> int:
        """Return the node that holds when a row, which must be there, is derived at all."""
        return self._copies(relation, row, each=False)[0]

    @property
    def complete(self) -> bool:
        """Whether all derivations have been followed."""
        return all(recursion.complete for recursion in self._recursions.values())

    def _copies(self, relation: Relation, row: Row, *, each: bool) -> tuple[int, ...]:
        """Return the node of every copy of a row, or of any of them as one."""
        key = (relation, row, each)
        known = self._memo.get(key)
        if known is None:
            self._budget.spend(1, "following the derivations")
            found = self._found(relation, row, each=each)
            known = self._memo[key] = found if each else (self._graph.any_of(found),)
        return known

    def _found(self, relation: Relation, row: Row, *, each: bool) -> tuple[int, ...]:
        plan = relation.plan
        match plan:
            case Scan() | Window():
                node = self._graph.token(self._tokens.of(plan, row))
                return (node,) * (relation.rows[row] if each else 1)
            case Values():
                return (self._graph.always,) * (relation.rows[row] if each else 1)
            case Filter() | TopN() | Materialize():
                return self._copies(relation.inputs[0], row, each=each)
            case Project():
                return self._projected(relation, plan, row, each=each)
            case Join():
                return self._joined(relation, plan, row, each=each)
            case Aggregate():
                return (self._aggregated(relation, plan, row),)
            case Distinct():
                return self._copies(relation.inputs[0], row, each=False)
            case UnionAll():
                present = [child for child in relation.inputs if row in child.rows]
                return tuple(n for child in present for n in self._copies(child, row, each=each))
            case Fixpoint():
                return (self._recursion(relation).node(row),)
            case HopWindow(input=child):
                return self._copies(relation.inputs[0], row[: len(child.schema)], each=each)
            case SessionWindow():
                return self._in_session(relation, plan, row, each=each)
            case AsOfJoin():
                return self._found_as_of(relation, plan, row, each=each)
            case SetOperation():
                return self._combined(relation, plan, row, each=each)
            case _:
                raise unexplained(plan)

    def _in_session(
        self, relation: Relation, plan: SessionWindow, row: Row, *, each: bool
    ) -> tuple[int, ...]:
        (source,) = relation.inputs
        *values, start, end = row
        by_key = source.index(("session", plan.partition), lambda: key_of(plan.partition))
        low, high = sort_key((start,)), sort_key((end,))
        members = [
            other
            for other in by_key[tuple(values[p] for p in plan.partition)]
            if low <= sort_key((other[plan.time],)) < high
        ]
        self._budget.spend(len(members), "following the derivations")
        together = [self.node(source, other) for other in members]
        own = self._copies(source, tuple(values), each=each)
        return tuple(self._graph.all_of((node, *together)) for node in own)

    def _combined(
        self, relation: Relation, plan: SetOperation, row: Row, *, each: bool
    ) -> tuple[int, ...]:
        left, right = relation.inputs
        intersect = plan.kind == SetKind.INTERSECT
        if not intersect:
            self._nothing_of(plan.right)
        if not plan.all or (intersect and not each):
            ours = self.node(left, row)
            return (self._graph.all_of((ours, self.node(right, row))) if intersect else ours,)
        # How many copies there are hangs on all of them; fewer may do.
        copies = list(self._copies(left, row, each=True))
        if intersect:
            copies.extend(self._copies(right, row, each=True))
        return (self._graph.all_of(copies),) * (relation.rows[row] if each else 1)

    def _found_as_of(
        self, relation: Relation, plan: AsOfJoin, row: Row, *, each: bool
    ) -> tuple[int, ...]:
        left, right = relation.inputs
        width = len(plan.left.schema)
        ours = self._copies(left, row[:width], each=each)
        self._nothing_of(plan.right)
        if row[width + plan.right_time] is None:
            return ours
        found = self.node(right, row[width:])
        return tuple(self._graph.all_of((node, found)) for node in ours)

    def _nothing_of(self, plan: Plan) -> None:
        sources = ", ".join(sources_of(plan))
        self.notes[f"it also depends on the absence of matching rows of {sources}"] = None

    def _projected(
        self, relation: Relation, plan: Project, row: Row, *, each: bool
    ) -> tuple[int, ...]:
        (source,) = relation.inputs
        join = source.plan
        if not each and isinstance(join, Join) and join.kind == JoinKind.LEFT:
            width = len(join.left.schema)
            if all(p < width for e in plan.expressions for p in columns_of(e)):
                source = source.inputs[0]  # every left row is there, with or without partner
        made_of = source.index(plan.expressions, lambda: compile_row(plan.expressions))[row]
        return tuple(n for part in made_of for n in self._copies(source, part, each=each))

    def _joined(self, relation: Relation, plan: Join, row: Row, *, each: bool) -> tuple[int, ...]:
        left, right = relation.inputs
        width = len(plan.left.schema)
        mine, theirs = row[:width], row[width:]
        if plan.kind == JoinKind.FULL:
            return self._fully_joined(relation, plan, row, each=each)
        ours = self._copies(left, mine, each=each)
        if plan.kind == JoinKind.SEMI:
            partner = self._any(right, self._partners(relation, plan, row, 1))
            return tuple(self._graph.all_of((node, partner)) for node in ours)
        if plan.kind == JoinKind.ANTI or (
            plan.kind == JoinKind.LEFT and self._is_padding(right, plan, theirs, row)
        ):
            self._nothing_of(plan.right)
            return ours
        others = self._copies(right, theirs, each=each)
        self._budget.spend(len(ours) * len(others), "following the derivations")
        return tuple(self._graph.all_of(pair) for pair in product(ours, others))

    def _fully_joined(
        self, relation: Relation, plan: Join, row: Row, *, each: bool
    ) -> tuple[int, ...]:
        """Return a full join's row in every way: as a pair, and as a row of a side without one.

        A row of NULLs may be all of these at once.
        """
        left, right = relation.inputs
        width = len(plan.left.schema)
        mine, theirs = row[:width], row[width:]
        found: list[int] = []
        partners = self._partners(relation, plan, mine, 1) if mine in left.rows else None
        if partners and theirs in partners:
            pairs = product(
                self._copies(left, mine, each=each), self._copies(right, theirs, each=each)
            )
            found.extend(map(self._graph.all_of, pairs))
        if partners == [] and not any(value is not None for value in theirs):
            self._nothing_of(plan.right)
            found.extend(self._copies(left, mine, each=each))
        lonely = theirs in right.rows and not any(value is not None for value in mine)
        if lonely and not self._partners(relation, plan, theirs, 0):
            self._nothing_of(plan.left)
            found.extend(self._copies(right, theirs, each=each))
        return tuple(found)

    def _partners(self, relation: Relation, plan: Join, row: Row, side: int) -> list[Row]:
        """Return the rows of a side (0 left, 1 right) that a row of the other one matches."""
        keys = tuple(pair[side] for pair in plan.keys)
        by_key = relation.inputs[side].index(("partners", keys), lambda: key_of(keys))
        key = tuple(row[pair[1 - side]] for pair in plan.keys)
        found = [] if None in key else by_key.get(key, [])
        self._budget.spend(len(found), "following the derivations")
        if plan.residual is None:
            return found
        holds = compile_predicate(plan.residual)
        return [other for other in found if holds(row + other if side else other + row)]

    @staticmethod
    def _is_padding(side: Relation, plan: Join, part: Row, row: Row) -> bool:
        """Whether the NULLs of a joined row's part replace a missing row of a side.

        They do not if they are a row of that side that is all NULL.
        """
        if any(value is not None for value in part):
            return False
        if plan.keys or part not in side.rows:
            return True  # a NULL key never matches
        return plan.residual is not None and not compile_predicate(plan.residual)(row)

    def _recursion(self, relation: Relation) -> RecursionTracer:
        found = self._recursions.get(relation)
        if found is None:
            budget = self._budget.part(0.5)
            found = RecursionTracer(relation, self._graph, self.node, budget)
            self._recursions[relation] = found
        return found

    def _aggregated(self, relation: Relation, plan: Aggregate, row: Row) -> int:
        (source,) = relation.inputs
        groups = len(plan.group)
        members = source.index(plan.group, lambda: key_of(plan.group)).get(row[:groups], [])
        if not members:
            self.notes["an aggregate without GROUP BY has a row even without input"] = None
            return self._graph.always
        parts = [
            part
            for call, value in zip(plan.aggregates, row[groups:], strict=True)
            for part in self._parts(source, call, value, members)
        ]
        if not parts and groups:
            parts = [self._any(source, members)]
        return self._graph.all_of(parts)

    def _parts(
        self, source: Relation, call: AggregateCall, value: Value, members: list[Row]
    ) -> list[int]:
        """Return nodes that together keep an aggregate at its value; none when anything does."""
        if call.function == AggregateFunction.COUNT_ALL:
            return self._all(source, call, members)
        argument = compile_expression(call.arguments[0])
        if call.function in _CHOOSING:
            chosen = _chosen(call, value, members)
            return [self._any(source, chosen)] if chosen else []
        counted = [row for row in members if argument(row) is not None]
        if not call.distinct:
            return self._all(source, call, counted)
        by_value: dict[Value, list[Row]] = {}
        for row in counted:
            by_value.setdefault(argument(row), []).append(row)
        return [self._any(source, rows) for rows in by_value.values()]

    def _all(self, source: Relation, call: AggregateCall, rows: list[Row]) -> list[int]:
        count = sum(source.rows[row] for row in rows)
        if count > 1:
            what = "counts" if call.function in _COUNTING else "takes in"
            self.notes[f"{call.name} {what} {count} rows, so each support contains all of them"] = (
                None
            )
        return [node for row in rows for node in self._copies(source, row, each=True)]

    def _any(self, source: Relation, rows: Iterable[Row]) -> int:
        return self._graph.any_of(self.node(source, row) for row in rows)


_COUNTING = (AggregateFunction.COUNT, AggregateFunction.COUNT_ALL)


def _chosen(call: AggregateCall, value: Value, members: list[Row]) -> list[Row]:
    """Return the rows that MIN, MAX, ARG_MIN or ARG_MAX has taken its value from."""
    argument = compile_expression(call.arguments[0])
    if call.function in (AggregateFunction.MIN, AggregateFunction.MAX):
        return [row for row in members if value is not None and argument(row) == value]
    by = compile_expression(call.arguments[1])
    ranked = [(sort_key((by(row),)), row) for row in members if by(row) is not None]
    if not ranked:
        return []
    orders = [order for order, _ in ranked]
    best = min(orders) if call.function == AggregateFunction.ARG_MIN else max(orders)
    return [row for order, row in ranked if order == best and argument(row) == value]
