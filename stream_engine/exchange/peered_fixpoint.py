"""A recursion computed by several sites together, kept correct when messages or sites are lost.

Provenance makes the messages of a fixpoint idempotent: a derivation sent twice is absorbed, one
that rests on dead tokens is dropped. So a lost message is repaired by sending everything again.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from stream_engine.operators.operator import RecursiveMessage, RecursiveOperator
from streamsql.algebra.operators import Plan
from streamsql.data.delta import Delta, accumulate, difference
from streamsql.data.types import Row
from streamsql.errors import DeploymentError, WireError
from streamsql.wire.messages import AnnotatedRow

LIVES = 4096
"""Lives a recursion may have within one epoch of its site."""

REPLAY_ROWS = 200_000
"""Rows and kills that may be remembered whatever the size of the view; more than four times what
is alive begins a new life."""

_HELLO = ""
"""The port of a message that only tells a life."""


@dataclass(frozen=True, slots=True)
class PeerMessage:
    """A message of this site's recursion to a peer.

    Attributes:
        life: Of the sending recursion; its tokens carry it as their epoch.
    """

    site: str
    life: int
    port: str
    annotated: tuple[AnnotatedRow, ...]
    kills: tuple[int, ...]


class PeeredFixpoint:
    """A fixpoint operator at one of several sites, started again when it must be.

    A *life* is one operator instance. Tokens carry its number, which grows, so a peer that sees a
    later life declares dead what rests on earlier ones. All messages of a life are remembered per
    peer and replayed on request. A new life begins when what is remembered has grown too large,
    and when a peer that was given up comes back in the same life: its tokens were declared dead
    for good, so this site has to forget that it did. A new life takes in the leaf rows of this site
    again, asks the peers for their messages, and gives out its view as the difference to the last.

    State: beside the operator's, the leaf rows, the view, and the messages of this life.
    """

    def __init__(
        self,
        make: Callable[[int], RecursiveOperator],
        *,
        site: str,
        sites: Iterable[str],
        epoch: int,
    ) -> None:
        """Begin the first life.

        Args:
            make: Returns an empty operator whose tokens carry the given life.
            site: This site.
            sites: All sites that compute the recursion.
            epoch: Of this site.
        """
        self.peers = tuple(peer for peer in sites if peer != site)
        self.replays_wanted: dict[str, None] = {}
        self._make = make
        self._site = site
        self._last_life = epoch * LIVES + LIVES - 1
        self._life = epoch * LIVES
        self._lives: dict[str, int] = {}
        self._lost: dict[str, None] = {}
        self._log: dict[str, list[PeerMessage]] = {}
        self._log_size = 0
        self._view: Delta = {}
        self._outdated = False
        self._newborn = True
        self._operator = self._born()
        self._contents: tuple[Delta, ...] = tuple({} for _ in self._operator.leaves)

    @property
    def leaves(self) -> tuple[Plan, ...]:
        """The subplans the recursion reads."""
        return self._operator.leaves

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
        self._lives[sender] = life
        if known is not None and life > known:
            self._operator.kill_site(sender, life - 1)
        elif sender in self._lost:
            self._outdated = True
        self._lost.pop(sender, None)
        if inner != _HELLO:
            self._operator.receive(sender, inner, annotated, kills)

    def lose(self, sender: str) -> None:
        """Declare dead what rests on a peer's base rows."""
        known = self._lives.get(sender)
        if known is not None and sender not in self._lost:
            self._lost[sender] = None
            self._operator.kill_site(sender, known)

    def settle(self) -> Delta:
        """Run to local quiescence, in a new life if there must be one; return the view's change.

        Raises:
            RecursionLimitError: The view grew past its limit.
            DeploymentError: All lives are used up.
        """
        live = len(self._view) + sum(map(len, self._contents))
        if self._outdated or self._log_size > max(REPLAY_ROWS, 4 * live * len(self.peers)):
            self._reincarnate()
        delta = self._operator.settle()
        if self._newborn:
            delta = difference(delta, self._view)
        accumulate(self._view, delta)
        return delta

    def drain(self) -> list[PeerMessage]:
        """Return what has to be sent; remember it for replays."""
        messages = [self._message(message) for message in self._operator.drain()]
        if self._newborn:
            self._newborn = False
            messages = [self._hello(peer) for peer in self.peers] + messages
        for message in messages:
            self._log.setdefault(message.site, []).append(message)
            self._log_size += len(message.annotated) + len(message.kills)
        return messages

    def replay(self, site: str) -> list[PeerMessage]:
        """Return all messages of this life to a peer, in order; never none."""
        return list(self._log.get(site, ())) or [self._hello(site)]

    def kill_site(self, site: str, epoch: int) -> None:
        """Declare dead what rests on a site's base rows of this life and earlier ones."""
        self._operator.kill_site(site, epoch)

    def state_rows(self) -> Iterable[Row]:
        """Return the rows of the view at this site."""
        return self._operator.state_rows()

    def _message(self, message: RecursiveMessage) -> PeerMessage:
        return PeerMessage(message.site, self._life, message.port, message.annotated, message.kills)

    def _hello(self, peer: str) -> PeerMessage:
        """Return the message that tells a peer this life, whatever else there is to send."""
        return PeerMessage(peer, self._life, _HELLO, (), ())

    def _born(self) -> RecursiveOperator:
        """Return an operator that knows which tokens are dead for good."""
        operator = self._make(self._life)
        operator.kill_site(self._site, self._life - 1)
        for peer, life in self._lives.items():
            operator.kill_site(peer, life if peer in self._lost else life - 1)
        return operator

    def _reincarnate(self) -> None:
        if self._life == self._last_life:
            raise DeploymentError(
                f"a recursion at site {self._site} has used up its {LIVES} lives",
                hint="restart the site: a new epoch has as many again",
            )
        self._life += 1
        self._log, self._log_size = {}, 0
        self._operator = self._born()
        for port, contents in enumerate(self._contents):
            self._operator.apply(port, contents)
        self._outdated, self._newborn = False, True
        self.replays_wanted = dict.fromkeys(self.peers)


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
        raise WireError(f"{port!r:.80} is not a life and a port of a recursion")
    return (int(life), inner)
