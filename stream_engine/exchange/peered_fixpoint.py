"""A recursion computed by several sites together, kept correct when messages or sites are lost.

Provenance makes the messages of a fixpoint idempotent: a derivation sent twice is absorbed, one
that rests on dead tokens is dropped. So a lost message is repaired by sending everything again.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from stream_engine.operators.rows.operator import (
    RecursiveMessage,
    RecursiveOperator,
    ReplayableRecursion,
    TimedRecursion,
    WorkCounters,
)
from stream_engine.provenance.parts import MAX_ROWS, parts_of
from streamsql.algebra.operators import Plan
from streamsql.data.delta import Delta, accumulate, difference
from streamsql.data.types import Row
from streamsql.errors import DeploymentError, WireError
from streamsql.wire.messages import AnnotatedRow

LIVES = 4096
"""Max incarnations of a recursion within one epoch of its site."""

REPLAY_ROWS = 200_000
"""Rows and kills that may be logged whatever the size of the view; then more than four times the
live rows begins a new incarnation."""

_BYTES_A_ROW = 32
"""Annotations longer than this stand for several rows."""

_HELLO = ""
"""The port of a message that only reports an incarnation."""


@dataclass(frozen=True, slots=True)
class PeerMessage:
    """A message of this site's recursion to a peer; its tokens carry `life` as their epoch."""

    site: str
    life: int
    port: str
    annotated: tuple[AnnotatedRow, ...]
    kills: tuple[int, ...]


class PeeredFixpoint:
    """A fixpoint operator at one of several sites, restarted when it must be.

    A *life* is one incarnation: an operator instance. Tokens carry its number, which grows, so a
    peer that sees a later life declares dead what rests on earlier ones. On request an operator
    sends a peer the messages that its state implies; where it cannot, all messages of a life are
    logged per peer and replayed. A new life begins when the log has grown too large, and when a
    peer that was given up comes back in the same life: its tokens were permanently declared dead,
    which this site has to undo. A new life ingests the leaf rows of this site again, asks the peers
    for their messages, and emits its view as the difference to the last.

    State: next to the operator's, the leaf rows, the view, and perhaps the messages of this life.

    Args:
        make: Returns an empty operator whose tokens carry the given life.
        site: This site.
        sites: All sites that compute the recursion.
        epoch: Of this site.
        first_life: Lives that peers may know already from this epoch, of a fixpoint that was taken
            away here and has come back; their tokens must not be used again.

    Raises:
        DeploymentError: All lives are used up.
    """

    def __init__(
        self,
        make: Callable[[int], RecursiveOperator],
        *,
        site: str,
        sites: Iterable[str],
        epoch: int,
        first_life: int = 0,
    ) -> None:
        self.peers = tuple(peer for peer in sites if peer != site)
        self.replays_wanted: dict[str, None] = {}
        self._make = make
        self._site = site
        self._last_life = epoch * LIVES + LIVES - 1
        self._first_life = epoch * LIVES
        self._life = self._first_life + first_life
        self._check_lives()
        self._lives: dict[str, int] = {}
        self._lost: dict[str, int] = {}
        self._log: dict[str, _Log] = {}
        self._log_size = 0
        self._view: Delta = {}
        self._outdated = False
        self._newborn = True
        self._now: int | None = None
        self._operator = self._born()
        self._contents: tuple[Delta, ...] = tuple({} for _ in self._operator.leaves)

    @property
    def leaves(self) -> tuple[Plan, ...]:
        """The subplans the recursion reads."""
        return self._operator.leaves

    @property
    def description(self) -> str:
        """How it is maintained, for EXPLAIN ANALYZE."""
        return self._operator.description

    @property
    def counters(self) -> WorkCounters:
        """Work done in the present life."""
        return self._operator.counters

    @property
    def lives(self) -> int:
        """How many lives there were in this epoch, with the present one."""
        return self._life + 1 - self._first_life

    def apply(self, port: int, delta: Delta) -> None:
        """Buffer the change of a leaf."""
        accumulate(self._contents[port], delta)
        self._operator.apply(port, delta)

    def receive(
        self, sender: str, port: str, annotated: Sequence[AnnotatedRow], kills: Sequence[int]
    ) -> None:
        """Buffer a message; `port` is "<life>/<port>" as `address` writes it.

        Raises:
            WireError: The sender is no peer, or the port is malformed.
        """
        life, inner = _parsed(port)
        if sender not in self.peers:
            raise WireError(f"site {sender} takes no part in this recursion")
        known = self._lives.get(sender)
        if known is not None and life < known:
            return
        if life != known:
            # Its earlier lives may be known from others' messages even if it never wrote before.
            self._lives[sender] = life
            self._operator.kill_site(sender, life - 1)
        bound = self._lost.pop(sender, None)
        if bound is not None and life <= bound:
            self._outdated = True
        if inner != _HELLO:
            self._operator.receive(sender, inner, annotated, kills)

    def lose(self, sender: str, epoch: int | None) -> None:
        """Declare dead what rests on the base rows of a site, if it is a peer.

        Without its `epoch` only a life that has written to this site can be declared dead.
        """
        known = self._lives.get(sender)
        bound = known if epoch is None else epoch * LIVES + LIVES - 1
        if sender not in self.peers or bound is None or (known is not None and bound < known):
            return
        self._lost[sender] = bound
        self._operator.kill_site(sender, bound)

    @property
    def is_settled(self) -> bool:
        """Whether `settle` has no messages of other sites to apply."""
        return not self._outdated and self._operator.is_settled

    def advance(self, now: int) -> None:
        """Set the time, also for later lives."""
        self._now = now
        if isinstance(self._operator, TimedRecursion):
            self._operator.advance(now)

    def next_wakeup(self) -> int | None:
        """Return when `settle` would send something without input, or None."""
        if isinstance(self._operator, TimedRecursion):
            return self._operator.next_wakeup()
        return None

    def settle(self, rounds: int | None = None) -> Delta:
        """Run to local quiescence, in a new life if there must be one; return the view's change.

        Raises:
            RecursionLimitError: The view grew past its limit.
            DeploymentError: All lives are used up.
        """
        live = len(self._view) + sum(map(len, self._contents))
        if self._outdated or self._log_size > max(REPLAY_ROWS, 4 * live * len(self.peers)):
            self._reincarnate()
        delta = self._operator.settle(rounds)
        if self._newborn:
            delta = difference(delta, self._view)
        accumulate(self._view, delta)
        return delta

    def drain(self) -> list[PeerMessage]:
        """Return the messages to send; log them for replays if need be."""
        messages = [self._message(message) for message in self._operator.drain()]
        if self._newborn:
            self._newborn = False
            messages = [self._hello(peer) for peer in self.peers] + messages
        if isinstance(self._operator, ReplayableRecursion):
            return messages
        for message in messages:
            log = self._log.get(message.site)
            if log is None:
                log = self._log[message.site] = _Log()
            log.add(message)
            self._log_size += _size(message)
        return messages

    def replay(self, site: str) -> list[PeerMessage]:
        """Return messages to a peer that repeat all of this life; never none."""
        if isinstance(self._operator, ReplayableRecursion):
            told = [self._message(message) for message in self._operator.replay(site)]
            return [self._hello(site), *told]
        log = self._log.get(site)
        return [self._hello(site)] if log is None else list(log.messages(site, self._life))

    def kill_site(self, site: str, epoch: int) -> None:
        """Declare dead what rests on a site's base rows of this life and earlier ones."""
        self._operator.kill_site(site, epoch)

    def state_rows(self) -> Iterable[Row]:
        """Return the rows of the view at this site."""
        return self._operator.state_rows()

    def _message(self, message: RecursiveMessage) -> PeerMessage:
        return PeerMessage(message.site, self._life, message.port, message.annotated, message.kills)

    def _hello(self, peer: str) -> PeerMessage:
        """Return the message that reports this life to a peer."""
        return PeerMessage(peer, self._life, _HELLO, (), ())

    def _born(self) -> RecursiveOperator:
        """Return an operator that knows which tokens are permanently dead."""
        operator = self._make(self._life)
        operator.kill_site(self._site, self._life - 1)
        for peer, life in self._lives.items():
            operator.kill_site(peer, life - 1)
        for peer, bound in self._lost.items():
            operator.kill_site(peer, bound)
        if self._now is not None and isinstance(operator, TimedRecursion):
            operator.advance(self._now)
        return operator

    def _reincarnate(self) -> None:
        self._life += 1
        self._check_lives()
        self._log, self._log_size = {}, 0
        self._operator = self._born()
        for port, contents in enumerate(self._contents):
            self._operator.apply(port, contents)
        self._outdated, self._newborn = False, True
        self.replays_wanted = dict.fromkeys(self.peers)

    def _check_lives(self) -> None:
        if self._life > self._last_life:
            raise DeploymentError(
                f"a recursion at site {self._site} has used up its {LIVES} restarts",
                hint="restart the site: a new epoch allows as many again",
            )


