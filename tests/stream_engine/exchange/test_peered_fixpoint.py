"""Lives of a recursion among peers, with an operator that only records what it is told."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from stream_engine.exchange import peered_fixpoint
from stream_engine.exchange.peered_fixpoint import LIVES, PeeredFixpoint, address
from stream_engine.recursion.absorption.recursion_outbox import Parcels
from stream_engine.recursion.program.fixpoint_options import FixpointCounters
from streamsql.algebra.operators import Plan, RemoteSource
from streamsql.data.delta import Delta
from streamsql.data.schema import Schema
from streamsql.data.types import Row
from streamsql.errors import DeploymentError, WireError
from streamsql.wire.bounds import MAX_PAYLOAD_BYTES
from streamsql.wire.codec import encode_packed
from streamsql.wire.messages import AnnotatedRow

LEAF = RemoteSource("f0", Schema.of())


@dataclass(frozen=True)
class Message:
    site: str
    port: str
    annotated: tuple[AnnotatedRow, ...] = ()
    kills: tuple[int, ...] = ()


@dataclass
class Recorder:
    """A recursion whose view is its leaf, and that ships its leaf rows to every peer."""

    life: int
    peers: tuple[str, ...]
    leaves: tuple[Plan, ...] = (LEAF,)
    view: Delta = field(default_factory=dict)
    received: list[tuple[str, str]] = field(default_factory=list)
    killed: list[tuple[str, int]] = field(default_factory=list)
    pending: list[Message] = field(default_factory=list)
    counters: FixpointCounters = field(default_factory=FixpointCounters)

    def apply(self, port: int, delta: Delta) -> None:
        assert port == 0
        self.view.update(delta)
        rows = tuple(AnnotatedRow(row, b"") for row in delta)
        self.pending.extend(Message(peer, "rows", rows) for peer in self.peers if rows)

    @property
    def description(self) -> str:
        return "recorded"

    @property
    def is_settled(self) -> bool:
        return not self.view

    def settle(self, rounds: int | None = None) -> Delta:  # noqa: ARG002  (the protocol has it)
        view, self.view = self.view, {}
        return view

    def receive(
        self, sender: str, port: str, annotated: Sequence[AnnotatedRow], kills: Sequence[int]
    ) -> None:
        assert annotated == ()
        assert kills == ()
        self.received.append((sender, port))

    def drain(self) -> list[Message]:
        pending, self.pending = self.pending, []
        return pending

    def kill_site(self, site: str, epoch: int) -> None:
        self.killed.append((site, epoch))

    def state_rows(self) -> list[Row]:
        return list(self.view)


class Case:
    def __init__(self, epoch: int = 1) -> None:
        self.made: list[Recorder] = []
        self.fixpoint = PeeredFixpoint(
            self._make, site="base", sites=("gw-1", "base", "gw-2"), epoch=epoch
        )
        self.fixpoint.settle()
        self.fixpoint.drain()

    def _make(self, life: int) -> Recorder:
        self.made.append(Recorder(life, ("gw-1", "gw-2")))
        return self.made[-1]

    @property
    def current(self) -> Recorder:
        return self.made[-1]

    def hear(self, sender: str, life: int, port: str = "rows") -> None:
        self.fixpoint.receive(sender, f"{life}/{port}", (), ())


def test_the_first_life_tells_itself_and_forgets_its_forerunners() -> None:
    case = Case(epoch=3)
    assert case.current.life == 3 * LIVES
    assert case.current.killed == [("base", 3 * LIVES - 1)]
    assert [address(m) for m in case.fixpoint.replay("gw-1")] == [f"{3 * LIVES}/"]


def test_a_fixpoint_that_comes_back_goes_on_with_the_next_life() -> None:
    case = Case(epoch=3)
    assert case.fixpoint.lives == 1
    again = PeeredFixpoint(
        case._make, site="base", sites=("base", "gw-1"), epoch=3, first_life=case.fixpoint.lives
    )
    assert again.lives == 2
    assert case.current.life == 3 * LIVES + 1
    assert case.current.killed == [("base", 3 * LIVES)]
    with pytest.raises(DeploymentError, match="used up its"):
        PeeredFixpoint(case._make, site="base", sites=(), epoch=3, first_life=LIVES)


def test_messages_are_replayed_in_fewer() -> None:
    case = Case()
    for name in ("a", "b"):
        case.fixpoint.apply(0, {(name,): 1})
        case.fixpoint.settle()
        sent = case.fixpoint.drain()
        assert [message.site for message in sent] == ["gw-1", "gw-2"]
    hello, rows = case.fixpoint.replay("gw-2")
    assert (hello.port, hello.annotated) == ("", ())
    assert [row.row for row in rows.annotated] == [("a",), ("b",)]


def test_a_later_life_of_a_peer_kills_its_earlier_ones() -> None:
    case = Case()
    case.hear("gw-1", 7)
    case.hear("gw-1", 7)
    case.hear("gw-1", 9)
    case.hear("gw-1", 8)  # late: dropped
    assert case.current.killed[1:] == [("gw-1", 6), ("gw-1", 8)]
    assert len(case.current.received) == 3


def test_a_hello_is_not_for_the_operator() -> None:
    case = Case()
    case.hear("gw-1", 7, port="")
    assert case.current.received == []
    assert case.current.killed[1:] == [("gw-1", 6)]


def test_a_lost_peer_is_killed_up_to_its_epoch() -> None:
    case = Case()
    case.fixpoint.lose("gw-1", None)  # never heard, no epoch: nothing to tell apart
    case.fixpoint.lose("elsewhere", 1)
    assert case.current.killed[1:] == []
    case.fixpoint.lose("gw-1", 1)
    assert case.current.killed[1:] == [("gw-1", 2 * LIVES - 1)]
    case.hear("gw-1", 2 * LIVES)
    case.fixpoint.settle()
    assert len(case.made) == 1  # it came back in a later life: nothing to repair


def test_a_peer_back_in_the_same_life_makes_a_new_one_here() -> None:
    case = Case()
    case.fixpoint.apply(0, {("a",): 1})
    assert case.fixpoint.settle() == {("a",): 1}
    case.fixpoint.drain()
    case.hear("gw-1", LIVES)
    case.fixpoint.lose("gw-1", 1)
    case.hear("gw-1", LIVES)
    assert case.fixpoint.settle() == {}  # the same view again: nothing changed
    assert [recorder.life for recorder in case.made] == [LIVES, LIVES + 1]
    assert list(case.fixpoint.replays_wanted) == ["gw-1", "gw-2"]
    assert ("base", LIVES) in case.current.killed
    sent = [(message.site, address(message)) for message in case.fixpoint.drain()]
    life = LIVES + 1
    assert sent == [
        ("gw-1", f"{life}/"),
        ("gw-2", f"{life}/"),
        ("gw-1", f"{life}/rows"),
        ("gw-2", f"{life}/rows"),
    ]


def test_too_much_to_remember_makes_a_new_life(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peered_fixpoint, "REPLAY_ROWS", 10)
    case = Case()
    for number in range(12):
        case.fixpoint.apply(0, {("a",): 1 if number % 2 == 0 else -1})
        case.fixpoint.settle()
        case.fixpoint.drain()
    assert len(case.made) > 1
    assert sum(len(m.annotated) for m in case.fixpoint.replay("gw-1")) <= 10


def test_lives_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peered_fixpoint, "LIVES", 2)
    case = Case()
    for _ in range(2):
        case.hear("gw-1", 2)
        case.fixpoint.lose("gw-1", 1)
        case.hear("gw-1", 2)
        if len(case.made) == 1:
            case.fixpoint.settle()
    with pytest.raises(DeploymentError, match="used up its 2 restarts"):
        case.fixpoint.settle()


@pytest.mark.parametrize("port", ["rows", "x/rows", "-1/rows", "9" * 30 + "/rows"])
def test_malformed_ports_are_refused(port: str) -> None:
    with pytest.raises(WireError, match="is not an incarnation and a port of a recursion"):
        Case().fixpoint.receive("gw-1", port, (), ())


def test_strangers_are_refused() -> None:
    with pytest.raises(WireError, match="takes no part"):
        Case().hear("gw-9", 1)


def test_messages_of_long_rows_stay_small() -> None:
    """The text of rows counts, not only their annotations."""
    rows: list[Row] = [(f"{number}" + "x" * 100_000,) for number in range(30)]
    parcels = Parcels()
    for row in rows:
        parcels.add("gw-1", "rows", row, b"")
    case = Case()
    case.fixpoint.apply(0, dict.fromkeys(rows, 1))
    case.fixpoint.settle()
    case.fixpoint.drain()
    for messages in (parcels.drain(), case.fixpoint.replay("gw-1")):
        sizes = [len(encode_packed(message.annotated)) for message in messages]
        assert max(sizes) < MAX_PAYLOAD_BYTES / 4
        assert sorted(r.row for m in messages for r in m.annotated) == sorted(rows)
