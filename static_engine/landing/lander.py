"""The lander: messages of the broker onto the disk, acknowledged when they are there.

Its session outlives it, so the broker keeps what comes meanwhile. A message is acknowledged when
its segment is synced and has its name; one that was written and not acknowledged comes again and is
written again: readers of segments count a pack once. When there is no room nothing is acknowledged;
the broker sends no more than its window then, and keeps the rest.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from host.clocks import wall_clock
from host.defects import Defects
from host.mqtt import Message, MessageClient
from host.mqtt.dead_letters import DeadLetters
from host.mqtt.publishing import publish_or_warn
from static_engine.landing.lander_settings import LanderSettings
from static_engine.landing.lander_state import LanderStates
from static_engine.landing.missed_packs import MissedPacks
from static_engine.landing.open_segment import OpenSegment
from static_engine.landing.segment_files import LandedMessage, NoRoom, SegmentError, SegmentWriter
from streamsql.errors import WireError
from streamsql.wire.topics import LANDERS, Topics

log = logging.getLogger(__name__)

RETRY_SECONDS = 1.0
"""Before a segment that could not be written is tried again."""
IDLE_SECONDS = 10.0


@dataclass(slots=True)
class LandedCounts:
    """Counts since the start.

    Attributes:
        messages: On disk and acknowledged.
        bytes: Of their payloads.
        segments: Written.
        refused: Segments that could not be written at first.
    """

    messages: int = 0
    bytes: int = 0
    segments: int = 0
    refused: int = 0


class Lander:
    """One lander; `run` serves until it is cancelled.

    Args:
        settings: See `LanderSettings`.
        epoch: This session's number.
        client: Not yet connected; keeps its session and acknowledges by hand.
        clock: Wall-clock microseconds.

    Attributes:
        counts: What was landed.
        problem: Why nothing can be written at present, or empty.
        missed: What is asked for again.
    """

    def __init__(
        self,
        settings: LanderSettings,
        epoch: int,
        client: MessageClient,
        clock: Callable[[], int] = wall_clock,
    ) -> None:
        self.settings = settings
        self.client = client
        self.counts = LandedCounts()
        self.problem = ""
        self.topics = Topics(settings.site)
        self.missed = MissedPacks(settings.site_id, self.topics)
        self.dead_letters = DeadLetters(settings.site_id, client, self.topics)
        self._clock = clock
        self._writer = SegmentWriter(
            settings.segments_path,
            settings.site_id,
            epoch,
            settings.max_folder_bytes,
            settings.spare_bytes,
        )
        self._open = OpenSegment(
            settings.segment_seconds, settings.segment_messages, settings.segment_bytes
        )
        self._states = LanderStates(client, self.topics, settings.site_id, epoch)
        self._retry_at = float("-inf")
        self._room = settings.segment_bytes
        self._wake = asyncio.Event()
        self._defects = Defects("a turn", "the lander")

    @property
    def waiting(self) -> int:
        """Messages that wait for their segment."""
        return len(self._open)

    async def run(self) -> None:
        """Serve until cancelled; what waits then is written, if there is room.

        Else it is not acknowledged, and comes again.
        """
        self.client.on_connection(self._on_connection)
        self.client.on_messages(self._on_messages)
        await self.client.connect(timeout=None)
        topics = self.topics
        shared = (topics.observation(), topics.history(), topics.alarms())
        await self.client.subscribe(
            *(f"$share/{LANDERS}/{topic}" for topic in shared),
            topics.state(),
            topics.birth(),
            topics.host_state(),
            topics.request(self.settings.site_id),
        )
        try:
            while True:
                await self._turn_or_report()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._pause()):
                        await self._wake.wait()
                self._wake.clear()
        finally:
            if len(self._open):
                await self._write()
            self._states.stopped()
            await self.client.close()

    async def _turn_or_report(self) -> None:
        try:
            await self._turn()
            self._defects.passed()
        except Exception as error:
            if not self._defects.survives(error):
                raise
            await asyncio.sleep(RETRY_SECONDS)  # time passes: between two defects

    async def _turn(self) -> None:
        moment = time.monotonic()
        if self._open.due_in(moment) == 0.0 and moment >= self._retry_at:
            await self._write()
        for topic, payload in self.missed.requests(time.monotonic()):
            publish_or_warn(self.client, topic, payload, otherwise="missed packs are asked later")
        self._states.publish(
            detail=self._detail(), ready=not self.problem, counters=self._counters()
        )

    async def _write(self) -> None:
        messages, receipts = self._open.taken(self._room)
        try:
            await asyncio.to_thread(self._writer.write, messages, time.time())
        except SegmentError as error:
            moment = time.monotonic()
            if isinstance(error, NoRoom):  # there may be room for less
                self._room = max(sum([len(message.payload) for message in messages]) // 2, 1)
            self._open.put_back(messages, receipts, moment)
            self._retry_at = moment + RETRY_SECONDS
            self.counts.refused += 1
            if not self.problem:
                log.warning("nothing is landed: %s", error)
            self.problem = error.message
            return
        except BaseException:
            self._open.put_back(messages, receipts, time.monotonic())
            raise
        self.client.acknowledge(receipts)
        self._room = self.settings.segment_bytes
        if self.problem:
            log.info("landing goes on")
            self.problem = ""
        counts = self.counts
        counts.segments += 1
        counts.messages += len(messages)
        counts.bytes += sum([len(message.payload) for message in messages])

    def _pause(self) -> float:
        moment = time.monotonic()
        due = self._open.due_in(moment)
        times = [IDLE_SECONDS, self._states.due_in(moment)]
        if due is not None:
            times.append(max(due, self._retry_at - moment))
        asking = self.missed.due_in(moment)
        if asking is not None:
            times.append(asking)
        return max(min(times), 0.0)

    def _detail(self) -> str:
        if self.problem:
            return self.problem
        if self.missed.open:
            return f"asking for missed packs of {self.missed.open} streams"
        return ""

    def _counters(self) -> dict[str, int]:
        counts = self.counts
        return {
            "messages": counts.messages,
            "bytes": counts.bytes,
            "segments": counts.segments,
            "refused": counts.refused,
            "waiting": self.waiting,
            "lost_packs": self.missed.lost,
            "bad_payloads": self.dead_letters.count,
        }

    def _on_connection(self, connected: bool) -> None:
        if not connected:
            return
        is_kept = self.client.session_kept
        forgotten = self._open.forget_what_comes_again() if is_kept else []
        if not is_kept:
            log.info("the broker has no session of ours: gateways are asked for what was missed")
        # A broker that was killed may have the session as it was a minute ago, and not say so.
        self.missed.connected(session_kept=is_kept, forgotten=self._packs(forgotten))
        self._states.announce()
        self._wake.set()

    def _packs(self, messages: list[LandedMessage]) -> Iterator[tuple[str, str, bytes]]:
        for message in messages:
            match self.topics.parts(message.topic):
                case ["gw", gateway, "obs" | "hist", stream]:
                    yield gateway, stream, message.payload
                case _:
                    pass  # only packs have numbers to ask by

    def _on_messages(self, burst: list[Message]) -> None:
        now, moment = self._clock(), time.monotonic()
        root, add = len(self.topics.root) + 1, self._open.add
        before = self._open.due_in(moment)
        for message in burst:
            topic = message.topic
            kind, _, rest = topic[root:].partition("/")
            site, _, rest = rest.partition("/")
            lane, _, stream = rest.partition("/")
            if lane in {"obs", "hist"}:
                self.missed.landed(site, stream, message.payload)
            elif kind == "gw" and lane == "cmd":
                self.dead_letters.guard(self._answer, message)
                self.client.acknowledge((message.receipt,))
                continue
            elif kind == "gw" and lane == "state":
                self.dead_letters.guard(self._site_state, message)
            add(LandedMessage(topic, message.payload, now), message.receipt, moment)
        if before is None or self._open.due_in(moment) == 0.0:
            self._wake.set()

    def _site_state(self, message: Message) -> None:
        site = self.topics.parts(message.topic)[1]
        self.missed.heard(site, message.payload, time.monotonic())
        if self.missed.open:
            self._wake.set()

    def _answer(self, message: Message) -> None:
        match self.topics.parts(message.topic):
            case ["gw", _me, "cmd", "published", gateway]:
                self.missed.answered(gateway, message.payload, time.monotonic())
                self._wake.set()
            case _:
                raise WireError(f"no handler reads {message.topic!r:.200}")
