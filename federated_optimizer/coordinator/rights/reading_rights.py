"""Rights to read relations.

Operators and administrators read everything but the audit, which is for administrators. Others
read the views they have made and what is granted to them, to their role or one below it, or to
everybody. The system's own tables are for operators.

A view of a user reads with its maker's rights as they are at the moment; a library view reads with
the rights of whoever reads it. An API token may be limited to some relations, whatever its account
may read.
"""

from collections.abc import Callable, Iterable, Iterator

from federated_optimizer.coordinator.contract.grant_model import Grant, Grantee
from federated_optimizer.coordinator.contract.people_model import Account
from federated_optimizer.coordinator.contract.principal import LOCAL, Principal, Role
from federated_optimizer.coordinator.store.grant_store import Made, MadeKind, Maker, StoredRights
from streamsql.catalog.catalog import Catalog, is_library, kind_of
from streamsql.catalog.read_gate import Gate, Read, Refusal
from streamsql.catalog.system import system_source
from streamsql.syntax.statement_parsers.grant_statements import GranteeKind


class ReadingRights:
    """Grants and makers in memory, and what follows from them.

    Attributes:
        version: Grows with every change.
        queries_made: Grows whenever somebody is noted, or no longer, as the maker of a query.
        account_of: Returns an account by its name, or None. Until somebody says better there is
            none.
    """

    def __init__(self, catalog: Catalog, stored: StoredRights) -> None:
        self._catalog = catalog
        self._grants: dict[str, dict[Grantee, Grant]] = {}
        self._makers = dict(stored.makers)
        self.version = 0
        self.queries_made = 0
        self.account_of: Callable[[str], Account | None] = lambda _name: None
        for grant in stored.grants:
            self.grant(grant)

    def grant(self, grant: Grant) -> None:
        """Add a grant."""
        self._grants.setdefault(grant.relation, {})[grant.grantee] = grant
        self.version += 1

    def revoke(self, relation: str, grantee: Grantee) -> None:
        """Remove a grant; nothing happens when there is none."""
        granted = self._grants.get(relation, {})
        if granted.pop(grantee, None) is not None and not granted:
            del self._grants[relation]
        self.version += 1

    def granted(self, relation: str | None = None) -> tuple[Grant, ...]:
        """Return the grants on a relation or on all, by relation and grantee."""
        names = sorted(self._grants) if relation is None else [relation]
        return tuple(
            granted[grantee]
            for name in names
            for granted in (self._grants.get(name, {}),)
            for grantee in sorted(granted)
        )

    def made(self, made: Made, maker: Maker | None) -> None:
        """Note who made something; None: it is gone, or the federation itself has made it."""
        if maker is None:
            self._makers.pop(made, None)
        else:
            self._makers[made] = maker
        if made[0] == MadeKind.DEFINITION:
            self.version += 1
        else:
            self.queries_made += 1

    def maker(self, kind: MadeKind, name: str) -> Principal | None:
        """Return who made something, with the role that they have now; None: they are gone."""
        maker = self._makers.get((kind, name))
        if maker is None:
            return LOCAL
        account = self._account(maker.account, maker.at)
        return None if account is None else Principal(account.name, account.role)

    def noted_maker(self, kind: MadeKind, name: str) -> Maker | None:
        """Return the account that made something, there or gone; None: the federation itself."""
        return self._makers.get((kind, name))

    def makers(self, kind: MadeKind) -> dict[str, str]:
        """Return the accounts that made something of a kind, by its name."""
        return {
            name: maker.account for (known, name), maker in self._makers.items() if known == kind
        }

    def has_made(self, principal: Principal, kind: MadeKind, name: str) -> bool:
        """Whether somebody made something."""
        maker = self.maker(kind, name)
        return maker is not None and maker.name == principal.name

    def _account(self, name: str, at: int) -> Account | None:
        """Return an account that was there at a time; another one had its name before."""
        account = self.account_of(name)
        return None if account is None or account.created > at else account

    def gate(self, principal: Principal) -> Gate:
        """Return what tells whether a statement of somebody may read a relation."""
        return lambda read: self.refusal(principal, read)

    def refusal(self, principal: Principal, read: Read) -> Refusal | None:
        """Return why a relation may not be read in a statement of somebody, or None."""
        if not read.within:
            return self._refusal_of(principal, read.relation)
        maker = self.maker(MadeKind.DEFINITION, read.within)
        if maker is None:
            account = self._makers[MadeKind.DEFINITION, read.within].account
            return Refusal(
                f"view {read.within} reads with the rights of its maker, {account}, who has no "
                "account any more",
                f"an operator can drop view {read.within} and create it again",
            )
        return self._refusal_of(maker, read.relation)

    def refusals(self, principal: Principal, reads: Iterable[Read]) -> Iterator[Refusal]:
        """Yield why some of a statement's relations may not be read by somebody."""
        for read in sorted(reads):
            refused = self.refusal(principal, read)
            if refused is not None:
                yield refused

    def _refusal_of(self, principal: Principal, relation: str) -> Refusal | None:
        definition = self._catalog.find(relation)
        if definition is not None and is_library(definition):
            return None
        kind = "relation" if definition is None else kind_of(definition)
        name = f"{kind} {relation}"
        who = f"{principal.role} {principal.name}"
        if principal.sources is not None and relation not in principal.sources:
            return Refusal(
                f"API token {principal.token} of {principal.name} may not read {name}",
                f"use a token that names {relation}",
            )
        if system_source(relation) is not None:
            if principal.role.may_act_as(Role.OPERATOR):
                return None
            return Refusal(f"{who} may not read {name}: it is for operators", "ask an operator")
        if principal.role.may_act_as(Role.OPERATOR):
            return None
        if kind == "view" and self.has_made(principal, MadeKind.DEFINITION, relation):
            return None
        if any(self.is_for(grant, principal) for grant in self._grants.get(relation, {}).values()):
            return None
        right = f"GRANT SELECT ON {kind.upper()} {relation}"
        return Refusal(
            f"{who} may not read {name}",
            f"ask an administrator for {right} TO USER {principal.name}",
        )

    def is_for(self, grant: Grant, principal: Principal) -> bool:
        """Whether a grant lets somebody read its relation."""
        grantee = grant.grantee
        match grantee.kind:
            case GranteeKind.EVERYBODY:
                return True
            case GranteeKind.ROLE:
                return principal.role.may_act_as(Role(grantee.name))
            case GranteeKind.USER:
                is_named = grantee.name == principal.name
                return is_named and self._account(grantee.name, grant.at) is not None
