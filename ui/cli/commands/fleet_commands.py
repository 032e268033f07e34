"""`pando gateway provision`, `enrolled`, `revoke`, `rotate`, `rename`, `retire`."""

from typing import Annotated, Any
from urllib.parse import quote

import typer

from streamsql.errors import FederationError
from ui.cli.commands.console_command import LISTS, Address, ListFormat, connected
from ui.cli.printing import check_format, print_json, print_list, short_time

Named = Annotated[str, typer.Argument(metavar="GATEWAY", help="Name of the gateway")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask first")]
ANSWER_SECONDS = 60.0
"""A gateway makes a key, or comes back under another name."""
_LISTED = ("name", "state", "joined", "certificate until", "token until", "revoked")


def add_fleet_commands(app: typer.Typer) -> None:
    """Add the commands to `pando gateway`."""
    for name, command in (
        ("provision", provision),
        ("enrolled", enrolled),
        ("revoke", revoke),
        ("rotate", rotate),
        ("rename", rename),
        ("retire", retire),
    ):
        app.command(name)(command)


def provision(
    gateway: Named,
    hours: Annotated[float, typer.Option(help="For how long the token is good")] = 24.0,
    form: ListFormat = "table",
    console: Address = None,
) -> None:
    """Make an account and a one-time token, with which a gateway joins.

    The token is shown once. Who has it can join in the gateway's name: treat it like a password.

    Examples:
      pando gateway provision gw-4
      pando gateway provision gw-4 --hours 1 --format json
    """
    with connected(console) as client:
        made = client.post("/api/fleet", {"name": gateway, "hours": hours})
        if check_format(form, LISTS) == "json":
            print_json({**made, "console": client.address})
            return
        typer.echo(f"on the machine of {gateway}, until {short_time(made['until'])}, once:")
        typer.echo(f"  pando gateway join {client.address} {made['token']}")
        typer.echo("where only the gateway is installed:")
        typer.echo(f"  python -m gateway.join {client.address} {made['token']}")


def enrolled(form: ListFormat = "table", console: Address = None) -> None:
    """List the gateways that were provisioned."""
    with connected(console) as client:
        found = client.get("/api/fleet")
        if check_format(form, LISTS) == "json":
            print_json(found)
            return
        print_list([_row(each) for each in found], _LISTED, form)


def revoke(gateway: Named, yes: Yes = False, console: Address = None) -> None:
    """Let the broker refuse a gateway, and cut it off at once.

    It may be provisioned again. What it has sent leaves all answers.
    """
    _ask(f"cut off {gateway} and refuse it?", yes=yes)
    with connected(console) as client:
        client.post(f"{_path(gateway)}/revoke", {})
        typer.echo(f"{gateway} is revoked")


def rotate(gateway: Named, console: Address = None) -> None:
    """Give a connected gateway a new key, certificate and password; no reading is lost."""
    with connected(console) as client:
        client.post(f"{_path(gateway)}/rotate", {}, seconds=ANSWER_SECONDS)
        typer.echo(f"{gateway} has new credentials")


def rename(
    gateway: Named,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The new name")],
    yes: Yes = False,
    console: Address = None,
) -> None:
    """Give a connected gateway another name: queries see a gateway leave and another one come."""
    _ask(f"rename {gateway} to {name}?", yes=yes)
    with connected(console) as client:
        client.post(f"{_path(gateway)}/rename", {"name": name}, seconds=ANSWER_SECONDS)
        typer.echo(f"{gateway} is {name} now")


def retire(gateway: Named, yes: Yes = False, console: Address = None) -> None:
    """Remove a gateway permanently: account, rights, and what is known of it."""
    _ask(f"remove {gateway} permanently?", yes=yes)
    with connected(console) as client:
        client.delete(_path(gateway))
        typer.echo(f"{gateway} is retired")


def _ask(question: str, *, yes: bool) -> None:
    if not yes and not typer.confirm(question):
        raise typer.Exit(1)


def _path(gateway: str) -> str:
    if not gateway:
        raise FederationError("the gateway has no name")
    return f"/api/fleet/{quote(gateway, safe='')}"


def _row(enrolment: dict[str, Any]) -> dict[str, str]:
    def moment(name: str) -> str:
        return short_time(enrolment[name])

    return {
        "name": enrolment["name"],
        "state": enrolment["state"],
        "joined": moment("joined"),
        "certificate until": moment("valid_until"),
        "token until": moment("token_until"),
        "revoked": moment("revoked"),
    }
