"""GRANT, REVOKE, SHOW GRANTS and ALTER USER, and the queries that rest on a right."""

import asyncio
from collections.abc import Callable, Iterable, Sequence

import msgspec

from federated_optimizer.coordinator.contract.coordinator_model import ResultKind, StatementResult
from federated_optimizer.coordinator.contract.grant_model import Grant, Grantee, Quotas, Usage
from federated_optimizer.coordinator.contract.people_model import Account
from federated_optimizer.coordinator.contract.principal import LOCAL, Principal, Role
from federated_optimizer.coordinator.grants.maker_groups import MakerGroups
from federated_optimizer.coordinator.grants.query_rights import queries_of
from federated_optimizer.coordinator.queries.query_registry import Queries
from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from federated_optimizer.coordinator.rights.account_quotas import QUOTA_EXCEEDED
from federated_optimizer.coordinator.shared_parts import SharedParts
from federated_optimizer.coordinator.store.grant_store import (
    MadeKind,
    drop_grants,
    put_grants,
    put_maker,
    put_quotas,
)
from host.clocks import monotonic_clock
from streamsql.catalog.catalog import is_library, is_relation, kind_of
from streamsql.catalog.read_gate import NOT_ALLOWED, Read
from streamsql.catalog.system import is_system
from streamsql.data.types import MICROSECONDS, timestamp_text
from streamsql.errors import BindingError, FederationError
from streamsql.syntax import AlterUser, Revoke, ShowGrants
from streamsql.syntax import Grant as GrantStatement
from streamsql.syntax.cursor import did_you_mean
from streamsql.syntax.statement_parsers.grant_statements import GranteeKind, WrittenGrantee
from streamsql.syntax.statements import Name, Option

MAX_GRANTS = 50_000
LOOK_MICROSECONDS = MICROSECONDS
"""Between two looks at what accounts have become: one costs what groups of
queries with one maker and one run cost. REVOKE looks at once."""
GRANT_COLUMNS = ("kind", "relation", "to", "name", "by", "since")


