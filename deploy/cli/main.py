"""The `pando` command as a whole."""

import asyncio
import dataclasses
import inspect
import json
import os
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from deploy.cli import service_commands  # noqa: F401 - adds its commands
from deploy.cli.authority_commands import authority_app
from deploy.cli.calibrate_command import calibrate
from deploy.cli.endpoint_commands import endpoint_app
from deploy.cli.installed import version
from deploy.cli.shared_options import (
    Engine,
    Format,
    Functions,
    Local,
    Sites,
    TwoFormats,
    allow_functions,
    check_engine,
)
from deploy.cli.user_commands import user_app
from deploy.local.up_options import DEFAULT_PORT, UpOptions
from ui.cli.commands.console_command import Address, guarded
from ui.cli.commands.fleet_commands import add_fleet_commands
from ui.cli.commands.history_commands import trial_app
from ui.cli.commands.http_commands import app, gateway_app, table_app
from ui.cli.commands.lake_commands import lake_app
from ui.cli.commands.login_commands import login, logout, token_app, whoami
from ui.cli.commands.network_command import network_app
from ui.cli.commands.notice_commands import alarm_app, display_app
from ui.cli.commands.sink_commands import sink_app
from ui.cli.commands.table_commands import add_table_commands
from ui.cli.printing import check_format

DATA = Path("pando-data")
FIRST = ("up", "doctor", "shell", "run", "explain", "simulate", "calibrate", "bench")
EPILOG = """\b
Examples:
  pando up                               start everything on this machine
  pando query run "SELECT * FROM Link"   see a stream's changes
  pando shell --local                    learn the language, nothing needed
"""
_AS_IT_IS = "\b\n"  # click neither joins nor breaks the lines of a paragraph that begins so

app.add_typer(alarm_app, name="alarm")
app.add_typer(sink_app, name="sink")
app.add_typer(display_app, name="display")
app.add_typer(trial_app, name="trial")
app.add_typer(lake_app, name="lake")
app.add_typer(endpoint_app, name="endpoint")
app.add_typer(user_app, name="user")
app.add_typer(token_app, name="token")
app.command()(login)
app.command()(logout)
app.command()(whoami)
app.command()(calibrate)
app.add_typer(network_app, name="network")
app.add_typer(authority_app, name="ca")
add_fleet_commands(gateway_app)
add_table_commands(table_app)


def _say_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"pando {version()}")
        raise typer.Exit


@app.callback()
def pando(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", "-V", callback=_say_version, is_eager=True, help="Show the version"
        ),
    ] = False,
    ca: Annotated[
        str, typer.Option(help="Authority of the console's certificate; or PANDO_CA")
    ] = "",
    cert: Annotated[
        str, typer.Option(help="Certificate to show to the console; or PANDO_CERT")
    ] = "",
    key: Annotated[str, typer.Option(help="Private key of --cert; or PANDO_KEY")] = "",
) -> None:
    """Pando: sensor federation. Start with: pando up."""
    for name, value in (("PANDO_CA", ca), ("PANDO_CERT", cert), ("PANDO_KEY", key)):
        if value:
            os.environ[name] = value


