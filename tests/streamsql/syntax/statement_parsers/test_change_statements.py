"""UPDATE and MERGE as text: what is understood, and what is said of the rest."""

import pytest

from streamsql.errors import QueryError
from streamsql.syntax import Merge, Update, parse_statement

MERGE = "MERGE INTO t USING (VALUES (1)) AS s (k) ON t.k = s.k "


def test_an_update() -> None:
    found = parse_statement(
        "UPDATE t SET a = CASE WHEN b THEN 1 ELSE 2 END, \"B\" = 'x' WHERE a > 1"
    )
    assert isinstance(found, Update)
    assert [each.column.text for each in found.assignments] == ["a", "B"]
    assert found.predicate is not None
    whole = parse_statement("UPDATE t SET a = 1")
    assert isinstance(whole, Update)
    assert whole.predicate is None


def test_a_merge() -> None:
    found = parse_statement(
        "MERGE INTO desks d USING (SELECT * FROM other) s ON d.k = s.k AND "
        "(s.k > 1 OR s.v = 'WHEN') WHEN MATCHED AND s.v = 'end' THEN DELETE "
        "WHEN MATCHED THEN DO NOTHING "
        "WHEN NOT MATCHED THEN INSERT (k, v) VALUES (s.k, LOWER(s.v))"
    )
    assert isinstance(found, Merge)
    assert (found.source.text, found.alias.text, found.row_name.text) == ("desks", "d", "s")
    assert [(each.matched, each.verb) for each in found.actions] == [
        (True, "DELETE"),
        (True, "NOTHING"),
        (False, "INSERT"),
    ]
    named = parse_statement("MERGE INTO t USING other ON t.k = other.k WHEN MATCHED THEN DELETE")
    assert isinstance(named, Merge)
    assert named.row_name.text == "other"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("UPDATE t", "expected SET"),
        ("UPDATE t SET", "the name of a column"),
        ("UPDATE t SET a", "expected ="),
        ("UPDATE t SET a = WHERE b", "expected a value or a condition"),
        ("UPDATE t SET a = 1 WHERE", "expected a value or a condition"),
        ("MERGE t USING s ON TRUE WHEN MATCHED THEN DELETE", "expected INTO"),
        ("MERGE INTO t USING ON TRUE", "expected rows after USING"),
        ("MERGE INTO t USING (VALUES (1)) ON TRUE WHEN MATCHED THEN DELETE", "a name of the rows"),
        ("MERGE INTO t USING s ON t.k = s.k", "expected WHEN MATCHED"),
        (MERGE + "WHEN MATCHED DELETE", "expected THEN"),
        (MERGE + "WHEN MATCHED THEN INSERT VALUES (1)", "expected what to do"),
        (MERGE + "WHEN NOT MATCHED THEN DELETE", "expected what to do"),
        (MERGE + "WHEN NOT MATCHED THEN INSERT VALUES (1, )", "a value is missing"),
        (MERGE + "WHEN MATCHED THEN DELETE WHEN MATCHED THEN DO NOTHING", "takes all rows before"),
        (MERGE + "WHEN MATCHED AND TRUE THEN DELETE " * 21, "more than 20 WHEN"),
    ],
)
def test_what_is_wrong_is_named(text: str, said: str) -> None:
    with pytest.raises(QueryError, match=said):
        parse_statement(text)
