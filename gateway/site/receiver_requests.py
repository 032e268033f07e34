"""Requests of other sites: of the receiver of a channel, and about packs that were published."""

import time
from collections.abc import Callable, Iterable
from typing import Protocol

from gateway.observations.followed_logs import FollowedLogs
from gateway.observations.pack_answers import PackAnswers
from gateway.site.channel_requests import forget_from
from gateway.site.membership import Membership
from host.clocks import Clock
from host.mqtt import Message
from stream_engine.site.site_engine import SiteEngine
from streamsql.errors import WireError
from streamsql.wire.codec import decode_json
from streamsql.wire.messages import Command
from streamsql.wire.observation_logs import PacksPublished, PacksWanted
from streamsql.wire.site_messages import SiteRole

MAX_SMALL = 1_000_000
"""Bytes of a state or a command: larger ones are not even looked at."""


class _Host(Protocol):
    @property
    def engine(self) -> SiteEngine: ...

    clock: Clock
    membership: Membership
    pack_answers: PackAnswers


class ReceiverRequests:
    """Does what another site asks for, if it is a party.

    The topic says who asks: the broker lets everybody write under its own id only.
    """

    def __init__(
        self, host: _Host, logs: FollowedLogs, count: Callable[[Iterable[Message]], None]
    ) -> None:
        self._host = host
        self._logs = logs
        self._count = count

    def take(self, verb: str, sender: str, payload: bytes) -> None:
        """Carry out a request.

        Raises:
            WireError: It cannot be read, or the sender is no party of the channel or no reader.
        """
        if verb == "packs":
            self._packs(sender, decode_json(payload, PacksWanted, limit=MAX_SMALL))
        elif verb == "published":
            answer = decode_json(payload, PacksPublished, limit=MAX_SMALL)
            self._count(self._logs.answered(sender, answer, self._host.clock()))
        else:
            self._channel(verb, sender, decode_json(payload, Command, limit=MAX_SMALL))

    def _packs(self, sender: str, wanted: PacksWanted) -> None:
        role = self._host.membership.role(sender)
        if role not in {SiteRole.BASE, None}:
            raise WireError(f"{sender!r:.80} asks for packs and is no base site")
        # Gateways hear of no landers: who is unknown is one, by the broker's access rules.
        is_known = role is not None
        self._host.pack_answers.answer(sender, wanted, time.monotonic(), is_known=is_known)

    def _channel(self, verb: str, sender: str, command: Command) -> None:
        engine = self._host.engine
        if command.channel != sender:
            raise WireError(f"{verb} of the channel to {command.channel!r:.80} by {sender!r:.80}")
        if verb == "resync":
            known = engine.resync(command.query, sender)
        elif verb == "forget":
            known = engine.forget(sender, forget_from(command, me=engine.site))
        else:
            raise WireError(f"no handler for {verb!r:.80}")
        # A query that is not here yet, or not any more, may have such a channel.
        if not known and engine.runs(command.query):
            raise WireError(f"{verb} by {sender!r:.80}, to whom the query sends nothing")
