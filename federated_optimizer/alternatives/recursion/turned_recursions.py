"""A closure of links, grown at its other end.

    base   b(x)          for every row x of the links X
    step   s(x, r)       where k(x) = r.front, r already derived

derives one row from every chain x1 … xn of links that join: `reachable` puts a link in front of
what is reachable from its end. Grown at the other end, from b(x1) by t(r, y), it derives the same
rows, and other columns are stable (`rules.stable_columns`): src instead of dst. Then a bound on
these columns may stand in the base branch.

Sound because both derive one row from each chain, and the rows are equal. Column by column:

| column                      | step             | turned           | why equal             |
|-----------------------------|------------------|------------------|-----------------------|
| front: b(x1)                | b(x)             | r.c              | of the first link     |
| stable: b(xn)               | r.c              | b(y)             | of the last link      |
| counter: a literal          | r.c + literal    | r.c + literal    | length of the chain   |
| LEAST, GREATEST of b        | LEAST(b(x), r.c) | LEAST(r.c, b(y)) | associative           |
| sum of INTEGER b >= 0, MIN  | b(x) + r.c       | r.c + b(y)       | associative           |
| text                        | p(x) || r.c      | r.c || q(y)      | p(x) b(y) = b(x) q(y) |

The links join by what a front column has: k(x) must be what a stable column keeps, so that it is
known at the other end. Conditions on counters hold of lengths. LEAST and GREATEST are associative
also where 0.0 meets -0.0, since the first of equal arguments is taken; NaN is no value of DOUBLE.
Sums of DOUBLE are refused: added in another order they differ in the last digit. Sums of INTEGER
that leave 64 bits are NULL, on the way, too, so they are refused unless a condition on the links
says that no part is negative: then a sum that leaves them does so in every order. So are chains
whose base has other rows than the step (b of X and s of Y are not a closure of one relation), UNION
ALL, and recursions that keep the best rows of groups that leave an end out.
"""

from dataclasses import dataclass

import msgspec

from federated_optimizer.alternatives.method import Refused
from federated_optimizer.alternatives.recursion.grown_text import grown_text, identical
from streamsql.algebra.choices import Copies
from streamsql.algebra.expressions import (
    Call,
    Column,
    Expression,
    Literal,
    columns_of,
    conjunction,
    conjuncts,
    map_columns,
    substituted,
)
from streamsql.algebra.operators import (
    Filter,
    Fixpoint,
    Join,
    JoinKind,
    Plan,
    Project,
    RecursiveReference,
)
from streamsql.data.types import DataType

_ONE_RELATION = "its base and its step are not over the same links"


class _RefusedError(Exception):
    """It cannot be turned; the text says why."""


@dataclass(frozen=True, slots=True)
class _Chain:
    """A closure of links.

    Expressions of links are over the columns of `links`; those of the step have the columns of the
    relation behind them.

    Attributes:
        links: The relation X.
        edges: The plan that the step reads of them.
        base: b.
        kept: Conditions on links in the base branch.
        head: s.
        met: Columns of the relation, each with what a link has to have there: k.
        conditions: On columns of the relation.
    """

    links: Plan
    edges: Plan
    base: tuple[Expression, ...]
    kept: tuple[Expression, ...]
    head: tuple[Expression, ...]
    met: tuple[tuple[int, Expression], ...]
    conditions: tuple[Expression, ...]

    @property
    def width(self) -> int:
        """Columns of the links."""
        return len(self.links.schema)

    def own(self, column: int) -> int:
        """Return the position, in the step's expressions, of a column of the relation."""
        return self.width + column


@dataclass(frozen=True, slots=True)
class Turned:
    """A relation grown at its other end.

    Attributes:
        recursion: The relation, perhaps with more rows.
        condition: On its columns, that rows of the relation satisfy.
    """

    recursion: Fixpoint
    condition: Expression | None = None


def turned(node: Fixpoint) -> Turned | Refused:
    """Return the same relation grown at its other end, or why there is none.

    Conditions on columns that are no longer stable leave the base branch.
    """
    try:
        return _Turning(node, _chain(node)).turned()
    except _RefusedError as error:
        return Refused(f"{node.name} grown at its other end: {error}")


def _chain(node: Fixpoint) -> _Chain:
    if node.copies != Copies.ONE:
        raise _RefusedError("UNION ALL counts copies")
    if len(node.base) != 1 or len(node.step) != 1:
        raise _RefusedError("it has more than one base or step")
    (base,), (step,) = node.base, node.step
    top, heads, _ = _peeled(step)
    if not isinstance(top, Join) or top.kind != JoinKind.INNER or top.residual is not None:
        raise _RefusedError("its step is not a join by equal columns alone")
    sides = [_relation(side) for side in top.inputs]
    if (sides[0] is None) == (sides[1] is None):
        raise _RefusedError("its step reads it more than once, or not right below a join")
    at = 0 if sides[0] is not None else 1
    relation, edges = sides[at] or (), top.inputs[1 - at]
    links, plain, _ = _peeled(edges)
    first, based, kept = _peeled(base, down_to=links)
    if first != links:
        raise _RefusedError(_ONE_RELATION)
    width = len(links.schema)
    names = node.schema.fields
    mine = tuple(Column(width + i, f.name, f.dtype) for i, f in enumerate(names))
    both = (*mine, *plain) if at == 0 else (*plain, *mine)
    return _Chain(
        links,
        edges,
        based,
        kept,
        tuple(_over(head, both) for head in heads),
        tuple((pair[at], plain[pair[1 - at]]) for pair in top.keys),
        relation,
    )


