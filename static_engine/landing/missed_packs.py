"""Asks gateways again for packs that a broker has lost with our session.

A broker that restarts without its memory, or gave our session up, has lost what it held for us, and
gateways have published to nobody meanwhile. Each gateway keeps its newest packs for this: the
lander asks for those after the last one it has. What comes twice counts once in the lake.
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from streamsql.errors import WireError
from streamsql.wire.bounds import Count, Epoch
from streamsql.wire.codec import decode_json, encode_json
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

    def session_lost(self) -> None:
        """Ask every gateway that says it is there from now on."""
        self._asked = set()
        self._questions.clear()

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
                self._questions[key] = _Question(state.epoch, number, number == 0, again_at=moment)

    def requests(self, moment: float) -> Iterator[tuple[str, bytes]]:
        """Yield topics and payloads of the requests that are due."""
        for key, question in list(self._questions.items()):
            if question.again_at > moment:
                continue
            gateway, stream = key
            if question.tries >= MAX_TRIES:
                log.warning("%s does not say which packs of %s were missed", gateway, stream)
                del self._questions[key]
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
                del self._questions[key]
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
            del self._questions[key]
        else:
            self._questions[key] = _Question(
                answer.life, following, is_first=False, again_at=moment
            )

    def _next(self, key: _Log, life: int) -> int:
        """Return the number after the last pack of a stream in one life of its gateway."""
        last = self._last.get(key)
        if isinstance(last, bytes):
            last = _number_of(last)
        if last is None or last.n is None:
            return 0
        is_of_life = (last.epoch if last.life is None else last.life) == life
        return last.n + 1 if is_of_life else 0


def _number_of(payload: bytes) -> _PackNumber | None:
    try:
        return decode_json(payload, _PackNumber, limit=len(payload))
    except WireError:
        return None
