"""Changes of accounts and tokens that another process made, for the audit."""

from collections.abc import Iterator

from federated_optimizer.coordinator.people.people_store import StoredPeople

WHERE = "with access to the catalog"
"""By whom: `pando user` writes the catalog itself where it is told its place."""


def outside_changes(before: StoredPeople, after: StoredPeople) -> Iterator[tuple[str, str, str]]:
    """Yield action, target and detail of what differs between two readings of the catalog."""
    old = {found.account.name: found for found in before.accounts}
    new = {found.account.name: found for found in after.accounts}
    for name in old.keys() - new.keys():
        yield "remove account", name, WHERE
    for name, found in new.items():
        account = found.account
        state = f"role {account.role}, {'disabled' if account.disabled else 'enabled'}, {WHERE}"
        known = old.get(name)
        if known is None:
            yield "add account", name, state
            continue
        if (known.account.role, known.account.disabled) != (account.role, account.disabled):
            yield "change account", name, state
        if known.password != found.password:
            yield "set password", name, WHERE
    kept = {found.token.id for found in after.tokens}
    known_ids = {found.token.id for found in before.tokens}
    for token in (found.token for found in before.tokens if found.token.id not in kept):
        yield "revoke token", token.account, f"{token.label}, {WHERE}"
    for token in (found.token for found in after.tokens if found.token.id not in known_ids):
        yield "create token", token.account, f"{token.label}, role {token.role}, {WHERE}"