def _size(message: PeerMessage) -> int:
    """Return the size of a message for the bound: about the rows in it, packed or not."""
    rows = sum(1 + len(row.annotation) // _BYTES_A_ROW for row in message.annotated)
    return rows + len(message.kills)


class _Log:
    """The messages to one peer in one life, by port.

    They are idempotent and dead tokens stay dead, so a replay may be fewer, larger messages in any
    order.
    """

    def __init__(self) -> None:
        self._rows: dict[str, list[AnnotatedRow]] = {}
        self._kills: list[int] = []
        self._kill_port = _HELLO

    def add(self, message: PeerMessage) -> None:
        """Log a message."""
        if message.annotated:
            self._rows.setdefault(message.port, []).extend(message.annotated)
        if message.kills:
            self._kills.extend(message.kills)
            self._kill_port = message.port

    def messages(self, site: str, life: int) -> Iterator[PeerMessage]:
        """Yield all messages again, in bounded size."""
        yield PeerMessage(site, life, _HELLO, (), ())
        for port, rows in self._rows.items():
            for part in parts_of(rows):
                yield PeerMessage(site, life, port, part, ())
        for start in range(0, len(self._kills), MAX_ROWS):
            kills = tuple(self._kills[start : start + MAX_ROWS])
            yield PeerMessage(site, life, self._kill_port, (), kills)


def address(message: PeerMessage) -> str:
    """Return life and port as they travel.

    Examples:
        >>> address(PeerMessage("base", 256, "rows", (), ()))
        '256/rows'
    """
    return f"{message.life}/{message.port}"


def _parsed(port: str) -> tuple[int, str]:
    life, slash, inner = port.partition("/")
    if not slash or not life.isdecimal() or len(life) > 20:
        raise WireError(f"{port!r:.80} is not an incarnation and a port of a recursion")
    return (int(life), inner)
