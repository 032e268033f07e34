"""Laws of aggregates: what statistics of parts give is what the function gives of all rows."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamsql.algebra.aggregate_laws import (
    CATEGORIES,
    LAWS,
    Category,
    Law,
    NoLaw,
    category_of,
    is_of_set,
    is_small,
    law_of,
    merging_call,
    statistic_calls,
    whole_of,
)
from streamsql.algebra.expressions import Call, Column, Expression, Literal
from streamsql.algebra.operators import AggregateCall, AggregateFunction
from streamsql.algebra.scalar_functions.scalar import compile_expression
from streamsql.data.types import DataType, Row, Value
from streamsql.reference.group_aggregates import aggregate
from tests import user_aggregates

F = AggregateFunction
INTEGER, BOOLEAN, DOUBLE = DataType.INTEGER, DataType.BOOLEAN, DataType.DOUBLE
X, Y, B = Column(0, "x", INTEGER), Column(1, "y", INTEGER), Column(2, "b", BOOLEAN)
_ARGUMENTS = {
    F.COUNT_ALL: (),
    F.ARG_MIN: (X, Y),
    F.ARG_MAX: (X, Y),
    F.BOOL_AND: (B,),
    F.BOOL_OR: (B,),
}
SMALL = Call("%", (X, Literal(2**32, INTEGER)), INTEGER)
CALLS = (
    *(AggregateCall(f, _ARGUMENTS.get(f, (X,)), "a") for f in LAWS),
    AggregateCall(F.SUM, (SMALL,), "a"),
    AggregateCall(F.AVG, (SMALL,), "a"),
)
ROWS = st.tuples(
    st.one_of(st.none(), st.integers(-3, 3), st.integers(-(2**63), 2**63 - 1)),
    st.one_of(st.none(), st.integers(0, 2)),
    st.one_of(st.none(), st.booleans()),
)


def from_parts(law: Law, call: AggregateCall, parts: list[list[Row]]) -> Value:
    """Return what a law gives of parts."""
    statistics = statistic_calls(law, call)
    rows: list[Row] = [tuple(aggregate(s, part) for s in statistics) for part in parts]
    columns = [Column(n, "", s.dtype) for n, s in enumerate(statistics)]
    numbers = range(len(statistics))
    merged = tuple(aggregate(merging_call(law, n, columns, ""), rows) for n in numbers)
    result: Value = compile_expression(whole_of(law, dict(enumerate(columns))))(merged)
    return result


D = Column(0, "d", DOUBLE)
EXACT = (F.SUM, F.AVG, F.VAR_SAMP, F.VAR_POP, F.STDDEV_SAMP, F.STDDEV_POP)
EXACT_CALLS = (
    *(AggregateCall(f, (D,), "a") for f in (*EXACT, F.EXACT_SUM, F.EXACT_SQUARES)),
    *(AggregateCall(f, (X,), "a") for f in (*EXACT[2:], F.EXACT_SUM, F.EXACT_SQUARES)),
)
DOUBLES = st.one_of(
    st.none(),
    st.sampled_from((0.1, -0.1, 0.0, -0.0, 1e300, -1e300, 1.7e308, 5e-324)),
    st.floats(allow_nan=False, allow_infinity=False),
)


@given(st.sampled_from(EXACT_CALLS), st.data())
def test_exact_sums_of_parts_give_the_aggregate_of_all_rows(
    call: AggregateCall, data: st.DataObject
) -> None:
    integers = ROWS.map(lambda row: (row[0],))
    values: st.SearchStrategy[Row] = DOUBLES.map(lambda v: (v,))
    rows = st.lists(values if call.arguments == (D,) else integers, min_size=1, max_size=5)
    parts = data.draw(st.lists(rows, max_size=4))
    law = law_of(call, at_one_site=True)
    assert isinstance(law, Law)
    assert isinstance(law_of(call), NoLaw)
    assert from_parts(law, call, parts) == aggregate(call, [row for part in parts for row in part])


@given(st.sampled_from(CALLS), st.lists(st.lists(ROWS, min_size=1, max_size=5), max_size=4))
def test_statistics_of_parts_give_the_aggregate_of_all_rows(
    call: AggregateCall, parts: list[list[Row]]
) -> None:
    law = law_of(call)
    assert isinstance(law, Law)
    assert from_parts(law, call, parts) == aggregate(call, [row for part in parts for row in part])


def test_every_function_has_a_category_and_a_law_or_a_reason() -> None:
    assert set(CATEGORIES) == set(F)
    for function in F:
        arguments = _ARGUMENTS.get(function, (X,))
        call = AggregateCall(function, arguments, "a", implementation="m:f", result=INTEGER)
        law = law_of(call)
        assert isinstance(law, Law) == (function in LAWS)
        assert isinstance(law, Law) or law.reason
        if category_of(call) == Category.HOLISTIC:
            assert isinstance(law, NoLaw)


@pytest.mark.parametrize("function", [F.SUM, F.AVG])
def test_sums_of_rounded_numbers_have_no_law(function: AggregateFunction) -> None:
    law = law_of(AggregateCall(function, (Column(0, "x", DOUBLE),), "a"))
    assert isinstance(law, NoLaw)
    assert "rounded once" in law.reason


def test_distinct_values_are_holistic_where_copies_count() -> None:
    for call in CALLS[1:]:
        distinct = msgspec.structs.replace(call, distinct=True)
        assert is_of_set(distinct)
        assert isinstance(law_of(distinct), Law) == is_of_set(call)
        assert (category_of(distinct) == Category.HOLISTIC) != is_of_set(call)


@pytest.mark.parametrize(
    ("expression", "small"),
    [
        (SMALL, True),
        (Call("/", (X, Literal(-(2**32), INTEGER)), INTEGER), True),
        (Call("CASE", (B, Literal(1, INTEGER), Literal(None, INTEGER)), INTEGER), True),
        (Call("COALESCE", (SMALL, Literal(0, INTEGER)), INTEGER), True),
        (Call("CAST", (B,), INTEGER), True),
        (X, False),
        (Call("%", (X, Literal(0, INTEGER)), INTEGER), False),
        (Call("/", (X, Literal(2, INTEGER)), INTEGER), False),
        (Call("CASE", (B, Literal(1, INTEGER), X), INTEGER), False),
        (Literal(2**40, INTEGER), False),
    ],
)
def test_sums_of_small_numbers_are_statistics(expression: Expression, *, small: bool) -> None:
    assert is_small(expression) == small
    law = law_of(AggregateCall(F.SUM, (expression,), "a"))
    assert isinstance(law, Law)
    assert len(law.statistics) == (1 if small else 2)


@given(
    st.sampled_from(user_aggregates.CALLS),
    st.lists(st.lists(user_aggregates.ROWS, min_size=1, max_size=5), max_size=4),
)
def test_results_of_parts_give_what_a_user_promised(
    call: AggregateCall, parts: list[list[Row]]
) -> None:
    law = law_of(call)
    assert isinstance(law, Law)
    assert category_of(call) == Category.DISTRIBUTIVE
    with user_aggregates.installed():
        expected = aggregate(call, [row for part in parts for row in part])
        assert from_parts(law, call, parts) == expected


def test_distinct_values_of_a_user_aggregate_have_no_parts() -> None:
    for call in user_aggregates.CALLS:
        distinct = msgspec.structs.replace(call, distinct=True)
        assert isinstance(law_of(distinct), NoLaw)
        assert category_of(distinct) == Category.HOLISTIC


def test_what_is_not_declared_is_not_written() -> None:
    (merged, *_) = user_aggregates.CALLS
    assert b'"merged_by":"MAX"' in msgspec.json.encode(merged)
    assert msgspec.json.decode(msgspec.json.encode(merged), type=AggregateCall) == merged
    plain = msgspec.structs.replace(merged, merged_by=msgspec.UNSET)
    assert b"merged_by" not in msgspec.json.encode(plain)
    assert msgspec.json.decode(msgspec.json.encode(plain), type=AggregateCall) == plain


def test_the_argument_of_a_user_aggregate_is_named_in_the_reason() -> None:
    call = AggregateCall(F.USER, (X,), "a", implementation="site.heat:centre", result=DOUBLE)
    law = law_of(call)
    assert isinstance(law, NoLaw)
    assert "site.heat:centre" in law.reason
