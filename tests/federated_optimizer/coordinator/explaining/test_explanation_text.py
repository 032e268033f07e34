"""Answers to questions about rows, from base rows that are handed in."""

import pytest

from deploy.explainer import EngineExplainer
from federated_optimizer.coordinator.explaining.explanation_text import (
    WhatIfReport,
    confidence_answer,
    refuse_no_deletion,
    why_answer,
)
from federated_optimizer.coordinator.explaining.known_base_rows import BaseRows
from streamsql.algebra.row_explanations import leaves_of
from streamsql.binder import bind_confidence, bind_query, bind_why
from streamsql.catalog.catalog import Catalog
from streamsql.errors import BindingError
from streamsql.syntax import ExplainConfidence, ExplainWhy, Subscribe, parse_statement
from tests.streamsql.from_text import catalog_of

NOTE = "gateway gw-2 is offline"


@pytest.fixture
def catalog() -> Catalog:
    return catalog_of("CREATE LINK SOURCE link (src TEXT, dst TEXT, pdr DOUBLE)", library=True)


def test_why_names_base_rows_their_probability_and_what_is_not_known(catalog: Catalog) -> None:
    statement = parse_statement(
        "EXPLAIN WHY reachable ROW ('a', 'c') WITH (confidence = 'link.pdr')"
    )
    assert isinstance(statement, ExplainWhy)
    asked = bind_why(statement, catalog)
    (leaf,) = leaves_of(asked.query.plan)
    base = BaseRows({leaf: [("a", "b", 0.5), ("b", "c", 0.5)]}, {}, (NOTE,))
    found = why_answer(EngineExplainer(), asked, base)
    assert "link('a', 'b', 0.5)" in found.text
    assert "Probability by link.pdr: 0.2500" in found.text
    assert found.data["notes"] == [NOTE]


def test_confidence_lists_no_more_rows_than_asked_for(catalog: Catalog) -> None:
    statement = parse_statement("EXPLAIN CONFIDENCE reachable USING link.pdr LIMIT 1")
    assert isinstance(statement, ExplainConfidence)
    asked = bind_confidence(statement, catalog)
    (leaf,) = leaves_of(asked.query.plan)
    base = BaseRows({leaf: [("a", "b", 0.5), ("b", "c", 0.5)]}, {}, ())
    found = confidence_answer(EngineExplainer(), asked, base)
    assert len(found.data["rows"]) == 1
    assert "0.5000" in found.text


def test_a_question_about_rows_that_are_not_there_is_refused(catalog: Catalog) -> None:
    statement = parse_statement("SUBSCRIBE TO reachable")
    assert isinstance(statement, Subscribe)
    asked = bind_query(statement.inner, catalog)
    (leaf,) = leaves_of(asked.plan)
    report = WhatIfReport(())
    change = EngineExplainer().what_if_deleted(asked.plan, {leaf: []}, {leaf: []})
    report.add("", asked.schema, change)
    with pytest.raises(BindingError, match="no base row has these values"):
        refuse_no_deletion(report)