@app.command()
def up(  # noqa: PLR0913, PLR0917  (the command line contract)
    site: Annotated[
        Path | None,
        typer.Option(help="Building as OSM indoor GeoJSON; default: the sample building"),
    ] = None,
    replay: Annotated[
        Path | None, typer.Option(help="Recording: K7 link trace, CSV, or SenML lines")
    ] = None,
    speed: Annotated[float, typer.Option(help="How many times faster to replay")] = 1.0,
    broker: Annotated[
        str | None,
        typer.Option(
            help="Broker to use (mqtt://host:port), or broker to start (embedded or mosquitto)"
        ),
    ] = None,
    gateways: Annotated[int, typer.Option(help="Number of gateways")] = 3,
    port: Annotated[int, typer.Option(help="Port of the console")] = DEFAULT_PORT,
    data: Annotated[Path, typer.Option(help="Directory for all stored data")] = DATA,
    no_spark: Annotated[
        bool, typer.Option("--no-spark", help="Evaluate static tables without Spark")
    ] = False,
    spark_master: Annotated[
        str, typer.Option(help="Where Spark works, e.g. spark://host:7077; default: this machine")
    ] = "",
    calendar: Annotated[
        str | None, typer.Option(help="Calendar: .ics file or address; default: a sample")
    ] = None,
    database: Annotated[
        str | None, typer.Option(help="Catalog database URL; default: SQLite in the data directory")
    ] = None,
    tables: Annotated[
        list[Path] | None,
        typer.Option(help="Folder that is open to tables; repeatable; default: the current folder"),
    ] = None,
    secrets: Annotated[
        Path | None,
        typer.Option(help="Secrets file with lines `name = address`, for url = 'secret:name'"),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(help="Further host name of the console, e.g. of a proxy; repeatable"),
    ] = None,
    metrics_port: Annotated[
        int, typer.Option(help="Port of gw-1's /metrics; the other services take the next ones")
    ] = 0,
    no_restart: Annotated[
        bool, typer.Option("--no-restart", help="Do not start services again that die")
    ] = False,
    secure: Annotated[
        bool, typer.Option("--secure", help="Broker with accounts and TLS for all services")
    ] = False,
    broker_listen: Annotated[
        str,
        typer.Option(
            help="With --secure: address of the broker for other machines, e.g. 0.0.0.0:8883"
        ),
    ] = "",
    console_host: Annotated[
        str,
        typer.Option(
            help="With --secure: address of the console for other machines, over TLS, e.g. 0.0.0.0"
        ),
    ] = "",
    functions: Functions = "",
    form: Annotated[
        str, typer.Option("--format", help="table or json (one line per event)")
    ] = "table",
) -> None:
    """Start the whole federation on this machine: broker, gateways, base site, Spark, console.

    Examples:
      pando up
      pando up --site building.geojson --gateways 5
      pando up --replay trace.k7.gz --speed 600
      pando up --secure --broker-listen 0.0.0.0:8883
    """
    from deploy.local.supervisor import up as run_federation  # noqa: PLC0415
    from deploy.local.up_reports import Reporter  # noqa: PLC0415  (keeps `pando --help` quick)

    with guarded():
        check_format(form, ("table", "json"))
        allow_functions(functions, here=False)
        options = UpOptions(
            site=site,
            replay=replay,
            speed=speed,
            broker=broker,
            gateways=gateways,
            port=port,
            data=data,
            spark=not no_spark,
            spark_master=spark_master,
            calendar=calendar,
            database=database,
            tables=tuple(tables or ()),
            secrets=secrets,
            allow_hosts=tuple(allow_host or ()),
            metrics_port=metrics_port,
            restart=not no_restart,
            secure=secure,
            broker_listen=broker_listen,
            console_host=console_host,
        )
        status = asyncio.run(run_federation(options, Reporter(form)))
    raise typer.Exit(status)


@gateway_app.command("join")
def gateway_join(
    url: Annotated[str, typer.Argument(help="The console, e.g. https://console.example:8420")],
    token: Annotated[str, typer.Argument(help="From `pando gateway provision NAME`")],
    data: Annotated[
        Path | None, typer.Option(help="Folder for settings, credentials and data")
    ] = None,
    run_it: Annotated[bool, typer.Option("--run", help="Run the gateway then")] = False,
) -> None:
    """Join a federation: make a key, get credentials, write the settings of the gateway.

    Examples:
      pando gateway join https://console.example:8420 pando1.eyJn… --data /var/lib/pando
    """
    from gateway.join.__main__ import start  # noqa: PLC0415
    from gateway.join.joining import join  # noqa: PLC0415

    with guarded():
        ca = os.environ.get("PANDO_CA")
        settings = join(url, token, data, Path(ca) if ca else None)
    raise typer.Exit(start(settings, run=run_it))


@app.command()
def run(  # noqa: PLR0913, PLR0917  (the command line contract)
    file: Annotated[Path, typer.Argument(help="Script of statements; - reads standard input")],
    here: Local = False,
    engine: Engine = "stream",
    sites: Sites = 1,
    functions: Functions = "",
    form: Format = "table",
    console: Address = None,
) -> None:
    """Run a StreamSQL script.

    A SELECT prints the settled answer at that point. With --local sources take INSERT INTO and
    DELETE FROM. Without it the script runs on the running federation, where a SUBSCRIBE starts a
    query that continues.

    Examples:
      pando run first.sql --local
      pando run first.sql --local --sites 3 --format json
      echo "SHOW SOURCES" | pando run -
    """
    from deploy.cli import local, remote  # noqa: PLC0415

    with guarded():
        check_format(form)
        check_engine(engine, sites, local=here)
        if here:
            allow_functions(functions, here=True)
            local.run_local(file, engine, sites, form)
        else:
            remote.run_script(local.read_script(file), form, console)


