"""The text form, read again by a parser of the specification's."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from host.metrics.exposition import exposition
from host.metrics.families import Sample, counter, gauge
from tests.prometheus_text import parse

ROWS = gauge("pando_rows", 'Rows of a query.\nTwo lines, a \\ and "quotes".')
READINGS = counter("pando_readings_total", "Readings.")

texts = st.text(max_size=12) | st.sampled_from(['"', "\\", "\n", "\\n", "},", 'a="b"', "é\r\0"])
numbers = st.floats() | st.integers(-(2**60), 2**60)


@given(
    st.dictionaries(texts, numbers, max_size=5),
    st.dictionaries(st.tuples(texts, texts), numbers, max_size=5),
)
def test_what_is_written_is_read_again(
    rows: dict[str, float], readings: dict[tuple[str, str], float]
) -> None:
    samples: list[Sample] = []
    samples += [READINGS.at(value, site=a, source=b) for (a, b), value in readings.items()]
    samples += [ROWS.at(value, query=query) for query, value in rows.items()]
    samples.sort(key=lambda sample: sample.value if sample.value == sample.value else 0)

    families = parse(exposition(samples))

    assert set(families) == {sample.family.name for sample in samples}
    for sample in samples:
        found = families[sample.family.name]
        assert found.kind == sample.family.kind
        value = found.values[sample.labels]
        assert value == pytest.approx(float(sample.value), abs=0) or (
            math.isnan(value) and math.isnan(sample.value)
        )
    assert sum(len(each.values) for each in families.values()) == len(samples)


def test_true_and_whole_numbers_are_written_without_a_point() -> None:
    text = exposition([ROWS.at(True), READINGS.at(2.0, site="gw-1"), READINGS.at(2.5)])
    assert text.splitlines()[2::1][0] == "pando_rows 1"
    assert 'pando_readings_total{site="gw-1"} 2' in text.splitlines()
    assert "pando_readings_total 2.5" in text.splitlines()
