"""Asks gateways again for packs that a broker may have lost.

A broker that restarts without its memory, or gave our session up, has lost what it held for us, and
gateways have published to nobody meanwhile. One that was killed and has a session of a minute ago
does not say that it lost the rest. So gateways are asked at each connection. Each keeps its newest
packs for this: the lander asks for those after the last one it had when the connection began. What
comes twice counts once in the lake.
"""

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import msgspec

from streamsql.errors import WireError
from streamsql.wire.bounds import MAX_OBSERVED_BYTES, Count, Epoch
from streamsql.wire.codec import decode_compressed_json, decode_json, encode_json
from streamsql.wire.observation_logs import PacksPublished, PacksWanted
from streamsql.wire.site_messages import SiteRole, SiteState
from streamsql.wire.topics import Topics

log = logging.getLogger(__name__)

ASK_SECONDS = 5.0
MAX_TRIES = 12
MAX_LOGS = 10_000
"""Gateways and streams whose last pack is known."""
AT_ONCE = 500
"""Packs that a gateway sends again for one request."""
MAX_SMALL = 1_000_000
MAX_UNREAD = 16_000
"""Bytes of a pack that is kept as it came until somebody wants its number."""

_Log = tuple[str, str]
"""Gateway and stream."""


class _PackNumber(msgspec.Struct):
    """The part of an `ObservationPack` that numbers it; `life` is None where it is `epoch`."""

    epoch: Epoch
    n: Count | None = None
    life: Epoch | None = None

    @property
    def of_life(self) -> int:
        return self.epoch if self.life is None else self.life


@dataclass(slots=True)
class _Question:
    life: int
    next: int
    is_first: bool
    tries: int = 0
    again_at: float = 0.0


class MissedPacks:
    """Knows the last pack of each stream, and which gateways are still to be asked.

    Args:
        site: Our id.
        topics: Of the federation.

    Attributes:
        lost: Packs that their gateway no longer has, so far.
    """

    def __init__(self, site: str, topics: Topics) -> None:
        self.lost = 0
        self._site = site
        self._topics = topics
        self._last: dict[_Log, bytes | _PackNumber | None] = {}
        # The same as of this connection, or of an earlier one whose question has no answer yet:
        # what is live comes before what is sent again.
        self._before: dict[_Log, bytes | _PackNumber | None] = {}
        self._is_session_kept = False
        self._questions: dict[_Log, _Question] = {}
        self._asked: set[_Log] | None = None

    @property
    def open(self) -> int:
        """Number of streams whose missed packs have not all come."""
        return len(self._questions)

    def landed(self, gateway: str, stream: str, payload: bytes) -> None:
        """Note the newest pack of a stream."""
        key = (gateway, stream)
        if key in self._last or len(self._last) < MAX_LOGS:
            # Most are read never; but ten thousand large ones are not kept for that.
            self._last[key] = payload if len(payload) <= MAX_UNREAD else _number_of(payload)

    def connected(self, *, session_kept: bool, forgotten: Iterable[tuple[str, str, bytes]]) -> None:
        """Ask every gateway that says it is there from now on.

        Args:
            session_kept: What a gateway no longer has may still come from the broker: it is not
                counted as lost.
            forgotten: Gateway, stream and payload of packs that have come and are not landed.
        """
        for key, question in self._questions.items():
            self._before[key] = _before(question.life, question.next)
        self._before = self._last | self._before
        for gateway, stream, payload in forgotten:
            self._take_back((gateway, stream), _number_of(payload))
        self._is_session_kept = session_kept
        self._asked = set()
        self._questions.clear()

    def _take_back(self, key: _Log, pack: _PackNumber | None) -> None:
        """Note that a pack is to be asked for, though it has come."""
        if pack is None or pack.n is None:
            self._before[key] = None
        elif self._next(key, pack.of_life) > pack.n:
            self._before[key] = _before(pack.of_life, pack.n)

    def heard(self, gateway: str, payload: bytes, moment: float) -> None:
        """Take the state of a site.

        Raises:
            WireError: It is none.
        """
        if self._asked is None or not payload:
            return
        state = decode_json(payload, SiteState, limit=MAX_SMALL)
        if state.role != SiteRole.GATEWAY or not state.online:
            return
        for stream in state.sources:
            key = (gateway, stream)
            if key not in self._asked and len(self._asked) < MAX_LOGS:
                self._asked.add(key)
                number = self._next(key, state.epoch)
                is_first = number == 0 or self._is_session_kept
                self._questions[key] = _Question(state.epoch, number, is_first, again_at=moment)

    def requests(self, moment: float) -> Iterator[tuple[str, bytes]]:
        """Yield topics and payloads of the requests that are due."""
        for key, question in list(self._questions.items()):
            if question.again_at > moment:
                continue
            gateway, stream = key
            if question.tries >= MAX_TRIES:
                log.warning("%s does not say which packs of %s were missed", gateway, stream)
                self._settle(key)
                continue
            question.tries += 1
            question.again_at = moment + ASK_SECONDS
            wanted = PacksWanted(stream, question.life, question.next)
            yield self._topics.request(gateway, "packs", self._site), encode_json(wanted)

    def due_in(self, moment: float) -> float | None:
        """Return the seconds until a request is due; None: none will be."""
        times = [question.again_at for question in self._questions.values()]
        return max(min(times) - moment, 0.0) if times else None

    def answered(self, gateway: str, payload: bytes, moment: float) -> None:
        """Take a gateway's answer, which comes after the packs.

        Raises:
            WireError: It is none.
        """
        answer = decode_json(payload, PacksPublished, limit=MAX_SMALL)
        key = (gateway, answer.stream)
        question = self._questions.get(key)
        if question is None:
            return
        if answer.first is None or answer.life != question.life:
            if answer.life == question.life:
                self._settle(key)
                return
            self._questions[key] = _Question(
                answer.life, self._next(key, answer.life), is_first=True, again_at=moment
            )
            return
        if answer.first > question.next and not question.is_first:
            self.lost += answer.first - question.next
            log.warning(
                "%s no longer has packs %d to %d of %s, which the broker has lost",
                *(gateway, question.next, answer.first - 1, answer.stream),
            )
        following = answer.first + AT_ONCE
        if following >= answer.next:
            self._settle(key)
        else:
            self._questions[key] = _Question(
                answer.life, following, is_first=False, again_at=moment
            )

    def _settle(self, key: _Log) -> None:
        del self._questions[key]
        self._before.pop(key, None)

    def _next(self, key: _Log, life: int) -> int:
        """Return the number after the last pack of a stream in one life of its gateway."""
        last = self._before.get(key)
        if isinstance(last, bytes):
            last = _number_of(last)
        if last is None or last.n is None:
            return 0
        return last.n + 1 if last.of_life == life else 0


def _before(life: int, number: int) -> _PackNumber | None:
    """Return what stands for the pack before a number; None: there is none."""
    return _PackNumber(life, number - 1) if number else None


def _number_of(payload: bytes) -> _PackNumber | None:
    try:
        return decode_compressed_json(payload, _PackNumber, limit=MAX_OBSERVED_BYTES)
    except WireError:
        return None
