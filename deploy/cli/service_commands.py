"""Commands for the services of a running `pando up`: restart, stop, and their logs."""

from pathlib import Path
from typing import Annotated
from urllib.parse import quote

import typer

from ui.cli.commands.console_command import Address, connected, guarded
from ui.cli.commands.http_commands import app, gateway_app

Service = Annotated[
    str, typer.Argument(help="gw-1, gw-2, …, base, static, lander, console or broker")
]
Data = Annotated[Path | None, typer.Option(help="Data directory of the `pando up`")]


@gateway_app.command("restart")
def gateway_restart(
    service: Service,
    remote: Annotated[
        bool, typer.Option("--remote", help="A gateway or base site on any machine, by its console")
    ] = False,
    data: Data = None,
    console: Address = None,
) -> None:
    """Restart a service of the running `pando up`, whether it died or still runs.

    With several federations on this machine, --console, PANDO_CONSOLE or --data says which. With
    --remote the console tells a site that is online to start its own process again.

    Examples:
      pando gateway restart gw-2
      pando gateway restart gw-2 --console http://127.0.0.1:8421
      pando gateway restart gw-7 --remote
    """
    if not remote:
        _request(service, "restart", data, console)
        return
    with connected(console) as client:
        client.post(f"/api/sites/{quote(service, safe='')}/restart", {})
    typer.echo(f"told {service} to start again")


@gateway_app.command("stop")
def gateway_stop(
    service: Service,
    kill: Annotated[
        bool, typer.Option("--kill", help="End it without warning, as a power failure does")
    ] = False,
    data: Data = None,
    console: Address = None,
) -> None:
    """Stop a service of the running `pando up` until `pando gateway restart`.

    Examples:
      pando gateway stop gw-2
      pando gateway stop gw-2 --kill
    """
    _request(service, "kill" if kill else "stop", data, console)


def _request(service: str, verb: str, data: Path | None, console: str | None) -> None:
    from deploy.local.layout import Layout  # noqa: PLC0415
    from deploy.local.restart_requests import Verb, request  # noqa: PLC0415
    from ui.cli.federations import data_directory  # noqa: PLC0415

    with guarded():
        layout = Layout(data_directory(console, data))
        request(layout, service, Verb(verb))
    typer.echo(f"requested a {verb} of {service} in {layout.root}")


@app.command()
def logs(  # noqa: PLR0913, PLR0917  (the command line contract)
    service: Service,
    lines: Annotated[int, typer.Option("--lines", "-n", help="How many of the newest")] = 100,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with new lines")] = False,
    unit: Annotated[
        bool, typer.Option("--unit", help="Of the systemd unit: pando-gateway@gw-2, pando-console")
    ] = False,
    data: Data = None,
    console: Address = None,
) -> None:
    """Print the log of a service of `pando up`, or of a systemd unit of ours on this machine.

    The logs of a federation that has ended are found with --data.

    Examples:
      pando logs gw-2
      pando logs base --lines 20 --follow
      pando logs console --data /srv/pando
      pando logs gw-7 --unit
    """
    from deploy.local.layout import Layout  # noqa: PLC0415
    from deploy.local.service_logs import follow as followed  # noqa: PLC0415
    from deploy.local.service_logs import last_lines  # noqa: PLC0415
    from ui.cli.federations import data_directory  # noqa: PLC0415

    with guarded():
        if unit:
            raise typer.Exit(_journal(service, lines, follow=follow))
        folder = Layout(data_directory(console, data)).logs
        for line in last_lines(folder, service, lines):
            typer.echo(line)
        if follow:
            for line in followed(folder, service):
                typer.echo(line)


def _journal(service: str, lines: int, *, follow: bool) -> int:
    """Let journalctl print the log of a unit; return its exit status."""
    import subprocess  # noqa: PLC0415

    from streamsql.errors import DeploymentError  # noqa: PLC0415
    from streamsql.wire.topics import check_id  # noqa: PLC0415

    name = check_id(service, "service")
    unit = f"pando-{name}" if name in ("console", "static", "lander") else f"pando-gateway@{name}"
    command = ["journalctl", "--unit", unit, "--lines", str(lines), "--no-pager", "--output", "cat"]
    try:
        return subprocess.call([*command, *(["--follow"] if follow else [])])  # noqa: S603
    except FileNotFoundError:
        raise DeploymentError(
            "this machine has no journalctl", hint="--unit needs systemd; leave it out"
        ) from None
