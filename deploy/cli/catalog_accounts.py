"""Accounts in a catalog, changed without a console: the first administrator is made so.

A console that runs notices within a second, and its audit says that somebody with access to the
catalog did it.
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from deploy.local.layout import Layout
from federated_optimizer.coordinator.contract.audit_model import Audit, AuditEntry, Outcome
from federated_optimizer.coordinator.contract.principal import LOCAL, Principal, Role
from federated_optimizer.coordinator.people.people_service import People
from federated_optimizer.coordinator.people.people_store import PeopleStore
from host.clocks import wall_clock
from streamsql.errors import DeploymentError
from ui.console_settings import ConsoleSettings, load_settings
from ui.sign_in.people_objects import account_object


def catalog_of(data: Path | None, config: Path | None) -> str:
    """Return the URL of a console's catalog.

    Args:
        data: Data directory of `pando up`, which may not exist yet.
        config: Settings file of a console, which wins.

    Raises:
        DeploymentError: The settings cannot be read, or the directory cannot be made.
    """
    layout = Layout((data or Path()).resolve())
    file = config or layout.settings("console")
    if config is not None or file.exists():
        settings = load_settings(file)
    else:
        settings = ConsoleSettings(broker="", data_dir=str(layout.data("console")))
    if not settings.catalog_url:
        folder = Path(settings.data_dir)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DeploymentError(f"cannot make {folder}: {error.strerror}") from error
    return settings.database


class _Unaudited(Audit):
    """Notes nothing: the audit belongs to the console."""

    def note(  # noqa: PLR0913
        self,
        principal: Principal | None,
        action: str,
        target: str,
        outcome: Outcome,
        detail: str = "",
        *,
        address: str = "",
    ) -> None:
        """Do nothing."""

    def entries(self) -> tuple[AuditEntry, ...]:
        """Return none."""
        return ()


class CatalogAccounts:
    """The accounts of a catalog, by the same rules as a console's.

    Args:
        runner: Runs what has to be awaited.
        url: Of the catalog.

    Raises:
        DeploymentError: The catalog cannot be used.
    """

    def __init__(self, runner: asyncio.Runner, url: str) -> None:
        self._runner = runner
        self._people = People(PeopleStore(url), wall_clock, _Unaudited())
        runner.run(self._people.read())

    def list(self) -> Sequence[dict[str, Any]]:
        """Return the accounts."""
        return [account_object(account) for account in self._people.accounts()]

    def add(self, name: str, role: str, password: str) -> dict[str, Any]:
        """Add an account."""
        made = self._people.add_account(name, _role(role), password, LOCAL)
        return account_object(self._runner.run(made))

    def change(
        self,
        name: str,
        *,
        role: str | None = None,
        disabled: bool | None = None,
        password: str | None = None,
    ) -> dict[str, Any]:
        """Change an account."""
        if password is not None:
            self._runner.run(self._people.set_password(name, password, LOCAL))
        wanted = None if role is None else _role(role)
        changed = self._people.change_account(name, LOCAL, role=wanted, disabled=disabled)
        return account_object(self._runner.run(changed))

    def remove(self, name: str) -> None:
        """Remove an account."""
        self._runner.run(self._people.remove_account(name, LOCAL))

    def close(self) -> None:
        """Close the catalog."""
        self._runner.run(self._people.close())


def _role(text: str) -> Role:
    try:
        return Role(text.lower())
    except ValueError:
        raise DeploymentError(
            f"there is no role {text!r:.40}", hint=f"write one of {', '.join(Role)}"
        ) from None
