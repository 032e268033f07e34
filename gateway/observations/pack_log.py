"""The packs of one stream of one gateway: which have come, which are missing.

    unknown     nothing has come yet and the connection was not lost: what comes first is first
    whole       everything published until now has come, as far as this site can know
    doubted     the connection was lost since: the gateway must say how far it has come
    incomplete  a later pack has come, or the gateway has named a later number
    excused     doubted or incomplete, and the gateway is away: the loss is named, and withdrawn
                if the gateway comes back in the same life and still has everything

A state machine without IO and without a clock.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from gateway.observations.unrecoverable_packs import (
    Cause,
    Findings,
    Key,
    Missing,
    Withdrawn,
    newest_until,
)
from host.mqtt import Message
from streamsql.wire.observation_logs import PacksPublished, PacksWanted

MAX_HELD_BYTES = 16_000_000
"""Memory of packs that came before their turn; more are dropped, and asked for again."""
HELD_OVERHEAD = 400
"""Bytes that a held pack takes besides its payload, as tracemalloc counts them: message, topic,
number and place. Decoded it would be ten times as large."""
MAX_FRUITLESS = 5
"""Answers without anything new after which what is missing counts as lost."""
MAX_DOUBTS = 3
"""Answers that do not know a pack after which it is a forged one: a gateway counts before it
publishes, and requests are a second apart."""
CLOCK_TOLERANCE = 60_000_000
"""Microseconds by which a gateway's clock may be behind that of this site."""
FIRST_PAUSE = 1.0

Number = tuple[int, int]
"""Life and number in it."""


@dataclass(slots=True)
class _Held:
    message: Message
    doubts: int = 0

    @property
    def size(self) -> int:
        return len(self.message.payload) + HELD_OVERHEAD


