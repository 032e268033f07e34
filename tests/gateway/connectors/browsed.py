"""What a connector offers when it is browsed."""

from collections.abc import Mapping

from gateway.connectors.browsing import BrowseContext, Browser
from streamsql.mapping.offers import OfferedRecord


async def browsed(
    connector: object, endpoint: Mapping[str, object], **options: str
) -> tuple[list[OfferedRecord], list[str]]:
    """Return (records, notes)."""
    assert isinstance(connector, Browser)
    records: list[OfferedRecord] = []
    notes: list[str] = []
    await connector.browse(
        BrowseContext("gw", "home", endpoint, records.append, options, notes.append)
    )
    return records, notes
