"""The select list: `*`, aliases, and what an unnamed column is called."""

from collections import Counter
from dataclasses import dataclass

from sqlglot import exp

from streamsql.algebra.expressions import Column
from streamsql.binder.expressions.scalar_functions import PARSED, SPOKEN
from streamsql.binder.names.environment import Environment, identifier_text
from streamsql.binder.names.ranks import is_rank
from streamsql.binder.names.refused_clauses import only
from streamsql.binder.names.scope import Scope, ScopeColumn

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
    """Return the output columns of a SELECT.

    Raises:
        BindingError: There are none, or `*` has nothing to stand for.
        UnsupportedError: There are too many.
    """
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
        is_name = isinstance(node, exp.Column) and not isinstance(node.this, exp.Star)
        if not isinstance(node, exp.Column) or not is_name:
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
            raise scope.unknown(node, identifier_text(node.this), environment)
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
        case exp.Paren() | exp.Cast() | exp.Filter() | exp.WithinGroup():
            return _name_of(node.this, number)
        case exp.Subquery(this=exp.Select(expressions=[only_one])):
            return (
                _name_of(only_one.unalias(), number) if not _alias(only_one) else _alias(only_one)
            )
        case exp.Window() if is_rank(node):
            return "row_number"
        case exp.Window():
            return _name_of(node.this, number)
        case exp.Exists():
            return "exists"
        case exp.Anonymous():
            return str(node.this).lower()
        case exp.ArgMin():
            return "arg_min"
        case exp.ArgMax():
            return "arg_max"
        case exp.GroupConcat():
            return "string_agg"
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
