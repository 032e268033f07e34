"""Shares of rows that pass filters: measured where a site has counted them, else assumed."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod

from federated_optimizer.statistics.column_shares import (
    LEAST_SHARE,
    Share,
    below_share,
    equal_share,
)
from federated_optimizer.statistics.default_facts import COMPARISON, EQUALITY, Default
from federated_optimizer.statistics.planning_statistics import ColumnFacts, Passing, Statistics
from federated_optimizer.statistics.predicate_text import predicate_text
from streamsql.algebra.expressions import (
    Call,
    Column,
    Expression,
    Literal,
    columns_of,
    conjuncts,
    expression_text,
    map_columns,
)
from streamsql.algebra.operators import (
    Filter,
    Join,
    JoinKind,
    Plan,
    Project,
    RemoteSource,
    Scan,
    Window,
)
from streamsql.data.types import Value


@dataclass(frozen=True, slots=True)
class Passed:
    """A share with its range.

    Attributes:
        assumed: What of it nobody has counted, in words.
    """

    share: float
    low: float
    high: float
    assumed: tuple[str, ...] = ()


_TURNED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""Comparisons, and what each is when its sides change places."""


def passed(node: Filter, statistics: Statistics) -> Passed:
    """Return the share of rows that pass a filter.

    What was counted for the whole predicate, else the product over its parts: counted ones of
    queries with that part alone, what is known of their columns, and defaults.
    """
    scan = _filtered(node)
    if scan is None:
        return _product(_parts_above(node, statistics))
    known = _known(scan, node.predicate, statistics)
    if known is not None:
        return Passed(known.share, known.low, known.high)
    return _product(_parts(scan, conjuncts(node.predicate), statistics))


def _product(parts: Sequence[Passed]) -> Passed:
    return Passed(
        prod(part.share for part in parts),
        prod(part.low for part in parts),
        min(part.high for part in parts),
        tuple(word for part in parts for word in part.assumed),
    )


def _filtered(node: Filter) -> Scan | None:
    """Return the source or stored table, as it is now, that a filter reads; else None."""
    below = node.input.input if isinstance(node.input, Window) else node.input
    return below if isinstance(below, Scan) and below.history is None else None


def _parts_above(node: Filter, statistics: Statistics) -> list[Passed]:
    """Return the shares of a filter above joins and projections, by what is known of sources.

    They are those that its parts have at their sources, as if these were filtered below a join.
    """
    found: list[Passed] = []
    at_sources: dict[Scan, list[Expression]] = {}
    for part in conjuncts(node.predicate):
        scan, moved = _at_source(node.input, part, statistics)
        if scan is None:
            found += _parts(None, [part], statistics)
        else:
            at_sources.setdefault(scan, []).append(moved)
    for scan, moved_parts in at_sources.items():
        found += _parts(scan, moved_parts, statistics)
    return found


def _at_source(
    plan: Plan, part: Expression, statistics: Statistics
) -> tuple[Scan | None, Expression]:
    """Return a predicate over the columns of the one source that has them all; None: none has."""
    origins = {c: _origin(plan, c, statistics) for c in columns_of(part)}
    scans = {None if origin is None else origin[0] for origin in origins.values()}
    scan = next(iter(scans)) if len(scans) == 1 else None
    if scan is None:
        return None, part
    places = {c: origin[1] for c, origin in origins.items() if origin is not None}
    return scan, map_columns(part, lambda c: Column(places[c.position], c.name, c.dtype))


def _origin(plan: Plan, column: int, statistics: Statistics) -> tuple[Scan, int] | None:
    """Return the source's column whose values a plan's column has, as often as there; or None.

    An outer join adds NULLs, groups have other values, and a filter of the same column leaves some.
    """
    match plan:
        case Scan(history=None):
            return plan, column
        case RemoteSource(fragment=name) if name in statistics.nodes:
            return _origin(statistics.nodes[name], column, statistics)
        case Window(input=child):
            return _origin(child, column, statistics)
        case Filter(input=child) if column not in columns_of(plan.predicate):
            return _origin(child, column, statistics)
        case Project(input=child, expressions=expressions):
            shown = expressions[column]
            if isinstance(shown, Column):
                return _origin(child, shown.position, statistics)
            return None
        case Join(kind=JoinKind.INNER, left=left, right=right):
            width = len(left.schema)
            if column < width:
                return _origin(left, column, statistics)
            return _origin(right, column - width, statistics)
        case _:
            return None


