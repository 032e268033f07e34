"""`pando user`: accounts, at a console that runs or in a catalog without one."""

import asyncio
import os
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Annotated, Any, Protocol
from urllib.parse import quote

import typer

from deploy.cli.shared_options import TwoFormats
from streamsql.errors import DeploymentError
from ui.cli.client import ConsoleClient
from ui.cli.commands.console_command import LISTS, Address, guarded
from ui.cli.federations import console_address
from ui.cli.printing import check_format, print_list
from ui.cli.typed_passwords import PasswordFromInput, typed_password

user_app = typer.Typer(help="Accounts of people: add, change, remove", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="Of the account")]
Data = Annotated[
    Path | None,
    typer.Option(help="Data directory of `pando up`: change its catalog, whether or not it runs"),
]
Config = Annotated[
    Path | None,
    typer.Option(help="Settings file of a console: change its catalog, whether or not it runs"),
]
_ROLES = "viewer, analyst, operator or administrator"
_LISTED = ("name", "role", "disabled", "last_sign_in", "provider")


class _Accounts(Protocol):
    """Accounts, wherever they are changed; they are told as the REST interface does."""

    def list(self) -> Sequence[dict[str, Any]]: ...

    def add(self, name: str, role: str, password: str) -> dict[str, Any]: ...

    def change(
        self,
        name: str,
        *,
        role: str | None = None,
        disabled: bool | None = None,
        password: str | None = None,
    ) -> dict[str, Any]: ...

    def remove(self, name: str) -> None: ...


class _AtConsole:
    def __init__(self, client: ConsoleClient) -> None:
        self._client = client

    def list(self) -> Sequence[dict[str, Any]]:
        found: Sequence[dict[str, Any]] = self._client.get("/api/accounts")
        return found

    def add(self, name: str, role: str, password: str) -> dict[str, Any]:
        body = {"name": name, "role": role, "password": password}
        made: dict[str, Any] = self._client.post("/api/accounts", body)
        return made

    def change(
        self,
        name: str,
        *,
        role: str | None = None,
        disabled: bool | None = None,
        password: str | None = None,
    ) -> dict[str, Any]:
        body = {"role": role, "disabled": disabled, "password": password}
        changed: dict[str, Any] = self._client.patch(_path(name), body)
        return changed

    def remove(self, name: str) -> None:
        self._client.delete(_path(name))


def _path(name: str) -> str:
    return f"/api/accounts/{quote(name, safe='')}"


@contextmanager
def _accounts(data: Path | None, config: Path | None, console: str | None) -> Iterator[_Accounts]:
    if data is not None and config is not None:
        raise DeploymentError("--data and --config exclude each other")
    if data is None and config is None:
        with closing(ConsoleClient(console_address(console))) as client:
            yield _AtConsole(client)
        return
    if console is not None:
        raise DeploymentError("--console excludes --data and --config")
    from deploy.cli.catalog_accounts import CatalogAccounts, catalog_of  # noqa: PLC0415

    os.umask(0o077)  # a catalog that is made here is for nobody else
    with asyncio.Runner() as runner:
        kept = CatalogAccounts(runner, catalog_of(data, config))
        with closing(kept):
            yield kept


@user_app.command("add")
def user_add(  # noqa: PLR0913, PLR0917  (the command line contract)
    name: Name,
    role: Annotated[str, typer.Option(help=_ROLES)] = "viewer",
    password_stdin: PasswordFromInput = False,
    data: Data = None,
    config: Config = None,
    console: Address = None,
) -> None:
    """Add an account; its password is typed unseen.

    The first one has to be an administrator. From then on everybody has to sign in.

    Examples:
      pando user add ann --role administrator --data pando-data
      pando user add bob --role analyst
      pando user add root --role administrator --config /etc/pando/console.json
    """
    with guarded(), _accounts(data, config, console) as accounts:
        password = typed_password("password", from_input=password_stdin, twice=True)
        made = accounts.add(name, role, password)
        typer.echo(f"added the account {made['name']} ({made['role']})")


@user_app.command("list")
def user_list(
    data: Data = None, config: Config = None, console: Address = None, form: TwoFormats = "table"
) -> None:
    """List the accounts."""
    with guarded(), _accounts(data, config, console) as accounts:
        check_format(form, LISTS)
        found = accounts.list()
        if not found and form == "table":
            typer.echo("there is no account")
        else:
            print_list(list(found), _LISTED, form)


@user_app.command("role")
def user_role(
    name: Name,
    role: Annotated[str, typer.Argument(help=_ROLES)],
    data: Data = None,
    config: Config = None,
    console: Address = None,
) -> None:
    """Change the role of an account; what it has open ends.

    Examples:
      pando user role ann operator
    """
    with guarded(), _accounts(data, config, console) as accounts:
        changed = accounts.change(name, role=role)
        typer.echo(f"{changed['name']} is {changed['role']}")


@user_app.command("password")
def user_password(
    name: Name,
    password_stdin: PasswordFromInput = False,
    data: Data = None,
    config: Config = None,
    console: Address = None,
) -> None:
    """Set the password of an account; its sessions end.

    Examples:
      pando user password ann
    """
    with guarded(), _accounts(data, config, console) as accounts:
        password = typed_password("new password", from_input=password_stdin, twice=True)
        changed = accounts.change(name, password=password)
        typer.echo(f"{changed['name']} has a new password")


@user_app.command("disable")
def user_disable(
    name: Name, data: Data = None, config: Config = None, console: Address = None
) -> None:
    """Disable an account: its sessions end and its tokens are refused.

    Examples:
      pando user disable ann
    """
    with guarded(), _accounts(data, config, console) as accounts:
        typer.echo(f"{accounts.change(name, disabled=True)['name']} is disabled")


@user_app.command("enable")
def user_enable(
    name: Name, data: Data = None, config: Config = None, console: Address = None
) -> None:
    """Enable an account again.

    Examples:
      pando user enable ann
    """
    with guarded(), _accounts(data, config, console) as accounts:
        typer.echo(f"{accounts.change(name, disabled=False)['name']} is enabled")


@user_app.command("remove")
def user_remove(
    name: Name, data: Data = None, config: Config = None, console: Address = None
) -> None:
    """Remove an account with its sessions and tokens.

    Examples:
      pando user remove ann
    """
    with guarded(), _accounts(data, config, console) as accounts:
        accounts.remove(name)
        typer.echo(f"removed the account {name}")
