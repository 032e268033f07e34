"""EXPLAIN, and questions about rows, in local sessions."""

import contextlib
import io
import json

import pytest
from rich.console import Console

from deploy.session import LocalSession
from deploy.session.session_results import print_result
from streamsql.errors import BindingError, UnsupportedError

NETWORK = """
CREATE LINK SOURCE link (src TEXT, dst TEXT, cost DOUBLE, pdr DOUBLE, ts TIMESTAMP,
                         KEY (src, dst)) WITH (ttl = '10 s');
INSERT INTO link VALUES ('a', 'b', 1.0, 0.5, '2026-01-01T00:00:00Z'),
                        ('b', 'c', 1.0, 0.5, '2026-01-01T00:00:05Z'),
                        ('a', 'c', 9.0, 0.5, '2026-01-01T00:00:05Z');
"""


@pytest.fixture
def session() -> LocalSession:
    made = LocalSession()
    made.run(NETWORK)
    return made


def answer(session: LocalSession, text: str) -> str:
    (result,) = session.run(text)
    return result.text


def test_why_and_how_sure(session: LocalSession) -> None:
    text = "EXPLAIN WHY reachable ROW ('a', 'c') WITH (confidence = 'link.pdr')"
    assert answer(session, text).splitlines() == [
        "('a', 'c') stays while all base rows of at least one line exist:",
        "  1. link('a', 'c', 9.0, 0.5)",
        "  2. link('a', 'b', 1.0, 0.5) AND link('b', 'c', 1.0, 0.5)",
        "These 2 are all minimal combinations.",
        "Probability by link.pdr: 0.6250",
    ]
    listed = answer(session, "EXPLAIN CONFIDENCE reachable USING link.pdr LIMIT 2").splitlines()
    assert [line.split(maxsplit=1) for line in listed[1:3]] == [
        ["0.5000", "('a', 'b')"],
        ["0.6250", "('a', 'c')"],
    ]
    # A cheapest path that shows only its cost rests on every path of that cost, not on one.
    cheapest = "EXPLAIN WHY (SELECT src, dst, cost FROM cheapest_path) ROW ('a', 'c', 2.0)"
    assert "link('a', 'b', 1.0, 0.5)" in answer(session, cheapest)


def test_what_has_expired_supports_nothing(session: LocalSession) -> None:
    session.run("ADVANCE TIME TO '2026-01-01T00:00:12Z'")
    assert answer(session, "EXPLAIN WHY reachable ROW ('a', 'c')").splitlines()[1:] == [
        "  link('a', 'c', 9.0, 0.5)"
    ]
    assert answer(session, "EXPLAIN WHY reachable ROW ('a', 'b')") == (
        "('a', 'b') is not in the result."
    )


def test_what_if(session: LocalSession) -> None:
    text = "EXPLAIN WHAT IF DELETE link('a', 'b') FOR (SELECT src, dst, cost FROM cheapest_path)"
    assert answer(session, text).splitlines() == [
        "Without link('a', 'b', 1.0, 0.5):",
        "2 of 3 rows go, 1 come",
        "  - ('a', 'b', 1.0)",
        "  - ('a', 'c', 2.0)",
        "  + ('a', 'c', 9.0)",
    ]
    with pytest.raises(BindingError, match="no base row has these values, so nothing would change"):
        session.run("EXPLAIN WHAT IF DELETE link('z') FOR reachable")
    with pytest.raises(
        UnsupportedError, match="WHAT IF without FOR asks about running queries, but a local"
    ):
        session.run("EXPLAIN WHAT IF DELETE link('a', 'b')")


def test_json_is_one_object_a_line(session: LocalSession) -> None:
    output = io.StringIO()
    console = Console(file=output, width=200, soft_wrap=True)
    for result in session.run("EXPLAIN WHY reachable ROW ('a', 'b'); SELECT src FROM link"):
        print_result(result, "json", console)
    why, rows = map(json.loads, output.getvalue().splitlines())
    assert why["supports"][0][0]["key"] == ["src", "dst"]
    assert len(rows) == 3


def test_explain_tells_what_a_pushed_minimum_leaves_out() -> None:
    with contextlib.closing(LocalSession("stream")) as session:
        session.run("CREATE LINK SOURCE link (src TEXT, dst TEXT, cost DOUBLE, KEY (src, dst))")
        for kind in ("LOGICAL", "FEDERATED"):
            (found,) = session.run(
                f"EXPLAIN (TYPE {kind}) SELECT src, dst, cost FROM cheapest_path"
            )
            assert any("skips rows without cost" in text for text in found.warnings)
            (found,) = session.run(
                f"EXPLAIN (TYPE {kind}) SELECT src, dst, hops FROM shortest_path"
            )
            assert not any("left out" in text for text in found.warnings)
