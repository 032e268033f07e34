"""`pando source list`: where the rows of each source come from, and which are missing."""

from typing import Any

from ui.cli.client import ConsoleClient
from ui.cli.printing import print_list

COLUMNS = ("name", "connector", "endpoint", "gateways", "missing")
_SERVING = ("connector", "endpoint", "version", "gateways", "missing")


def print_sources(client: ConsoleClient, form: str) -> None:
    """Print all sources; as JSON with their columns and statements, too."""
    defined = client.get("/api/definitions", kind="source")
    by_name = {row["source"].lower(): row for row in client.get("/api/sources")}
    print_list([_merged(d, by_name.get(d["name"].lower(), {})) for d in defined], COLUMNS, form)


def _merged(definition: dict[str, Any], serving: dict[str, Any]) -> dict[str, Any]:
    """Return a definition with who serves it."""
    return {**definition, **{name: serving.get(name) or "" for name in _SERVING}}
