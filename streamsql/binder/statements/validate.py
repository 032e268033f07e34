"""EXPLAIN (TYPE VALIDATE): columns of a query, the state it will keep, and likely mistakes."""

from dataclasses import asdict, dataclass
from typing import Any

from streamsql.algebra.explain import describe, window_text
from streamsql.algebra.operators import (
    Aggregate,
    OnClose,
    Plan,
    Scan,
    SessionWindow,
    SourceKind,
    ToStream,
    Window,
    WindowKind,
)
from streamsql.binder.names.bound_query import BoundQuery
from streamsql.binder.statements.query_warnings import (
    Stateful,
    findings,
    is_unbounded,
    kept_values,
    scan_of,
    streams,
)
from streamsql.data.durations import duration_text


@dataclass(frozen=True, slots=True)
class State:
    """The state of one operator.

    Attributes:
        operator: As EXPLAIN shows it.
        keeps: Rows of which sources, and for how long; one entry per source.
        bounded: Whether every one of them has a bound.
    """

    operator: str
    keeps: tuple[str, ...]
    bounded: bool


@dataclass(frozen=True, slots=True)
class Report:
    """A query that is right, with what its author should know.

    Attributes:
        text: For people: the columns, then a line per stateful operator. The findings are among
            the warnings of the query.
        data: The same for programs, findings included.
    """

    text: str
    data: dict[str, Any]


def validation_report(bound: BoundQuery) -> Report:
    """Return the answer to EXPLAIN (TYPE VALIDATE) for a query that binds."""
    states = _states(bound.plan, closes=False)
    lines = [f"valid: {bound.schema}"]
    if states:
        lines.append("it keeps:")
    lines += [f"  {state.operator}: {'; '.join(state.keeps)}" for state in states]
    data = {
        "valid": True,
        "columns": list(bound.schema.names),
        "state": [
            {"operator": s.operator, "keeps": list(s.keeps), "bounded": s.bounded} for s in states
        ],
        "findings": [asdict(finding) for finding in findings(bound.plan)],
    }
    return Report("\n".join(lines), data)


def _states(plan: Plan, *, closes: bool) -> list[State]:
    if isinstance(plan, OnClose):
        return _states(plan.left, closes=True)
    if isinstance(plan, ToStream):
        kept = ("events until every site has passed their instant",)
        return [*_states(plan.query, closes=False), State(describe(plan), kept, bounded=True)]
    found = []
    if isinstance(plan, Stateful):
        leaves = list(dict.fromkeys(leaf for child in plan.inputs for leaf in streams(child)))
        keeps = [_kept(leaf, closes=closes) for leaf in leaves]
        if closes and isinstance(plan, Aggregate):
            keeps = ["groups until their window closes"]
        elif isinstance(plan, Aggregate) and not kept_values(plan):
            # Numbers per group: rows are forgotten, and without GROUP BY that is one row.
            unending = [leaf for leaf in leaves if is_unbounded(leaf)]
            numbers = "one row of numbers" + (" per group" if plan.group else "")
            keeps = [
                numbers if leaf in unending else text
                for leaf, text in zip(leaves, keeps, strict=True)
            ]
        elif isinstance(plan, SessionWindow):
            keeps = [f"{text}, by session" for text in keeps]
        of_numbers = isinstance(plan, Aggregate) and not plan.group and not kept_values(plan)
        bounded = closes or of_numbers or not any(map(is_unbounded, leaves))
        if keeps:
            found.append(State(describe(plan), tuple(keeps), bounded))
    for child in plan.inputs:
        found += [s for s in _states(child, closes=closes) if s not in found]
    return found


def _kept(leaf: Scan | Window, *, closes: bool) -> str:
    scan = scan_of(leaf)
    name = scan.source
    if closes and is_unbounded(leaf):
        return f"rows of {name} until their window closes"
    if isinstance(leaf, Window) and leaf.kind != WindowKind.UNBOUNDED:
        return f"rows of {name} [{window_text(leaf)}]"
    if scan.history is not None:
        return f"the past of {name}"
    if scan.kind == SourceKind.TABLE:
        return f"table {name}"
    if scan.key:
        keys = ", ".join(scan.columns.names[k] for k in scan.key)
        limit = f" of the last {duration_text(scan.ttl)}" if scan.ttl is not None else ""
        return f"one row of {name} per ({keys}){limit}"
    if scan.ttl is not None:
        return f"rows of {name} of the last {duration_text(scan.ttl)}"
    return f"every row of {name}, for ever"
