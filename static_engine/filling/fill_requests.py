"""Requests of engine sites for what the lake has of their windows' sources."""

import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, TypeVar

from host.mqtt import MessageClient, QueueFull
from streamsql.errors import FederationError, WireError
from streamsql.wire.codec import decode_packed, encode_packed
from streamsql.wire.fill_messages import FillRows, FillWanted
from streamsql.wire.topics import Topics

log = logging.getLogger(__name__)
T = TypeVar("T")

MAX_WAITING = 1_000
"""Requests that wait for their turn; sites repeat theirs."""

MAX_REQUEST = 200_000


class Pieces(Protocol):
    """A lake, piece by piece."""

    def piece(self, wanted: FillWanted) -> FillRows:
        """Return the piece that is asked for."""
        ...


@dataclass(slots=True)
class FillRequests:
    """Answers one request after the other; of one that is repeated the last counts.

    Args:
        client: Of the static engine.
        topics: Of the federation.
        pieces: The lake; None: there is none, and sites are told so.
    """

    client: MessageClient
    topics: Topics
    pieces: Pieces | None
    answered: int = 0
    _waiting: "OrderedDict[tuple[str, str], FillWanted]" = field(default_factory=OrderedDict)

    @property
    def is_due(self) -> bool:
        """Whether requests wait."""
        return bool(self._waiting)

    def take(self, sender: str, payload: bytes, *, is_base: bool) -> None:
        """Ingest a request of a site.

        Raises:
            WireError: It is malformed, or asks for the readings of another gateway.
        """
        wanted = decode_packed(payload, FillWanted, limit=MAX_REQUEST)
        if not is_base and wanted.gateway != sender:
            raise WireError(f"{sender!r:.80} asks for readings of {wanted.gateway!r:.80}")
        key = (sender, wanted.id)
        if key not in self._waiting and len(self._waiting) >= MAX_WAITING:
            return
        self._waiting[key] = wanted

    async def work(self, run: Callable[[Callable[[], Any]], Awaitable[Any]]) -> None:
        """Answer all requests that wait; `run` runs work beside the loop."""
        for _ in range(len(self._waiting)):
            (sender, _id), wanted = self._waiting.popitem(last=False)
            answer = await self._answer(wanted, run)
            try:
                self.client.publish(self.topics.fill(sender), encode_packed(answer))
            except QueueFull:
                return  # the site asks again
            except WireError:
                log.exception("a piece of %s cannot be sent", wanted.source)
                continue
            self.answered += 1

    async def _answer(
        self, wanted: FillWanted, run: Callable[[Callable[[], Any]], Awaitable[Any]]
    ) -> FillRows:
        if self.pieces is None:
            return FillRows(wanted.id, done=True, problem="there is no lake", kept=False)
        try:
            found: FillRows = await run(partial(self.pieces.piece, wanted))
        except FederationError as error:
            return FillRows(wanted.id, problem=error.message)
        return found
