"""`pando network`: the network of shared computations, as a table, as JSON, or as a graph."""

from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from ui.cli.commands.console_command import Address, connected
from ui.cli.printing import BORDER, Terminal, check_format, print_json, short_time

MOST = 1_000
_COLOURS = {
    "selection": "blue",
    "join": "yellow",
    "aggregate": "green",
    "distinct": "magenta",
    "set operation": "red",
    "recursion": "bright_yellow",
    "window": "cyan",
    "rows": "white",
}
_LESS = ("queries", "rows", "bytes/s", "reads", "owner", "at", "since")
"""Columns, but for the first, that are left out where the terminal is narrow, the last first."""
WORDS = 36
"""Characters that what a node computes gets at least."""
_HEAD = ("node", "kind", "computes", "at", "reads", "queries", "rows", "bytes/s", "owner", "since")


network_app = typer.Typer()


@network_app.callback(invoke_without_command=True)
def network(
    context: typer.Context,
    most: Annotated[
        int, typer.Option(min=1, max=MOST, help="Nodes to list, the most used first")
    ] = MOST,
    form: Annotated[str, typer.Option("--format", help="table, json or dot")] = "table",
    as_json: Annotated[bool, typer.Option("--json", help="Like --format json")] = False,
    console: Address = None,
) -> None:
    """Show what sites compute once for several queries: what rests on what.

    `queries` are those whose answer a node is, of all that rest on it. A narrow terminal shows
    fewer columns.

    Examples:
      pando network

      pando network --format dot | dot -Tsvg > network.svg

      pando network check
    """
    if context.invoked_subcommand is not None:
        return
    wanted = check_format("json" if as_json else form, ("table", "json", "dot"))
    with connected(console) as client:
        if wanted == "dot":
            typer.echo(client.get("/api/network", most=str(most), format="dot")["text"])
            return
        found = client.get("/api/network", most=str(most))
        if wanted == "json":
            print_json(found)
            return
        if found["nodes"]:
            _print_table(found["nodes"])
        typer.echo(summary(found))


@network_app.command()
def check(
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Write what is right, in one transaction")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON")] = False,
    console: Address = None,
) -> None:
    """Compare the computation index in the catalog with what runs; exit with 1 if they differ.

    It is made again from the running queries and compared row by row. For operators.

    Examples:
      pando network check

      pando network check --rebuild
    """
    with connected(console) as client:
        if rebuild:
            found = client.post("/api/network/index", {})
        else:
            found = client.get("/api/network/index")
        if as_json:
            print_json(found)
        else:
            _print_differences(found)
    if found["differences"] and not found["rebuilt"]:
        raise typer.Exit(1)


def _print_differences(found: dict[str, Any]) -> None:
    if found["differences"]:
        table = Table("run", "relation", "is", "row", header_style="bold cyan")
        for each in found["differences"]:
            table.add_row(*(escape(each[name]) for name in ("run", "relation", "kind", "row")))
        Terminal(highlight=False).print(table)
    typer.echo(report_words(found))


def report_words(found: dict[str, Any]) -> str:
    """Return what a comparison of the computation index has found, in words.

    Examples:
        >>> report_words({"runs": 2, "differences": [], "moving": 0, "rebuilt": False})
        'The index in the catalog is right: 2 runs compared.'
    """
    runs, count = _counted(found["runs"], "run", "runs"), len(found["differences"])
    if not count:
        return f"The index in the catalog is right: {runs} compared."
    said = [f"{_counted(count, 'difference', 'differences')}, {runs} compared"]
    if found["rebuilt"]:
        said.append("the index has been mended")
    elif found["moving"]:
        moving = _counted(found["moving"], "run", "runs")
        said.append(f"{moving} on trial: queries that move there may explain them, check again")
    else:
        said.append("mend them with: pando network check --rebuild")
    return f"{'; '.join(said)}."


def _print_table(nodes: list[dict[str, Any]]) -> None:
    terminal = Terminal(highlight=False)
    cells = [dict(zip(_HEAD, _cells(node), strict=True)) for node in nodes]
    shown = _fitting(cells, terminal.width)
    table = Table(header_style="bold cyan")
    for column in shown:
        words = column == "computes"
        table.add_column(column, overflow="fold", no_wrap=not words, ratio=1 if words else None)
    for line in cells:
        table.add_row(*(line[column] for column in shown))
    terminal.print(table)


def _fitting(cells: list[dict[str, str]], width: int) -> tuple[str, ...]:
    """Return the columns that leave enough room for what nodes compute, in their order."""
    left = width - WORDS - BORDER
    shown = {"computes"}
    for column in ("node", "kind", *_LESS):
        needed = max(
            Text.from_markup(text).cell_len for text in (column, *(line[column] for line in cells))
        )
        if column in {"node", "kind", "queries"} or needed + BORDER <= left:
            left -= needed + BORDER
            shown.add(column)
    return tuple(column for column in _HEAD if column in shown)


def _cells(node: dict[str, Any]) -> tuple[str, ...]:
    colour = _COLOURS[node["kind"]]
    reads = [*node["sources"], *(f"node {name}" for name in node["reads"])]
    rate = node["bytes_per_second"]
    return (
        f"[bold {colour}]{node['node']}[/]",
        f"[{colour}]{node['kind']}[/]",
        escape(node["computes"]),
        escape(", ".join(node["sites"])),
        escape(", ".join(reads)),
        f"{node['direct']} of {node['resting']}",
        "" if node["rows"] is None else str(node["rows"]),
        "" if rate is None else f"{rate:,.1f}",
        "[dim]kept for others[/]" if node["kept"] else escape(node["owner"]),
        short_time(node["since"]),
    )


def summary(found: dict[str, Any]) -> str:
    """Return how many nodes and queries there are, and what is not listed, in words.

    Examples:
        >>> summary({"nodes": [], "queries": 0, "hidden": 0, "unlisted": 0})
        'No query runs, so there are no nodes.'
        >>> summary({"nodes": [{}], "queries": 3, "hidden": 2, "unlisted": 0})
        '1 node, 3 queries; 2 nodes of queries that you may not read.'
    """
    count = len(found["nodes"])
    if not count and not found["hidden"]:
        return "No query runs, so there are no nodes."
    said = [f"{_counted(count, 'node', 'nodes')}, {_counted(found['queries'], 'query', 'queries')}"]
    if found["unlisted"]:
        said.append(f"{_counted(found['unlisted'], 'node', 'nodes')} not listed (--most)")
    if found["hidden"]:
        said.append(
            f"{_counted(found['hidden'], 'node', 'nodes')} of queries that you may not read"
        )
    return f"{'; '.join(said)}."


def _counted(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"
