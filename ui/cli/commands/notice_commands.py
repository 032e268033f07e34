"""`pando alarm` and `pando display`: what is raised, what is shown where."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any
from urllib.parse import quote

import typer

from ui.cli.commands.console_command import LISTS, Address, ListFormat, connected
from ui.cli.printing import check_format, print_json, print_list, short_time

alarm_app = typer.Typer(help="Alarms: list and acknowledge them", no_args_is_help=True)
display_app = typer.Typer(help="Displays and their content", no_args_is_help=True)
_COUNTS = {"raised": "raised", "unknown": "unknown", "unacknowledged": "to acknowledge"}
_TIMES = {
    "cleared": "cleared",
    "unknown": "unknown",
    "acknowledged": "acknowledged",
    "raised": "raised",
    "waiting": "since",
}
"""State of an alarm's row to the time when it came to be in it."""


@alarm_app.command("list")
def alarm_list(form: ListFormat = "table", console: Address = None) -> None:
    """List the alarms."""
    with connected(console) as client:
        alarms = client.get("/api/alarms")
        if check_format(form, LISTS) == "json":
            print_json(alarms)
            return
        shown = [
            {
                **found,
                "rows": ", ".join(
                    f"{found[key]} {word}"
                    for key, word in _COUNTS.items()
                    if found[key] or key == "raised"
                ),
                "since": short_time(found["since"]),
                "for": f"{found['for_seconds']:g} s" if found["for_seconds"] else "",
                "query": " ".join(found["text"].split()),
            }
            for found in alarms
        ]
        print_list(shown, ("alarm", "severity", "state", "rows", "since", "for", "query"), form)
        for found in alarms:
            if found["unknown"]:
                typer.echo(f"{found['alarm']}: {_rows(found['unknown'])} unknown{_because(found)}")


@alarm_app.command("rows")
def alarm_rows(
    alarm: Annotated[str, typer.Argument(help="Only of this alarm")] = "",
    form: ListFormat = "table",
    console: Address = None,
) -> None:
    """List the rows that raised alarms, open ones first.

    Examples:
      pando alarm rows
      pando alarm rows hot --format json
    """
    with connected(console) as client:
        rows = [
            {"severity": found["severity"], **row}
            for found in client.get("/api/alarms")
            if alarm in ("", found["alarm"])
            for row in found["rows"]
        ]
        rows.sort(key=lambda row: bool(row["state"] == "cleared"))
        if check_format(form, LISTS) == "table":
            rows = [
                {**row, "state": _standing(row), "since": short_time(row[_TIMES[row["state"]]])}
                for row in rows
            ]
        print_list(rows, ("id", "severity", "alarm", "state", "row", "since"), form)


@alarm_app.command("acknowledge")
def alarm_acknowledge(
    number: Annotated[
        int | None, typer.Argument(help="Number of a row from `pando alarm rows`")
    ] = None,
    alarm: Annotated[str, typer.Option("--alarm", help="All rows of this alarm")] = "",
    form: ListFormat = "table",
    console: Address = None,
) -> None:
    """Acknowledge a row that raised an alarm, cleared or not.

    Examples:
      pando alarm acknowledge 12
      pando alarm acknowledge --alarm hot
    """
    if (number is None) == (not alarm):
        raise typer.BadParameter("name a row by its number, or an alarm with --alarm, not both")
    path = f"/api/alarms/rows/{number}/acknowledge" if number is not None else _all_of(alarm)
    with connected(console) as client:
        answer = client.post(path, {})
        if check_format(form, LISTS) == "json":
            print_json(answer)
        elif number is None:
            typer.echo(f"{_rows(answer['acknowledged'])} of alarm {alarm} acknowledged")
        else:
            typer.echo(f"row {answer['id']} of alarm {answer['alarm']} acknowledged")


def _because(alarm: Mapping[str, Any]) -> str:
    """Return why rows of an alarm are unknown, as a clause behind a comma."""
    if alarm["away"]:
        return f", because {', '.join(alarm['away'])} {_is(alarm['away'])} offline"
    if alarm["unsettled_since"]:
        since = short_time(alarm["unsettled_since"])
        return f", because its query has not settled since {since} (UTC)"
    return ""


def _is(names: Sequence[str]) -> str:
    return "is" if len(names) == 1 else "are"


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count} rows"


def _standing(row: Mapping[str, Any]) -> str:
    seen = row["acknowledged"] and row["state"] != "acknowledged"
    return f"{row['state']}, seen" if seen else str(row["state"])


def _all_of(alarm: str) -> str:
    return f"/api/alarms/{quote(alarm, safe='')}/acknowledge"


@display_app.command("list")
def display_list(form: ListFormat = "table", console: Address = None) -> None:
    """List the displays; each has a page /displays/NAME for its own screen."""
    with connected(console) as client:
        displays = client.get("/api/displays")
        check_format(form, LISTS)
        if form == "json":
            print_json(displays)
            return
        shown = [
            {**display, "queries": ", ".join(query["name"] for query in display["queries"])}
            for display in displays
        ]
        print_list(shown, ("name", "title", "floor", "x", "y", "rows", "queries"), form)