@app.command()
def shell(
    here: Local = False,
    engine: Engine = "stream",
    sites: Sites = 1,
    functions: Functions = "",
    console: Address = None,
) -> None:
    """Type statements and see answers; --local needs no running federation.

    Examples:
      pando shell
      pando shell --local
    """
    from deploy.cli import local, remote  # noqa: PLC0415

    with guarded():
        check_engine(engine, sites, local=here)
        if here:
            allow_functions(functions, here=True)
            local.shell_local(engine, sites)
        else:
            remote.shell(console)


@app.command()
def doctor(
    port: Annotated[int, typer.Option(help="Port the console would use")] = DEFAULT_PORT,
    data: Annotated[Path, typer.Option(help="Data directory")] = DATA,
    spark_master: Annotated[str, typer.Option(help="Cluster to look at, spark://host:7077")] = "",
    form: TwoFormats = "table",
) -> None:
    """Check Java, port, broker, disk, memory and a Spark cluster, and say what to do.

    Exit status 2 if something prevents `pando up` from working.

    Examples:
      pando doctor
      pando doctor --port 9000 --data /srv/pando --format json
    """
    from deploy.doctor import Status, examine  # noqa: PLC0415

    with guarded():
        check_format(form, ("table", "json"))
        findings = examine(data, port, spark_master)
    if form == "json":
        typer.echo(json.dumps([dataclasses.asdict(f) for f in findings]))
    else:
        table = Table("", "subject", "found", "hint")
        marks = {"ok": "[green]ok[/]", "note": "[yellow]note[/]", "problem": "[red]problem[/]"}
        for finding in findings:
            texts = map(escape, (finding.subject, finding.message, finding.advice))
            table.add_row(marks[finding.status], *texts)
        Console(highlight=False).print(table)
    raise typer.Exit(2 if any(f.status == Status.PROBLEM for f in findings) else 0)


@app.command(
    # A benchmark has options of its own, and help for them.
    context_settings={
        "allow_extra_args": True,
        "ignore_unknown_options": True,
        "help_option_names": [],
    }
)
def bench(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Benchmark, e.g. recursive; 'list' lists all")] = "",
    quick: Annotated[bool, typer.Option("--quick", help="Run a smaller version")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON")] = False,
    wants_help: Annotated[
        bool, typer.Option("--help", help="Show this help, or the options of a benchmark")
    ] = False,
) -> None:
    """Run a benchmark next to its baselines and print ratios.

    Examples:
      pando bench list
      pando bench recursive --quick
      pando bench recursive_soak --help
      pando bench recursive_soak --updates 50000
    """
    from deploy.cli.bench import run_benchmark  # noqa: PLC0415

    if not name or (wants_help and name == "list"):
        typer.echo(context.get_help())
        raise typer.Exit(0 if wants_help else 2)
    with guarded():
        flags = [f for f, on in (("--quick", quick), ("--json", as_json)) if on]
        flags += ["--help"] if wants_help else context.args
        status = run_benchmark(name, flags)
    raise typer.Exit(status)


def _arrange(app: typer.Typer) -> None:
    """Order an app's commands and keep the lines of its examples apart."""
    app.registered_commands.sort(key=lambda command: _place(command.name or _name(command)))
    app.info.epilog = EPILOG
    for group in (app, *(g.typer_instance for g in app.registered_groups if g.typer_instance)):
        for command in group.registered_commands:
            if command.callback is not None and command.help is None:
                command.help = _help_of(inspect.getdoc(command.callback) or "")


def _help_of(docstring: str) -> str:
    """Return a docstring with its examples, which end it, kept line by line."""
    text, word, examples = docstring.partition("\n\nExample")
    if not word:
        return docstring
    lines = [line for line in f"Example{examples}".splitlines() if line.strip()]
    return text + "\n\n" + _AS_IT_IS + "\n".join(lines)


def _place(name: str) -> int:
    return FIRST.index(name) if name in FIRST else len(FIRST)


def _name(command: typer.models.CommandInfo) -> str:
    return command.callback.__name__ if command.callback is not None else ""


_arrange(app)

__all__ = ["app"]
