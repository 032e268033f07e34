"""Orders of the catalog on their way from the inbox to the site's declared sources."""

from gateway.declared.declared_sources import DeclaredSources
from streamsql.wire.topics import level_of

_SOURCE = "source/"


class DeclaredOrders:
    """Hands orders on; a site without declared sources has none."""

    def __init__(self) -> None:
        self._sources: DeclaredSources | None = None

    def go_by(self, sources: DeclaredSources) -> None:
        """Hand orders to these sources from now on."""
        self._sources = sources

    @staticmethod
    def name(level: str) -> str:
        """Return the name of the source of a topic level; no query has a name like it."""
        return f"{_SOURCE}{level}"

    def take(self, level: str, payload: bytes) -> None:
        """Ingest an order.

        Raises:
            WireError: It is no legal order.
        """
        if self._sources is not None:
            self._sources.heard(level, payload)

    def names(self) -> list[str]:
        """Return the declared sources; see `name`."""
        declared = () if self._sources is None else self._sources.names()
        return [self.name(level_of(name)) for name in declared]

    def withdrawn(self, name: str) -> bool:
        """Note that something was withdrawn; return whether it was a declared source."""
        if not name.startswith(_SOURCE):
            return False
        self.take(name.removeprefix(_SOURCE), b"")
        return True

    def layout_of(self, stream: str) -> int | None:
        """Return the layout of a declared source as it is defined now; None: unknown."""
        return None if self._sources is None else self._sources.layout_of(stream)
