"""`pando endpoint`: which brokers, meters and servers the services of `pando up` reach."""

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from deploy.cli.shared_options import TwoFormats
from streamsql.errors import DeploymentError, FederationError
from ui.cli.client import ConsoleClient
from ui.cli.commands.console_command import Address, guarded
from ui.cli.printing import print_list

if TYPE_CHECKING:
    from deploy.local.layout import Layout

endpoint_app = typer.Typer(
    no_args_is_help=True, help="What gateways, and sinks, connect to: brokers, meters, servers"
)

RESTART_SECONDS = 60.0

Data = Annotated[Path | None, typer.Option(help="Data directory of `pando up`")]
Gateway = Annotated[str, typer.Argument(help="gw-1, gw-2, …; console for sinks")]
Name = Annotated[str, typer.Argument(help="Name that sources say: WITH (endpoint = 'home')")]


@endpoint_app.command("add")
def endpoint_add(  # noqa: PLR0913, PLR0917  (the command line contract)
    gateway: Gateway,
    name: Name,
    connector: Annotated[str, typer.Argument(help="mqtt, http, modbus, …")],
    options: Annotated[list[str] | None, typer.Argument(help="address=mqtt://… and so on")] = None,
    ask: Annotated[
        list[str] | None, typer.Option(help="Option to type hidden, such as password")
    ] = None,
    data: Data = None,
    console: Address = None,
) -> None:
    """Add an endpoint to a gateway, or change it; a running gateway restarts with it.

    Secrets stay in the data directory of this machine; statements only name the endpoint. An option
    that is an object is written entry by entry (tokens.lora=…), or as JSON.

    Examples:
      pando endpoint add gw-1 home mqtt address=mqtt://192.168.1.10 username=pando --ask password
      pando endpoint add gw-2 meters modbus host=192.168.1.31
      pando endpoint add gw-1 hooks http_push port=8094 --ask tokens.lora
      pando endpoint add console orders webhook url=https://host.example/pando --ask secret
    """
    from deploy.local.endpoint_options import typed_options  # noqa: PLC0415
    from deploy.local.endpoints import add_endpoint  # noqa: PLC0415

    with guarded():
        given = dict(_option(text) for text in options or ())
        for secret in ask or ():
            given[secret] = typer.prompt(secret, hide_input=True)
        layout = _layout(console, data)
        add_endpoint(layout, gateway, name, typed_options(gateway, connector, given))
        typer.echo(f"{gateway} has the endpoint {name} ({connector}){_restarted(layout, gateway)}")


@endpoint_app.command("remove")
def endpoint_remove(
    gateway: Gateway, name: Name, data: Data = None, console: Address = None
) -> None:
    """Remove an endpoint from a gateway; its sources get no rows from there any more.

    Examples:
      pando endpoint remove gw-1 home
    """
    from deploy.local.endpoints import remove_endpoint  # noqa: PLC0415

    with guarded():
        layout = _layout(console, data)
        remove_endpoint(layout, gateway, name)
        typer.echo(f"{gateway} has no endpoint {name} now{_restarted(layout, gateway)}")


@endpoint_app.command("list")
def endpoint_list(data: Data = None, console: Address = None, form: TwoFormats = "table") -> None:
    """List the endpoints of all gateways, without their secrets."""
    from deploy.local.kept_endpoints import read_endpoints  # noqa: PLC0415
    from gateway.connectors.endpoint_secrets import Secrets  # noqa: PLC0415

    with guarded():
        layout = _layout(console, data)
        rows = []
        for path in sorted(layout.endpoints("*").parent.glob("*.json")):
            for name, options in sorted(read_endpoints(layout, path.stem).items()):
                secrets = Secrets(options)
                shown = ", ".join(
                    f"{key}={secrets.hidden(str(value))}"
                    for key, value in options.items()
                    if key != "connector"
                )
                rows.append(
                    {
                        "gateway": path.stem,
                        "endpoint": name,
                        "connector": options.get("connector"),
                        "options": shown,
                    }
                )
        print_list(rows, ("gateway", "endpoint", "connector", "options"), form)


def _layout(console: str | None, data: Path | None) -> "Layout":
    from deploy.local.layout import Layout  # noqa: PLC0415
    from ui.cli.federations import data_directory  # noqa: PLC0415

    return Layout(data_directory(console, data))


def _option(text: str) -> tuple[str, str]:
    """Split `name=value`.

    Raises:
        DeploymentError: There is no `=`. The text is not repeated: it may be a secret.
    """
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise DeploymentError(
            "an option is not name=value", hint="address=mqtt://192.168.1.10; --ask for secrets"
        )
    return name, value


def _restarted(layout: "Layout", gateway: str) -> str:
    """Ask the running federation to restart the gateway; return what to say about it.

    Commands that follow need the console: it is waited for until it answers again.
    """
    from deploy.local.kept_endpoints import CONSOLE  # noqa: PLC0415
    from deploy.local.restart_requests import request, wait_for_restart  # noqa: PLC0415
    from ui.cli.federations import federation_of  # noqa: PLC0415

    try:
        before = request(layout, gateway)
    except DeploymentError as error:
        return f" from its next start on ({error.message})"
    federation = federation_of(layout.root)
    if gateway != CONSOLE or federation is None:
        return "; it restarts with it"
    with closing(ConsoleClient(federation.console)) as client:
        if wait_for_restart(layout, gateway, before, lambda: _answers(client), RESTART_SECONDS):
            return "; it has restarted with it"
    return f"; it has not answered for {RESTART_SECONDS:.0f} s: see the log of `pando up`"


def _answers(client: ConsoleClient) -> bool:
    try:
        client.get("/api/health")
    except FederationError:
        return False
    return True
