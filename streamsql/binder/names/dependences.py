"""Relations that a query reads by name, except those that its own WITH clauses redefine."""

from collections.abc import Collection

from sqlglot import exp

from streamsql.binder.names.environment import identifier_text
from streamsql.recursion.components import components


def references(tree: exp.Expr, names: Collection[str]) -> list[exp.Table]:
    """Return where a query reads relations of these names, in the order of the tree."""
    return [
        table
        for table in tree.find_all(exp.Table)
        if isinstance(table.this, exp.Identifier)
        and identifier_text(table.this) in names
        and not _is_redefined(table, identifier_text(table.this), tree)
    ]


def refers_to_name(tree: exp.Expr, name: str) -> bool:
    """Whether a query reads a relation of that name."""
    return bool(references(tree, (name,)))


def readings(tree: exp.Expr) -> dict[str, int]:
    """Return how often each table of a query's WITH is read, by whatever reads it.

    A table that is read twice reads what it is made of twice as well, unless it is MATERIALIZED. A
    table that refers to itself, or to one that refers back, is one relation with those.
    """
    clause = tree.args["with_"]
    tables = {identifier_text(table.args["alias"].this): table for table in clause.expressions}
    body = [part for part in tree.iter_expressions() if part is not clause]
    found = dict.fromkeys(tables, 0)

    def count(part: exp.Expr, names: Collection[str], times: int) -> None:
        for table in references(part, names):
            found[identifier_text(table.this)] += times

    for part in body:
        count(part, tables, 1)
    if not clause.args.get("recursive"):
        names = list(tables)
        for number, name in reversed(list(enumerate(names))):
            count(tables[name].this, names[:number], _copies_of(tables[name], found[name]))
        return found
    reads = {name: names_read(table.this, tables) for name, table in tables.items()}
    for group in reversed(components(list(tables), reads)):
        # The relations of a group are columns of one fixpoint, which every reading of any repeats.
        times = sum(_copies_of(tables[name], found[name]) for name in group)
        for name in group:
            count(tables[name].this, tables.keys() - set(group), times)
    return found


def _copies_of(table: exp.Expr, read: int) -> int:
    return min(read, 1) if table.args.get("materialized") else read


def names_read(tree: exp.Expr, names: Collection[str]) -> frozenset[str]:
    """Return which of these names a query reads."""
    return frozenset(identifier_text(table.this) for table in references(tree, names))


def _is_redefined(table: exp.Table, name: str, root: exp.Expr) -> bool:
    """Whether a WITH clause inside the query gives the name another meaning at this place."""
    node: exp.Expr = table
    while node is not root and node.parent is not None:
        below, node = node, node.parent
        clause = node if isinstance(node, exp.With) else node.args.get("with_")
        if not isinstance(clause, exp.With) or clause is below:
            continue
        defined = [identifier_text(t.args["alias"].this) for t in clause.expressions]
        if name not in defined:
            continue
        if node is not clause or clause.args.get("recursive"):
            return True
        # Inside a plain WITH a name means its earlier definition, or what it means outside.
        position = next(n for n, t in enumerate(clause.expressions) if t is below)
        if name in defined[:position]:
            return True
    return False
