"""`pando source try`, `discover` and `add`: devices are looked at, and become sources."""

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from streamsql.errors import DeploymentError, FederationError
from ui.cli.client import ConsoleClient
from ui.cli.commands.console_command import LISTS, Address, ListFormat, connected
from ui.cli.commands.run_command import seconds_of
from ui.cli.printing import Terminal, check_format, print_json, print_list
from ui.cli.trial_printing import (
    print_offers,
    print_payload,
    print_problems,
    print_rows,
    print_statements,
)

if TYPE_CHECKING:
    from streamsql.syntax.statements import CreateSource

LOOK_SECONDS = 0.3
_ZONES = "zoneinfo"

Gateway = Annotated[
    str, typer.Option("--gateway", help="Where; default: one that has the endpoint")
]
Endpoint = Annotated[
    str, typer.Option("--endpoint", help="What to listen to, as the gateway's settings name it")
]
Topic = Annotated[str, typer.Option("--topic", help="MQTT: which topics, such as 'tele/#'")]
Options = Annotated[
    list[str] | None, typer.Option("--option", help="Of the connector: path=/status.json")
]
For = Annotated[str, typer.Option("--for", help="How long to listen, at most 30s")]
Limit = Annotated[int, typer.Option("--limit", min=1, max=100, help="Payloads after which to end")]
Zone = Annotated[
    str | None, typer.Option("--zone", help="Of times that name none; default: this machine's")
]
Record = Annotated[
    list[str] | None,
    typer.Option("--record", help="Of what is offered only the record of this name; repeatable"),
]
Sql = Annotated[bool, typer.Option("--sql", help="Print only the proposed statements")]


@dataclass(frozen=True, slots=True)
class _Shown:
    """Form of printed results: a table, one JSON value, or statements alone."""

    form: str
    sql: bool

    @property
    def is_for_people(self) -> bool:
        return self.form == "table" and not self.sql


def add_commands(commands: typer.Typer) -> None:
    """Add the commands to those of sources."""
    commands.command("try")(source_try)
    commands.command("discover")(source_discover)
    commands.command("add")(source_add)


def source_try(  # noqa: PLR0913, PLR0917  (the command line contract)
    file: Annotated[
        Path | None,
        typer.Argument(help="File with CREATE SOURCE statements; without: --endpoint"),
    ] = None,
    gateway: Gateway = "",
    endpoint: Endpoint = "",
    topic: Topic = "",
    options: Options = None,
    seconds: For = "10s",
    limit: Limit = 100,
    zone: Zone = None,
    records: Record = None,
    sql: Sql = False,
    form: ListFormat = "table",
    console: Address = None,
) -> None:
    """Show what devices send or offer, propose a source, and show its rows. Nothing is stored.

    Examples:
      pando source try --gateway west --endpoint home --topic 'tele/#'

      pando source try --endpoint pdu --option below=1.3.6.1.4.1.318

      pando source try climate.sql
    """
    with connected(console) as client:
        shown = _Shown(check_format(form, LISTS), sql)
        body: dict[str, Any] = {
            "gateway": gateway,
            "seconds": seconds_of(seconds),
            "payloads": limit,
        }
        if file is not None:
            for statement in _sources_of(file):
                _try_source(client, statement, body, shown)
            return
        if not endpoint:
            raise DeploymentError(
                "nothing to try", hint="name a file, or --endpoint with --topic or --option"
            )
        body.update(endpoint=endpoint, options=_options(topic, options or []))
        asked = {"zone": local_zone() if zone is None else zone}
        _try_endpoint(client, body, shown, asked, records or [])


