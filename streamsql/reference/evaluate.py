"""Evaluate a plan from scratch over the whole history. Clear before fast."""

from collections.abc import Iterable, Mapping

from streamsql.algebra.choices import Copies
from streamsql.algebra.operators import (
    Aggregate,
    AggregateSelection,
    AsOfJoin,
    Best,
    Distinct,
    Filter,
    Fixpoint,
    HopWindow,
    Join,
    JoinKind,
    Materialize,
    OnClose,
    OverWindow,
    Plan,
    Project,
    RecursiveReference,
    RemoteSource,
    Scan,
    SessionWindow,
    SetOperation,
    StreamWindow,
    TopN,
    ToStream,
    UnionAll,
    Values,
    Window,
    WindowBounds,
    Younger,
    refers_to,
    with_inputs,
)
from streamsql.algebra.scalar_functions.scalar import compile_predicate, compile_row, key_of
from streamsql.data.delta import Delta, expand, from_rows, sort_key
from streamsql.data.types import Row, Value
from streamsql.errors import InternalError, RecursionLimitError, RecursionRoundsError
from streamsql.reference.group_aggregates import aggregate
from streamsql.reference.plain_operators import as_of, combined, hops, over, sessions, top
from streamsql.reference.reference_database import (
    Database,
    bounds_at,
    contents,
    in_window,
    windowed,
)
from streamsql.reference.stream_instants import closings, first_open, stream_rows

Relations = Mapping[str, list[Row]]
MAX_ROUNDS = 10_000  # a negative cycle under MIN improves for ever without growing


def evaluate(plan: Plan, database: Database, now: int, remote: Relations | None = None) -> Delta:
    """Return the relation a plan denotes at time `now`, as a Z-set of positive weights.

    Args:
        plan: Any plan.
        database: Every event of every source and table.
        now: Microseconds since 1970 UTC.
        remote: Rows of `RemoteSource` leaves by fragment id.

    Raises:
        RecursionLimitError: A recursion grew past its limit.

    Examples:
        >>> from streamsql.data.schema import Schema
        >>> evaluate(Values(((1,), (1,)), Schema.of()), Database(), 0)
        {(1,): 2}
    """
    return from_rows(_Evaluation(database, now, remote or {}).rows(plan, {}))