_Peeled = tuple[Plan, tuple[Expression, ...], tuple[Expression, ...]]


def _peeled(plan: Plan, *, down_to: Plan | None = None) -> _Peeled:
    """Return what stands below projections, and over it the columns and conditions of the plan.

    With `down_to` also below filters, but not below this plan, which may be filtered itself.
    """
    match plan:
        case Project(input=child, expressions=expressions):
            below, columns, conditions = _peeled(child, down_to=down_to)
            return below, tuple(_over(e, columns) for e in expressions), conditions
        case Filter(input=child, predicate=predicate) if down_to not in (None, plan):
            below, columns, conditions = _peeled(child, down_to=down_to)
            more = tuple(_over(p, columns) for p in conjuncts(predicate))
            return below, columns, (*conditions, *more)
        case _:
            fields = plan.schema.fields
            return plan, tuple(Column(i, f.name, f.dtype) for i, f in enumerate(fields)), ()


def _over(expression: Expression, columns: tuple[Expression, ...]) -> Expression:
    found = substituted(expression, columns)
    if found is None:
        raise _RefusedError("its expressions are too large")
    return found


def _relation(plan: Plan) -> tuple[Expression, ...] | None:
    """Return the conditions on the relation right above its reading; None: it is not read here."""
    match plan:
        case RecursiveReference():
            return ()
        case Filter(input=child, predicate=predicate):
            below = _relation(child)
            return None if below is None else (*below, *conjuncts(predicate))
        case _:
            return None


def _bounds_below(condition: Expression, value: Expression) -> bool:
    """Return whether a condition lets only values pass that are not negative."""
    match condition:
        case Call(">" | ">=", (read, Literal(int() as least))):
            return read == value and least >= 0
        case Call("<" | "<=", (Literal(int() as least), read)):
            return read == value and least >= 0
        case _:
            return False


