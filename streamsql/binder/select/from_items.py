"""The relations of one FROM with their join conditions, each column under a number of its own."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from sqlglot import exp

from streamsql.algebra.expressions import Expression, conjuncts
from streamsql.algebra.operators import Plan
from streamsql.binder.expressions.expression_binder import ExpressionBinder
from streamsql.binder.names.environment import Environment, Scope, conjunct_nodes
from streamsql.binder.names.outer_names import outer_of
from streamsql.binder.names.ranks import (
    Bounds,
    Comparison,
    comparisons,
    named,
    numbered,
    ranked_column,
    reads_name,
)
from streamsql.binder.names.refused_clauses import only
from streamsql.binder.relations.join_conditions import as_of, natural, using
from streamsql.binder.relations.join_tree import AsOf, JoinType, Part
from streamsql.binder.relations.named_relations import Relation, bind_relation
from streamsql.binder.select.on_subqueries import HeldCondition
from streamsql.binder.subqueries.subquery_joins import SubqueryJoins, holds_query

MAX_RELATIONS = 32
_INSIDE = "inside"
"""Joins that bind closer than the comma they stand behind, in the meta of that comma."""
Nested = Callable[[exp.Select], tuple[Plan, Scope]]


@dataclass(slots=True)
class Item:
    """One joined relation.

    Attributes:
        on: Conjuncts of its ON, over column numbers.
        subqueries: Conjuncts of its ON that hold a query or read the query around, as written;
            of inner joins only, which leave them to the WHERE where they can.
        scope: What its ON may read.
        held: Conjuncts of the ON of other joins that hold a query.
        computed: Columns that are computed above the join, by number.
    """

    node: exp.Expr
    part: Part
    kind: JoinType = JoinType.INNER
    on: tuple[Expression, ...] = ()
    as_of: AsOf | None = None
    subqueries: tuple[exp.Expr, ...] = ()
    scope: Scope = field(default_factory=Scope)
    held: tuple[HeldCondition, ...] = ()
    computed: dict[int, Expression] = field(default_factory=dict)

    @property
    def brings_back(self) -> bool:
        """Whether it pads rows of the relations before it, as RIGHT and FULL JOIN do."""
        return self.kind in (JoinType.RIGHT, JoinType.FULL)


@dataclass(frozen=True, slots=True)
class _Rank:
    """A ROW_NUMBER() column of an item, and the comparisons of its ON."""

    item: int
    table: str
    name: str
    said: list[Comparison]


@dataclass(slots=True)
class FromItems:
    """Binds the items of one FROM.

    Attributes:
        select: The query.
        environment: Of the items; the WHERE binds in the query's own.
        nested: Binds joins in parentheses.
        where: Conjuncts of WHERE as written, without those on row numbers.
    """

    select: exp.Select
    environment: Environment
    nested: Nested
    items: list[Item] = field(default_factory=list)
    scope: Scope = field(default_factory=Scope)
    where: list[exp.Expr] = field(default_factory=list)
    _width: int = 0
    _before_comma: int = 0
    _ranks: list[_Rank] = field(default_factory=list)
    _taken: list[exp.Expr] = field(default_factory=list)

    def bind(self) -> None:
        """Bind FROM, and take the conditions on row numbers from WHERE."""
        where, clause = self.select.args.get("where"), self.select.args.get("from_")
        self.where = [] if where is None else conjunct_nodes(where.this)
        if clause is None:
            return
        self._add(clause.this, None)
        own = clause.this.args.get("joins") if isinstance(clause.this, exp.Table) else None
        for join in _by_commas([*(own or []), *(self.select.args.get("joins") or [])]):
            self._add(join.this, join)
            if len(self.items) > MAX_RELATIONS:
                raise self.environment.unsupported(
                    join,
                    f"FROM has more than {MAX_RELATIONS} relations",
                    hint="use views",
                    code="limit_exceeded",
                )
        for rank in self._ranks:
            self._bound(rank)

    def _add(self, node: exp.Expr, join: exp.Expr | None) -> None:
        plan, right, relation = self._relation(node, join)
        width = len(plan.schema)
        numbers = tuple(range(self._width, self._width + width))
        left = self.scope
        if join is not None and join.meta.get("comma"):
            self._before_comma = len(left.columns)
        self.scope = left + right
        self._width += width
        item = Item(node, Part(plan, numbers))
        self.items.append(item)
        on = [] if join is None else conjunct_nodes(join.args.get("on"))
        if relation is not None and self.environment.binding.ranked:
            on = self._note_rank(relation, item, join, on)
        if join is not None:
            self._condition(join, item, on, left, right)

    def _relation(
        self, node: exp.Expr, join: exp.Expr | None
    ) -> tuple[Plan, Scope, Relation | None]:
        if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Table):
            only(node, self.environment, "this", "joins")
        group = _group(node, join)
        if group is not None:
            plan, scope = self.nested(group)
            relation = None
            names = scope.tables
        else:
            relation = bind_relation(node, self.environment)
            plan, scope, names = relation.plan, relation.scope(0), (relation.alias,)
        for name in names:
            if name and name in self.scope.tables:
                raise self.environment.error(
                    node,
                    f"{name!r} appears twice in FROM",
                    hint=f"give one of them another name: {name} AS other",
                    code="duplicate_name",
                )
        moved = {c.position: c.position + self._width for c in scope.columns}
        return plan, scope.moved(moved), relation

    def _condition(
        self, join: exp.Expr, item: Item, on: list[exp.Expr], left: Scope, right: Scope
    ) -> None:
        only(join, self.environment, "this", "on", "using", "side", "kind", "method")
        item.kind = join_kind(join, self.environment)
        names = join.args.get("using") or []
        # A comma binds less than JOIN: what stands before it is not joined here.
        before = Scope(left.columns[: self._before_comma])
        near = Scope(left.columns[self._before_comma :])
        if (join.args.get("method") or "").upper() == "NATURAL":
            names = natural(join, near, right, self.environment)
        if item.kind in (JoinType.ASOF, JoinType.ASOF_LEFT):
            self._as_of(join, item, on)
        elif names:
            merged = using(names, near, right, item.kind, self._width, self._closed())
            self.scope = before + merged.scope
            item.on, item.computed = merged.on, merged.computed
            self._width += len(merged.computed)
        elif join.args.get("on") is not None:
            self._bind_on(item, on)
        else:
            self._check_crossed(join, item)
        if item.kind in (JoinType.SEMI, JoinType.ANTI):
            self.scope = left

    def _bind_on(self, item: Item, on: list[exp.Expr]) -> None:
        item.scope = self.scope
        environment = self._outside_on(item)
        if item.kind == JoinType.INNER:
            held = [node for node in on if self._is_held(node)]
            item.subqueries = tuple(held)
        else:
            held = [node for node in on if holds_query(node)]
            item.held = self.bound_apart(item, held)
        plain = [node for node in on if node not in held]
        binder = ExpressionBinder(environment, self.scope)
        item.on = tuple(part for node in plain for part in conjuncts(binder.predicate(node, "ON")))

    def bound_apart(self, item: Item, nodes: Iterable[exp.Expr]) -> tuple[HeldCondition, ...]:
        """Return conjuncts of an ON that hold queries, to be tested by the join itself."""
        shared = SubqueryJoins(self._outside_on(item), item.scope)
        result = []
        for node in nodes:
            own = shared.apart()
            predicates = own.conjuncts([node], own.binder(), "ON")
            result.append(HeldCondition(tuple(predicates), own))
        return tuple(result)

    def _outside_on(self, item: Item) -> Environment:
        """Return the environment of an ON that cannot read the query around."""
        reason = f"and the ON of a {item.kind} JOIN cannot read it"
        if item.kind == JoinType.INNER:
            reason = "and an ON before a RIGHT or FULL JOIN cannot read it"
        return self.environment.without_outer(reason)

    def _is_held(self, node: exp.Expr) -> bool:
        if holds_query(node):
            return True
        outer = None if self.environment.outer is None else outer_of(self.environment)
        if outer is None:
            return False
        columns = node.find_all(exp.Column)
        return any(not self.scope.lookup(c) and outer.knows(c) for c in columns)

    def _as_of(self, join: exp.Expr, item: Item, on: list[exp.Expr]) -> None:
        if join.args.get("on") is None:
            raise self.environment.error(
                item.node,
                "this ASOF JOIN needs ON",
                hint="ON a.k = b.k AND a.ts >= b.ts",
                code="missing_join_condition",
            )
        binder = ExpressionBinder(self._closed(), self.scope)
        bound = [part for node in on for part in conjuncts(binder.predicate(node, "ON"))]
        before = {number for other in self.items[:-1] for number in other.part.layout}
        here = set(item.part.layout)
        item.as_of = as_of(bound, before, here, join.args["on"], self.environment)

    def _check_crossed(self, join: exp.Expr, item: Item) -> None:
        crossed = (join.args.get("kind") or "").upper() == "CROSS" or join.meta.get("comma")
        if item.kind != JoinType.INNER or not crossed:
            raise self.environment.error(
                item.node,
                f"this {'JOIN' if item.kind == 'INNER' else item.kind + ' JOIN'} needs ON or USING",
                hint="JOIN t ON a.x = t.x, or CROSS JOIN t for every pair",
                code="missing_join_condition",
            )

    def _closed(self) -> Environment:
        return self.environment.without_outer("and the condition of a JOIN cannot read it")

    # --- row numbers -------------------------------------------------------------------------

    def _note_rank(
        self, relation: Relation, item: Item, join: exp.Expr | None, on: list[exp.Expr]
    ) -> list[exp.Expr]:
        position = ranked_column(relation.plan, self.environment.binding)
        if position is None:
            return on
        name = relation.plan.schema.names[position]
        kind = JoinType.INNER if join is None else join_kind(join, self.environment)
        if kind not in (JoinType.INNER, JoinType.LEFT, JoinType.SEMI, JoinType.ANTI):
            self._number(item)
            return on
        said, others = comparisons(on, named(relation.alias, name))
        self._take(on, others)
        rank = _Rank(len(self.items) - 1, relation.alias, name, said)
        if kind == JoinType.INNER:
            self._ranks.append(rank)  # WHERE may say more
        else:
            self._apply(rank, said)
        return others

    def _bound(self, rank: _Rank) -> None:
        said = rank.said
        if not any(item.brings_back for item in self.items[rank.item :]):
            column = exp.Column(this=exp.to_identifier(rank.name, quoted=True))
            alone = len(self.scope.lookup(column)) <= 1
            found, others = comparisons(self.where, named(rank.table, rank.name, bare=alone))
            said = [*said, *found]
            self._take(self.where, others)
            self.where = others
        self._apply(rank, said)

    def _apply(self, rank: _Rank, said: list[Comparison]) -> None:
        item = self.items[rank.item]
        if not said:
            self._number(item)
            return
        bounds = Bounds.of(said)
        plan = bounds.applied(item.part.plan, self.environment.binding)
        item.part = Part(plan, item.part.layout)
        if bounds.last != bounds.first and self._is_read(rank):
            self._number(item)

    def _take(self, conditions: list[exp.Expr], others: list[exp.Expr]) -> None:
        """Note the conditions that bound numbers: all but the others."""
        kept = {id(node) for node in others}
        self._taken += [node for node in conditions if id(node) not in kept]

    def _number(self, item: Item) -> None:
        """Compute the numbers of an item's ROW_NUMBER()."""
        item.part = Part(numbered(item.part.plan, self.environment.binding), item.part.layout)

    def _is_read(self, rank: _Rank) -> bool:
        """Whether the query may read numbers beside the conditions that bound them."""
        if not self.select.expressions:  # joins in brackets: the query around them reads all
            return True
        return reads_name(self.select, rank.name, (self.items[rank.item].node, *self._taken))


