"""Metrics as they are written, and what is refused."""

import pytest

from streamsql.algebra.metrics import BY_BYTES, LONGEST, Metric, Term, metric_of


def test_metrics_are_read_and_written() -> None:
    assert metric_of("bytes") == BY_BYTES
    assert metric_of(" LATENCY ").only == Term.LATENCY
    mixed = metric_of("bytes 1, messages 50, latency 2.5")
    assert mixed == Metric(((Term.BYTES, 1.0), (Term.MESSAGES, 50.0), (Term.LATENCY, 2.5)))
    assert mixed.only is None
    assert metric_of(str(mixed)) == mixed


@pytest.mark.parametrize("term", Term)
def test_each_term_is_a_metric(term: Term) -> None:
    assert metric_of(term.value).weights == ((term, 1.0),)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "a term is missing"),
        ("bytes,", "a term is missing"),
        ("speed", "'speed' is no term of a metric"),
        ("bytes 1, Bytes 2", "bytes is there twice"),
        ("bytes one", "'one' is no weight of bytes"),
        ("bytes 1 2", "'1 2' is no weight of bytes"),
        ("bytes 0", "the weight of bytes is above 0 and at most 1,000,000,000"),
        ("bytes -1", "above 0"),
        ("bytes inf", "above 0"),
        ("bytes nan", "above 0"),
        ("bytes 1e10", "above 0"),
        ("x" * (LONGEST + 1), "at most 200 characters, not 201"),
    ],
)
def test_what_is_no_metric_is_refused_in_words(text: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        metric_of(text)
