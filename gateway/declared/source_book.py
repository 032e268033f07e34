"""Definitions that the catalog has sent, kept on disk: a site starts without the coordinator."""

import logging
from pathlib import Path

from host.files.atomic_file import replace_file
from host.files.json_file import read_kept
from streamsql.catalog.definitions import SourceDefinition
from streamsql.errors import WireError
from streamsql.wire.codec import encode_json
from streamsql.wire.source_orders import MAX_SOURCES, SourceOrder

log = logging.getLogger(__name__)

MAX_BYTES = 16_000_000


class SourceBook:
    """The last definition of each declared source.

    Attributes:
        problem: Why the file cannot be written, or empty.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[str, SourceDefinition] = {}
        self._is_saved = True
        self.problem = ""
        kept = read_kept(path, list[SourceOrder], "declared sources", max_bytes=MAX_BYTES)
        for order in (kept or [])[:MAX_SOURCES]:
            self._known[order.definition.name] = order.definition

    def all(self) -> tuple[SourceDefinition, ...]:
        """Return the definitions, the oldest first."""
        return tuple(self._known.values())

    def find(self, name: str) -> SourceDefinition | None:
        """Return the definition of a name."""
        return self._known.get(name)

    def put(self, definition: SourceDefinition) -> bool:
        """Note a definition; return whether it is another than before.

        Raises:
            WireError: There are too many.
        """
        known = self._known.get(definition.name)
        if known == definition:
            return False
        if known is None and len(self._known) >= MAX_SOURCES:
            raise WireError(f"more than {MAX_SOURCES} sources are declared")
        self._known[definition.name] = definition
        self._is_saved = False
        return True

    def drop(self, name: str) -> bool:
        """Forget a definition; return whether there was one."""
        if self._known.pop(name, None) is None:
            return False
        self._is_saved = False
        return True

    def save(self) -> None:
        """Write the file if anything has changed since it was written."""
        if self._is_saved:
            return
        orders = [SourceOrder(d.version, d) for d in self._known.values()]
        content = encode_json(orders)
        if len(content) > MAX_BYTES:
            self._complain(f"they take {len(content)} bytes; the max is {MAX_BYTES}")
            return
        try:
            replace_file(self._path, content)
        except OSError as error:
            self._complain(str(error.strerror))
            return
        self._is_saved, self.problem = True, ""

    def _complain(self, reason: str) -> None:
        problem = f"the declared sources cannot be kept on disk: {reason}"
        if problem != self.problem:
            log.warning("%s", problem)
        self.problem = problem
