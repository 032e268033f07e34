"""WITH (metric = '…')."""

import re

import pytest

from streamsql.algebra.metrics import metric_of
from streamsql.errors import BindingError
from tests.streamsql.from_text import bound_query, catalog_of

CATALOG = catalog_of("CREATE SOURCE r (k TEXT, v INTEGER);")


@pytest.mark.parametrize("text", ["latency", "bytes 1, messages 50, latency 2"])
def test_a_query_says_by_what_its_plans_are_compared(text: str) -> None:
    bound = bound_query(f"SELECT k FROM r WITH (metric = '{text}', backfill = 'no')", CATALOG)
    assert bound.metric == metric_of(text)
    assert not bound.backfill
    assert bound.warnings == bound_query("SELECT k FROM r", CATALOG).warnings
    assert bound_query("SELECT k FROM r WITH (plan = 1)", CATALOG).metric is None


def test_what_is_no_metric_is_refused_where_it_stands() -> None:
    text = "SELECT k FROM r WITH (metric = 'bytes 1, speed 2')"
    told = "metric 'bytes 1, speed 2': 'speed' is no term of a metric"
    with pytest.raises(BindingError, match=re.escape(told)) as caught:
        bound_query(text, CATALOG)
    error = caught.value
    assert error.code == "bad_option"
    assert error.hint is not None
    assert "bytes, messages, latency, energy, cpu, state, engine" in error.hint
    assert error.span is not None
    assert text[error.span.column - 1 :].startswith("'bytes 1, speed 2'")
