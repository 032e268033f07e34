"""GRANT, REVOKE, SHOW GRANTS, ALTER USER: what is read, what is refused and where."""

import pytest

from streamsql.completion import complete
from streamsql.errors import QuerySyntaxError, UnsupportedError
from streamsql.syntax import AlterUser, Grant, Revoke, ShowGrants, parse_statement
from streamsql.syntax.statement_parsers.grant_statements import GranteeKind


def grantees(statement: Grant | Revoke) -> list[tuple[str, str]]:
    return [(str(g.kind), g.name.text) for g in statement.grantees]


def test_grants_name_relations_and_grantees() -> None:
    text = 'grant select on source Seat, "Light" to user Ann, role analyst, everybody'
    found = parse_statement(text)
    assert isinstance(found, Grant)
    assert (found.kind, [name.text for name in found.relations]) == ("source", ["seat", "Light"])
    assert grantees(found) == [("user", "ann"), ("role", "analyst"), ("everybody", "everybody")]
    again = parse_statement("REVOKE SELECT ON VIEW v FROM USER ann")
    assert isinstance(again, Revoke)
    assert (again.kind, grantees(again)) == ("view", [("user", "ann")])


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("ann.b@x.org", "ann.b@x.org"),
        ("a-b+c", "a-b+c"),
        ("'Ann@X'", "ann@x"),
        ('"ann"', "ann"),
        ("7of9", "7of9"),
        ("select", "select"),
    ],
)
def test_names_of_accounts_need_no_quotes(written: str, name: str) -> None:
    found = parse_statement(f"GRANT SELECT ON TABLE t TO USER {written}, USER ben")
    assert isinstance(found, Grant)
    assert grantees(found) == [("user", name), ("user", "ben")]
    quotas = parse_statement(f"ALTER USER {written} SET (max_queries = 5)")
    assert isinstance(quotas, AlterUser)
    assert (quotas.user.text, [(o.name, o.value) for o in quotas.options]) == (
        *(name, [("max_queries", "5")]),
    )


def test_show_grants_may_be_narrowed() -> None:
    every = parse_statement("SHOW GRANTS")
    assert isinstance(every, ShowGrants)
    assert (every.grantee, every.relation) == (None, None)
    some = parse_statement("SHOW GRANTS FOR ROLE viewer ON SOURCE seat")
    assert isinstance(some, ShowGrants)
    assert some.grantee is not None
    assert some.grantee.kind == GranteeKind.ROLE
    assert some.relation is not None
    assert (some.relation.text, some.kind) == ("seat", "source")


@pytest.mark.parametrize(
    ("text", "place", "code"),
    [
        ("GRANT ON SOURCE a TO USER b", "ON", "unexpected_token"),
        ("GRANT INSERT ON TABLE a TO USER b", "INSERT", "unsupported_statement"),
        ("GRANT SELECT ON a TO USER b", "a", "unexpected_token"),
        ("GRANT SELECT ON SOURCE a USER b", "USER", "unexpected_token"),
        ("GRANT SELECT ON SOURCE a TO b", "b", "unexpected_token"),
        ("GRANT SELECT ON SOURCE a TO USER 'b c'", "'b c'", "unexpected_token"),
        ("REVOKE SELECT ON SOURCE a TO USER b", "TO", "unexpected_token"),
        ("ALTER USER b (max_queries = 5)", "(", "unexpected_token"),
        ("GRANT SELECT ON SOURCE a TO USER b WITH GRANT OPTION", "WITH", "unexpected_token"),
    ],
)
def test_errors_have_a_place(text: str, place: str, code: str) -> None:
    with pytest.raises((QuerySyntaxError, UnsupportedError)) as found:
        parse_statement(text)
    assert found.value.span is not None
    assert (found.value.span.text, found.value.code) == (place, code)
    assert found.value.hint


def test_lists_are_bounded() -> None:
    names = ", ".join(f"s{n}" for n in range(201))
    with pytest.raises(UnsupportedError, match="201 names"):
        parse_statement(f"GRANT SELECT ON SOURCE {names} TO EVERYBODY")


@pytest.mark.parametrize(
    ("begun", "offered", "missing"),
    [
        ("GR", {"GRANT SELECT ON"}, {"SHOW"}),
        ("GRANT ", {"SELECT ON SOURCE"}, {"FROM"}),
        ("GRANT SELECT ON ", {"SOURCE", "TABLE", "VIEW"}, {"seat"}),
        ("GRANT SELECT ON SOURCE ", {"seat"}, {"TO"}),
        ("GRANT SELECT ON SOURCE seat", {"seat"}, {"TO"}),
        ("GRANT SELECT ON SOURCE seat ", {"TO"}, {"seat"}),
        ("GRANT SELECT ON SOURCE seat, ", {"seat"}, {"TO"}),
        ("GRANT SELECT ON SOURCE seat TO ", {"USER", "ROLE", "EVERYBODY"}, {"seat"}),
        ("REVOKE SELECT ON SOURCE seat FROM ROLE ", {"analyst"}, {"seat"}),
        ("SHOW ", {"GRANTS"}, set()),
        ("SHOW GRANTS ", {"FOR USER", "ON SOURCE"}, {"seat"}),
        ("ALTER ", {"USER"}, set()),
        ("ALTER USER ann ", {"SET ("}, set()),
        ("ALTER USER ann SET (", {"max_queries ="}, {"slice_ms ="}),
    ],
)
def test_completion_offers_what_follows(begun: str, offered: set[str], missing: set[str]) -> None:
    labels = {c.label for c in complete(begun, len(begun), {"seat": ["mid"]})}
    assert offered <= labels
    assert not labels & missing