def source_discover(  # noqa: PLR0913, PLR0917  (the command line contract)
    endpoint: Annotated[str, typer.Option("--endpoint", help="A broker, by its endpoint's name")],
    gateway: Gateway = "",
    adopt: Annotated[
        list[str] | None, typer.Option("--adopt", help="Create the source of this name; repeatable")
    ] = None,
    seconds: For = "10s",
    sql: Sql = False,
    form: ListFormat = "table",
    console: Address = None,
) -> None:
    """List devices that announce themselves on a broker: Home Assistant, Zigbee2MQTT, Sparkplug.

    Sparkplug nodes that publish are asked for their births.

    Examples:
      pando source discover --endpoint home

      pando source discover --endpoint home --adopt door_sensor
    """
    with connected(console) as client:
        check_format(form, LISTS)
        body = {
            "gateway": gateway,
            "endpoint": endpoint,
            "discover": True,
            "seconds": seconds_of(seconds),
        }
        trial = _finished(client, body, lambda _sample: None)
        found = client.post(f"/api/sources/trials/{trial['id']}/proposals", {})
        if adopt:
            _adopt(client, found, adopt)
        elif form == "json":
            print_json(found)
        elif sql:
            print_statements(found)
        elif not found:
            typer.echo(
                "no device has announced itself; Sparkplug nodes do when they send: try --for 30s"
            )
        else:
            rows = [
                {**p, "devices": ", ".join(p["topics"][:8]), "count": p["samples"]} for p in found
            ]
            print_list(rows, ("name", "title", "count", "devices"), "table")


def source_add(
    file: Annotated[Path, typer.Argument(help="A file with CREATE SOURCE statements")],
    console: Address = None,
) -> None:
    """Create the sources of a file; gateways learn them at once.

    Example:
      pando source add climate.sql
    """
    with connected(console) as client:
        _sources_of(file)
        _create(client, _text_of(file))


def local_zone() -> str:
    """Return the IANA name of this machine's time zone, or empty if it is not known."""
    named = os.environ.get("TZ", "").removeprefix(":")
    if "/" in named:
        return named
    parts = Path("/etc/localtime").resolve().parts
    return "/".join(parts[parts.index(_ZONES) + 1 :]) if _ZONES in parts else ""


def _try_source(
    client: ConsoleClient, source: "CreateSource", body: dict[str, Any], shown: _Shown
) -> None:
    printer = Terminal(highlight=False, soft_wrap=True)
    if shown.is_for_people:
        printer.print(f"[bold cyan]{escape(source.name.text)}[/]")

    def show(sample: dict[str, Any]) -> None:
        if shown.is_for_people:
            print_payload(printer, sample)
            print_problems(printer, sample)

    trial = _finished(client, {**body, "text": source.text}, show)
    if not shown.is_for_people:
        print_json(trial)
        return
    print_rows(trial["columns"], trial["samples"])
    if not trial["samples"]:
        typer.echo(f"nothing has arrived at gateway {trial['gateway']}")


def _try_endpoint(
    client: ConsoleClient,
    body: dict[str, Any],
    shown: _Shown,
    asked: dict[str, Any],
    records: Sequence[str],
) -> None:
    printer = Terminal(highlight=False, soft_wrap=True)

    def show(sample: dict[str, Any]) -> None:
        if shown.is_for_people and not sample["is_record"]:
            print_payload(printer, sample)

    trial = _finished(client, body, show)
    offers = _wanted(trial["offers"], records)
    if trial["browses"]:
        asked = {**asked, "chosen": _chosen(offers)}
        if shown.is_for_people:
            print_offers(printer, offers)
    proposals = client.post(f"/api/sources/trials/{trial['id']}/proposals", asked)
    if shown.sql:
        print_statements(proposals)
        return
    tried = [
        client.post("/api/sources/try", {"trial": trial["id"], "text": proposal["text"]})
        for proposal in proposals
    ]
    if shown.form == "json":
        rows = [[row for sample in t["samples"] for row in sample["rows"]] for t in tried]
        proposals = [{**p, "rows": r} for p, r in zip(proposals, rows, strict=True)]
        print_json({**trial, "proposals": proposals})
        return
    for proposal, mapped in zip(proposals, tried, strict=True):
        printer.print(f"\n[bold cyan]{escape(proposal['text'])};[/]")
        print_rows(mapped["columns"], mapped["samples"])
    if not trial["samples"]:
        typer.echo(f"nothing has arrived at gateway {trial['gateway']}")


