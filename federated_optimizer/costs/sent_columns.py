"""Bytes of the rows that a plan sends: as they were counted, else by the types of its columns."""

from statistics import fmean

from federated_optimizer.costs.relations.column_estimates import Columns
from federated_optimizer.costs.relations.estimates import BYTES, OTHER_BYTES, Estimating, row_bytes
from federated_optimizer.costs.relations.size_and_motion import Estimate
from federated_optimizer.statistics.default_facts import (
    DOUBLE_BYTES,
    INTEGER_BYTES,
    TEXT_BYTES,
)
from federated_optimizer.statistics.planning_statistics import Statistics
from streamsql.algebra.column_origins import column_origins
from streamsql.algebra.expressions import Call, Column, Literal
from streamsql.algebra.operators import (
    Aggregate,
    AggregateCall,
    AggregateFunction,
    Distinct,
    Filter,
    Plan,
    Project,
    Scan,
    Window,
    walk_plan,
)
from streamsql.algebra.scalar_functions.scalar_numbers import WORD
from streamsql.data.types import DataType
from streamsql.wire.batch_parts import Decimal, by_digits

_AS_THEY_ARE = frozenset({AggregateFunction.MIN, AggregateFunction.MAX})
"""Aggregates that are one of the values."""


def sent_columns(plan: Plan) -> tuple[str, str] | None:
    """Return the source, in lower case, and the columns of it that a plan sends, sorted.

    None: it computes columns, or reads more than one source.
    """
    nodes = tuple(walk_plan(plan))
    if not all(isinstance(node, Scan | Window | Filter | Project | Distinct) for node in nodes):
        return None
    schemas = {node.source: node.columns.names for node in nodes if isinstance(node, Scan)}
    origins = column_origins(plan)
    names = [schemas[origin[0]][origin[1]] for origin in origins if origin is not None]
    if len(schemas) != 1 or len(names) != len(origins):
        return None
    (source,) = schemas
    return source.lower(), ", ".join(sorted(names))


def sent_bytes(plan: Plan, statistics: Statistics, rows: Estimate | None = None) -> float:
    """Return the bytes of a row that a plan sends, without its share of the message.

    As they were counted of rows with these columns; else by the types of the columns, and by the
    deciles of numbers and the bytes of texts that are a source's.

    Args:
        plan: Of one place.
        statistics: Of the sources.
        rows: If it is given, the mean over them: of two rows of which one takes the place of the
            other the second one has only the columns that differ.
    """
    columns = sent_columns(plan)
    counted = None if columns is None else statistics.row_bytes.get(columns)
    if counted is not None:
        return counted
    widths = _widths(plan, statistics)
    whole = row_bytes(plan.schema, ()) + sum(widths)
    if rows is None or not rows.replaced:
        return whole
    differing = Columns(lambda _: rows.rows, statistics.columns, 1).changing
    again = sum(
        width * (1.0 if _is_group(plan, position) else 1.0 - differing(plan, (position,)))
        for position, width in enumerate(widths)
    )
    return whole - min(rows.replaced, 1.0) / 2.0 * again


class SentBytes:
    """Bytes of the rows that plans send, each found once; see `sent_bytes`.

    Args:
        statistics: Of the sources.
        estimating: Of the rows over which the mean is taken.
    """

    def __init__(self, statistics: Statistics, estimating: Estimating) -> None:
        self._statistics, self._estimating = statistics, estimating
        self._known: dict[int, tuple[Plan, float]] = {}  # by id: the plan keeps it from reuse

    def of(self, plan: Plan) -> float:
        """Return the bytes of a row."""
        known = self._known.get(id(plan))
        if known is None:
            width = sent_bytes(plan, self._statistics, self._estimating.of(plan))
            known = self._known[id(plan)] = (plan, width)
        return known[1]


def _is_group(plan: Plan, position: int) -> bool:
    """Whether a column tells groups apart: the row that takes a group's place has it, too."""
    match plan:
        case Aggregate(group=group):
            return position < len(group)
        case Filter(input=child) | Distinct(input=child):
            return _is_group(child, position)
        case Project(input=child, expressions=expressions):
            expression = expressions[position]
            return isinstance(expression, Column) and _is_group(child, expression.position)
        case _:
            return False


def _widths(plan: Plan, statistics: Statistics) -> list[float]:
    """Return the expected bytes of a value of each column."""
    names = {n.source: n.columns.names for n in walk_plan(plan) if isinstance(n, Scan)}
    widths, dtypes = [], plan.schema.dtypes
    for position, origin in enumerate(column_origins(plan)):
        dtype = dtypes[position]
        width = BYTES.get(dtype, OTHER_BYTES)
        call = _call(plan, position)
        if call is not None and _is_high_word(call):
            width = 1.0
        elif (
            (call is None or call.function in _AS_THEY_ARE)
            and origin is not None
            and origin[0] in names
        ):
            name = names[origin[0]][origin[1]].lower()
            width += _beyond(dtype, (origin[0].lower(), name), statistics)
        widths.append(width)
    return widths


def _beyond(dtype: DataType, column: tuple[str, str], statistics: Statistics) -> float:
    """Return by how many bytes the values of a column differ from what is assumed of their type."""
    match dtype:
        case DataType.INTEGER:
            facts = statistics.columns.get(column)
            if facts is not None and facts.deciles:
                return fmean(map(_bytes_of, facts.deciles)) - INTEGER_BYTES.value
        case DataType.DOUBLE:
            facts = statistics.columns.get(column)
            if facts is not None and facts.deciles:
                return fmean(map(_bytes_by_digits, facts.deciles)) - DOUBLE_BYTES.value
        case DataType.TEXT:
            size = statistics.text_bytes.get(column)
            if size is not None:
                return _head_of(size) + size - TEXT_BYTES.value
        case _:
            pass
    return 0.0


def _call(plan: Plan, position: int) -> AggregateCall | None:
    """Return the aggregate that a column is."""
    if not isinstance(plan, Aggregate) or position < len(plan.group):
        return None
    return plan.aggregates[position - len(plan.group)]


def _is_high_word(call: AggregateCall) -> bool:
    """Whether it is a sum of high words, which are 0 but for very large numbers."""
    match call.arguments:
        case (Call(function="/", arguments=(_, Literal(value=divisor))),):
            return divisor == WORD
        case _:
            return False


def _head_of(size: float) -> int:
    """Return the bytes in front of a text in MessagePack.

    Examples:
        >>> [_head_of(size) for size in (0.0, 31.0, 60.0, 5_000.0)]
        [1, 1, 2, 3]
    """
    return 1 if size < 32 else 2 if size < 256 else 3


def _bytes_by_digits(number: float) -> float:
    """Return the bytes of a DOUBLE in a batch of few rows: of its digits, if these are few.

    Examples:
        >>> [_bytes_by_digits(n) for n in (20.5, 5.0, 1234.5678, 1 / 3, 1e300)]
        [4.0, 3.0, 7.0, 9.0, 9.0]
    """
    written = by_digits(number)
    return 2.0 + _bytes_of(written.digits) if isinstance(written, Decimal) else DOUBLE_BYTES.value


def _bytes_of(number: float) -> float:
    """Return the bytes of a whole number in MessagePack.

    Examples:
        >>> [_bytes_of(n) for n in (0.0, -32.0, 128.0, -33.0, 300.0, 70_000.0, 1e12)]
        [1.0, 1.0, 2.0, 2.0, 3.0, 5.0, 9.0]
    """
    if -32 <= number < 128:
        return 1.0
    size = number if number >= 0 else -2 * number
    return next((1.0 + width for width in (1, 2, 4) if size < 256**width), 9.0)
