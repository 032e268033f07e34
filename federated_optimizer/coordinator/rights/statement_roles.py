"""The least role of every kind of statement and of every action of the coordinator's interface.

What may be read is asked besides: see `reading_rights.py`.
"""

from collections.abc import Mapping

from federated_optimizer.coordinator.contract.coordinator_model import Origin
from federated_optimizer.coordinator.contract.principal import Principal, Role
from streamsql.algebra.operators import SourceKind
from streamsql.catalog.read_gate import NOT_ALLOWED
from streamsql.errors import BindingError, FederationError, InternalError
from streamsql.syntax import (
    AdvanceTime,
    AlterSite,
    AlterSource,
    AlterUser,
    CreateAlarm,
    CreateDisplay,
    CreateFunction,
    CreateSink,
    CreateSource,
    CreateView,
    Delete,
    Describe,
    Drop,
    Explain,
    ExplainConfidence,
    ExplainWhatIf,
    ExplainWhy,
    Grant,
    Insert,
    Merge,
    Query,
    Refresh,
    Revoke,
    RunOnHistory,
    Show,
    ShowGrants,
    Subscribe,
    Update,
)
from streamsql.syntax.statements import Statement

STATEMENT_ROLES: Mapping[type[Statement], Role] = {
    Show: Role.VIEWER,
    Describe: Role.VIEWER,
    ShowGrants: Role.VIEWER,
    Query: Role.ANALYST,
    Subscribe: Role.ANALYST,
    Explain: Role.ANALYST,
    ExplainWhy: Role.ANALYST,
    ExplainWhatIf: Role.ANALYST,
    ExplainConfidence: Role.ANALYST,
    RunOnHistory: Role.ANALYST,
    CreateView: Role.ANALYST,
    CreateAlarm: Role.ANALYST,
    CreateDisplay: Role.ANALYST,
    Refresh: Role.ANALYST,
    Drop: Role.ANALYST,
    CreateSource: Role.OPERATOR,
    CreateSink: Role.OPERATOR,
    CreateFunction: Role.OPERATOR,
    AlterSource: Role.OPERATOR,
    AlterSite: Role.OPERATOR,
    Insert: Role.OPERATOR,
    Delete: Role.OPERATOR,
    Update: Role.OPERATOR,
    Merge: Role.OPERATOR,
    AdvanceTime: Role.OPERATOR,
    Grant: Role.ADMINISTRATOR,
    Revoke: Role.ADMINISTRATOR,
    AlterUser: Role.ADMINISTRATOR,
}
"""DROP and REFRESH of what somebody else has made need an operator."""

ACTION_ROLES: Mapping[str, Role] = {
    "read results": Role.VIEWER,
    "look at sites": Role.VIEWER,
    "stop queries": Role.ANALYST,
    "acknowledge alarms": Role.ANALYST,
    "ask about rows": Role.ANALYST,
    "run on history": Role.ANALYST,
    "look at the lake": Role.ANALYST,
    "care for the lake": Role.OPERATOR,
    "look at costs": Role.ANALYST,
    "calibrate": Role.OPERATOR,
    "change sites": Role.OPERATOR,
    "remove gateways": Role.OPERATOR,
    "command sites": Role.OPERATOR,
    "try sources": Role.OPERATOR,
    "check the network": Role.OPERATOR,
    "handle sinks": Role.OPERATOR,
    "read the audit": Role.OPERATOR,
    "handle quotas": Role.ADMINISTRATOR,
}
"""Queries of others are stopped by operators."""

_CHANGING = frozenset(STATEMENT_ROLES) - {
    Show,
    Describe,
    ShowGrants,
    Explain,
    ExplainWhy,
    ExplainWhatIf,
    ExplainConfidence,
    RunOnHistory,
}


class NotAllowedError(FederationError):
    """Somebody asks for more than their role allows."""

    code = "not_allowed"


def check_statement(
    statement: Statement, principal: Principal, origin: Origin = Origin.USER
) -> None:
    """Check that a role may run a kind of statement.

    A viewer may start queries for a page, which end with their reader.

    Raises:
        BindingError: It may not; code `not_allowed`.
    """
    least = STATEMENT_ROLES.get(type(statement))
    if least is None:
        raise InternalError(f"{type(statement).__name__} has no least role")
    if isinstance(statement, Query) and origin == Origin.SESSION:
        least = Role.VIEWER
    if principal.role.may_act_as(least):
        return
    raise BindingError(
        f"{principal.role} {principal.name} may not run {statement_kind(statement)}: it is for "
        f"{least}s and above",
        span=statement.span,
        hint=f"ask an {least} to do it, or an administrator for a higher role",
        code=NOT_ALLOWED,
    )


def check_action(action: str, principal: Principal) -> None:
    """Check that a role may do something; `action` is a key of `ACTION_ROLES`.

    Raises:
        NotAllowedError: It may not.
    """
    least = ACTION_ROLES[action]
    if not principal.role.may_act_as(least):
        raise NotAllowedError(
            f"{principal.role} {principal.name} may not {action}: that is for {least}s and above",
            hint=f"ask an {least} to do it, or an administrator for a higher role",
        )


def is_change(statement: Statement) -> bool:
    """Whether a statement changes something, so that the audit has it."""
    return type(statement) in _CHANGING


def statement_kind(statement: Statement) -> str:
    """Return a statement's first words: CREATE VIEW, DROP ALARM, SELECT."""
    match statement:
        case Query():
            return "SELECT"
        case CreateSource(kind=kind):
            return f"CREATE {'TABLE' if kind == SourceKind.TABLE else 'SOURCE'}"
        case Drop(kind=kind):
            return f"DROP {kind.upper()}"
        case ShowGrants():
            return "SHOW GRANTS"
        case ExplainWhatIf():
            return "EXPLAIN WHAT IF"
        case _:
            return _spaced(type(statement).__name__)


def statement_target(statement: Statement) -> str:
    """Return the name of what a statement changes, or an empty text."""
    match statement:
        case Insert(source=name) | Delete(source=name) | AlterSite(site=name):
            return name.text
        case Update(source=name) | Merge(source=name):
            return name.text
        case AlterUser(user=name):
            return name.text
        case Grant(relations=names) | Revoke(relations=names):
            return ", ".join(name.text for name in names)
        case (
            CreateSource(name=name)
            | CreateView(name=name)
            | CreateAlarm(name=name)
            | CreateSink(name=name)
            | CreateDisplay(name=name)
            | CreateFunction(name=name)
            | AlterSource(name=name)
            | Drop(name=name)
            | Refresh(name=name)
        ):
            return name.text
        case _:
            return ""


def _spaced(name: str) -> str:
    """Return CREATE VIEW of CreateView."""
    return "".join(f" {c}" if c.isupper() else c for c in name).strip().upper()
