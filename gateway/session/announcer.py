"""When a site says what it is: birth and state after each connect, then state by itself.

State follows every ten seconds, and within a second when what it says about problems or settings
changes, so that nobody looks at figures of an hour ago. What was counted of columns is published
when it is news.
"""

import asyncio
import contextlib
from collections.abc import Callable, Iterable

from host.heartbeats import HEARTBEAT_SECONDS
from host.mqtt import MessageClient
from host.mqtt.publishing import publish_or_warn
from streamsql.wire.codec import encode_json, encode_packed
from streamsql.wire.site_messages import Birth, SiteState, SourceCount
from streamsql.wire.topics import Topics

LOOK_SECONDS = 1.0


class Announcer:
    """Publishes a site's retained birth and state; calls `on_announced` after each birth.

    Attributes:
        columns: Asked each second for what was counted of columns.
    """

    def __init__(  # noqa: PLR0913, PLR0917  (each is one seam)
        self,
        site: str,
        client: MessageClient,
        topics: Topics,
        birth: Callable[[], Birth],
        state: Callable[[], SiteState],
        on_announced: Callable[[], None],
    ) -> None:
        self.site = site
        self.client = client
        self.topics = topics
        self._birth = birth
        self._state = state
        self.columns: Callable[[], Iterable[SourceCount]] = tuple
        self._on_announced = on_announced
        self._owed = True
        self._wake = asyncio.Event()
        self._said: object = None

    def announce(self) -> None:
        """Ask for a new birth and state soon."""
        self._owed = True
        self._wake.set()

    async def run(self) -> None:
        """Announce until cancelled."""
        loop = asyncio.get_running_loop()
        state_due = loop.time()
        while True:
            now = loop.time()
            if self.client.connected and self._owed:
                self._owed = not self._announce()
                state_due = now + HEARTBEAT_SECONDS
            elif self.client.connected and (now >= state_due or self._has_news()):
                self.publish_state(self._state())
                state_due = now + HEARTBEAT_SECONDS
            if self.client.connected:
                self._tell_columns()
            self._wake.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await self._wake.wait()

    def publish_state(self, state: SiteState) -> bool:
        """Publish a state; False when too much waits for the broker."""
        topic, payload = self.topics.state(self.site), encode_json(state)
        if not publish_or_warn(
            self.client, topic, payload, retain=True, otherwise="state not sent"
        ):
            return False
        self._said = _news(state)
        return True

    def _tell_columns(self) -> None:
        for count in self.columns():
            # What is lost is told again in ten minutes, or when the readings have doubled.
            publish_or_warn(self.client, self.topics.columns(self.site), encode_packed(count))

    def _announce(self) -> bool:
        topic, payload = self.topics.birth(self.site), encode_json(self._birth())
        if not publish_or_warn(
            self.client, topic, payload, retain=True, otherwise="birth not sent"
        ):
            return False
        if not self.publish_state(self._state()):
            return False
        self._on_announced()
        return True

    def _has_news(self) -> bool:
        return _news(self._state()) != self._said


def _news(state: SiteState) -> object:
    """Return what of a state nobody should have to wait for."""
    declared = tuple((each.name, each.version, each.problem) for each in state.declared)
    return (state.detail, state.ready, state.settings, declared)
