"""Many gateways in one process: real sessions, states, clocks and engines, but no devices.

    python -m benchmarks._fleet_cost.simulated_gateways URL FIRST COUNT

Each connects by itself and makes up readings: so many a second as the command `simulate` says.
"""

import asyncio
import contextlib
import random
import sys
import time

from benchmarks._fleet_cost.federation import SITE, gateway_name, source
from gateway.gateway_settings import ClockSettings
from gateway.session.announcer import Announcer
from gateway.session.clock_exchange import ClockExchange
from gateway.site.host import SiteHost
from host.clocks import wall_clock
from host.mqtt import Will, open_client
from stream_engine.snapshot.recorded_site import RecordedSite
from streamsql.data.events import SourceEvent
from streamsql.wire.codec import encode_json
from streamsql.wire.messages import Command
from streamsql.wire.site_messages import Birth, ConnectorState, SiteState
from streamsql.wire.source_shapes import shape_of
from streamsql.wire.topics import Topics

TOPICS = Topics(SITE)
KEEPALIVE = 5
DEVICES = 10
"""That a gateway has; each is a row of the result."""
LONGEST_PAUSE = 0.2


class SimulatedGateway:
    """One gateway; `run` lives until it is cancelled."""

    def __init__(self, number: int, url: str) -> None:
        self.name = gateway_name(number)
        self.rate = 0.0
        self._readings = 0
        self._scan = source().scan()
        lost = SiteState(online=False, epoch=1, ts=wall_clock(), reason="lost")
        will = Will(TOPICS.state(self.name), encode_json(lost))
        self.client = open_client(url, self.name, will=will, keepalive=KEEPALIVE)
        self.engine = RecordedSite(self.name, 1)
        self.engine.declare(self._scan)
        self.host = SiteHost(
            self.engine,
            self.client,
            TOPICS,
            wall_clock,
            grace_seconds=5.0,
            tick_seconds=0.02,
            on_command=self._command,
        )
        self.clock = ClockExchange(self.name, self.client, TOPICS, ClockSettings())
        self.announcer = Announcer(
            self.name, self.client, TOPICS, self._birth, self._state, lambda: None
        )

    async def run(self) -> None:
        """Serve."""
        self.client.on_connection(lambda connected: connected and self.announcer.announce())
        await self.client.connect(timeout=None)
        await self.host.start()
        async with asyncio.TaskGroup() as group:
            group.create_task(self.host.run())
            group.create_task(self.announcer.run())
            group.create_task(self.clock.run())
            group.create_task(self._read())

    async def _read(self) -> None:
        """Make readings up, one at a time."""
        due: float | None = None
        while True:
            if not self.rate:
                await asyncio.sleep(LONGEST_PAUSE)
                due = None
                continue
            if due is None:  # they do not all send at once
                due = time.monotonic() + random.random() / self.rate
            pause = due - time.monotonic()
            if pause > 0:
                await asyncio.sleep(min(pause, LONGEST_PAUSE))
                continue
            due += 1 / self.rate
            device = f"{self.name}-{self._readings % DEVICES}"
            row = (device, float(self._readings % 97))
            self.engine.ingest(self._scan.source, [SourceEvent(row, wall_clock(), False)])
            self.host.wake()
            self._readings += 1

    def _command(self, verb: str, command: Command) -> None:
        if verb == "simulate":
            self.rate = float(str(command.arguments["rate"]))
        elif verb == "clock":
            self.clock.answered(command)

    def _state(self) -> SiteState:
        connector = ConnectorState("home", "mqtt", (self._scan.source,), self._readings)
        return SiteState(
            online=True,
            epoch=1,
            ts=wall_clock(),
            started=1,
            sources=(self._scan.source,),
            connectors=(connector,),
            counters={"readings": self._readings, "batches_sent": self.host.batches_sent},
            settings=self.engine.settings,
            clock=self.clock.state(),
        )

    def _birth(self) -> Birth:
        return Birth(
            *(self.name, 1, 0, wall_clock()),
            sources=(self._scan.source,),
            shapes=(shape_of(self._scan),),
        )


async def main(url: str, first: int, count: int) -> None:
    """Run so many gateways."""
    async with asyncio.TaskGroup() as group:
        for number in range(first, first + count):
            group.create_task(SimulatedGateway(number, url).run())


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
