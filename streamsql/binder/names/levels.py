"""Which query a name or an aggregate of a subquery belongs to, as far as the text alone tells.

As in PostgreSQL, an aggregate belongs to the innermost query whose columns it reads: in
`SELECT (SELECT COUNT(s.mid)) FROM seat s` the query around counts.
"""

from collections.abc import Iterator

from sqlglot import exp

from streamsql.binder.names.environment import identifier_text


def owner_of(call: exp.Expr) -> exp.Select | None:
    """Return the query that an aggregate call belongs to.

    A name without its table is taken for one of the innermost query that has a FROM.

    Args:
        call: The call; with its FILTER or WITHIN GROUP, where it has one.
    """
    nearest = call.find_ancestor(exp.Select)
    while isinstance(call.parent, exp.Filter | exp.WithinGroup) and call.parent.this is call:
        call = call.parent
    columns = [c for c in call.find_all(exp.Column) if not isinstance(c.this, exp.Star)]
    if not columns:
        return nearest
    found = nearest
    while found is not None and not any(_reads(found, column) for column in columns):
        found = around(found)
    return nearest if found is None else found


def around(select: exp.Select) -> exp.Select | None:
    """Return the query in whose expressions a query stands; None for one in FROM or WITH."""
    node: exp.Expr = select
    while isinstance(node.parent, exp.Subquery | exp.Paren):
        node = node.parent
    clause = node.parent
    if clause is None or isinstance(clause, exp.From | exp.Join | exp.CTE | exp.SetOperation):
        return None
    return clause.find_ancestor(exp.Select) if not isinstance(clause, exp.Select) else clause


def between(node: exp.Expr, outermost: exp.Expr) -> Iterator[exp.Select]:
    """Yield the queries around a node that stand inside another one, innermost first."""
    found = node.find_ancestor(exp.Select)
    while found is not None and found is not outermost:
        yield found
        found = found.find_ancestor(exp.Select)


def relation_names(select: exp.Select) -> frozenset[str]:
    """Return what the relations of a FROM are called."""
    clause = select.args.get("from_")
    waiting = [] if clause is None else [clause.this]
    waiting += [join.this for join in select.args.get("joins") or []]
    names = set()
    while waiting:
        node = waiting.pop()
        alias = node.args.get("alias")
        if alias is not None and alias.this is not None:
            names.add(identifier_text(alias.this))
        elif isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
            names.add(identifier_text(node.this))
        elif isinstance(node, exp.Subquery) and isinstance(node.this, exp.Table | exp.Subquery):
            waiting.append(node.this)
        waiting += [join.this for join in node.args.get("joins") or []]
    return frozenset(names)


def _reads(select: exp.Select, column: exp.Column) -> bool:
    table = column.args.get("table")
    if table is None:
        return select.args.get("from_") is not None
    return identifier_text(table) in relation_names(select)