@dataclass(slots=True, eq=False)
class PackLog:
    """A stream of one gateway.

    Attributes:
        findings: Shared by all logs of a site.
        whole_at: When it was last known to be whole, in microseconds.
        doubted: The connection was lost since.
        excused: The gateway is away, and the loss is named.
        absent: It was excused, and has not answered since.
        life: That `next` is of; None: unknown.
        begin: Number in that life with which this site has begun.
        next: Number of the first pack that has not come.
        target: How many the gateway has published at least.
        answered_at: Life and number at the last answer.
        fruitless: Answers since anything has come.
        awaited: A request is unanswered.
        asked: Requests so far.
        asked_moment: When the first of those was sent, in microseconds.
        ask_at: When to ask again, in seconds of a clock that only goes forward.
        silent_since: Since when an answer is due, by that clock; None: nobody has looked yet.
    """

    key: Key
    findings: Findings
    whole_at: int
    doubted: bool = False
    excused: bool = False
    absent: bool = False
    life: int | None = None
    begin: int = 0
    next: int = 0
    target: int = 0
    held: dict[Number, _Held] = field(default_factory=dict)
    answered_at: Number | None = None
    fruitless: int = 0
    awaited: bool = False
    asked: int = 0
    asked_moment: int = 0
    ask_at: float = float("-inf")
    pause: float = FIRST_PAUSE
    silent_since: float | None = None
    _highest: Number = (-1, -1)

    @property
    def is_whole(self) -> bool:
        """Whether all has come, or what has not is named."""
        return self.excused or not (self.doubted or self.held or self.next < self.target)

    # --- who is there -----------------------------------------------------------------------

    def doubt(self) -> None:
        """Note that packs may have been published that did not come here."""
        self.doubted, self.awaited = True, False
        self.ask_soon()

    def ask_soon(self) -> None:
        """Give the gateway all of its time to answer, from now on."""
        self.ask_at, self.pause, self.silent_since = float("-inf"), FIRST_PAUSE, None

    def excuse(self, now: int) -> list[Message]:
        """Name what may be missing: the gateway is away. Return the packs that wait."""
        if not self.is_whole:
            self._lose(Cause.ABSENT, now)
            self.doubted = self.absent = True
        self.excused, self.target = True, self.next
        return self._release()

    def begin_life(self, life: int) -> None:
        """Count from the beginning of a life of the gateway."""
        self.life, self.begin, self.next, self.target = life, 0, 0, 0

    def give_up(self, cause: Cause, now: int) -> list[Message]:
        """Name what may be missing; what comes next is first. Return the packs that wait.

        Without an answer no number can be trusted: one that is forged would hide all below it.
        """
        self._lose(cause, now)
        self.doubted = self.awaited = False
        self.life, self.begin, self.next, self.target = None, 0, 0, 0
        self.whole_at, self.silent_since = now, None
        return self._release()

    def ask(self, now: int) -> PacksWanted:
        """Return what is missing, and count it as asked for."""
        if not self.awaited:  # the next answer may be to the first of several requests
            self.asked_moment = now
        self.asked, self.awaited = self.asked + 1, True
        return PacksWanted(self.key[1], self.life, self.next)

    # --- what comes -------------------------------------------------------------------------

    def arrived(self, number: Number, message: Message) -> list[Message]:
        """Return the packs whose turn it is, in order, this one or others."""
        if self.life is None and not self.doubted:
            self.life, self.next = number
            self.begin = self.next
        here = (-1, -1) if self.life is None else (self.life, self.next)
        if number > here:
            self._hold(number, message)
            return []
        if number < here:
            # Below the beginning: it was under way when the gateway named a number.
            return [message] if number < (here[0], self.begin) else []
        self.next += 1
        return [message, *self._drain()]

    def answered(
        self, answer: PacksPublished, started: int | None, now: int, *, is_offered: bool
    ) -> list[Message]:
        """Ingest what the gateway says of the stream; return the packs whose turn it is.

        Args:
            answer: What it says.
            started: When that life of it began; None: unknown.
            now: The time. All times are microseconds.
            is_offered: Whether the gateway has the stream in that life.
        """
        if not self.awaited or (self.life is not None and answer.life < self.life):
            return []
        self.awaited, self.silent_since = False, None
        due: list[Message] = []
        if self.absent:
            self.findings.losses.append(Withdrawn(*self.key))
        if self.life is None:
            self._begin(answer, started, now)
        elif self.life < answer.life:
            due += self._follow_life(answer.life, started, now, is_offered=is_offered)
        elif answer.first is not None and self.next < answer.first:
            self._lose(Cause.NOT_KEPT, now, answer.newest)
            due += self._release(below=(answer.life, answer.first))
            self.next = answer.first
        self.doubted = self.excused = self.absent = False
        self.target = max(self.target, answer.next)
        self._drop_forged((answer.life, answer.next))
        due += self._drain()
        if self.is_whole:
            self.whole_at = max(self.whole_at, self.asked_moment)
            self.ask_at, self.pause = float("-inf"), FIRST_PAUSE
        else:
            due += self._hurry(answer, now)
        return due

    def _begin(self, answer: PacksPublished, started: int | None, now: int) -> None:
        """Let the first answer say where the log begins."""
        held = min((n for life, n in self.held if life == answer.life), default=answer.next)
        self.life, self.next = answer.life, min(held, answer.next)
        self.begin = self.next
        if not self.doubted:
            return
        if answer.next:
            newest = newest_until(now) if answer.newest is None else answer.newest
            if answer.life > 1:
                newest = max(newest, _newest_before(started, now))
            self._lose(Cause.NOT_KEPT, now, newest)
        else:
            self.lose_earlier(answer.life, started, now)

    def lose_earlier(self, life: int, started: int | None, now: int) -> None:
        """Name what another life of the gateway may have published since the log was whole."""
        began_before = started is not None and started < self.whole_at - CLOCK_TOLERANCE
        if life > 1 and not began_before:
            self._lose(Cause.NOT_KEPT, now, _newest_before(started, now))

    def _follow_life(
        self, life: int, started: int | None, now: int, *, is_offered: bool
    ) -> list[Message]:
        """Go on with a later life; what did not come of the one before is lost."""
        earlier = any(number < (life, 0) for number in self.held)
        is_published = self.next or self.target or earlier
        is_torn = self.doubted or self.next < self.target or earlier
        if is_torn and (is_published or is_offered):
            self._lose(Cause.NOT_KEPT, now, _newest_before(started, now))
        due = self._release(below=(life, 0))
        self.begin_life(life)
        return due

    def _hurry(self, answer: PacksPublished, now: int) -> list[Message]:
        """Ask on at once while packs come; give up those that never do."""
        here = (answer.life, self.next)
        if self.answered_at != here:
            self.answered_at, self.fruitless = here, 0
            self.ask_at = float("-inf")
            return []
        self.fruitless += 1
        if self.fruitless <= MAX_FRUITLESS:
            return []
        self._lose(Cause.NOT_KEPT, now, answer.newest)
        self.next = min((n for of, n in self.held if of == answer.life), default=self.target)
        self.fruitless = 0
        return self._drain()

    # --- packs that came before their turn --------------------------------------------------

    def _hold(self, number: Number, message: Message) -> None:
        if number in self.held:
            return
        held = _Held(message)
        self.excused = False
        if self.findings.held_bytes + held.size > MAX_HELD_BYTES:
            if self.is_whole:  # else it is asked for already, with the pauses of its questions
                self.doubt()
            return
        if self.is_whole:
            self.ask_soon()
        self.held[number] = held
        self.findings.held_bytes += held.size
        self._highest = max(self._highest, number)

    def _take(self, number: Number) -> Message:
        held = self.held.pop(number)
        self.findings.held_bytes -= held.size
        if not self.held:
            self._highest = (-1, -1)
        return held.message

    def _drain(self) -> list[Message]:
        due = []
        while self.life is not None and (self.life, self.next) in self.held:
            due.append(self._take((self.life, self.next)))
            self.next += 1
        return due

    def _release(self, below: Number | None = None) -> list[Message]:
        """Return what waits, below a number, although something before it is missing."""
        found: Iterable[Number] = (n for n in self.held if below is None or n < below)
        return [self._take(number) for number in sorted(found)]

    def _drop_forged(self, end: Number) -> None:
        if self._highest < end:
            return
        for number in [number for number in self.held if number >= end]:
            self.held[number].doubts += 1
            if self.held[number].doubts > MAX_DOUBTS:
                self._take(number)
        self._highest = max(self.held, default=(-1, -1))

    def discard(self) -> None:
        """Let go of everything that waits."""
        self._release()

    def _lose(self, cause: Cause, now: int, newest: int | None = None) -> None:
        """Note a loss; without `newest` of all that may have been published until now."""
        latest = newest_until(now) if newest is None else newest
        self.findings.losses.append(Missing(*self.key, self.whole_at, now, latest, cause))


def _newest_before(started: int | None, now: int) -> int:
    return newest_until(now if started is None else min(started, now))
