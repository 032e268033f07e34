"""Facts of all rows there are: event times lie in the years 1 to 9999.

Gateways refuse other readings. So a sum of an event time and a duration fits 64 bits, and a row
that comes at most 10 days after another one comes at most 20 days after it. Of other columns of
times nothing is known: near 2^63 the greater sum is NULL where the less one is not.
"""

from federated_optimizer.canonical.exact_cache import exactly_cached
from federated_optimizer.sharing.forms.blocks import Block
from streamsql.algebra.expressions import Call, Column, Expression, Literal
from streamsql.algebra.operators import Plan, Scan, ScanPart, SourceKind, Window
from streamsql.data.types import EARLIEST, LATEST, DataType


@exactly_cached(1_024)
def known_times(block: Block) -> tuple[Expression, ...]:
    """Return predicates over the universal columns of a block, none of which is ever FALSE."""
    found = []
    for child, offset in zip(block.inputs, block.offsets[:-1], strict=True):
        place = _event_time(child)
        if place is not None:
            field = child.schema.fields[place]
            if field.dtype == DataType.TIMESTAMP:
                found.append(_within_years(Column(offset + place, field.name, field.dtype)))
    return tuple(found)


def _event_time(plan: Plan) -> int | None:
    """Return the column with the event times of a stream; None if it shows none."""
    scan = plan.input if isinstance(plan, Window) else plan
    if not isinstance(scan, Scan) or scan.part != ScanPart.ROWS or scan.kind == SourceKind.TABLE:
        return None
    return scan.time_column


def _within_years(time: Column) -> Expression:
    """Return a predicate that lets NULL pass: nothing is said of where there is a value."""
    earliest = Call(">=", (time, Literal(EARLIEST, time.dtype)), DataType.BOOLEAN)
    latest = Call("<", (time, Literal(LATEST, time.dtype)), DataType.BOOLEAN)
    inside = Call("AND", (earliest, latest), DataType.BOOLEAN)
    return Call("OR", (Call("IS NULL", (time,), DataType.BOOLEAN), inside), DataType.BOOLEAN)
