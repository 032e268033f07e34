"""What base sites have of the packs that gateways publish, in order, and what they lack.

A base site that was cut off from the broker does not know what was published then. It asks each
gateway for the rest from the first number that it lacks, and counts later packs when those before
them have come, or are known to be lost. Until then no answer that reads them is complete.

    unknown     nothing has come yet, and the connection was not lost: what comes first is first
    whole       everything published until now has come, as far as this site can know
    doubted     the connection was lost since: the gateway must say how far it has come
    incomplete  a later pack has come, or the gateway has named a later number
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from host.mqtt import Message
from streamsql.errors import WireError
from streamsql.wire.messages import ObservationPack
from streamsql.wire.observation_logs import PacksPublished, PacksWanted

MAX_LOGS = 10_000
MAX_HELD_BYTES = 16_000_000
"""Payloads of packs that came before their turn; more are dropped, and asked for again."""
MAX_FRUITLESS = 5
"""Answers without anything new after which what is missing counts as lost."""
MAX_FIRST = 5
"""Requests to a gateway of which nothing has come: it may be one that does not count."""
MAX_DOUBTS = 3
"""Answers that do not know a pack after which it is a forged one: a gateway counts before it
publishes, and requests are a second apart."""
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 10.0

Key = tuple[str, str]
"""Gateway and stream."""
_Number = tuple[int, int]
"""Life and number in it."""
Progress = tuple[str, str, int, int]
"""Gateway, stream, life, number of the next pack; that less 2**63 if the gateway was removed."""
_REMOVED = 2**63


@dataclass(frozen=True, slots=True)
class Missing:
    """Packs of a stream that will never come.

    Attributes:
        since: From when on they may have been published, in microseconds.
        newest: The latest event time they can have; None: unknown, as of an earlier life of the
            gateway.
    """

    gateway: str
    stream: str
    since: int
    newest: int | None = None

    @property
    def reason(self) -> str:
        """Why they do not come."""
        return f"{self.gateway} has published it while it was not heard here, and keeps it no more"


@dataclass(slots=True)
class _Held:
    message: Message
    pack: ObservationPack
    doubts: int = 0


@dataclass(slots=True)
class _Log:
    """A stream of one gateway.

    Attributes:
        whole_at: When it was last known to be whole, in microseconds.
        doubted: The connection was lost since.
        fresh: The gateway was first heard of after that: all of its life belongs to it.
        gone: The gateway was removed for good; its readings were given up.
        life: That `next` is of; None: unknown.
        begin: Number in that life with which this site has begun.
        next: Number of the first pack that has not come.
        target: How many the gateway has published at least.
        answered_at: Life and number at the last answer.
        fruitless: Answers since anything has come.
        ask_at: When to ask again, in seconds of a clock that only goes forward.
    """

    whole_at: int
    doubted: bool = False
    fresh: bool = False
    gone: bool = False
    life: int | None = None
    begin: int = 0
    next: int = 0
    target: int = 0
    held: dict[_Number, _Held] = field(default_factory=dict)
    answered_at: _Number | None = None
    fruitless: int = 0
    asked: int = 0
    ask_at: float = float("-inf")
    pause: float = FIRST_PAUSE

    @property
    def is_whole(self) -> bool:
        return not (self.doubted or self.held or self.next < self.target)


@dataclass(slots=True)
class HeardLogs:
    """The logs of all gateways, per stream that is read here.

    Attributes:
        missing: Losses that nobody has been told of yet.
        jumps: How far logs have come otherwise than by a pack, that nobody has written down yet.
        changes: Grows whenever a log becomes whole, or is not any more.
    """

    missing: list[Missing] = field(default_factory=list)
    jumps: list[Progress] = field(default_factory=list)
    changes: int = 0
    _logs: dict[Key, _Log] = field(default_factory=dict)
    _streams: dict[str, int] = field(default_factory=dict)
    _gateways: dict[str, bool] = field(default_factory=dict)
    _heard: set[str] = field(default_factory=set)
    _was_cut_off: bool = False
    _held_bytes: int = 0

    # --- who is there -----------------------------------------------------------------------

    def want(self, streams: Iterable[str], now: int) -> None:
        """Follow exactly these streams from now on; `now` in microseconds."""
        before = self._streams
        self._streams = {stream: before.get(stream, now) for stream in streams}
        for key in [key for key in self._logs if key[1] not in self._streams]:
            self._forget(key)
        for stream in self._streams.keys() - before.keys():
            for gateway in self._gateways:
                self._log((gateway, stream))

    def heard(self, gateway: str, life: int, *, online: bool) -> None:
        """Take in that a gateway is there, or is not; if it is, what is owed is asked for.

        A life that begins while we listen is read from its beginning.
        """
        is_new = gateway not in self._gateways
        self._gateways[gateway] = online
        self._heard.add(gateway)
        for stream in self._streams if is_new and self._has_room else ():
            is_known = (gateway, stream) in self._logs
            log = self._log((gateway, stream))
            log.fresh = self._was_cut_off and not is_known
            if log.fresh or log.gone:
                self._doubt(log)
        for key, log in self._logs.items() if online else ():
            if key[0] == gateway:
                log.ask_at = float("-inf")
                if log.is_whole and not log.gone and log.life is not None and log.life < life:
                    log.life, log.begin, log.next, log.target = life, 0, 0, 0
                    self.jumps.append((*key, life, 0))

    def removed(self, gateway: str) -> None:
        """Take in that a gateway is gone for good: what it has not sent will not come."""
        self._gateways.pop(gateway, None)
        for key, log in self._logs.items():
            if key[0] != gateway:
                continue
            if not log.is_whole:
                self._lose(key, log)
            for number in list(log.held):
                self._take(log, number)
            # How far it had come stays known: it may come back, and nothing counts twice.
            log.doubted, log.gone, log.target = False, True, log.next
            if log.life is not None:
                self.jumps.append((*key, log.life, log.next - _REMOVED))

    def silent(self) -> set[str]:
        """Return the gateways of which nothing was heard since the connection was lost."""
        return {gateway for gateway, _ in self._logs} - self._heard if self._was_cut_off else set()

    def cut_off(self) -> None:
        """Take in that the connection was lost: nobody knows what is published from now on."""
        self._was_cut_off = True
        self._heard.clear()
        for log in self._logs.values():
            if not log.gone:
                self._doubt(log)

    def restore(self, known: Iterable[Key], progress: Iterable[Progress], since: int) -> None:
        """Go on where a former life was, which has heard nothing since then.

        Args:
            known: Gateways and streams of which it has counted packs.
            progress: How far each log had come, the latest last.
            since: In microseconds.
        """
        self._was_cut_off = True
        self._streams = dict.fromkeys(self._streams, since)
        for key in known:
            if key[1] in self._streams:
                self._doubt(self._log(key))
        for gateway, stream, life, number in progress:
            if stream in self._streams:
                log = self._log((gateway, stream))
                log.life, log.next, log.gone = life, number % _REMOVED, number < 0
                log.doubted, log.target = False, 0
                if not log.gone:
                    self._doubt(log)

    def _doubt(self, log: _Log) -> None:
        self.changes += log.is_whole
        log.doubted = True
        log.ask_at, log.pause = float("-inf"), FIRST_PAUSE

    # --- what comes -------------------------------------------------------------------------

    def arrived(
        self, gateway: str, message: Message, stream: str, pack: ObservationPack, now: int
    ) -> Iterator[tuple[Message, ObservationPack]]:
        """Yield the packs whose turn it is now, in order, this one or others.

        Raises:
            WireError: Too many gateways and streams send.
        """
        if pack.n is None:
            yield (message, pack)
            return
        log = self._log((gateway, stream))
        number = (pack.epoch if pack.life is None else pack.life, pack.n)
        if log.life is None and (not log.doubted or (log.fresh and number[1] == 0)):
            log.life, log.next = number
            log.begin = log.next
        here = (-1, -1) if log.life is None else (log.life, log.next)
        if number < here:
            if number < (here[0], log.begin):
                yield (message, pack)  # it was under way when the gateway named a number
        elif number == here:
            whole = log.is_whole
            log.next += 1
            yield (message, pack)
            yield from self._drain(log)
            self._note(log, whole, now)
        else:
            self._hold(log, number, message, pack)

    def answered(
        self, gateway: str, answer: PacksPublished, now: int
    ) -> Iterator[tuple[Message, ObservationPack]]:
        """Take in what a gateway says of a stream; yield the packs whose turn it is now."""
        key = (gateway, answer.stream)
        log = self._logs.get(key)
        if log is None or (log.life is not None and answer.life < log.life):
            return
        whole = log.is_whole
        if log.life is None:
            self._begin(key, log, answer)
        elif log.life < answer.life:
            torn = log.next < log.target or any(number < (answer.life, 0) for number in log.held)
            if not log.gone and (torn or log.doubted):
                self._lose(key, log)
            yield from self._release(log, (answer.life, 0))
            log.life, log.begin, log.next, log.target = answer.life, 0, 0, 0
        elif answer.first is not None and log.next < answer.first:
            self._lose(key, log, answer.newest)
            yield from self._release(log, (answer.life, answer.first))
            log.next = answer.first
        log.doubted = log.fresh = log.gone = False
        log.target = max(log.target, answer.next)
        self._drop_forged(log, (answer.life, answer.next))
        yield from self._drain(log)
        if not log.is_whole:
            yield from self._hurry(key, log, answer)
        self.jumps.append((*key, answer.life, log.next))
        self._note(log, whole, now)

    def _begin(self, key: Key, log: _Log, answer: PacksPublished) -> None:
        """Let the first answer say where a log begins."""
        held = min((n for life, n in log.held if life == answer.life), default=answer.next)
        log.life, log.next = answer.life, 0 if log.fresh else min(held, answer.next)
        log.begin = log.next
        if log.doubted and not log.fresh and answer.next:
            self._lose(key, log)

    def _hurry(
        self, key: Key, log: _Log, answer: PacksPublished
    ) -> Iterator[tuple[Message, ObservationPack]]:
        """Ask on at once while packs come; give up those that never do."""
        life = answer.life
        if log.answered_at != (life, log.next):
            log.answered_at, log.fruitless = (life, log.next), 0
            log.ask_at = float("-inf")
            return
        log.fruitless += 1
        if log.fruitless > MAX_FRUITLESS:
            self._lose(key, log, answer.newest)
            log.next = min((n for of, n in log.held if of == life), default=log.target)
            log.fruitless = 0
            yield from self._drain(log)

    def _hold(self, log: _Log, number: _Number, message: Message, pack: ObservationPack) -> None:
        size = len(message.payload)
        if number in log.held:
            return
        if self._held_bytes + size > MAX_HELD_BYTES:
            if log.is_whole:  # else it is asked for already, with the pauses of its questions
                self._doubt(log)
            return
        self.changes += log.is_whole
        log.held[number] = _Held(message, pack)
        self._held_bytes += size

    def _take(self, log: _Log, number: _Number) -> tuple[Message, ObservationPack]:
        held = log.held.pop(number)
        self._held_bytes -= len(held.message.payload)
        return (held.message, held.pack)

    def _drain(self, log: _Log) -> Iterator[tuple[Message, ObservationPack]]:
        """Yield what follows without a hole."""
        while log.life is not None and (log.life, log.next) in log.held:
            log.next += 1
            yield self._take(log, (log.life, log.next - 1))

    def _release(self, log: _Log, below: _Number) -> Iterator[tuple[Message, ObservationPack]]:
        """Yield what is held below a number, although something before it is missing."""
        for number in sorted(number for number in log.held if number < below):
            yield self._take(log, number)

    def _drop_forged(self, log: _Log, end: _Number) -> None:
        for number in [number for number in log.held if number >= end]:
            log.held[number].doubts += 1
            if log.held[number].doubts > MAX_DOUBTS:
                self._take(log, number)

    def _note(self, log: _Log, was_whole: bool, now: int) -> None:
        self.changes += log.is_whole != was_whole
        if log.is_whole:
            log.whole_at = now
            log.ask_at, log.pause = float("-inf"), FIRST_PAUSE

    def _lose(self, key: Key, log: _Log, newest: int | None = None) -> None:
        self.missing.append(Missing(*key, log.whole_at, newest))
        self.changes += 1

    @property
    def _has_room(self) -> bool:
        return len(self._logs) + len(self._streams) < MAX_LOGS

    def _log(self, key: Key) -> _Log:
        log = self._logs.get(key)
        if log is None:
            if len(self._logs) >= MAX_LOGS:
                raise WireError(f"more than {MAX_LOGS} gateways and streams send observations")
            log = self._logs[key] = _Log(self._streams.get(key[1], 0))
        return log

    def _forget(self, key: Key) -> None:
        log = self._logs.pop(key)
        self._held_bytes -= sum(len(held.message.payload) for held in log.held.values())
        self.changes += 1

    # --- what to do -------------------------------------------------------------------------

    def wanted(self, now: float) -> list[tuple[str, PacksWanted]]:
        """Return whom to ask for what now, and count them as asked."""
        due = []
        for key, log in self._open():
            if log.ask_at <= now:
                log.ask_at, log.pause = now + log.pause, min(log.pause * 2, LONGEST_PAUSE)
                log.asked += 1
                due.append((key[0], PacksWanted(key[1], log.life, log.next)))
        return due

    def next_due(self) -> float | None:
        """Return when `wanted` has something to say, or None."""
        return min((log.ask_at for _key, log in self._open()), default=None)

    def _open(self) -> list[tuple[Key, _Log]]:
        """Return the logs to ask for, of gateways that are there: not whole, or unknown."""
        return [
            (key, log)
            for key, log in self._logs.items()
            if self._gateways.get(key[0], False)
            and (not log.is_whole or (log.life is None and log.asked < MAX_FIRST))
        ]

    def is_whole(self, streams: Iterable[str]) -> bool:
        """Whether everything that was published of some streams has come, or is given up."""
        wanted = frozenset(streams)
        return all(log.is_whole for key, log in self._logs.items() if key[1] in wanted)

    def whole_at(self) -> int | None:
        """Return when all logs were last known to be whole, in microseconds; None: no logs."""
        return min((log.whole_at for log in self._logs.values() if not log.gone), default=None)

    def are_whole(self) -> bool:
        """Whether that is so of all streams."""
        return all(log.is_whole for log in self._logs.values())

    def progress(self) -> list[Progress]:
        """Return how far each log has come."""
        return [
            (*key, log.life, log.next - _REMOVED * log.gone)
            for key, log in self._logs.items()
            if log.life is not None
        ]
