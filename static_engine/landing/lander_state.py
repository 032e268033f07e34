"""The state that a lander publishes: retained, when it changes and as a heartbeat."""

import secrets
import time

from msgspec.structs import replace

from host.clocks import wall_clock
from host.heartbeats import HEARTBEAT_SECONDS
from host.mqtt import MessageClient
from host.mqtt.publishing import publish_or_warn
from streamsql.wire.codec import encode_json
from streamsql.wire.site_messages import SiteRole, SiteState
from streamsql.wire.topics import Topics

_MAX_DETAIL = 1_000


def will_state(epoch: int) -> SiteState:
    """Return what the broker says in our place when we are gone."""
    return SiteState(False, epoch, 0, SiteRole.LANDER, "lost", ready=False)


class LanderStates:
    """Publishes what changed since it was last published."""

    def __init__(self, client: MessageClient, topics: Topics, site: str, epoch: int) -> None:
        self._client = client
        self._topic = topics.host_state(site)
        self._epoch = epoch
        self._instance = secrets.token_hex(8)
        self._started = wall_clock()
        self._state: SiteState | None = None
        self._at = float("-inf")

    def announce(self) -> None:
        """Publish the state again."""
        self._state = None

    def due_in(self, moment: float) -> float:
        """Return the seconds to the next heartbeat; infinite while the broker is away."""
        if not self._client.connected:
            return float("inf")
        return self._at + HEARTBEAT_SECONDS - moment

    def publish(self, *, detail: str, ready: bool, counters: dict[str, int]) -> None:
        """Publish the state if it is new or old enough."""
        state = SiteState(
            True,
            self._epoch,
            0,
            SiteRole.LANDER,
            detail=detail[:_MAX_DETAIL],
            ready=ready,
            instance=self._instance,
            started=self._started,
        )
        moment = time.monotonic()
        if (state == self._state and self.due_in(moment) > 0) or not self._client.connected:
            return
        full = replace(state, ts=wall_clock(), counters=counters)
        if publish_or_warn(self._client, self._topic, encode_json(full), retain=True):
            self._state, self._at = state, moment

    def stopped(self) -> None:
        """Publish that we stop."""
        if self._client.connected:
            state = replace(will_state(self._epoch), ts=wall_clock(), reason="stopped")
            publish_or_warn(self._client, self._topic, encode_json(state), retain=True)
