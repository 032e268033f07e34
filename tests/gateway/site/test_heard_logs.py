"""Whatever the network loses: each pack counts once and in order, or is named as missing."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.buffer.published_packs import PublishedPacks
from gateway.site import heard_logs
from gateway.site.heard_logs import HeardLogs, Missing
from host.mqtt import Message
from streamsql.wire.messages import ObservationPack
from streamsql.wire.observation_logs import PacksPublished, PacksWanted

STREAM = "seat"
Sending = ObservationPack | PacksPublished | int
"""What is under way; a number is the state of a gateway of that life."""
Sent = tuple[int, int, int]
"""Life, number, moment."""


class World:
    """A gateway, a base site, and what is under way between them."""

    def __init__(self, seed: int = 0, *, in_order: bool = True) -> None:
        self.random = random.Random(seed)
        self.in_order = in_order
        self.logs = HeardLogs()
        self.now = 1
        self.connected = True
        self.under_way: list[Sending] = []
        self.published: list[Sent] = []
        self.counted: list[tuple[int, int]] = []
        self.missing: list[Missing] = []
        self.packs: dict[tuple[int, int], ObservationPack] = {}
        self.asked = 0
        self.gateway = PublishedPacks(1)
        self.logs.want([STREAM], self.now)
        self.logs.heard("gw", 1, online=True)
        self.may_lose = False
        self.ask()
        self.deliver()

    def publish(self) -> None:
        life, number = self.gateway.life, self.gateway.next(STREAM)
        pack = self.packs[life, number] = ObservationPack(life, number, (), n=number)
        self.gateway.add(STREAM, f"{life} {number}", b"x" * 100)
        self.published.append((life, number, self.now))
        self._send(pack)

    def restart(self) -> None:
        heard = self.connected and not self.under_way and self.logs.are_whole()
        self.may_lose |= not heard
        self.gateway = PublishedPacks(self.gateway.life + 1)
        self._send(self.gateway.life)
        if heard:
            self.deliver()

    def forget(self) -> None:
        """Let the gateway keep no more than its newest pack."""
        self.may_lose = True
        self.gateway._max_bytes = 100
        self.publish()
        self.gateway._max_bytes = 1_000_000

    def cut(self) -> None:
        if self.connected:
            self.connected = False
            self.under_way.clear()
            self.logs.cut_off()

    def reconnect(self) -> None:
        if not self.connected:
            self.connected = True
            self._send(self.gateway.life)

    def ask(self) -> None:
        for _gateway, wanted in self.logs.wanted(float(self.now)) if self.connected else ():
            self.asked += 1
            self._answer(wanted)

    def _answer(self, wanted: PacksWanted) -> None:
        is_same = wanted.life == self.gateway.life
        again = self.gateway.since(STREAM, wanted.next) if is_same else ()
        for _number, topic, _payload in again:
            life, number = map(int, topic.split())
            self._send(self.packs[life, number])
        following = self.gateway.next(STREAM)
        first = again[0][0] if again else following
        self._send(PacksPublished(STREAM, self.gateway.life, first if is_same else None, following))

    def _send(self, message: Sending) -> None:
        if self.connected:
            self.under_way.append(message)

    def deliver(self, most: int = 1_000) -> None:
        for _ in range(min(most, len(self.under_way))):
            place = 0 if self.in_order else self.random.randrange(min(3, len(self.under_way)))
            self.hear(self.under_way.pop(place))

    def hear(self, message: Sending) -> None:
        if isinstance(message, int):
            self.logs.heard("gw", message, online=True)
            return
        if isinstance(message, PacksPublished):
            due = self.logs.answered("gw", message, self.now)
        else:
            content = Message("t", b"x" * 100)
            due = self.logs.arrived("gw", content, STREAM, message, self.now)
        for _message, pack in due:
            assert pack.n is not None
            self.counted.append((pack.epoch, pack.n))
        self.missing += self.logs.missing
        self.logs.missing.clear()

    def settle(self) -> None:
        """Let time pass until nothing is asked any more."""
        self.reconnect()
        self._send(self.gateway.life)
        for _ in range(60):
            self.now += 11
            self.ask()
            self.deliver()
        assert self.logs.are_whole()

    def check(self) -> None:
        """What the base site claims to have it has, or has said that it lacks it."""
        if not self.connected or self.under_way or not self.logs.are_whole():
            return
        counted = set(self.counted)
        for life, number, moment in self.published:
            lost = any(missing.since <= moment for missing in self.missing)
            assert (life, number) in counted or lost, (life, number)


ACTIONS = st.lists(
    st.sampled_from(
        [
            *["publish"] * 4,
            *["deliver"] * 2,
            *("cut", "reconnect", "ask", "restart", "forget"),
            *("pass", "state"),
        ]
    ),
    max_size=40,
)


@given(ACTIONS, st.integers(0, 9), st.booleans())
def test_what_is_whole_lacks_nothing_that_is_not_named(
    actions: list[str], seed: int, in_order: bool
) -> None:
    world = World(seed, in_order=in_order)
    for action in actions:
        world.now += 1
        if action == "deliver":
            world.deliver(world.random.randint(1, 5))
        elif action == "pass":
            world.now += 10
        elif action == "state":
            world._send(world.gateway.life)
        else:
            getattr(world, action)()
        world.check()
    world.settle()
    world.check()
    first = [pack for place, pack in enumerate(world.counted) if pack not in world.counted[:place]]
    assert first == sorted(first), "in the order in which they were published"
    if not world.may_lose:
        assert world.missing == [], "what the gateway keeps is not lost"
        assert len(first) == len(world.published)


def test_a_hole_is_seen_with_the_next_pack_and_filled_before_it_counts() -> None:
    world = World()
    world.publish()
    world.deliver()
    world.publish()
    world.under_way.clear()
    world.publish()
    world.deliver()
    assert world.counted == [(1, 0)]
    assert not world.logs.is_whole([STREAM])
    assert world.logs.is_whole(["other"])
    world.ask()
    world.deliver()
    assert world.counted == [(1, 0), (1, 1), (1, 2), (1, 2)][: len(world.counted)]
    assert set(world.counted) == {(1, 0), (1, 1), (1, 2)}
    assert world.logs.is_whole([STREAM])


def test_the_last_pack_is_missed_too_after_a_cut() -> None:
    world = World()
    world.cut()
    world.publish()
    world.reconnect()
    assert not world.logs.are_whole()
    world.ask()
    world.deliver()
    assert world.counted == [(1, 0)]
    assert world.logs.are_whole()


def test_a_gateway_that_is_heard_first_after_a_cut_is_read_from_its_beginning() -> None:
    world = World()
    world.cut()
    world.logs = HeardLogs()
    world.logs.want([STREAM], 1)
    world.logs.cut_off()
    for _ in range(3):
        world.publish()
    world.settle()
    assert world.counted == [(1, 0), (1, 1), (1, 2)]
    assert world.missing == []


def test_a_gateway_that_was_removed_and_comes_back_counts_nothing_twice() -> None:
    world = World()
    world.publish()
    world.publish()
    world.deliver()
    world.logs.removed("gw")
    assert world.logs.are_whole()
    assert world.logs.wanted(1e9) == []
    world.cut()
    assert world.logs.silent() == {"gw"}
    world.publish()
    world.settle()
    assert world.counted == [(1, 0), (1, 1), (1, 2)]
    assert world.missing == []


def test_a_restored_site_owes_nothing_of_a_gateway_that_was_removed() -> None:
    world = World()
    world.publish()
    world.deliver()
    world.logs.removed("gw")
    progress, jumps = world.logs.progress(), world.logs.jumps
    assert progress == jumps[-1:]
    world.logs = HeardLogs()
    world.logs.want([STREAM], 50)
    world.logs.restore([("gw", STREAM)], progress, 7)
    assert world.logs.are_whole()
    assert world.logs.progress() == progress
    world.logs.removed("gw")
    assert world.logs.missing == []
    world.publish()
    world.settle()
    assert world.counted == [(1, 0), (1, 1)]


def test_a_gateway_that_is_removed_while_it_owes_something_leaves_a_gap() -> None:
    world = World()
    world.cut()
    world.publish()
    world.logs.removed("gw")
    assert [(lost.gateway, lost.stream) for lost in world.logs.missing] == [("gw", STREAM)]
    assert world.logs.are_whole()


def test_forged_numbers_hold_nothing_up_for_long() -> None:
    world = World()
    world.publish()
    world.deliver()
    world.hear(ObservationPack(1, 9, (), n=10**15))
    world.hear(ObservationPack(2**52, 9, (), n=3))
    assert not world.logs.are_whole()
    world.settle()
    world.publish()
    world.deliver()
    assert world.counted == [(1, 0), (1, 1)]
    assert world.missing == []


def test_what_never_comes_although_it_is_sent_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    world.publish()
    world.under_way.clear()
    world.publish()
    world.deliver()
    hear = world.hear

    def without_first(message: Sending) -> None:
        if not (isinstance(message, ObservationPack) and message.n == 0):
            hear(message)

    monkeypatch.setattr(world, "hear", without_first)
    world.settle()
    assert world.counted == [(1, 1)]
    assert len(world.missing) == 1


def test_packs_that_wait_for_their_turn_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heard_logs, "MAX_HELD_BYTES", 500)
    world = World()
    world.publish()
    world.under_way.clear()
    for _ in range(20):
        world.publish()
    world.deliver()
    assert world.logs._held_bytes == 500
    world.settle()
    assert len(set(world.counted)) == 21
    assert world.logs._held_bytes == 0


def test_a_pack_that_finds_no_room_to_wait_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heard_logs, "MAX_HELD_BYTES", 0)  # as if another gateway had filled it
    world = World()
    assert world.logs.are_whole()
    world.publish()
    world.under_way.clear()
    world.publish()
    world.deliver()
    assert not world.logs.are_whole()
    world.settle()
    assert len(set(world.counted)) == 2
    assert world.logs.are_whole()


def test_a_gateway_that_does_not_answer_is_asked_less_and_less() -> None:
    logs = HeardLogs()
    logs.want([STREAM], 0)
    logs.heard("gw", 1, online=True)
    assert sum(len(logs.wanted(float(now))) for now in range(1_000)) == heard_logs.MAX_FIRST
    assert logs.next_due() is None
    logs.cut_off()
    assert 90 < sum(len(logs.wanted(float(now))) for now in range(1_000, 2_000)) < 110
    logs.heard("gw", 1, online=False)
    assert logs.wanted(3_000.0) == []


def test_a_restored_site_goes_on_where_it_was() -> None:
    world = World()
    world.publish()
    world.publish()
    world.deliver()
    progress = world.logs.progress()
    assert progress == [("gw", STREAM, 1, 2)]
    world.publish()
    world.under_way.clear()
    world.logs = HeardLogs()
    world.logs.want([STREAM], 50)
    world.logs.restore([("gw", STREAM)], [("gw", STREAM, 1, 1), *progress], 7)
    assert not world.logs.are_whole()
    world.settle()
    assert world.counted == [(1, 0), (1, 1), (1, 2)]
    assert world.missing == []


def test_a_restored_site_that_does_not_know_how_far_it_was_counts_nothing_twice() -> None:
    world = World()
    for _ in range(3):
        world.publish()
    world.deliver()
    world.logs = HeardLogs()
    world.logs.want([STREAM], 50)
    world.logs.restore([("gw", STREAM)], [], 7)
    world.settle()
    assert world.counted == [(1, 0), (1, 1), (1, 2)]
    assert world.missing == [Missing("gw", STREAM, 7)]
