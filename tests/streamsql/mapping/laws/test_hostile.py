"""Whatever a device sends: nothing raises, rows are legal, what is refused has a reason.

A million of each format: `python -m tests.streamsql.mapping.hostile`.
"""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamsql.mapping.source_mapping import PayloadFormat
from tests.streamsql.mapping.hostile.checked_mapping import check_payloads
from tests.streamsql.mapping.hostile.payloads import FORMATS, hostile_payloads

SAMPLE = 2_000


@pytest.mark.parametrize("with_rows", [False, True])
@pytest.mark.parametrize("form", FORMATS)
def test_hostile_payloads_end_as_rows_or_problems(form: PayloadFormat, *, with_rows: bool) -> None:
    payloads = hostile_payloads(form, 11 + with_rows, SAMPLE // 2)
    counts = check_payloads(form, payloads, with_rows=with_rows)
    assert counts.payloads == SAMPLE // 2
    # The sample is no sample if all of it is refused, or nothing.
    assert counts.rows > 50
    assert counts.problems > 50


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["d", "t", "ts", "x"]), inner),
)


@given(st.sampled_from(FORMATS), st.booleans(), st.binary(max_size=200))
def test_random_bytes(form: PayloadFormat, with_rows: bool, payload: bytes) -> None:
    assert check_payloads(form, [payload], with_rows=with_rows).payloads == 1


LARGE = {
    PayloadFormat.JSON: [b"[" * 1_000_000, b'{"rows":[' + b"{}," * 300_000 + b"{}]}",
                         b'{"d":"' + b"9" * 900_000 + b'"}', b"[" + b"1," * 400_000 + b"1]"],
    PayloadFormat.TEXT: [b"9" * 1_000_000],
    PayloadFormat.CSV: [b"a,b\n" * 250_000, b'"' * 999_999, b"," * 999_999],
    PayloadFormat.CBOR: [b"\x9f" * 999_999, b"\xbf" * 999_999, b"\x81" * 999_999,
                         b"\x9a\x00\x0f\x00\x00" + b"\x01" * 983_040],
    PayloadFormat.SENML: [b'[{"n":"d","v":1}' + b',{"n":"d","v":1}' * 60_000 + b"]",
                          b"[" + b",".join(b'{"n":"d","v":1,"u":"u%d"}' % n for n in range(35_000))
                          + b"]"],
    PayloadFormat.SENML_CBOR: [b"\x9f" + b"\xa2\x00\x61d\x02\x01" * 160_000 + b"\xff"],
    PayloadFormat.SPARKPLUG: [b"\x12\x00" * 499_999, b"\x0a" + b"\xff" * 999_000],
    PayloadFormat.XML: [b"<a>" * 333_333, b"<r>" + b"<row/>" * 160_000 + b"</r>",
                        b"<a " + b" ".join(b'x%d=""' % n for n in range(100_000)) + b"/>",
                        b"<a>" + b"&lt;" * 240_000 + b"</a>"],
    PayloadFormat.HTML: [b"<div>" * 200_000,
                         b"<a " + b" ".join(b"x%d" % n for n in range(140_000)) + b">",
                         b"<a x0='>' " + b" ".join(b"x%d='>'" % n for n in range(90_000)) + b">",
                         b"<!--" * 250_000, b"<table><tr><td>" * 66_000, b"<" * 1_000_000,
                         b"<table>" + b"<tr><td>1" * 100_000, b"<a x='" * 160_000,
                         b"<a x" * 249_000],
}  # fmt: skip


@pytest.mark.parametrize(
    ("form", "position"),
    [(form, place) for form, all_ in LARGE.items() for place in range(len(all_))],
)
def test_a_megabyte_of_the_worst_takes_seconds(form: PayloadFormat, position: int) -> None:
    payload = LARGE[form][position]
    assert len(payload) > 400_000
    began = time.process_time()
    for with_rows in (False, True):
        check_payloads(form, [payload[:1_000_000]], with_rows=with_rows)
    assert time.process_time() - began < 20