class _Evaluation:
    """One evaluation at one time."""

    def __init__(self, database: Database, now: int, remote: Relations) -> None:
        self.database = database
        self.now = now
        self.remote = remote
        self._materialized: dict[Plan, list[Row]] = {}

    def rows(self, plan: Plan, recursive: Relations) -> list[Row]:
        """Return the bag of rows of a plan; `recursive` holds the relations being defined."""
        match plan:
            case (
                Scan()
                | Window()
                | WindowBounds()
                | Values()
                | RemoteSource()
                | RecursiveReference()
            ):
                return self._leaf(plan, recursive)
            case Filter(input=child, predicate=predicate):
                holds = compile_predicate(predicate)
                return [row for row in self.rows(child, recursive) if holds(row)]
            case Project(input=child, expressions=expressions):
                make = compile_row(expressions)
                return [make(row) for row in self.rows(child, recursive)]
            case Join():
                return self._join(plan, recursive)
            case Aggregate():
                return self._aggregate(plan, recursive)
            case Materialize():
                return self._once(plan, recursive)
            case Distinct(input=child):
                return list(dict.fromkeys(self.rows(child, recursive)))
            case UnionAll(branches=branches):
                return [row for branch in branches for row in self.rows(branch, recursive)]
            case AsOfJoin() | SetOperation():
                both = (self.rows(plan.left, recursive), self.rows(plan.right, recursive))
                return as_of(plan, *both) if isinstance(plan, AsOfJoin) else combined(plan, *both)
            case OnClose():
                return self._on_close(plan, recursive)
            case ToStream():
                return self._to_stream(plan, recursive)
            case StreamWindow() | Younger():
                return self._windowed(plan, recursive)
            case TopN() | OverWindow() | HopWindow() | SessionWindow():
                return self._timed_or_ordered(plan, self.rows(plan.input, recursive))
            case Fixpoint():
                return self._fixpoint(plan, recursive)

    def _windowed(self, plan: StreamWindow | Younger, recursive: Relations) -> list[Row]:
        if isinstance(plan, Younger):
            plan = StreamWindow(plan.left, plan.time, plan.kind, plan.size, plan.slide)
        timed = [(_time(row[plan.time]), row) for row in self.rows(plan.input, recursive)]
        return in_window(plan, timed, self.now)

    def _once(self, plan: Materialize, recursive: Relations) -> list[Row]:
        # What is materialized reads no recursion that is still being computed.
        if plan not in self._materialized:
            self._materialized[plan] = self.rows(plan.input, recursive)
        return self._materialized[plan]

    def _leaf(
        self,
        plan: Scan | Window | WindowBounds | Values | RemoteSource | RecursiveReference,
        recursive: Relations,
    ) -> list[Row]:
        match plan:
            case Scan():
                return [row for _, row in contents(plan, self.database, self.now)]
            case Window():
                return windowed(plan, self.database, self.now)
            case WindowBounds():
                return [bounds_at(plan, self.now)]
            case Values(rows=rows):
                return list(rows)
            case RemoteSource(fragment=fragment):
                return list(self.remote[fragment])
            case RecursiveReference(name=name):
                return recursive[name]

    @staticmethod
    def _timed_or_ordered(
        plan: TopN | OverWindow | HopWindow | SessionWindow, rows: list[Row]
    ) -> list[Row]:
        match plan:
            case TopN():
                return top(plan, rows)
            case OverWindow():
                return over(plan, rows)
            case HopWindow():
                return hops(plan, rows)
            case SessionWindow():
                return sessions(plan, rows)

    def _on_close(self, plan: OnClose, recursive: Relations) -> list[Row]:
        def at(database: Database) -> _Evaluation:
            return _Evaluation(database, self.now, self.remote)

        def progress(database: Database) -> list[Row]:
            return at(database).rows(plan.right, recursive)

        return [
            row
            for closing in closings(plan, self.database, progress)
            for row in closing.rows(plan.end, at(closing.database).rows(plan.left, recursive))
        ]

    def _to_stream(self, plan: ToStream, recursive: Relations) -> list[Row]:
        feeds = [self.rows(feed, recursive) for feed in plan.feeds]
        progress = [self.rows(part, recursive) for part in plan.progress]
        return stream_rows(plan, feeds, first_open(progress, self.database), evaluate)

    def _join(self, join: Join, recursive: Relations) -> list[Row]:
        left_key = key_of(tuple(left for left, _ in join.keys))
        right_key = key_of(tuple(right for _, right in join.keys))
        by_key: dict[Row, list[tuple[int, Row]]] = {}
        right_rows = self.rows(join.right, recursive)
        for number, row in enumerate(right_rows):
            by_key.setdefault(right_key(row), []).append((number, row))
        holds = compile_predicate(join.residual) if join.residual is not None else None
        padding = (None,) * len(join.right.schema)
        result: list[Row] = []
        matched: set[int] = set()
        for row in self.rows(join.left, recursive):
            key = left_key(row)
            found = [] if None in key else by_key.get(key, [])
            pairs = [(n, row + other) for n, other in found if holds is None or holds(row + other)]
            matched.update(number for number, _ in pairs)
            if join.kind.is_filter:
                if bool(pairs) == (join.kind == JoinKind.SEMI):
                    result.append(row)
                continue
            result.extend(pair for _, pair in pairs)
            if join.kind != JoinKind.INNER and not pairs:
                result.append(row + padding)
        if join.kind == JoinKind.FULL:
            nothing = (None,) * len(join.left.schema)
            lonely = (row for n, row in enumerate(right_rows) if n not in matched)
            result.extend(nothing + row for row in lonely)
        return result

    def _aggregate(self, plan: Aggregate, recursive: Relations) -> list[Row]:
        key = key_of(plan.group)
        groups: dict[Row, list[Row]] = {} if plan.group else {(): []}
        for row in self.rows(plan.input, recursive):
            groups.setdefault(key(row), []).append(row)
        return [
            group + tuple(aggregate(call, members) for call in plan.aggregates)
            for group, members in groups.items()
        ]

    def _fixpoint(self, plan: Fixpoint, recursive: Relations) -> list[Row]:
        """Iterate the branches until nothing new appears (least fixpoint, set semantics)."""
        if plan.copies != Copies.ONE:
            return self._chains(plan, recursive)
        base = {row for branch in plan.base for row in self.rows(branch, recursive)}
        steps = [self._folded(branch, plan.name, recursive) for branch in plan.step]
        known: set[Row] = set()
        for _ in range(MAX_ROUNDS):
            scope = {**recursive, plan.name: list(known)}
            found = known | base
            for branch in steps:
                found.update(self.rows(branch, scope))
            if plan.selection is not None:
                found = best_rows(plan.selection, found)
            if found == known:
                check_rounds(plan, known)
                return sorted(known, key=sort_key)
            if len(found) > plan.limit:
                raise RecursionLimitError(
                    f"recursion {plan.name} has more than {plan.limit} rows",
                    hint="bound it (hops < 12) or raise it: WITH RECURSIVE (LIMIT n)",
                )
            known = found
        raise RecursionLimitError(
            f"recursion {plan.name} still changes after {MAX_ROUNDS} rounds",
            hint="check for a cycle of negative cost",
        )

    def _chains(self, plan: Fixpoint, recursive: Relations) -> list[Row]:
        """Add up the base rows, the steps of these, the steps of those, until there are none."""
        layer = [row for branch in plan.base for row in self.rows(branch, recursive)]
        steps = [self._folded(branch, plan.name, recursive) for branch in plan.step]
        found: list[Row] = []
        while layer:
            found.extend(layer)
            if len(found) > plan.limit:
                raise RecursionLimitError(
                    f"recursion {plan.name} has more than {plan.limit} rows",
                    hint="bound it (hops < 12) or raise it: WITH RECURSIVE (LIMIT n)",
                )
            scope = {**recursive, plan.name: layer}
            layer = [row for branch in steps for row in self.rows(branch, scope)]
        check_rounds(plan, found)
        return sorted(found, key=sort_key)

    def _folded(self, plan: Plan, name: str, recursive: Relations) -> Plan:
        """Return a step branch whose parts that do not read the recursion are constant rows."""
        if not refers_to(plan, name):
            return Values(tuple(self.rows(plan, recursive)), plan.schema)
        inputs = tuple(self._folded(child, name, recursive) for child in plan.inputs)
        return with_inputs(plan, inputs)