class GrantChanges:
    """Changes grants and quotas, in the catalog first. One statement at a time."""

    def __init__(
        self, shared: SharedParts, queries: Queries, publish_tables: Callable[[], None]
    ) -> None:
        """Take what is changed; `publish_tables` tells the static engine what it refreshes."""
        self._shared = shared
        self._queries = queries
        self._publish_tables = publish_tables
        self._follows = False
        self._checked = 0
        self._refreshed: object = None
        self._groups = MakerGroups(queries, shared.rights)

    def follow(self, account_of: Callable[[str], Account | None]) -> None:
        """Ask for accounts from now on, and stop what belongs to none."""
        self._shared.rights.account_of = account_of
        self._follows = True
        self.check_running()

    async def keep(self) -> None:
        """Stop what rests on a right that is gone, for accounts change elsewhere."""
        if self._follows and monotonic_clock() - self._checked >= LOOK_MICROSECONDS:
            self._checked = monotonic_clock()
            self.check_running()

    async def run(
        self, statement: GrantStatement | Revoke | ShowGrants | AlterUser, principal: Principal
    ) -> StatementResult:
        """Execute a statement; who may run it has been checked.

        Raises:
            FederationError: A name or a value is wrong; nothing has changed then.
        """
        match statement:
            case GrantStatement():
                return await self._grant(statement, principal)
            case Revoke():
                return await self._revoke(statement)
            case ShowGrants():
                return self._show(statement, principal)
            case AlterUser():
                return await self._alter(statement)

    async def forget_definition(self, name: str) -> None:
        """Discard the grants on a definition that was dropped, and who made it."""
        rights, key = self._shared.rights, name.lower()
        gone = [(grant.relation, grant.grantee) for grant in rights.granted(key)]
        if gone:
            await asyncio.to_thread(drop_grants, self._shared.store, gone)
        made = (MadeKind.DEFINITION, key)
        await asyncio.to_thread(put_maker, self._shared.store, made, None)
        for relation, grantee in gone:
            rights.revoke(relation, grantee)
        rights.made(made, None)

    def check_running(self) -> None:
        """Stop the queries that rest on a right which is gone, by name, with the reason."""
        rights = self._shared.rights
        self._check_refreshed()
        for group in tuple(self._groups.all()):
            first = group[0]
            maker = rights.maker(MadeKind.QUERY, first.id)
            if maker is None:
                self._stop_of_gone(group)
                continue
            if maker is LOCAL and not any(read.within for read in first.reads):
                continue  # the federation itself may read everything
            refused = next(rights.refusals(maker, first.reads), None)
            if refused is not None:
                self._stop(group, refused.reason, refused.hint, NOT_ALLOWED)
                continue
            self._check_size(group, maker)

    def _stop_of_gone(self, group: Sequence[RunningQuery]) -> None:
        """Stop those whose maker is gone; the others' has only the name, and is seen next."""
        rights = self._shared.rights
        gone = [query for query in group if rights.maker(MadeKind.QUERY, query.id) is None]
        reason = "whoever started it has no account any more"
        self._stop(gone, reason, "start it again", NOT_ALLOWED)

    def _check_refreshed(self) -> None:
        """Plan views that are refreshed again where their makers' rights may have changed."""
        rights, names = self._shared.rights, [v.name for v in self._shared.catalog.refreshed]
        makers = [rights.maker(MadeKind.DEFINITION, name.lower()) for name in names]
        now = (rights.version, makers) if names else None
        if now != self._refreshed:
            self._publish_tables()
            self._refreshed = now

    def _check_size(self, group: Sequence[RunningQuery], maker: Principal) -> None:
        """Stop the queries of a run that have become too large; they have one state."""
        quotas, who = self._shared.quotas.of(maker), f"{maker.role} {maker.name}"
        run, most = group[0].run, quotas.max_result_rows
        if most is not None and any(a.size > most for a in self._queries.runs.answers.of(run)):
            too_large = [query for query in group if query.result.size > most]
            for query in too_large:
                rows = query.result.size
                reason = f"a result of {who} may have {most} rows, and this one has {rows}"
                self._stop([query], reason, "aggregate or filter more", QUOTA_EXCEEDED)
            if too_large:
                return
        rows, most = group[0].flows.kept_rows(), quotas.max_state_rows
        if most is not None and rows > most:
            reason = (
                f"a query of {who} may keep {most} rows at the sites, and this one keeps {rows}"
            )
            hint = "use a shorter window, or group by columns with fewer values"
            self._stop(group, reason, hint, QUOTA_EXCEEDED)

    def usage(self, principal: Principal) -> Usage:
        """Return what somebody uses at the moment."""
        mine = queries_of(self._shared.rights, principal, self._queries.all())
        return Usage(
            queries=len(mine),
            state_rows=max((q.flows.kept_rows() for q in mine), default=0),
            result_rows=max((q.result.size for q in mine), default=0),
            planning_seconds=self._shared.quotas.planned(principal.name),
        )

    def _stop(self, group: Iterable[RunningQuery], reason: str, hint: str, code: str) -> None:
        for query in group:
            self._queries.fail(query, FederationError(reason, hint=hint, code=code))

    async def _grant(self, statement: GrantStatement, principal: Principal) -> StatementResult:
        rights, now = self._shared.rights, self._shared.clock()
        relations = [self._relation(name, statement.kind) for name in statement.relations]
        for name, relation in zip(statement.relations, relations, strict=True):
            refused = rights.refusal(principal, Read(relation))
            if refused is not None:  # an API token that is limited to other relations
                raise refused.error(name.span)
        grantees = [self._grantee(written, must_exist=True) for written in statement.grantees]
        known = {(grant.relation, grant.grantee) for grant in rights.granted()}
        wanted = dict.fromkeys((r, g) for r in relations for g in grantees)
        if len(known | wanted.keys()) > MAX_GRANTS:
            raise BindingError(
                f"there are {len(known)} grants; the max is {MAX_GRANTS}",
                span=statement.span,
                hint="grant to a role, or grant a view",
                code="limit_exceeded",
            )
        added = [Grant(relation, to, principal.name, now) for relation, to in wanted]
        await asyncio.to_thread(put_grants, self._shared.store, added)
        for grant in added:
            rights.grant(grant)
        return StatementResult(ResultKind.DONE, f"granted: {_words(statement)}")

    async def _revoke(self, statement: Revoke) -> StatementResult:
        rights = self._shared.rights
        relations = [self._relation(name, statement.kind) for name in statement.relations]
        grantees = [self._grantee(written, must_exist=False) for written in statement.grantees]
        known = {(grant.relation, grant.grantee) for grant in rights.granted()}
        gone = [(r, g) for r in relations for g in grantees if (r, g) in known]
        missing = [(r, g) for r in relations for g in grantees if (r, g) not in known]
        await asyncio.to_thread(drop_grants, self._shared.store, gone)
        for relation, grantee in gone:
            rights.revoke(relation, grantee)
        before = {query.id for query in self._queries.all() if self._has_stopped(query)}
        self.check_running()
        stopped = [
            query.name
            for query in self._queries.all()
            if self._has_stopped(query) and query.id not in before
        ]
        warnings = [f"there was no grant on {r} to {_named(g)}" for r, g in missing]
        if stopped:
            warnings.append(f"queries that rested on it were stopped: {', '.join(stopped)}")
        message = f"revoked: {_words(statement)}" if gone else "nothing was granted so"
        return StatementResult(ResultKind.DONE, message, warnings=tuple(warnings))

    def _has_stopped(self, query: RunningQuery) -> bool:
        return self._shared.settings.host in query.problems

    def _show(self, statement: ShowGrants, principal: Principal) -> StatementResult:
        grants = self.visible(principal)
        if statement.grantee is not None:
            wanted = self._grantee(statement.grantee, must_exist=False)
            grants = tuple(grant for grant in grants if grant.grantee == wanted)
        if statement.relation is not None:
            relation = self._relation(statement.relation, statement.kind)
            grants = tuple(grant for grant in grants if grant.relation == relation)
        rows = tuple(
            (
                *(self._kind(grant.relation), grant.relation, str(grant.grantee.kind)),
                *(grant.grantee.name, grant.by, timestamp_text(grant.at)),
            )
            for grant in grants
        )
        return StatementResult(ResultKind.ROWS, columns=GRANT_COLUMNS, rows=rows)

    def visible(self, principal: Principal) -> tuple[Grant, ...]:
        """Return all grants to an administrator, and to others those that are for them."""
        grants = self._shared.rights.granted()
        if principal.role.may_act_as(Role.ADMINISTRATOR):
            return grants
        rights = self._shared.rights
        return tuple(grant for grant in grants if rights.is_for(grant, principal))

    def _kind(self, relation: str) -> str:
        definition = self._shared.catalog.find(relation)
        return "" if definition is None else kind_of(definition)

    async def _alter(self, statement: AlterUser) -> StatementResult:
        account = self._user(statement.user, must_exist=True)
        quotas = self._shared.quotas.own(account)
        for option in statement.options:
            quotas = msgspec.structs.replace(quotas, **{_known(option): _amount(option)})
        kept = None if quotas == Quotas() else quotas
        await asyncio.to_thread(put_quotas, self._shared.store, account, kept)
        self._shared.quotas.set(account, kept)
        found = self._shared.rights.account_of(account)
        role = Role.VIEWER if found is None else found.role
        shown = msgspec.structs.asdict(self._shared.quotas.of(Principal(account, role)))
        rows = tuple((name, "none" if v is None else f"{v:g}") for name, v in shown.items())
        return StatementResult(
            ResultKind.ROWS, f"user {account} altered", columns=("quota", "value"), rows=rows
        )

    def _relation(self, name: Name, kind: str) -> str:
        """Return the name of a relation that can be granted.

        Raises:
            BindingError: It cannot.
        """
        definition = self._shared.catalog.find(name.text)
        if definition is None or not is_relation(definition):
            known = [d.name for d in self._shared.catalog if kind_of(d) == kind]
            raise BindingError(
                f"there is no {kind} {name.text!r}",
                span=name.span,
                hint=did_you_mean(name.text, known, f"SHOW {kind.upper()}S lists them"),
                code="unknown_relation",
            )
        if is_system(definition) or is_library(definition):
            system = is_system(definition)
            raise BindingError(
                f"{definition.name} "
                + (
                    "is a table of the system, which operators read"
                    if system
                    else "is a library view, which reads with the rights of whoever reads it"
                ),
                span=name.span,
                hint="grant a view over it"
                if system
                else "grant the sources that it reads, or a view over it",
                code="not_grantable",
            )
        if kind_of(definition) != kind:
            raise BindingError(
                f"{definition.name} is a {kind_of(definition)}, not a {kind}",
                span=name.span,
                hint=f"write ON {kind_of(definition).upper()} {definition.name}",
                code="unknown_relation",
            )
        return definition.name.lower()

    def _grantee(self, written: WrittenGrantee, *, must_exist: bool) -> Grantee:
        match written.kind:
            case GranteeKind.EVERYBODY:
                return Grantee(written.kind)
            case GranteeKind.USER:
                return Grantee(written.kind, self._user(written.name, must_exist=must_exist))
            case GranteeKind.ROLE:
                text = written.name.text.lower()
                if text not in tuple(Role):
                    raise BindingError(
                        f"there is no role {written.name.text!r}",
                        span=written.name.span,
                        hint=did_you_mean(text, Role, f"one of {', '.join(Role)}"),
                        code="unknown_account",
                    )
                return Grantee(written.kind, text)

    def _user(self, name: Name, *, must_exist: bool) -> str:
        if must_exist and self._shared.rights.account_of(name.text) is None:
            raise BindingError(
                f"there is no account {name.text!r}",
                span=name.span,
                hint=f"pando user add {name.text}, or the page People",
                code="unknown_account",
            )
        return name.text


def _words(statement: GrantStatement | Revoke) -> str:
    names = ", ".join(name.text for name in statement.relations)
    return f"{statement.kind} {names}"


def _named(grantee: Grantee) -> str:
    return f"{grantee.kind} {grantee.name}".strip()


def _known(option: Option) -> str:
    fields = Quotas.__struct_fields__
    if option.name not in fields:
        raise BindingError(
            f"there is no quota {option.name!r}",
            span=option.span,
            hint=did_you_mean(option.name, fields, f"one of {', '.join(fields)}"),
            code="bad_option",
        )
    return option.name


def _amount(option: Option) -> int | float | None:
    """Return the value of a quota; None for what the role has.

    Raises:
        BindingError: It is no amount.
    """
    text = option.value.strip().lower()
    if text == "none":
        return None
    convert = float if option.name == "planning_seconds" else int
    try:
        amount = convert(text)
    except ValueError:
        amount = -1
    if not 0 <= amount <= 1e12:
        raise BindingError(
            f"{option.name} = {option.value!r:.40} is no amount",
            span=option.value_span,
            hint=f"write {option.name} = 10, or {option.name} = 'none' for what the role has",
            code="bad_option",
        )
    return amount
