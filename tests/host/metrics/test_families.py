"""Names of metrics and labels."""

import pytest

from host.metrics.families import MAX_LABEL, Family, Kind, counter, gauge


@pytest.mark.parametrize("name", ["", "9lives", "Upper", "with-dash", "with space", "a:b"])
def test_a_name_against_the_conventions_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="no name"):
        gauge(name, "")


def test_counters_and_only_they_end_with_total() -> None:
    assert counter("readings_total", "").kind is Kind.COUNTER
    with pytest.raises(ValueError, match="_total"):
        counter("readings", "")
    with pytest.raises(ValueError, match="_total"):
        Family("readings_total", Kind.GAUGE, "")


def test_a_long_label_is_cut() -> None:
    sample = gauge("rows", "").at(1, query="q" * 1_000)
    assert sample.labels == (("query", "q" * MAX_LABEL),)
