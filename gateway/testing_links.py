"""A gateway whose links come and go as it is told: `python -m gateway.testing_links --config FILE`.

For tests and benchmarks of recursions over real gateway processes. The links that hold are in a
file, so a gateway that is killed and started again has them, as a device would.
"""

import asyncio
import json
import sys
from pathlib import Path

import msgspec

from gateway.__main__ import main as serve
from gateway.connectors import registry
from gateway.connectors.connector import ConnectorContext
from gateway.connectors.reading import Memory, Reading
from gateway.connectors.registry import BuiltIn
from streamsql.data.types import Value

SOURCE = "link"
READY = "links"
"""A room that is there when commands are followed."""


class LinksEndpoint(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file with the links that hold: a JSON list of [source, target, cost]."""

    links: str


class LinksSource(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """There is one source, `link`."""


class LinksConnector:
    """Emits the links in the file of its endpoint, then follows commands."""

    kind = "links"
    endpoint_options = LinksEndpoint
    source_options = LinksSource

    def __init__(self) -> None:
        self._context: ConnectorContext | None = None
        self._links: dict[tuple[str, str], float] = {}
        self._file = Path()

    async def run(self, context: ConnectorContext) -> None:
        """Emit what holds, then wait for commands."""
        self._file = Path(context.endpoint_as(LinksEndpoint).links)
        held = json.loads(await asyncio.to_thread(self._file.read_text))
        self._links = {(source, target): cost for source, target, cost in held}
        self._context = context
        context.describe((), (READY,))
        gone = _remembered(context.memory) - self._links.keys()
        context.remember(self._memory())
        context.emit(
            [_reading(ends, None) for ends in sorted(gone)]
            + [_reading(ends, cost) for ends, cost in self._links.items()]
        )
        await asyncio.Event().wait()

    def command(self, action: str, arguments: dict[str, Value]) -> str:
        """Let links come ("up") and go ("down"); both are JSON as in the file.

        Raises:
            ValueError: There is no such action, or the connector does not run yet.
        """
        if action != "links" or self._context is None:
            raise ValueError(f"links do not know {action!r:.40}")
        up = [(link[0], link[1], float(link[2])) for link in json.loads(str(arguments["up"]))]
        down = [(link[0], link[1]) for link in json.loads(str(arguments["down"]))]
        readings = [_reading((source, target), cost) for source, target, cost in up]
        for source, target, cost in up:
            self._links[source, target] = cost
        for ends in down:
            self._links.pop(ends, None)
            readings.append(_reading(ends, None))
        self._context.remember(self._memory())
        self._context.emit(readings)
        held = [[*ends, cost] for ends, cost in self._links.items()]
        self._file.write_text(json.dumps(held))
        return f"{len(up)} up, {len(down)} down"

    def _memory(self) -> Memory:
        """Return what to know after a restart: links that are gone by then must be withdrawn."""
        return {"links": [list(ends) for ends in self._links]}


def _remembered(memory: Memory | None) -> set[tuple[str, str]]:
    links = None if memory is None else memory.get("links")
    return {(source, target) for source, target in links} if isinstance(links, list) else set()


def _reading(ends: tuple[str, str], cost: float | None) -> Reading:
    values: dict[str, object] = {"src": ends[0], "dst": ends[1]}
    if cost is not None:
        values["cost"] = cost
    return Reading(SOURCE, values, delete=cost is None)


def main() -> int:
    """Be a gateway process with that connector."""
    registry.BUILT_IN[LinksConnector.kind] = BuiltIn("gateway.testing_links", "LinksConnector")
    return serve()


if __name__ == "__main__":
    sys.exit(main())
