"""Selections, projections and inner joins over an offer of the same inputs that is no stronger.

| sound if                                                                  | as                   |
|---------------------------------------------------------------------------|----------------------|
| both are products of the same inputs, one for one                         | counts of rows agree |
| the wanted predicates imply the offered ones                              | no row is missing    |
| those that the offered ones do not imply are computed over what is shown  | no row is too many   |
| all wanted columns are computed over what is shown                        | values agree         |

The predicates that remain are a filter above the leaf. Of several assignments of inputs that are
alike the one with the fewest of them is taken.
"""

from federated_optimizer.rules.merge_filters import filtered
from federated_optimizer.sharing.forms.alignment import Available, aligned, rewritten
from federated_optimizer.sharing.forms.blocks import Block, block_of
from federated_optimizer.sharing.forms.known_times import known_times
from federated_optimizer.sharing.forms.residuals import remaining, residual
from streamsql.algebra.expressions import Expression, conjuncts
from streamsql.algebra.operators import Filter, Plan, Project, identity_columns


def answer(wanted: Plan, offered: Plan, leaf: Plan) -> Plan | None:
    """Return the wanted block over the rows of an offered one; None: it cannot be proven right."""
    return answer_block(block_of(wanted), block_of(offered), leaf)


def answer_block(
    wanted: Block, offered: Block, leaf: Plan, *, canonical: bool = True
) -> Plan | None:
    """Return a block over the leaf of an offered one.

    Args:
        wanted: The block.
        offered: What the leaf shows.
        leaf: The rows.
        canonical: Whether predicates that are written otherwise may follow from each other.
    """
    available = Available.of(offered)
    found: list[tuple[int, Plan]] = []
    for moved in aligned(wanted, offered):
        over = over_aligned(moved, offered, available, leaf, canonical=canonical)
        if over is not None:
            found.append((_remaining(over), over))
            if not found[-1][0]:
                break
    return min(found, key=lambda each: each[0])[1] if found else None


def over_aligned(  # noqa: PLR0913 - two blocks, and what is known of them
    wanted: Block,
    offered: Block,
    available: Available,
    leaf: Plan,
    *,
    canonical: bool = True,
    is_implied: bool = False,
) -> Plan | None:
    """Return a block over the leaf of one with the same inputs in the same order.

    Args:
        wanted: The block, over the inputs of the offered one.
        offered: What the leaf shows.
        available: The same by expression.
        leaf: The rows.
        canonical: As for `answer_block`.
        is_implied: Whether it is known that the wanted predicates imply the offered ones.
    """
    outputs = _rewritten(wanted.outputs, available, leaf)
    if outputs is None:
        return None

    def is_shown(predicate: Expression) -> bool:
        return _rewritten((predicate,), available, leaf) is not None

    rest = (
        remaining(wanted.predicates, offered.predicates, is_shown)
        if is_implied
        else residual(
            *(wanted.predicates, offered.predicates, known_times(wanted)),
            canonical=canonical,
            is_shown=is_shown,
        )
    )
    predicates = None if rest is None else _rewritten(rest, available, leaf)
    if predicates is None:
        return None
    plan = filtered(leaf, list(predicates))
    if outputs == identity_columns(plan.schema) and wanted.names == plan.schema.names:
        return plan
    return Project(plan, outputs, wanted.names)


def _rewritten(
    expressions: tuple[Expression, ...], available: Available, leaf: Plan
) -> tuple[Expression, ...] | None:
    found = tuple(rewritten(each, available, leaf) for each in expressions)
    kept = tuple(each for each in found if each is not None)
    return kept if len(kept) == len(found) else None


def _remaining(plan: Plan) -> int:
    below = plan.input if isinstance(plan, Project) else plan
    return len(conjuncts(below.predicate)) if isinstance(below, Filter) else 0