def join_kind(join: exp.Expr, environment: Environment) -> JoinType:
    """Return how a JOIN joins; other ways are refused."""
    side = (join.args.get("side") or "").upper()
    kind = (join.args.get("kind") or "").upper()
    method = (join.args.get("method") or "").upper()
    if method == "ASOF" and side in ("", "LEFT") and kind in ("", "INNER", "OUTER"):
        return JoinType.ASOF_LEFT if side else JoinType.ASOF
    if kind in ("SEMI", "ANTI") and side in ("", "LEFT") and not method:
        return JoinType(kind)
    if kind in ("", "INNER", "OUTER", "CROSS") and method in ("", "NATURAL"):
        return JoinType(side) if side in ("LEFT", "RIGHT", "FULL") else JoinType.INNER
    hint = {
        "ASOF": "ASOF JOIN and ASOF LEFT JOIN match the newest row of the right side",
        "NATURAL": "name the columns: JOIN t USING (x)",
    }.get(method, "swap the sides: LEFT SEMI JOIN and LEFT ANTI JOIN keep rows of the left side")
    words = " ".join(filter(None, (method, side, kind)))
    raise environment.unsupported(
        join, f"{words} JOIN is not supported", hint=hint, code="unsupported_join"
    )


def _by_commas(joins: list[exp.Expr]) -> list[exp.Expr]:
    """Return joins with those behind a comma inside of it, where it makes a difference.

    JOIN binds closer than a comma: `a, b FULL JOIN c` pads rows of b and c, then pairs with a.
    """
    result: list[exp.Expr] = []
    start = len(joins)
    for number in reversed(range(len(joins))):
        if not joins[number].meta.get("comma"):
            continue
        inside = joins[number + 1 : start]
        if any((join.args.get("side") or "").upper() in ("RIGHT", "FULL") for join in inside):
            comma = joins[number].copy()
            comma.meta[_INSIDE] = inside
            inside = []
        else:
            comma = joins[number]
        result = [comma, *inside, *result]
        start = number
    return [*joins[:start], *result]


def _group(node: exp.Expr, join: exp.Expr | None) -> exp.Select | None:
    """Return joins in parentheses, or before their ON, as a query of their own."""
    if join is not None and _INSIDE in join.meta:
        joins = [inside.copy() for inside in join.meta[_INSIDE]]
        select = exp.Select(from_=exp.From(this=node.copy()), joins=joins)
        select.meta.update(node.meta)
        return select
    tree = node
    while isinstance(tree, exp.Subquery) and tree.args.get("alias") is None:
        tree = tree.this
    inside = tree is not node and isinstance(tree, exp.Table | exp.Subquery)
    nested = join is not None and bool(node.args.get("joins"))
    if not inside and not nested:
        return None
    first = tree.copy()
    outside = None if isinstance(first, exp.Table) else first.args.get("joins")
    if outside:  # those of a table are taken from it
        first.set("joins", None)
    select = exp.Select(from_=exp.From(this=first), joins=outside or [])
    select.meta.update(node.meta)
    return select