def _wanted(offers: Sequence[dict[str, Any]], records: Sequence[str]) -> list[dict[str, Any]]:
    """Return the records of these names; without names all.

    Raises:
        DeploymentError: There is none of such a name.
    """
    names = {record["name"] for record in offers}
    for name in records:
        if name not in names:
            raise DeploymentError(
                f"the device offers no record {name!r:.60}",
                hint=f"it offers: {', '.join(sorted(names)[:20]) or 'none'}",
            )
    return [record for record in offers if not records or record["name"] in records]


def _chosen(offers: Sequence[dict[str, Any]]) -> dict[str, list[str]]:
    chosen: dict[str, list[str]] = {}
    for record in offers:
        addresses = [value["address"] for value in record["values"]]
        chosen.setdefault(record["name"], []).extend(addresses)
    return chosen


def _finished(
    client: ConsoleClient, body: dict[str, Any], show: Callable[[dict[str, Any]], None]
) -> dict[str, Any]:
    """Run a trial to its end and return it with all samples; `show` gets each as it comes.

    Raises:
        DeploymentError: The gateway says what keeps it from being tried.
    """
    trial = client.post("/api/sources/trials", body)
    with _stopped_at_the_end(client, trial["id"]):
        samples: list[dict[str, Any]] = []
        while True:
            trial = client.get(f"/api/sources/trials/{trial['id']}", since=str(len(samples)))
            for sample in trial["samples"]:
                show(sample)
            samples += trial["samples"]
            if trial["done"] and len(samples) >= trial["heard"]:
                break
            if not trial["samples"]:
                time.sleep(LOOK_SECONDS)
    if trial["problem"]:
        if not samples:
            raise DeploymentError(trial["problem"], hint=trial["hint"])
        sys.stderr.write(f"warning: {trial['problem']}\n")
    if trial["dropped"]:
        sys.stderr.write(f"{trial['dropped']} more payloads like these have arrived\n")
    return {**trial, "samples": samples}


@contextlib.contextmanager
def _stopped_at_the_end(client: ConsoleClient, trial: str) -> Iterator[None]:
    """Stop a trial that somebody interrupts: the gateway runs one at a time."""
    try:
        yield
    except BaseException:
        with contextlib.suppress(FederationError):
            client.delete(f"/api/sources/trials/{trial}")
        raise


def _adopt(client: ConsoleClient, found: Sequence[dict[str, Any]], names: Sequence[str]) -> None:
    """Create proposed sources.

    Raises:
        DeploymentError: There is none of such a name.
    """
    by_name = {proposal["name"]: proposal for proposal in found}
    for name in names:
        if name not in by_name:
            raise DeploymentError(
                f"no device that has announced itself is {name!r:.60}",
                hint=f"there are: {', '.join(sorted(by_name)[:20]) or 'none'}",
            )
    for name in names:
        _create(client, by_name[name]["text"])


def _create(client: ConsoleClient, text: str) -> None:
    for result in client.post("/api/statements", {"text": text}):
        for warning in result["warnings"]:
            sys.stderr.write(f"warning: {warning}\n")
        typer.echo(result["message"])


def _options(topic: str, written: Sequence[str]) -> dict[str, str]:
    """Return the connector's options.

    Raises:
        DeploymentError: One has no name.
    """
    found = {"topic": topic} if topic else {}
    for option in written:
        name, sign, value = option.partition("=")
        if not sign or not name.strip():
            raise DeploymentError(f"--option {option!r:.60}?", hint="--option path=/status.json")
        found[name.strip()] = value
    return found


def _sources_of(file: Path) -> "list[CreateSource]":
    """Return the statements of a file.

    Raises:
        FederationError: It cannot be read, is wrong, or holds more than CREATE SOURCE.
    """
    from streamsql.syntax.parse import parse_script  # noqa: PLC0415  (keeps `pando --help` quick)
    from streamsql.syntax.statements import CreateSource  # noqa: PLC0415  (keeps `pando --help` quick)

    sources: list[CreateSource] = []
    for statement in parse_script(_text_of(file)):
        if not isinstance(statement, CreateSource):
            raise DeploymentError(
                f"{file} holds more than CREATE SOURCE: {statement.text[:60]!r}",
                hint="run other statements with pando run FILE",
            )
        sources.append(statement)
    return sources


def _text_of(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DeploymentError(f"{file} cannot be read: {error}") from error
