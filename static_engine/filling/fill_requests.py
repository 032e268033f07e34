"""Requests of engine sites for what the lake has of their windows' sources."""

import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from contextlib import suppress
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

MAX_OF_SITE = 100
"""Requests of one site that wait for their turn; more are refused."""
MAX_SITES = 1_000
TURN_SECONDS = 0.5
"""After which other work of the engine has its turn."""

MAX_REQUEST = 200_000
MAX_PROBLEM = 500


class Pieces(Protocol):
    """A lake, piece by piece."""

    def piece(self, wanted: FillWanted) -> FillRows:
        """Return the piece that is asked for."""
        ...


@dataclass(slots=True)
class FillRequests:
    """Answers one request after the other, of each site in turn; of one repeated the last counts.

    Args:
        client: Of the static engine.
        topics: Of the federation.
        pieces: The lake; None: there is none, and sites are told so.
    """

    client: MessageClient
    topics: Topics
    pieces: Pieces | None
    answered: int = 0
    _waiting: "OrderedDict[str, OrderedDict[str, FillWanted]]" = field(default_factory=OrderedDict)

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
        of_site = self._waiting.get(sender)
        if of_site is None:
            if len(self._waiting) >= MAX_SITES:
                self._send(sender, _refusal(wanted, "requests of so many sites wait already"))
                return
            of_site = self._waiting[sender] = OrderedDict()
        if wanted.id not in of_site and len(of_site) >= MAX_OF_SITE:
            text = f"{MAX_OF_SITE} requests of this site wait already; it is asked again later"
            self._send(sender, _refusal(wanted, text))
            return
        of_site[wanted.id] = wanted

    async def work(self, run: Callable[[Callable[[], Any]], Awaitable[Any]]) -> None:
        """Answer requests that wait, for about `TURN_SECONDS`; `run` runs work beside the loop."""
        end = time.monotonic() + TURN_SECONDS
        while self._waiting and time.monotonic() < end:
            sender, of_site = self._waiting.popitem(last=False)
            _id, wanted = of_site.popitem(last=False)
            if of_site:
                self._waiting[sender] = of_site  # the next site has its turn
            if not self._send(sender, await self._answer(wanted, run)):
                return  # the site asks again

    def _send(self, sender: str, answer: FillRows) -> bool:
        """Return whether there was room for it."""
        topic = self.topics.fill(sender)
        try:
            self.client.publish(topic, encode_packed(answer))
        except QueueFull:
            return False
        except WireError as error:
            log.warning("a piece of the lake cannot be sent to %s: %s", sender, error.message)
            text = f"a piece of the lake cannot be sent: {error.message}"
            with suppress(QueueFull):
                self.client.publish(topic, encode_packed(FillRows(answer.id, problem=text)))
        self.answered += 1
        return True

    async def _answer(
        self, wanted: FillWanted, run: Callable[[Callable[[], Any]], Awaitable[Any]]
    ) -> FillRows:
        if self.pieces is None:
            return FillRows(wanted.id, done=True, problem="there is no lake", kept=False)
        try:
            found: FillRows = await run(partial(self.pieces.piece, wanted))
        except FederationError as error:
            return _refusal(wanted, error.message)
        except Exception as error:  # whatever the lake's parts raise, the engine goes on
            log.exception("a piece of source %.80r cannot be read", wanted.source)
            return _refusal(wanted, f"the lake cannot be read: {type(error).__name__}: {error}")
        return found


def _refusal(wanted: FillWanted, text: str) -> FillRows:
    return FillRows(wanted.id, problem=text[:MAX_PROBLEM])