def check_rounds(plan: Fixpoint, rows: Iterable[Row]) -> None:
    """Check that no row needs more rounds than the query allows.

    Raises:
        RecursionRoundsError: One does.
    """
    most = plan.most_rounds
    if most is not None and any(_time(row[-1]) > most for row in rows):
        raise RecursionRoundsError.of(plan.name, most)


def _time(value: Value) -> int:
    """Return the event time of a row of a stream, which always has one."""
    if not isinstance(value, int):
        raise InternalError("a row of a stream has no time")
    return value


def best_rows(selection: AggregateSelection, rows: set[Row]) -> set[Row]:
    """Return the rows that are best of their group for one of the aggregates, all ties.

    A row whose value is NULL is not best for that aggregate.
    """
    return set().union(*(_best_rows(selection.group, best, rows) for best in selection.bests))


def _best_rows(group: tuple[int, ...], wanted: Best, rows: set[Row]) -> set[Row]:
    key = key_of(group)
    best: dict[Row, list[Row]] = {}
    for row in rows:
        value = row[wanted.value]
        if value is None:
            continue
        kept = best.setdefault(key(row), [row])
        order, incumbent = sort_key((value,)), sort_key((kept[0][wanted.value],))
        better = order < incumbent if wanted.minimum else order > incumbent
        if better:
            best[key(row)] = [row]
        elif order == incumbent and kept[0] != row:
            kept.append(row)
    return {row for kept in best.values() for row in kept}


def relation_rows(relation: Delta) -> list[Row]:
    """Return a relation as a sorted list, for printing and comparing."""
    return sorted(expand(relation), key=sort_key)
