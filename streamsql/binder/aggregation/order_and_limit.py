"""ORDER BY, LIMIT and OFFSET: a maintained TopN, or the order a result is shown in."""

from dataclasses import dataclass

from sqlglot import exp

from streamsql.algebra.operators import Plan, SortKey, TopN
from streamsql.binder.names.environment import Environment, identifier_text, whole_number
from streamsql.binder.names.refused_clauses import only
from streamsql.data.schema import Schema
from streamsql.syntax.cursor import did_you_mean


@dataclass(frozen=True, slots=True)
class Extent:
    """LIMIT and OFFSET; `limit` is None for all rows."""

    limit: int | None = None
    offset: int = 0


def extent(tree: exp.Expr, environment: Environment) -> Extent | None:
    """Return LIMIT and OFFSET of a query, or None where it has neither."""
    limit, offset = tree.args.get("limit"), tree.args.get("offset")
    if limit is None and offset is None:
        return None
    most: int | None = None
    if isinstance(limit, exp.Fetch):
        options = limit.args.get("limit_options")
        if options is not None and (options.args.get("with_ties") or options.args.get("percent")):
            raise environment.unsupported(
                limit,
                "FETCH takes a number of rows, not a percentage",
                hint="FETCH FIRST 5 ROWS ONLY",
                code="bad_limit",
            )
        count = limit.args.get("count")
        most = 1 if count is None else _count(count, "FETCH", environment)
    elif limit is not None:
        only(limit, environment, "expression")
        written = limit.expression
        every = isinstance(written, exp.Null) or (
            isinstance(written, exp.Column) and written.name.upper() == "ALL"
        )
        most = None if every else _count(written, "LIMIT", environment)
    skipped = 0
    if offset is not None:
        only(offset, environment, "expression")
        skipped = _count(offset.expression, "OFFSET", environment)
    return Extent(most, skipped)


def _count(node: exp.Expr, word: str, environment: Environment) -> int:
    number = whole_number(node, 12)
    if number is None:
        raise environment.error(
            node, f"{word} takes a whole number of rows", hint=f"write {word} 10", code="bad_limit"
        )
    return number


def ordered_nodes(clause: exp.Expr | None, environment: Environment) -> list[exp.Ordered]:
    """Return the keys of an ORDER BY as written."""
    if clause is None:
        return []
    only(clause, environment, "expressions")
    nodes = []
    for node in clause.expressions:
        if not isinstance(node, exp.Ordered):
            raise environment.unsupported(
                node,
                "ORDER BY does not support this expression",
                hint="ORDER BY column DESC, other",
                code="unsupported_order",
            )
        only(node, environment, "this", "desc", "nulls_first")
        nodes.append(node)
    return nodes


def sort_key(node: exp.Ordered, position: int) -> SortKey:
    """Return a key of an ORDER BY whose value stands at a position."""
    return SortKey(position, bool(node.args.get("desc")), bool(node.args.get("nulls_first")))


def ordinal(node: exp.Expr, width: int, clause: str, environment: Environment) -> int | None:
    """Return the column that `ORDER BY 2` or `GROUP BY 2` means, from 0; None if no number."""
    if not isinstance(node, exp.Literal) or node.args.get("is_string"):
        return None
    position = whole_number(node, 5) or 0
    if not 1 <= position <= width:
        raise environment.error(
            node,
            f"{clause} {node.name}: there is no such column in the select list",
            hint=f"positions range from 1 to {width}",
            code="unknown_position",
        )
    return position - 1


def output_order(
    tree: exp.Expr, schema: Schema, environment: Environment, *, shown: bool = False
) -> tuple[SortKey, ...]:
    """Return the ORDER BY of a query over the columns it gives.

    `shown` asks for the order to show a TopN in, which ends before a column that is not given.
    """
    keys = []
    for node in ordered_nodes(tree.args.get("order"), environment):
        position = _output(node.this, tree, schema, environment)
        if position is None and shown:
            break
        if position is None:
            select_it = "select it, or add LIMIT; without LIMIT the order affects only the display"
            raise environment.error(
                node.this,
                f"ORDER BY {node.this.sql()}: the query does not have this column",
                hint=did_you_mean(node.this.name, schema.names, select_it),
                code="unsupported_order",
            )
        keys.append(sort_key(node, position))
    return tuple(keys)


def _output(node: exp.Expr, tree: exp.Expr, schema: Schema, environment: Environment) -> int | None:
    position = ordinal(node, len(schema), "ORDER BY", environment)
    if position is not None:
        return position
    bare = isinstance(node, exp.Column) and node.args.get("table") is None
    if bare and identifier_text(node.this) in schema.names:
        return schema.names.index(identifier_text(node.this))
    items = tree.expressions if isinstance(tree, exp.Select) else []
    starred = any(item.is_star for item in items)
    for number, item in enumerate(() if starred else items):
        if _same(item.unalias(), node):
            return number
    return None


def _same(item: exp.Expr, node: exp.Expr) -> bool:
    """Whether both mean the same; a bare name in the select list is not ambiguous."""
    if isinstance(item, exp.Column) and isinstance(node, exp.Column):
        bare = item.args.get("table") is None or node.args.get("table") is None
        return item == node or (bare and identifier_text(item.this) == identifier_text(node.this))
    return item == node


def topped(
    plan: Plan, order: tuple[SortKey, ...], extent: Extent, partition: tuple[int, ...] = ()
) -> Plan:
    """Return the first rows by an order, in all or of every partition."""
    if extent.limit is None and extent.offset == 0:
        return plan
    return TopN(plan, order, extent.limit, extent.offset, partition)
