"""What if base rows went? The rows that would go with them, and those that would come instead."""

from stream_engine.explanation.budget import DEFAULT_WORK, Budget
from stream_engine.explanation.plan_evaluation import Evaluation
from streamsql.algebra.operators import Plan, Window, WindowKind
from streamsql.algebra.row_explanations import BaseRow, Contents, Leaf, WhatIf, leaves_of, scan_of
from streamsql.data.delta import Delta, sort_key
from streamsql.data.types import Row


def what_if_deleted(
    plan: Plan,
    contents: Contents,
    lost: Contents,
    *,
    work: int = DEFAULT_WORK,
) -> WhatIf:
    """Return the effect of deleting base rows on a bound plan's result.

    Args:
        plan: Of the query, as bound.
        contents: Rows of the plan's leaves.
        lost: The deleted ones, as often as they are.
        work: Max steps of work.

    Raises:
        ExplanationLimitError: It takes more.
    """
    evaluation = Evaluation(plan, contents, Budget(work))
    rows = sum(evaluation.root.rows.values())
    changes: dict[Leaf, Delta] = {}
    deleted: dict[tuple[str, Row], BaseRow] = {}
    counted = False
    for leaf in leaves_of(plan):
        scan = scan_of(leaf)
        delta = changes[leaf] = {}
        for row in lost.get(leaf, ()):
            delta[row] = delta.get(row, 0) - 1
            deleted[scan.source, row] = BaseRow(scan, row)
        is_counted = isinstance(leaf, Window) and leaf.kind == WindowKind.ROWS
        counted = counted or (is_counted and bool(delta))
    change = evaluation.change(changes)
    note = "a window by count would contain older rows instead, which are not known here"
    return WhatIf(
        deleted=tuple(sorted(deleted.values(), key=lambda base: (base.source, sort_key(base.row)))),
        gone=_rows({row: -weight for row, weight in change.items() if weight < 0}),
        come=_rows({row: weight for row, weight in change.items() if weight > 0}),
        rows=rows,
        notes=(note,) if counted else (),
    )


def _rows(delta: Delta) -> tuple[Row, ...]:
    return tuple(row for row in sorted(delta, key=sort_key) for _ in range(delta[row]))
