"""Columns of a recursion that a row has from the row it is derived from, unchanged.

A predicate over such columns holds of a row if, and only if, it holds of the base row at the start
of its derivation. So it may stand in the base branches, and the recursion has only rows that are
asked for: `WHERE src = 'a'` of pairs (src, dst) that grow at their dst.
"""

from streamsql.algebra.choices import OnMoreRounds
from streamsql.algebra.expressions import Column
from streamsql.algebra.operators import Fixpoint, Plan, RecursiveReference, walk_plan
from streamsql.recursion.column_tracing import trace


def stable_columns(node: Fixpoint) -> frozenset[int]:
    """Return the stable columns of a recursion; of best rows per group those of the group.

    None where a query stops for rows that need more rounds: also for those that are not asked for.
    """
    if node.rounds is not None and node.rounds.on_more == OnMoreRounds.ERROR:
        return frozenset()
    columns = range(len(node.schema)) if node.selection is None else node.selection.group
    found = frozenset(columns)
    for branch in node.step:
        found &= _kept(branch, node.name)
    return found


def _kept(branch: Plan, name: str) -> frozenset[int]:
    """Return the columns of a step branch that it copies from its only reading of the relation."""

    def is_relation(plan: Plan) -> bool:
        return isinstance(plan, RecursiveReference) and plan.name == name

    traced = trace(branch, is_relation)
    if traced.occurrences != 1 or sum(map(is_relation, walk_plan(branch))) != 1:
        return frozenset()
    return frozenset(
        number
        for number, expression in enumerate(traced.columns)
        if isinstance(expression, Column) and expression.position == number
    )