class _Turning:
    """One recursion that is turned."""

    def __init__(self, node: Fixpoint, chain: _Chain) -> None:
        self._node, self._chain = node, chain
        columns = range(len(node.schema))
        self._stable = {c for c in columns if self._is_own(chain.head[c], c)}
        self._front = {c for c in columns if self._is_of_link(c)}
        self._ends = {c: self._end_of(c, wanted) for c, wanted in chain.met}

    def turned(self) -> Turned:
        """Return the turned recursion.

        Raises:
            _RefusedError: There is none.
        """
        node, chain = self._node, self._chain
        if not chain.met:
            raise _RefusedError("its step is a product")
        ends = self._front | self._stable
        if node.selection is not None and not ends <= set(node.selection.group):
            left = min(ends - set(node.selection.group))
            raise _RefusedError(f"it keeps the best rows of groups without {self._name(left)}")
        for condition in chain.conditions:
            for column in sorted(columns_of(condition)):
                if not self._is_counter(column):
                    raise _RefusedError(f"its step has a condition on {self._name(column)}")
        made = tuple(self._column(c) for c in range(len(node.schema)))
        step = self._step(made)
        if not chain.kept:
            return Turned(msgspec.structs.replace(node, step=(step,)))
        above = conjunction([map_columns(p, self._kept) for p in chain.kept])
        base = Project(chain.links, chain.base, node.schema.names)
        return Turned(msgspec.structs.replace(node, base=(base,), step=(step,)), above)

    def _kept(self, read: Column) -> Column:
        """Return the stable column that keeps a column of the last link."""
        for column in sorted(self._stable):
            if self._chain.base[column] == read:
                field = self._node.schema.fields[column]
                return Column(column, field.name, field.dtype)
        raise _RefusedError(_ONE_RELATION)

    def _step(self, made: tuple[Expression, ...]) -> Plan:
        """Return the step whose columns are over links, then the relation, as those of a chain."""
        node, chain = self._node, self._chain
        keys = tuple((self._ends[c], chain.base[c]) for c, _ in chain.met)
        read = {p for e in (*made, *(key for _, key in keys)) for p in columns_of(e)}
        edges, places = self._edges(sorted(p for p in read if p < chain.width))
        count = len(node.schema)
        reading: Plan = RecursiveReference(node.name, node.columns)
        condition = conjunction(list(chain.conditions))
        if condition is not None:
            reading = Filter(reading, condition)
        pairs = []
        for column, key in keys:
            if not isinstance(key, Column):
                raise _RefusedError(f"{self._name(column)} is computed of a link")
            pairs.append((column, places[key.position]))
        join = Join(reading, edges, JoinKind.INNER, tuple(pairs))

        def placed(column: Column) -> Expression:
            own = column.position - chain.width
            at = own if own >= 0 else count + places[column.position]
            return Column(at, join.schema.fields[at].name, column.dtype)

        expressions = tuple(map_columns(e, placed) for e in made)
        return Project(join, expressions, node.schema.names)

    def _edges(self, read: list[int]) -> tuple[Plan, dict[int, int]]:
        """Return a plan of links with the columns that are read, and their places in it."""
        _, plain, _ = _peeled(self._chain.edges)
        places = {
            e.position: i for i, e in reversed(list(enumerate(plain))) if isinstance(e, Column)
        }
        if set(read) <= places.keys():
            return self._chain.edges, places
        links = self._chain.links
        fields = [links.schema.fields[p] for p in read]
        columns = tuple(Column(p, f.name, f.dtype) for p, f in zip(read, fields, strict=True))
        cut = Project(links, columns, tuple(f.name for f in fields))
        return cut, {p: i for i, p in enumerate(read)}

    # --- columns -------------------------------------------------------------------------------

    def _name(self, column: int) -> str:
        return self._node.schema.names[column]

    def _own(self, column: int) -> Column:
        field = self._node.schema.fields[column]
        return Column(self._chain.own(column), field.name, field.dtype)

    def _is_own(self, expression: Expression, column: int) -> bool:
        return isinstance(expression, Column) and expression.position == self._chain.own(column)

    def _is_of_link(self, column: int) -> bool:
        """Return whether base and step compute a column in the same way from the link alone."""
        return identical(self._chain.head[column], self._chain.base[column])

    def _is_counter(self, column: int) -> bool:
        match self._chain.head[column]:
            case Call("+", (Column() as own, Literal()) | (Literal(), Column() as own)):
                is_own = self._is_own(own, column)
                return is_own and isinstance(self._chain.base[column], Literal)
            case _:
                return False

    def _end_of(self, column: int, wanted: Expression) -> int:
        """Return the column that keeps what the links of a chain join by."""
        if column not in self._front:
            raise _RefusedError(f"its step joins by {self._name(column)}, which is no end of links")
        for stable in sorted(self._stable):
            if self._chain.base[stable] == wanted:
                return stable
        raise _RefusedError(f"no column keeps what its step joins with {self._name(column)}")

    def _column(self, column: int) -> Expression:
        """Return a column of the turned step, over links and relation as in a chain."""
        chain, own = self._chain, self._own(column)
        base, head = chain.base[column], chain.head[column]
        if column in self._front:
            return own
        if column in self._stable:
            return base
        if self._is_counter(column):
            return head
        match head:
            case Call("||"):
                text = grown_text(head, base, own, chain.width, self._joined())
                if text is None:
                    raise _RefusedError(self._other_order(column))
                return text
            case Call("LEAST" | "GREATEST" | "+" as function, (one, other)):
                return self._combined(function, column, one, other)
            case _:
                raise _RefusedError(self._other_order(column))

    def _joined(self) -> dict[int, Column]:
        """Return, by columns of a link, the column of the one before it that has the same value.

        Equal numbers may differ as text: 2 and 2.0, 0.0 and -0.0.
        """
        base = self._chain.base
        pairs = ((base[c], wanted) for c, wanted in self._chain.met)
        return {
            mine.position: wanted
            for mine, wanted in pairs
            if isinstance(mine, Column) and isinstance(wanted, Column)
            if mine.dtype == wanted.dtype != DataType.DOUBLE
        }

    def _combined(
        self, function: str, column: int, one: Expression, other: Expression
    ) -> Expression:
        chain, own = self._chain, self._own(column)
        base = chain.base[column]
        first = self._is_own(other, column)
        mine = one if first else other
        is_same = identical(mine, base) and base.dtype == own.dtype
        if not is_same or not (first or self._is_own(one, column)):
            raise _RefusedError(self._other_order(column))
        if function == "+" and own.dtype != DataType.INTEGER:
            raise _RefusedError(f"{self._name(column)} would be added up in another order")
        if function == "+" and not self._overflows_alike(column):
            raise _RefusedError(f"sums of {self._name(column)} may overflow on the way")
        return Call(function, (own, base) if first else (base, own), own.dtype)

    def _overflows_alike(self, column: int) -> bool:
        """Return whether a sum that overflows in one order of its parts does so in every order.

        That holds where parts are not negative and the least sum is kept. Where the greatest is
        kept, a sum that overflows a step later may displace one that does not.
        """
        selection, base, links = self._node.selection, self._chain.base[column], self._chain.links
        if selection is None or self._node.rounds is not None:
            return False
        if not all(best.minimum for best in selection.bests):
            return False
        conditions = conjuncts(links.predicate) if isinstance(links, Filter) else ()
        return any(_bounds_below(condition, base) for condition in conditions)

    def _other_order(self, column: int) -> str:
        return f"its step computes {self._name(column)} in a way that has an order"
