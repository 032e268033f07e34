"""REFRESH AT and REFRESH MATERIALIZED VIEW as they are written."""

import pytest

from streamsql.errors import QuerySyntaxError
from streamsql.syntax import CreateView, Refresh, parse_statement


def test_times_and_weights() -> None:
    made = parse_statement(
        "CREATE MATERIALIZED VIEW v (a) REFRESH AT ('14:00', '19:00', '24:00') "
        "COST WEIGHTS (0.25, 0.3, 1) AS SELECT mid FROM machines"
    )
    assert isinstance(made, CreateView)
    assert made.refresh is not None
    assert made.refresh.times == (840, 1140, 1440)
    assert made.refresh.weights == (0.25, 0.3, 1.0)
    assert made.query.text == "SELECT mid FROM machines"


def test_weights_may_be_left_out() -> None:
    made = parse_statement("CREATE MATERIALIZED VIEW v REFRESH AT ('7:30') AS SELECT 1")
    assert isinstance(made, CreateView)
    assert made.refresh is not None
    assert (made.refresh.times, made.refresh.weights) == ((450,), ())


def test_refresh_is_no_reserved_word() -> None:
    made = parse_statement("CREATE MATERIALIZED VIEW refresh AS SELECT refresh FROM weights")
    assert isinstance(made, CreateView)
    assert (made.name.text, made.refresh) == ("refresh", None)


def test_refresh_at_once() -> None:
    made = parse_statement('REFRESH MATERIALIZED VIEW "Big View"')
    assert isinstance(made, Refresh)
    assert made.name.text == "Big View"


@pytest.mark.parametrize(
    ("clause", "code"),
    [
        ("REFRESH AT ('25:00')", "bad_refresh_time"),
        ("REFRESH AT ('noon')", "bad_refresh_time"),
        ("REFRESH AT ('00:00', '24:00')", "bad_refresh_time"),
        ("REFRESH AT ('09:00', '9:00')", "bad_refresh_time"),
        ("REFRESH AT ('09:00') COST WEIGHTS (1, 2)", "bad_cost_weights"),
        ("REFRESH AT ('09:00') COST WEIGHTS (0)", "bad_cost_weights"),
        ("REFRESH AT ('09:00') COST WEIGHTS (-1)", "bad_cost_weights"),
        ("REFRESH AT ('09:00') COST WEIGHTS ('1')", "bad_cost_weights"),
        ("REFRESH AT ('09:00') COST WEIGHTS (1e999)", "bad_cost_weights"),
        ("REFRESH AT ()", "unexpected_token"),
        ("REFRESH AT (9)", "unexpected_token"),
        ("REFRESH AT '09:00'", "unexpected_token"),
        ("REFRESH '09:00'", "unexpected_token"),
        ("COST WEIGHTS (1)", "unexpected_token"),
    ],
)
def test_what_is_malformed_is_refused_with_a_place(clause: str, code: str) -> None:
    with pytest.raises(QuerySyntaxError) as refusal:
        parse_statement(f"CREATE MATERIALIZED VIEW v {clause} AS SELECT mid FROM machines")
    assert refusal.value.code == code
    assert refusal.value.span is not None
    assert refusal.value.hint or code.startswith("unexpected")


def test_only_materialized_views_are_refreshed() -> None:
    with pytest.raises(QuerySyntaxError, match="only a materialized view"):
        parse_statement("CREATE VIEW v REFRESH AT ('09:00') AS SELECT 1")


@pytest.mark.parametrize("text", ["REFRESH VIEW v", "REFRESH MATERIALIZED VIEW", "REFRESH v"])
def test_what_is_to_be_refreshed_is_said(text: str) -> None:
    with pytest.raises(QuerySyntaxError):
        parse_statement(text)
