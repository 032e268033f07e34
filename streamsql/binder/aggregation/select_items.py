"""The select list: `*`, aliases, names of unnamed columns, and hidden columns that order rows."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from streamsql.algebra.expressions import Column, Expression
from streamsql.algebra.operators import Distinct, Plan, Project, SortKey, TopN, identity_columns
from streamsql.binder.aggregation.order_and_limit import (
    Extent,
    ordered_nodes,
    ordinal,
    sort_key,
    topped,
)
from streamsql.binder.expressions.scalar_functions import PARSED, SPOKEN
from streamsql.binder.names.environment import Environment, Scope, ScopeColumn, identifier_text
from streamsql.binder.names.refused_clauses import only

MAX_ITEMS = 512


@dataclass(frozen=True, slots=True)
class SelectItem:
    """One output column: its tree, or a column that `*` expanded to.

    Attributes:
        doubled: Whether it comes from a query that gave several columns its name.
    """

    name: str
    node: exp.Expr
    column: Column | None = None
    doubled: bool = False


def select_items(select: exp.Select, scope: Scope, environment: Environment) -> list[SelectItem]:
    """Return the output columns of a SELECT."""
    items: list[SelectItem] = []
    if not select.expressions:
        raise environment.error(
            select, "the select list is empty", hint="SELECT * FROM …", code="empty_select"
        )
    for number, node in enumerate(select.expressions, start=1):
        items += _expanded(node, number, scope, environment)
        if len(items) > MAX_ITEMS:
            raise environment.unsupported(
                node,
                f"more than {MAX_ITEMS} columns in one query",
                hint="name fewer columns",
                code="limit_exceeded",
            )
    return items


def doubled_names(items: list[SelectItem]) -> frozenset[str]:
    """Return the names that mean several columns."""
    counts = Counter(item.name for item in items)
    return frozenset(item.name for item in items if item.doubled or counts[item.name] > 1)


def unique(names: list[str]) -> list[str]:
    """Return names without repetition: the second `a` becomes `a_2`.

    Examples:
        >>> unique(["a", "b", "a", "a"])
        ['a', 'b', 'a_2', 'a_3']
    """
    taken = set(names)
    seen: set[str] = set()
    result = []
    for name in names:
        chosen, number = name, 2
        while chosen in seen or (chosen != name and chosen in taken):
            chosen, number = f"{name}_{number}", number + 1
        seen.add(chosen)
        result.append(chosen)
    return result


def _expanded(
    node: exp.Expr, number: int, scope: Scope, environment: Environment
) -> list[SelectItem]:
    star = node.this if isinstance(node, exp.Column) else node
    if isinstance(star, exp.Star):
        only(star, environment, "except_")
        return _star(node, star.args.get("except_") or [], scope, environment)
    if isinstance(node, exp.Alias):
        return [SelectItem(identifier_text(node.args["alias"]), node.this)]
    return [SelectItem(_name_of(node, number), node)]


def _star(
    node: exp.Expr, without: list[exp.Expr], scope: Scope, environment: Environment
) -> list[SelectItem]:
    qualifier = node.args.get("table")
    if node.args.get("db") is not None:
        raise environment.error(
            node,
            "write all columns of a relation as table.*",
            hint="schemas and nested columns are not supported",
            code="bad_column_name",
        )
    if qualifier is None:
        columns = scope.visible()
        if not columns:
            raise environment.error(
                node, "* needs a FROM", hint="SELECT * FROM source", code="missing_from"
            )
    else:
        table = identifier_text(qualifier)
        scope.check_table(table, qualifier, environment)
        columns = scope.of_table(table)
    left_out = _left_out(without, columns, scope, environment)
    columns = tuple(column for column in columns if column not in left_out)
    if not columns:
        raise environment.error(
            node,
            "* EXCEPT removes every column",
            hint="name the columns to keep",
            code="empty_select",
        )
    items = []
    for column in columns:
        tree = exp.Column(this=exp.to_identifier(column.name, quoted=True))
        tree.meta.update(node.meta)
        items.append(SelectItem(column.name, tree, scope.read(column), column.doubled))
    return items


def _left_out(
    without: list[exp.Expr],
    columns: tuple[ScopeColumn, ...],
    scope: Scope,
    environment: Environment,
) -> set[ScopeColumn]:
    """Return the columns that `* EXCEPT (…)` names; a bare name means all of that name."""
    found: set[ScopeColumn] = set()
    for node in without:
        if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star):
            raise environment.error(
                node,
                "EXCEPT (…) after * takes names of columns",
                hint="SELECT * EXCEPT (a, b) FROM …",
                code="unknown_column",
            )
        meant = {column for column in scope.lookup(node) if column in columns}
        if not meant:
            qualifier = node.args.get("table")
            if qualifier is not None:
                scope.check_table(identifier_text(qualifier), qualifier, environment)
            raise scope.unknown(node, environment)
        if meant & found:
            raise environment.error(
                node,
                f"column {identifier_text(node.this)!r} appears twice in EXCEPT",
                hint="name it once",
                code="duplicate_name",
            )
        found |= meant
    return found


def _name_of(node: exp.Expr, number: int) -> str:
    match node:
        case exp.Column():
            return identifier_text(node.this)
        case exp.Paren() | exp.Cast() | exp.Filter() | exp.WithinGroup() | exp.Window():
            return _name_of(node.this, number)
        case exp.Subquery(this=exp.Select(expressions=[only_one])):
            return _alias(only_one) or _name_of(only_one.unalias(), number)
        case exp.Exists():
            return "exists"
        case exp.Anonymous():
            return str(node.this).lower()
        case _ if type(node) in SPOKEN:
            return SPOKEN[type(node)]
        case _ if type(node) in PARSED:
            return PARSED[type(node)][0].lower()
        case exp.Func() if not isinstance(node, exp.Connector):
            return node.sql_name().lower()
        case _:
            return f"column{number}"


def _alias(node: exp.Expr) -> str:
    return identifier_text(node.args["alias"]) if isinstance(node, exp.Alias) else ""


@dataclass(slots=True)
class Outputs:
    """What one SELECT computes: its list, and hidden columns that order or choose its rows.

    Attributes:
        nodes: What is computed, as written; the select list comes first.
        expressions: The same bound, over the plan's rows, behind the correlation columns.
        order: ORDER BY by places in `nodes`.
        first_of: DISTINCT ON by places in `nodes`.
    """

    select: exp.Select
    environment: Environment
    items: list[SelectItem]
    nodes: list[exp.Expr] = field(init=False)
    expressions: list[Expression] = field(default_factory=list)
    order: list[SortKey] = field(default_factory=list)
    first_of: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Begin with the select list."""
        self.nodes = [item.node for item in self.items]

    @property
    def has_windows(self) -> bool:
        """Whether window functions are computed, or choose rows."""
        return False

    @property
    def selected(self) -> int:
        """How many of `nodes` there are without those that only window functions read."""
        return len(self.nodes)

    def add_distinct_on(self, on: exp.Expr) -> None:
        """Add the expressions of DISTINCT ON (…)."""
        parts = on.expressions if isinstance(on, exp.Tuple) else [on]
        if not parts:
            raise self.environment.wrong_arguments(
                self.select,
                "DISTINCT ON () has no columns",
                "DISTINCT ON (a) … ORDER BY a, b; or LIMIT 1 for one row of all",
            )
        self.first_of = [self._place(part.unnest()) for part in parts]

    def add_order(self) -> None:
        """Add the keys of ORDER BY."""
        nodes = ordered_nodes(self.select.args["order"], self.environment)
        self.order = [sort_key(node, self._place(node.this)) for node in nodes]

    def _place(self, node: exp.Expr) -> int:
        """Return the place of an expression of ORDER BY: of the select list, or a hidden one."""
        number = ordinal(node, len(self.items), "ORDER BY", self.environment)
        if number is not None:
            return number
        if isinstance(node, exp.Column) and node.args.get("table") is None:
            name = identifier_text(node.this)
            named = [n for n, item in enumerate(self.items) if item.name == name]
            if named:
                return named[0]
        return self.computed(node)

    def computed(self, node: exp.Expr) -> int:
        """Return the place of an expression over the rows; adds a hidden one if none has it."""
        known = self.held(node)
        if known is not None:
            return known
        self.nodes.append(node)
        return len(self.nodes) - 1

    def held(self, node: exp.Expr) -> int | None:
        """Return the place of an expression that is computed already."""
        return self.nodes.index(node) if node in self.nodes else None

    def given(self, number: int) -> Column | None:
        """Return the column that `*` expanded to at a place."""
        return self.items[number].column if number < len(self.items) else None

    def shaped(self, plan: Plan, prefix: int, window: Extent | None, *, is_set: bool) -> Plan:
        """Return the rows: projected, without repetitions, chosen by order.

        The rows begin with `prefix` correlation columns.
        """
        width = len(self.items)
        names = [f"key_{n + 1}" for n in range(prefix)]
        names += [item.name for item in self.items]
        names += [f"order_{n + 1}" for n in range(len(self.nodes) - width)]
        keys = tuple(range(prefix))
        plan = self.projected(plan, unique(names), keys)
        if self.first_of:
            chosen = (*keys, *(prefix + n for n in self.first_of))
            plan = TopN(plan, moved(self.order, prefix), 1, 0, chosen)
        elif is_set:
            self._check_set()
            plan = Distinct(plan)
        plan = self.ranked(plan, prefix)
        if window is not None:
            plan = topped(plan, moved(self.order, prefix), window, keys)
        if len(plan.schema) == prefix + width:
            return plan
        kept = identity_columns(plan.schema)[: prefix + width]
        return Project(plan, kept, plan.schema.names[: prefix + width])

    def projected(self, plan: Plan, names: list[str], _keys: tuple[int, ...]) -> Plan:
        """Return the rows with all that is computed."""
        return projected(plan, self.expressions, names)

    def ranked(self, plan: Plan, _prefix: int) -> Plan:
        """Return the rows that a ROW_NUMBER() chooses: all without one."""
        return plan

    def _check_set(self) -> None:
        if self.selected > len(self.items):
            raise self.environment.error(
                self.nodes[len(self.items)],
                "with DISTINCT, ORDER BY takes only columns of the select list",
                hint="select it, or group by the columns and order by MIN or MAX of it",
                code="unsupported_order",
            )


def moved(order: Iterable[SortKey], by: int) -> tuple[SortKey, ...]:
    """Return sort keys whose columns begin at another position."""
    return tuple(SortKey(key.position + by, key.descending, key.nulls_first) for key in order)


def projected(plan: Plan, expressions: Sequence[Expression], names: Sequence[str]) -> Plan:
    """Return the projection, or the plan itself when nothing would change."""
    schema = plan.schema
    same = tuple(names) == schema.names and all(
        isinstance(expression, Column) and expression.position == position
        for position, expression in enumerate(expressions)
    )
    return plan if same else Project(plan, tuple(expressions), tuple(names))