def default_of(part: Expression) -> Default:
    """Return what is assumed of a comparison."""
    return EQUALITY if isinstance(part, Call) and part.function == "=" else COMPARISON


def _known(scan: Scan | None, predicate: Expression, statistics: Statistics) -> Passing | None:
    if scan is None:
        return None
    text = predicate_text(predicate, scan.schema.names)
    return statistics.passing.get((scan.source.lower(), text))


def _parts(scan: Scan | None, parts: Iterable[Expression], statistics: Statistics) -> list[Passed]:
    found: list[Passed] = []
    bounds: dict[int, list[tuple[str, float]]] = {}
    facts: dict[int, ColumnFacts] = {}
    for part in parts:
        known = _known(scan, part, statistics)
        compared = None if scan is None or known is not None else _compared(part)
        if known is not None:
            found.append(Passed(known.share, known.low, known.high))
            continue
        if scan is not None and compared is not None:
            column, operator, value = compared
            name = scan.schema.names[column].lower()
            about = statistics.columns.get((scan.source.lower(), name))
            if about is not None and operator in {"=", "<>"}:
                found.append(_equality(about, operator, value))
                continue
            if about is not None and about.deciles and isinstance(value, int | float):
                facts[column] = about
                bounds.setdefault(column, []).append((operator, float(value)))
                continue
        nulls = None if scan is None else _of_nulls(scan, part, statistics)
        if nulls is not None:
            found.append(nulls)
            continue
        default = default_of(part)
        share = f"{default.value:.2g} of the rows ({default.range_text})"
        words = f"{expression_text(part)} holds for {share}"
        found.append(Passed(default.value, default.low, default.high, (words,)))
    return found + [_between(facts[column], ends) for column, ends in bounds.items()]


def _compared(part: Expression) -> tuple[int, str, Value] | None:
    """Return the column, operator and value of a comparison of a column with a value."""
    match part:
        case Call(function=operator, arguments=(Column() as column, Literal() as literal)):
            pass
        case Call(function=operator, arguments=(Literal() as literal, Column() as column)):
            operator = _TURNED.get(operator, "")
        case _:
            return None
    known = operator in _TURNED and literal.value is not None
    return (column.position, operator, literal.value) if known else None


def _equality(facts: ColumnFacts, operator: str, value: Value) -> Passed:
    equal = equal_share(facts, value)
    if operator == "=":
        return Passed(max(equal.value, LEAST_SHARE), equal.low, equal.high)
    present = 1.0 - facts.nulls
    share = max(present - equal.value, LEAST_SHARE)
    low = max(present - facts.unsure - equal.high, 0.0)
    high = min(present + facts.unsure, 1.0) - equal.low
    return Passed(share, min(low, share), max(high, share))


def _of_nulls(scan: Scan, part: Expression, statistics: Statistics) -> Passed | None:
    """Return the share that IS NULL or IS NOT NULL leaves of a column that was counted."""
    match part:
        case Call(function="IS NULL" | "IS NOT NULL" as asked, arguments=(Column() as column,)):
            name = scan.schema.names[column.position].lower()
            about = statistics.columns.get((scan.source.lower(), name))
        case _:
            return None
    if about is None:
        return None
    share = max(about.nulls if asked == "IS NULL" else 1.0 - about.nulls, LEAST_SHARE)
    return Passed(share, max(share - about.unsure, 0.0), min(share + about.unsure, 1.0))


def _between(facts: ColumnFacts, ends: Iterable[tuple[str, float]]) -> Passed:
    """Return the share between bounds of one column."""
    below, above = Share(1.0, 1.0, 1.0), Share(0.0, 0.0, 0.0)
    for operator, value in ends:
        share = below_share(facts, value, equal=operator in {"<=", ">"})
        if operator in {"<", "<="}:
            below = min(below, share)
        else:
            above = max(above, share)
    present = 1.0 - facts.nulls
    value = max((below.value - above.value) * present, LEAST_SHARE)
    low = max((below.low - above.high) * (present - facts.unsure), 0.0)
    high = (below.high - above.low) * min(present + facts.unsure, 1.0)
    return Passed(value, min(low, value), max(high, value))
