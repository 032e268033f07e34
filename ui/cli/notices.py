"""`pando alarm` and `pando display`: what is raised, what is shown where."""

from typing import Annotated

import typer

from ui.cli.main import Address, ListFormat, connected
from ui.cli.printing import check_format, print_json, print_list, short_time

alarm_app = typer.Typer(help="Alarms: what is raised, and taking note of it", no_args_is_help=True)
display_app = typer.Typer(help="Displays and what they show", no_args_is_help=True)
_LISTS = ("table", "json")
_STEPS = ("cleared", "acknowledged", "raised", "since")
"""Times of an alarm's row, the latest first."""


@alarm_app.command("list")
def alarm_list(form: ListFormat = "table", console: Address = None) -> None:
    """List the alarms."""
    with connected(console) as client:
        alarms = client.get("/api/alarms")
        if check_format(form, _LISTS) == "json":
            print_json(alarms)
            return
        shown = [
            {
                **found,
                "rows": found["raised"],
                "since": short_time(found["since"]),
                "for": f"{found['for_seconds']:g} s" if found["for_seconds"] else "",
                "query": " ".join(found["text"].split()),
            }
            for found in alarms
        ]
        print_list(shown, ("alarm", "severity", "state", "rows", "since", "for", "query"), form)


@alarm_app.command("rows")
def alarm_rows(
    alarm: Annotated[str, typer.Argument(help="Only of this alarm")] = "",
    form: ListFormat = "table",
    console: Address = None,
) -> None:
    """List the rows that have raised alarms, open ones first.

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
        if check_format(form, _LISTS) == "table":
            # The latest of its times is when it came to be in its state.
            rows = [
                {**row, "since": short_time(next(filter(None, map(row.get, _STEPS))))}
                for row in rows
            ]
        print_list(rows, ("id", "severity", "alarm", "state", "row", "since"), form)


@alarm_app.command("acknowledge")
def alarm_acknowledge(
    number: Annotated[int, typer.Argument(help="Of a row, as `pando alarm rows` shows it")],
    form: ListFormat = "table",
    console: Address = None,
) -> None:
    """Take note of a raised row."""
    with connected(console) as client:
        row = client.post(f"/api/alarms/rows/{number}/acknowledge", {})
        if check_format(form, _LISTS) == "json":
            print_json(row)
        else:
            typer.echo(f"row {row['id']} of alarm {row['alarm']} acknowledged")


@display_app.command("list")
def display_list(form: ListFormat = "table", console: Address = None) -> None:
    """List the displays; each has a page /displays/NAME for a screen of its own."""
    with connected(console) as client:
        displays = client.get("/api/displays")
        check_format(form, _LISTS)
        if form == "json":
            print_json(displays)
            return
        shown = [
            {**display, "queries": ", ".join(query["name"] for query in display["queries"])}
            for display in displays
        ]
        print_list(shown, ("name", "title", "floor", "x", "y", "rows", "queries"), form)
