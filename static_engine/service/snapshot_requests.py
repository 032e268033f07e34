"""Requests for the rows of a channel again: of its receiver, or of the coordinator for any."""

import logging
from collections.abc import Mapping

from static_engine.service.installed_fragments import RESULT, InstalledQuery
from streamsql.errors import WireError
from streamsql.wire.messages import Command

log = logging.getLogger(__name__)


def resync_own(queries: Mapping[str, InstalledQuery], sender: str, command: Command) -> None:
    """Send a channel's rows again to its receiver.

    Raises:
        WireError: It is another's channel, or the query sends nothing there.
    """
    if command.channel != sender:
        raise WireError(f"resync of the channel to {command.channel!r:.80} by {sender!r:.80}")
    query = queries.get(command.query)
    if query is not None and not query.request_snapshot(sender):
        raise WireError(f"resync by {sender!r:.80}, to whom the query sends nothing")


def resync_any(queries: Mapping[str, InstalledQuery], command: Command) -> None:
    """Send the rows of any channel again, as the coordinator asks, who sees both ends."""
    query = queries.get(command.query)
    destination = RESULT if command.channel == "out" else command.channel
    if query is None or not query.request_snapshot(destination):
        log.info("no channel of query %r for %r", command.query, command.channel)
