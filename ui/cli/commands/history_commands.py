"""`pando trial`: queries and alarms tried on the past."""

import sys
import time
from typing import Annotated, Any

import typer
from typing_extensions import override

from streamsql.errors import FederationError
from ui.cli.client import ConsoleClient
from ui.cli.commands.console_command import LISTS, Address, ListFormat, connected
from ui.cli.printing import ChangePrinter, check_format, print_json, print_list

trial_app = typer.Typer(help="Queries and alarms tried on the past", no_args_is_help=True)
POLL_SECONDS = 0.2


@trial_app.command("list")
def trial_list(form: ListFormat = "table", console: Address = None) -> None:
    """List the trials, the newest first."""
    with connected(console) as client:
        found = client.get("/api/history/trials")
        if check_format(form, LISTS) == "json":
            print_json(found)
            return
        shown = [
            {**trial, "state": _state(trial), "query": " ".join(trial["text"].split())}
            for trial in found
        ]
        print_list(shown, ("id", "state", "events", "readings", "query"), form)


@trial_app.command("follow")
def trial_follow(
    trial: Annotated[str, typer.Argument(help="Its id")],
    form: Annotated[str, typer.Option("--format", help="table, json or csv")] = "table",
    console: Address = None,
) -> None:
    """Print what a trial gives, with the times at which it would have happened.

    Examples:
      pando trial follow 5f2c0d1e9a7b3c44
    """
    with connected(console) as client:
        follow_trial(client, trial, check_format(form))


@trial_app.command("stop")
def trial_stop(
    trial: Annotated[str, typer.Argument(help="Its id")], console: Address = None
) -> None:
    """Stop a trial."""
    with connected(console) as client:
        found = client.delete(f"/api/history/trials/{trial}")
        typer.echo(f"trial {trial} {_state(found)}")


class PastPrinter(ChangePrinter):
    """Prints changes with their times in the past; those of an alarm by what became of it."""

    @override
    def print(self, change: dict[str, Any]) -> None:
        alarm = change["alarm"]
        if self.form == "json":
            self.printed += 1
            told = {"ts": change["ts"], "diff": change["diff"], "row": change["row"]}
            print_json(told if alarm is None else {**told, "alarm": alarm})
        elif self.form == "csv":
            super().print({**change, "diff": change["diff"] if alarm is None else alarm})
        else:
            self.printed += 1
            values = " │ ".join(
                "NULL" if change["row"][name] is None else str(change["row"][name])
                for name in self.columns
            )
            diff = change["diff"]
            sign = f"{diff:+d}" if alarm is None else alarm
            color = "green" if diff > 0 else "red" if diff < 0 else "yellow"
            typer.echo(f"{change['ts']}  {typer.style(f'{sign:<8}', fg=color)} {values}")


def follow_trial(client: ConsoleClient, trial: str, form: str) -> None:
    """Print a trial's changes until it is over, and then how far it came.

    Raises:
        FederationError: It failed.
    """
    found = client.get(f"/api/history/trials/{trial}")
    columns = [column["name"] for column in found["columns"]]
    printer = PastPrinter(form, columns)
    seen, told = 0, set[str]()
    while True:
        found = client.get(f"/api/history/trials/{trial}", since=str(seen))
        for change in found["changes"]:
            # Of an alarm its own changes are what was asked for.
            if not found["alarm"] or change["alarm"] is not None:
                printer.print(change)
        seen = found["next"]
        for note in found["notes"]:
            if note not in told:
                told.add(note)
                sys.stderr.write(f"note: {note}\n")
        if found["done"] and not found["changes"]:
            break
        if not found["changes"]:
            time.sleep(POLL_SECONDS)
    if found["problem"]:
        raise FederationError(found["problem"], hint=found["hint"], code=found["code"])
    if found["dropped"]:
        sys.stderr.write(f"note: {found['dropped']} later changes are not kept\n")
    if form == "table":
        rate = found["readings"] / max(found["seconds"], 0.001)
        typer.echo(
            f"{found['since']} to {found['until']}: {found['readings']:,} readings in "
            f"{found['seconds']:.1f} s ({rate:,.0f}/s)"
        )


def _state(trial: dict[str, Any]) -> str:
    if trial["problem"]:
        return f"ended: {trial['problem']}"
    if trial["done"]:
        return "done"
    return f"{trial['share']:.0%}"
