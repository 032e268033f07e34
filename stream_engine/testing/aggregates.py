"""Random aggregates over the columns of a schema, for tests of the engine."""

from hypothesis import strategies as st

from streamsql.algebra.expressions import Column
from streamsql.algebra.operators import AggregateCall, AggregateFunction
from streamsql.data.schema import Schema
from streamsql.data.types import DataType

_OF_ANY_TYPE = frozenset(
    (
        "COUNT(*)",
        "COUNT",
        "MIN",
        "MAX",
        "ARG_MIN",
        "ARG_MAX",
        "ARRAY_AGG",
        "MODE",
        "PERCENTILE_DISC",
    )
)  # the others are of numbers, or of truth values


@st.composite
def aggregate_calls(draw: st.DrawFn, schema: Schema) -> AggregateCall:
    """Return an aggregate over the columns of a schema."""
    functions = [f for f in AggregateFunction if f != AggregateFunction.USER]
    function = draw(st.sampled_from(functions))
    columns: list[Column] = [Column(i, f.name, f.dtype) for i, f in enumerate(schema.fields)]
    if function in (AggregateFunction.BOOL_AND, AggregateFunction.BOOL_OR):
        columns = [column for column in columns if column.dtype == DataType.BOOLEAN]
    elif function == AggregateFunction.STRING_AGG:
        columns = [column for column in columns if column.dtype == DataType.TEXT]
    elif function not in _OF_ANY_TYPE:
        columns = [column for column in columns if column.dtype.is_numeric]
    if function == AggregateFunction.COUNT_ALL or not columns:
        return AggregateCall(AggregateFunction.COUNT_ALL, (), "c")
    first = draw(st.sampled_from(columns))
    if function in (AggregateFunction.ARG_MIN, AggregateFunction.ARG_MAX):
        return AggregateCall(function, (first, draw(st.sampled_from(columns))), "c")
    fraction = None
    if function in (AggregateFunction.PERCENTILE_CONT, AggregateFunction.PERCENTILE_DISC):
        fraction = draw(st.sampled_from((0.0, 0.3, 0.5, 1.0)))
    distinct = draw(st.booleans())
    return AggregateCall(
        function,
        (first,),
        "c",
        distinct=distinct,
        parameter=fraction,
        descending=function == AggregateFunction.PERCENTILE_DISC and draw(st.booleans()),
        separator=", " if function == AggregateFunction.STRING_AGG else "",
    )
