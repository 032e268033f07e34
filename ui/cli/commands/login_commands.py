"""`pando login`, `pando logout`, `pando whoami`, `pando token`."""

from contextlib import closing
from typing import Annotated
from urllib.parse import quote

import typer

from streamsql.errors import DeploymentError
from ui.cli.client import DEFAULT_ADDRESS, ConsoleClient
from ui.cli.commands.console_command import LISTS, Address, ListFormat, connected, guarded
from ui.cli.federations import console_address
from ui.cli.printing import check_format, print_json, print_list
from ui.cli.sign_ins import KeptSignIn, check_encrypted, keep, kept_sign_ins
from ui.cli.typed_passwords import PasswordFromInput, typed_password

token_app = typer.Typer(help="API tokens: create, list, revoke", no_args_is_help=True)

_LISTED = ("id", "account", "label", "role", "sources", "created", "expires", "last_used")


def login(
    name: Annotated[str | None, typer.Option(help="Name of the account; else it is asked")] = None,
    password_stdin: PasswordFromInput = False,
    console: Address = None,
) -> None:
    """Sign in to a console; later commands to it ask for this account.

    The session is kept in a file that only you may read, until `pando logout` or its end.

    Examples:
      pando login --console https://pando.example
      pando login --name ann
    """
    with guarded():
        address = console_address(console) or DEFAULT_ADDRESS
        check_encrypted(address)
        who = name or typer.prompt("name", err=True)
        password = typed_password("password", from_input=password_stdin)
        body = {"name": who, "password": password, "cookie": False}
        with closing(ConsoleClient(address, secret="")) as client:
            told = client.post("/api/sign-in", body)
        keep(address, KeptSignIn(told["name"], told["secret"]))
        typer.echo(f"signed in to {address} as {told['name']} ({told['role']})")


def logout(console: Address = None) -> None:
    """Sign out of a console.

    Examples:
      pando logout
    """
    with guarded():
        address = console_address(console) or DEFAULT_ADDRESS
        kept = kept_sign_ins().get(address)
        if kept is None:
            typer.echo(f"not signed in to {address}")
            return
        keep(address, None)
        with closing(ConsoleClient(address, secret=kept.secret)) as client:
            try:
                client.post("/api/sign-out", {})
            except DeploymentError as error:
                if error.code != "not_signed_in":  # the session had ended already
                    raise
        typer.echo(f"signed out of {address}")


def whoami(console: Address = None, form: ListFormat = "table") -> None:
    """Show as whom commands ask a console.

    Examples:
      pando whoami
    """
    with connected(console) as client:
        me = client.get("/api/me")
        if check_format(form, LISTS) == "json":
            print_json(me)
        elif not me["accounts"]:
            typer.echo(f"{client.address} has no accounts: everybody on its machine may do all")
        elif not me["signed_in"]:
            typer.echo(f"not signed in to {client.address}: `pando login`")
        else:
            token = f", by the token {me['token']!r}" if me["token"] else ""
            typer.echo(f"{me['name']} ({me['role']}{token}) at {client.address}")


@token_app.command("create")
def token_create(  # noqa: PLR0913, PLR0917  (the command line contract)
    label: Annotated[str, typer.Argument(help="What it is for")],
    account: Annotated[
        str | None, typer.Option(help="For which it asks; default: your own (administrators)")
    ] = None,
    role: Annotated[str | None, typer.Option(help="The most that it may do")] = None,
    days: Annotated[float, typer.Option(help="After which it expires; 0: never")] = 90,
    source: Annotated[
        list[str] | None,
        typer.Option(help="Source, table or view that it may read, and no other; repeatable"),
    ] = None,
    form: ListFormat = "table",
    console: Address = None,
) -> None:
    """Make an API token and print it; it is not shown again.

    Examples:
      pando token create "nightly report"
      pando token create wall --role viewer --source Temperature --days 365
    """
    with connected(console) as client:
        body = {"label": label, "role": role, "days": days or None, "sources": source or None}
        if account is not None:
            made = client.post("/api/tokens", {**body, "account": account})
        else:
            made = client.post("/api/me/tokens", body)
        if check_format(form, LISTS) == "json":
            print_json(made)
        else:
            typer.echo(made["secret"])


@token_app.command("list")
def token_list(
    everybody: Annotated[
        bool, typer.Option("--all", help="Those of all accounts (administrators)")
    ] = False,
    form: ListFormat = "table",
    console: Address = None,
) -> None:
    """List your API tokens, without their secrets."""
    with connected(console) as client:
        tokens = client.get("/api/tokens" if everybody else "/api/me/tokens")
        if check_format(form, LISTS) == "json":
            print_json(tokens)
        elif tokens:
            print_list(
                [{**token, "sources": _names(token["sources"])} for token in tokens], _LISTED, form
            )
        else:
            typer.echo("there is no token")


@token_app.command("revoke")
def token_revoke(
    token_id: Annotated[str, typer.Argument(metavar="ID", help="As `pando token list` shows it")],
    console: Address = None,
) -> None:
    """Revoke an API token: yours, or as an administrator any.

    Examples:
      pando token revoke 3f9c0d7a1b2e
    """
    with connected(console) as client:
        mine = [token["id"] for token in client.get("/api/me/tokens")]
        path = "/api/me/tokens" if token_id in mine else "/api/tokens"
        revoked = client.delete(f"{path}/{quote(token_id, safe='')}")
        typer.echo(f"revoked the token {revoked['label']!r} of {revoked['account']}")


def _names(sources: list[str] | None) -> str:
    return "all of the account" if sources is None else ", ".join(sources)
