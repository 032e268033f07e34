"""Every kind of statement has a least role, and lower roles are refused."""

import pytest

from federated_optimizer.coordinator.contract.coordinator_model import Origin
from federated_optimizer.coordinator.contract.principal import Principal, Role
from federated_optimizer.coordinator.rights.statement_roles import (
    ACTION_ROLES,
    STATEMENT_ROLES,
    NotAllowedError,
    check_action,
    check_statement,
    is_change,
    statement_kind,
    statement_target,
)
from streamsql.errors import BindingError
from streamsql.syntax import parse_statement
from streamsql.syntax.statements import Statement


def kinds(base: type[Statement]) -> set[type[Statement]]:
    below = base.__subclasses__()
    return set(below) | {kind for each in below for kind in kinds(each)}


def test_no_statement_is_without_a_role() -> None:
    # By name: a dataclass with slots is made twice.
    concrete = {kind.__name__ for kind in kinds(Statement)} - {"_OnRelations"}
    assert concrete == {kind.__name__ for kind in STATEMENT_ROLES}


@pytest.mark.parametrize(
    ("text", "least", "kind", "target", "changes"),
    [
        ("SHOW SOURCES", Role.VIEWER, "SHOW", "", False),
        ("SELECT a FROM b", Role.ANALYST, "SELECT", "", True),
        ("EXPLAIN SELECT a FROM b", Role.ANALYST, "EXPLAIN", "", False),
        ("CREATE VIEW v AS SELECT a FROM b", Role.ANALYST, "CREATE VIEW", "v", True),
        ("DROP VIEW v", Role.ANALYST, "DROP VIEW", "v", True),
        ("CREATE SOURCE s (a TEXT)", Role.OPERATOR, "CREATE SOURCE", "s", True),
        ("CREATE TABLE t (a TEXT)", Role.OPERATOR, "CREATE TABLE", "t", True),
        ("INSERT INTO t VALUES (1)", Role.OPERATOR, "INSERT", "t", True),
        ("ALTER SITE gw-1 SET (share_synopses = true)", Role.OPERATOR, "ALTER SITE", "gw-1", True),
        ("ALTER USER u SET (max_queries = 1)", Role.ADMINISTRATOR, "ALTER USER", "u", True),
        ("GRANT SELECT ON VIEW a, b TO EVERYBODY", Role.ADMINISTRATOR, "GRANT", "a, b", True),
    ],
)
def test_a_statement_needs_its_role(
    text: str, least: Role, kind: str, target: str, *, changes: bool
) -> None:
    statement = parse_statement(text)
    told = (statement_kind(statement), statement_target(statement), is_change(statement))
    assert told == (kind, target, changes)
    for role in Role:
        if role.may_act_as(least):
            check_statement(statement, Principal("ann", role))
            continue
        with pytest.raises(BindingError, match=f"{role} ann may not run {kind}") as found:
            check_statement(statement, Principal("ann", role))
        assert found.value.code == "not_allowed"


def test_a_viewer_starts_queries_of_pages() -> None:
    check_statement(parse_statement("SELECT a FROM b"), Principal("v", Role.VIEWER), Origin.SESSION)


@pytest.mark.parametrize("action", ACTION_ROLES)
def test_an_action_needs_its_role(action: str) -> None:
    for role in Role:
        if role.may_act_as(ACTION_ROLES[action]):
            check_action(action, Principal("ann", role))
        else:
            with pytest.raises(NotAllowedError, match=f"{role} ann may not {action}"):
                check_action(action, Principal("ann", role))
