"""Rights over running queries and over what somebody made."""

from collections.abc import Callable, Iterable

from federated_optimizer.coordinator.contract.principal import LOCAL, Principal, Role
from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from federated_optimizer.coordinator.rights.reading_rights import ReadingRights
from federated_optimizer.coordinator.rights.statement_roles import statement_kind
from federated_optimizer.coordinator.store.grant_store import MadeKind, Maker
from streamsql.catalog.catalog import is_library
from streamsql.catalog.definitions import Definition
from streamsql.catalog.read_gate import NOT_ALLOWED, Read, Refusal
from streamsql.errors import BindingError
from streamsql.syntax import Drop, Refresh


def maker_of(principal: Principal, at: int) -> Maker | None:
    """Return somebody as a maker, or None for the federation itself."""
    return None if principal.name == LOCAL.name else Maker(principal.name, at)


def refusal_of(rights: ReadingRights, principal: Principal, query: RunningQuery) -> Refusal | None:
    """Return why somebody may not read the result of a query, or None."""
    return next(rights.refusals(principal, query.reads), None)


def readable(
    rights: ReadingRights, principal: Principal, queries: Iterable[RunningQuery]
) -> tuple[RunningQuery, ...]:
    """Return the queries whose results somebody may read."""
    return tuple(filter(may_read(rights, principal), queries))


def may_read(rights: ReadingRights, principal: Principal) -> Callable[[RunningQuery], bool]:
    """Return what tells of queries whether somebody may read their results, for this moment."""
    may = may_read_all(rights, principal)
    return lambda query: may(query.reads)


def may_read_all(rights: ReadingRights, principal: Principal) -> Callable[[frozenset[Read]], bool]:
    """Return what tells whether somebody may read all of some relations, for this moment."""
    known: dict[frozenset[Read], bool] = {}  # thousands of queries read the same relations

    def may(reads: frozenset[Read]) -> bool:
        found = known.get(reads)
        if found is None:
            found = known[reads] = next(rights.refusals(principal, reads), None) is None
        return found

    return may


def sees_all(principal: Principal) -> bool:
    """Return whether somebody sees the whole network: operators, not by a limited token."""
    return principal.role.may_act_as(Role.OPERATOR) and principal.sources is None


def seen_in_network(
    rights: ReadingRights, principal: Principal, queries: Iterable[RunningQuery]
) -> tuple[RunningQuery, ...] | None:
    """Return the queries whose nodes somebody may see; None: operators see the whole network.

    A token that is limited to some relations is one of somebody who may read only these.
    """
    if sees_all(principal):
        return None
    return readable(rights, principal, queries)


def refuse_reads(rights: ReadingRights, principal: Principal, query: RunningQuery) -> None:
    """Refuse to give the result of a query to somebody who may not read all that it reads.

    Raises:
        BindingError: They may not; code `not_allowed`.
    """
    refused = refusal_of(rights, principal, query)
    if refused is not None:
        raise Refusal(f"{refused.reason}, which query {query.name} reads", refused.hint).error()


def refuse_base_rows(
    rights: ReadingRights, principal: Principal, reads: Iterable[Read], what: str
) -> None:
    """Refuse to explain rows to somebody who may not read what they rest on, views left aside.

    Raises:
        BindingError: They may not; code `not_allowed`.
    """
    refused = _base_refusal(rights, principal, reads)
    if refused is not None:
        reason = f"{refused.reason}, on which rows of {what} rest"
        raise Refusal(reason, refused.hint).error()


def may_read_base_rows(rights: ReadingRights, principal: Principal, reads: Iterable[Read]) -> bool:
    """Check the sources and tables below a query, not its views, against somebody's rights."""
    return _base_refusal(rights, principal, reads) is None


def _base_refusal(
    rights: ReadingRights, principal: Principal, reads: Iterable[Read]
) -> Refusal | None:
    bare = frozenset(Read(read.relation) for read in reads)
    return next((r for r in rights.refusals(principal, bare)), None)


def queries_of(
    rights: ReadingRights, principal: Principal, queries: Iterable[RunningQuery]
) -> tuple[RunningQuery, ...]:
    """Return the queries that somebody has started."""
    return tuple(q for q in queries if rights.has_made(principal, MadeKind.QUERY, q.id))


def check_stop(rights: ReadingRights, principal: Principal, query: RunningQuery) -> None:
    """Check that somebody may stop a query: their own, or any for operators.

    Raises:
        BindingError: They may not; code `not_allowed`.
    """
    if principal.role.may_act_as(Role.OPERATOR):
        return
    if rights.has_made(principal, MadeKind.QUERY, query.id):
        return
    raise BindingError(
        f"{principal.role} {principal.name} may not stop query {query.name}: somebody else "
        "started it",
        hint="ask an operator",
        code=NOT_ALLOWED,
    )


def check_made(
    rights: ReadingRights, principal: Principal, statement: Drop | Refresh, name: str
) -> None:
    """Check that somebody may change a definition: their own, or any for operators.

    Raises:
        BindingError: They may not; code `not_allowed`.
    """
    if principal.role.may_act_as(Role.OPERATOR):
        return
    if rights.has_made(principal, MadeKind.DEFINITION, name.lower()):
        return
    raise BindingError(
        f"{principal.role} {principal.name} may not run {statement_kind(statement)} for {name}: "
        "somebody else made it",
        span=statement.name.span,
        hint="ask an operator",
        code=NOT_ALLOWED,
    )


def refuse_library(name: str, replaced: Definition | None, principal: Principal) -> None:
    """Refuse to put something in place of a library view, which others read, too.

    Raises:
        BindingError: It is one, and the principal is no operator; code `not_allowed`.
    """
    if replaced is None or not is_library(replaced):
        return
    if not principal.role.may_act_as(Role.OPERATOR):
        raise BindingError(
            f"{principal.role} {principal.name} may not replace the library view {name}, which "
            "others read, too",
            hint="choose another name, or ask an operator",
            code=NOT_ALLOWED,
        )
