"""`pando sink`: answers that leave the federation."""

from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import quote

import typer

from ui.cli.commands.console_command import LISTS, Address, ListFormat, connected
from ui.cli.printing import check_format, print_json, print_list, short_time

sink_app = typer.Typer(help="Sinks: list, show, drop, send again", no_args_is_help=True)

Named = Annotated[str, typer.Argument(help="Name of the sink")]
_LISTED = ("sink", "to", "status", "delivered", "waiting", "dead", "dropped")
_LETTER = ("key", "row", "reason", "tries", "given_up")


@sink_app.command("list")
def sink_list(form: ListFormat = "table", console: Address = None) -> None:
    """List the sinks."""
    with connected(console) as client:
        sinks = client.get("/api/sinks")
        if check_format(form, LISTS) == "json":
            print_json(sinks)
            return
        shown = [{**found, "dead": len(found["dead_letters"])} for found in sinks]
        print_list(shown, _LISTED, form)
        for found in sinks:
            if found["problem"]:
                typer.echo(f"{found['sink']}: {found['problem']}")


@sink_app.command("show")
def sink_show(name: Named, form: ListFormat = "table", console: Address = None) -> None:
    """Show a sink and its dead letters.

    Examples:
      pando sink show free
      pando sink show orders --format json
    """
    with connected(console) as client:
        found = client.get(f"/api/sinks/{quote(name, safe='')}")
        if check_format(form, LISTS) == "json":
            print_json(found)
            return
        facts = [{"fact": key, "value": text} for key, text in _facts(found).items()]
        print_list(facts, ("fact", "value"), form)
        if found["dead_letters"]:
            print_list(found["dead_letters"], _LETTER, form)


@sink_app.command("drop")
def sink_drop(name: Named, console: Address = None) -> None:
    """Drop a sink; what it has retained at a broker is emptied."""
    quoted = name.replace('"', '""')
    with connected(console) as client:
        (answer,) = client.post("/api/statements", {"text": f'DROP SINK "{quoted}"'})
        typer.echo(answer["message"])
        for warning in answer["warnings"]:
            typer.echo(f"warning: {warning}")


@sink_app.command("dead")
def sink_dead(name: Named, form: ListFormat = "table", console: Address = None) -> None:
    """List the dead letters of a sink: messages that its receiver has refused.

    Examples:
      pando sink dead orders
      pando sink dead orders --format json
    """
    with connected(console) as client:
        letters = client.get(f"/api/sinks/{quote(name, safe='')}/dead")
        if check_format(form, LISTS) == "json":
            print_json(letters)
        elif letters:
            print_list(letters, _LETTER, form)
        else:
            typer.echo(f"sink {name} has no dead letters")


@sink_app.command("retry")
def sink_retry(name: Named, form: ListFormat = "table", console: Address = None) -> None:
    """Send the dead letters of a sink again.

    Examples:
      pando sink retry orders
    """
    with connected(console) as client:
        answer = client.post(f"/api/sinks/{quote(name, safe='')}/retry", {})
        if check_format(form, LISTS) == "json":
            print_json(answer)
            return
        typer.echo(f"{_letters(answer['retried'])} of sink {name} sent again")


@sink_app.command("discard")
def sink_discard(name: Named, form: ListFormat = "table", console: Address = None) -> None:
    """Forget the dead letters of a sink.

    Examples:
      pando sink discard orders
    """
    with connected(console) as client:
        answer = client.post(f"/api/sinks/{quote(name, safe='')}/discard", {})
        if check_format(form, LISTS) == "json":
            print_json(answer)
            return
        typer.echo(f"{_letters(answer['discarded'])} of sink {name} discarded")


def _letters(count: int) -> str:
    return f"{count} dead {'letter' if count == 1 else 'letters'}"


def _facts(found: Mapping[str, Any]) -> dict[str, str]:
    units = ", ".join(f"{column} {unit}" for column, unit in found["units"].items() if unit)
    return {
        "sends": f"{found['mode']} to {found['to']} ({found['connector']}, {found['format']})",
        "key": ", ".join(found["key"]),
        "units": units,
        "discovery": found["discovery"],
        "query": " ".join(found["text"].split()),
        "status": found["status"],
        "problem": found["problem"],
        "delivered": f"{found['delivered']}, last {short_time(found['last'])}",
        "waiting": str(found["waiting"]),
        "kept in doubt": str(found["unknown"]),
        "dropped": str(found["dropped"]),
        "dead letters": str(len(found["dead_letters"])),
    }
