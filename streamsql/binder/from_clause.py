"""The FROM clause with its joins, and WHERE: one plan and the scope above it."""

from dataclasses import dataclass

from sqlglot import exp

from streamsql.algebra.expressions import Call, Expression, conjuncts
from streamsql.algebra.operators import Plan, Values
from streamsql.binder.environment import Environment, identifier_text
from streamsql.binder.expressions import ExpressionBinder
from streamsql.binder.joins import Condition, JoinTree, Part
from streamsql.binder.relations import QueryBinder, Relation, ViewBinder, bind_relation
from streamsql.binder.scope import Scope, ScopeColumn
from streamsql.binder.shape import only
from streamsql.data.schema import Schema
from streamsql.data.types import DataType

MAX_RELATIONS = 32


@dataclass(frozen=True, slots=True)
class Input:
    """What the select list reads."""

    plan: Plan
    scope: Scope


@dataclass(frozen=True, slots=True)
class _Item:
    """One joined relation, its column numbers and its join condition."""

    part: Part
    kind: str
    on: tuple[Expression, ...]


class FromBinder:
    """Binds one FROM with its WHERE."""

    def __init__(self, environment: Environment, bind: QueryBinder, bind_view: ViewBinder) -> None:
        self._environment = environment
        self._bind = bind
        self._bind_view = bind_view
        self._scope = Scope()
        self._width = 0

    def bind(self, select: exp.Select) -> Input:
        """Return the joined and filtered input of a SELECT."""
        items = self._items(select)
        where = self._where(select)
        if not items:
            part = Part(Values(((),), Schema(())), ())
            return Input(part.filtered(where).plan, Scope())
        conditions = [
            Condition(predicate, number)
            for number, item in enumerate(items)
            if item.kind == "INNER"
            for predicate in item.on
        ]
        conditions += [Condition(predicate) for predicate in where]
        tree = JoinTree(conditions)
        for number, item in enumerate(items):
            if item.kind == "INNER":
                tree.inner(item.part)
                continue
            right = item.kind == "RIGHT"
            safe = all(later.kind != "RIGHT" for later in items[number:])
            tree.outer(item.part, list(item.on), keep_right=right, where=safe)
        whole = tree.finish()
        places = {number: position for position, number in enumerate(whole.layout)}
        return Input(whole.plan, self._scope.moved(places))

    def _where(self, select: exp.Select) -> list[Expression]:
        node = select.args.get("where")
        if node is None:
            return []
        binder = ExpressionBinder(self._environment, self._scope)
        return conjuncts(binder.predicate(node.this, "WHERE"))

    def _items(self, select: exp.Select) -> list[_Item]:
        clause = select.args.get("from_")
        if clause is None:
            return []
        items = [self._item(clause.this, None)]
        nested = list(clause.this.args.get("joins") or [])
        for join in [*nested, *(select.args.get("joins") or [])]:
            if join.this.args.get("joins"):
                raise self._environment.unsupported(
                    join.this, "this JOIN needs ON or USING", hint="each JOIN takes its own ON"
                )
            items.append(self._item(join.this, join))
            if len(items) > MAX_RELATIONS:
                raise self._environment.unsupported(
                    join, f"more than {MAX_RELATIONS} relations in one FROM", hint="use views"
                )
        return items

    def _item(self, node: exp.Expr, join: exp.Expr | None) -> _Item:
        relation = bind_relation(node, self._environment, self._bind, self._bind_view)
        if relation.alias and relation.alias in self._scope.tables:
            raise self._environment.error(
                node,
                f"{relation.alias!r} appears twice in FROM",
                hint=f"give one of them another name: {relation.alias} AS other",
            )
        width = len(relation.plan.schema)
        numbers = tuple(range(self._width, self._width + width))
        left, right = self._scope, relation.scope(self._width)
        self._scope = left + right
        self._width += width
        kind, on = ("INNER", ()) if join is None else self._condition(join, left, right, relation)
        return _Item(Part(relation.plan, numbers), kind, on)

    def _condition(
        self, join: exp.Expr, left: Scope, right: Scope, relation: Relation
    ) -> tuple[str, tuple[Expression, ...]]:
        only(join, self._environment, "this", "on", "using", "side", "kind", "method")
        kind = self._kind(join)
        on, using = join.args.get("on"), join.args.get("using")
        if on is not None:
            binder = ExpressionBinder(self._environment, self._scope)
            return kind, tuple(conjuncts(binder.predicate(on, "ON")))
        if using:
            return kind, self._using(using, left, right, keep_right=kind == "RIGHT")
        crossed = (join.args.get("kind") or "").upper() == "CROSS" or join.meta.get("comma")
        if kind != "INNER" or not crossed:
            raise self._environment.error(
                relation.node,
                f"this {'JOIN' if kind == 'INNER' else kind + ' JOIN'} needs ON or USING",
                hint="JOIN t ON a.x = t.x, or CROSS JOIN t for every pair",
            )
        return kind, ()

    def _kind(self, join: exp.Expr) -> str:
        side = (join.args.get("side") or "").upper()
        kind = (join.args.get("kind") or "").upper()
        if join.args.get("method"):
            raise self._environment.unsupported(
                join,
                f"{join.args['method']} JOIN is not supported",
                hint="name the columns: JOIN t USING (x)",
            )
        if side == "FULL" or kind in ("SEMI", "ANTI", "APPLY", "STRAIGHT"):
            raise self._environment.unsupported(
                join,
                f"{side or kind} JOIN is not supported",
                hint="unite a LEFT JOIN and a RIGHT JOIN with UNION"
                if side == "FULL"
                else "join with SELECT DISTINCT … of the other side",
            )
        return side if side in ("LEFT", "RIGHT") else "INNER"

    def _using(
        self, names: list[exp.Expr], left: Scope, right: Scope, *, keep_right: bool
    ) -> tuple[Expression, ...]:
        pairs = [self._using_pair(name, left, right) for name in names]
        hidden = [(one if keep_right else two).position for one, two in pairs]
        self._scope = self._scope.hiding(hidden)
        return tuple(
            Call("=", (self._scope.read(one), self._scope.read(two)), DataType.BOOLEAN)
            for one, two in pairs
        )

    def _using_pair(
        self, name: exp.Expr, left: Scope, right: Scope
    ) -> tuple[ScopeColumn, ScopeColumn]:
        column = exp.Column(this=name.copy())
        column.meta.update(name.meta)
        one = left.resolve(column, self._environment)
        two = right.resolve(column, self._environment)
        numeric = one.dtype.is_numeric and two.dtype.is_numeric
        if one.dtype != two.dtype and not numeric:
            raise self._environment.error(
                name,
                f"{identifier_text(name)!r} is {one.dtype} on one side and {two.dtype} on the "
                "other",
                hint="JOIN … ON CAST(a.x AS …) = b.x",
            )
        return one, two
