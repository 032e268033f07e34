"""Whatever a device sends: nothing raises, rows are legal, what is refused has a reason.

A million of each format: `python -m tests.streamsql.mapping.hostile`.
"""

import contextlib
import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamsql.data.types import DataType
from streamsql.mapping.source_mapping import ColumnMapping, PayloadFormat, SourceMapping
from tests.streamsql.mapping.hostile.checked_mapping import check_payloads, check_records
from tests.streamsql.mapping.hostile.large import LARGE, oversized
from tests.streamsql.mapping.hostile.payloads import FORMATS, hostile_payloads
from tests.streamsql.mapping.hostile.records import hostile_records, large_records
from tests.streamsql.mapping.sources import mapper

SAMPLE = 2_000
HALF_A_SECOND = 0.5
SLOWER = 10.0
"""How much slower than the machine of the figures another one may be."""


@contextlib.contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Check how much CPU the block takes."""
    began = time.process_time()
    yield
    assert time.process_time() - began < seconds * SLOWER


@pytest.mark.parametrize("with_rows", [False, True])
@pytest.mark.parametrize("form", FORMATS)
def test_hostile_payloads_end_as_rows_or_problems(form: PayloadFormat, *, with_rows: bool) -> None:
    payloads = hostile_payloads(form, 11 + with_rows, SAMPLE // 2)
    counts = check_payloads(form, payloads, with_rows=with_rows)
    assert counts.payloads == SAMPLE // 2
    # The sample is no sample if all of it is refused, or nothing.
    assert counts.rows > 50
    assert counts.problems > 50


def test_hostile_values_by_address_end_as_rows_or_problems() -> None:
    counts = check_records(hostile_records(11, SAMPLE))
    assert counts.payloads == SAMPLE
    assert counts.rows > 50
    assert counts.problems > 50


@pytest.mark.parametrize("position", range(len(list(large_records()))))
def test_values_without_bounds_take_half_a_second(position: int) -> None:
    record = list(large_records())[position]
    with at_most(HALF_A_SECOND):
        assert check_records([record]).payloads == 1


@pytest.mark.parametrize("form", FORMATS)
def test_what_is_larger_than_a_megabyte_is_refused_with_its_size(form: PayloadFormat) -> None:
    counts = check_payloads(form, oversized(form))
    assert counts.payloads == counts.refused == counts.problems > 0
    assert counts.rows == 0


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["d", "t", "ts", "x"]), inner),
)


@given(st.sampled_from(FORMATS), st.booleans(), st.binary(max_size=200))
def test_random_bytes(form: PayloadFormat, with_rows: bool, payload: bytes) -> None:
    assert check_payloads(form, [payload], with_rows=with_rows).payloads == 1


@pytest.mark.parametrize(
    ("form", "position"),
    [(form, place) for form, all_ in LARGE.items() for place in range(len(all_))],
)
def test_a_megabyte_of_the_worst_takes_half_a_second(form: PayloadFormat, position: int) -> None:
    payload = LARGE[form][position]
    assert len(payload) > 400_000
    for with_rows in (False, True):
        with at_most(HALF_A_SECOND):
            check_payloads(form, [payload[:1_000_000]], with_rows=with_rows)


HTML, XML = PayloadFormat.HTML, PayloadFormat.XML
NESTED = b"<div>" * 200 + b"<i></i>" * 100_000
CELLS = b"<table><tr>" + b"<td>1" * 190_000
DEEP = b"<r>" + b"<a>" * 60 + b"<b/>" * 200_000 + b"</a>" * 60 + b"</r>"
WIDE = b"<r>" + b"<a/>" * 240_000 + b"</r>"


@pytest.mark.parametrize(
    ("form", "rows", "path", "payload", "problem"),
    [
        (HTML, "div", ".", NESTED, "rows inside of rows"),
        (HTML, "div", ".", b"<div>" * 200 + b"x " * 400_000, "rows inside of rows"),
        (HTML, "tr", "td:nth-child(2)", CELLS, "elements next to each other"),
        (HTML, "tr", "td ~ td.b", CELLS, "elements next to each other"),
        (HTML, "tr td:last-child", ".", CELLS, "elements next to each other"),
        (XML, ".//a", ".//b", DEEP, "rows inside of rows"),
        (XML, "", "a[last()]", WIDE, "elements next to each other"),
        (XML, "a[2]", ".", WIDE, "elements next to each other"),
    ],
)
def test_paths_that_take_the_square_of_a_payload(
    form: PayloadFormat, rows: str, path: str, payload: bytes, problem: str
) -> None:
    mapping = SourceMapping("mqtt", format=form, rows=rows)
    source = mapper({"x": (DataType.TEXT, ColumnMapping(path))}, mapping)
    with at_most(HALF_A_SECOND):
        mapped = source.map(payload, {}, 0)
    assert not mapped.rows
    assert problem in mapped.problems[0]


@pytest.mark.parametrize(
    ("form", "rows", "path", "payload"),
    [
        (HTML, "tr", "td:nth-child(2)", b"<table>" + b"<tr><td>1<td>2<td>3" * 3_000),
        (HTML, "table", "h2 + p", b"<table><tr><td><h2>a</h2><p>2</p></table>" * 2_000),
        (XML, "a", "b[2]", b"<r>" + b"<a><b>1</b><b>2</b></a>" * 3_000 + b"</r>"),
    ],
)
def test_pages_of_thousands_of_rows_are_read(
    form: PayloadFormat, rows: str, path: str, payload: bytes
) -> None:
    mapping = SourceMapping("mqtt", format=form, rows=rows)
    mapped = mapper({"x": (DataType.TEXT, ColumnMapping(path))}, mapping).map(payload, {}, 0)
    assert mapped.rows == [{"x": "2"}] * (2_000 if rows == "table" else 3_000)
