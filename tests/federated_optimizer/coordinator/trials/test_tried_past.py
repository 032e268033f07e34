"""Queries that cannot be run on history are refused with what to do."""

import pytest

from federated_optimizer.coordinator.trials.tried_past import tried_past
from streamsql.errors import UnsupportedError
from streamsql.syntax import RunOnHistory, parse_statement
from tests.streamsql.from_text import catalog_of

CATALOG = catalog_of("CREATE SOURCE seat (desk TEXT, ts TIMESTAMP)")


def tried(query: str) -> tuple[str, ...]:
    text = f"RUN {query} ON HISTORY BETWEEN NOW - INTERVAL '1 day' AND NOW"
    statement = parse_statement(text)
    assert isinstance(statement, RunOnHistory)
    return tuple(source.name for source in tried_past(statement, CATALOG, None).sources)


def test_a_query_over_the_past_is_not_run_on_history() -> None:
    assert tried("SELECT desk FROM seat") == ("seat",)
    with pytest.raises(UnsupportedError, match="reads the past of seat itself") as refused:
        tried("SELECT desk FROM seat FOR SYSTEM_TIME ALL")
    assert "remove FOR SYSTEM_TIME" in refused.value.hint
