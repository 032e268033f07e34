"""What a gateway sends again is bounded, in order, and complete when it says so."""

from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from gateway.buffer.published_packs import MAX_AHEAD, PublishedPacks
from gateway.observations import pack_answers
from gateway.observations.pack_answers import PackAnswers
from host.mqtt import QueueFull
from streamsql.wire.codec import decode_json
from streamsql.wire.observation_logs import PacksPublished, PacksWanted
from streamsql.wire.topics import Topics

TOPICS = Topics("demo")
LIFE = 3


@dataclass
class Queue:
    """A client whose broker acknowledges nothing."""

    room: int = 1_000
    waiting: int = 0
    sent: list[tuple[str, bytes]] = field(default_factory=list)

    def publish(self, topic: str, payload: bytes, **_options: Any) -> None:
        if len(self.sent) >= self.room:
            raise QueueFull("full")
        self.sent.append((topic, payload))

    def pending(self) -> int:
        return self.waiting


class World:
    def __init__(self, packs: int = 4) -> None:
        self.queue = Queue()
        self.published = PublishedPacks(LIFE)
        for number in range(packs):
            self.published.add("cars", "obs", str(number).encode())
        client = cast("Any", self.queue)
        self.answers = PackAnswers("gw-1", client, TOPICS, self.published)

    def ask(
        self, number: int, now: float = 0.0, asker: str = "base", *, is_known: bool = True
    ) -> list[object]:
        """Ask; return what is sent: packs by number, and the answer."""
        self.queue.sent.clear()
        self.answers.answer(asker, PacksWanted("cars", LIFE, number), now, is_known=is_known)
        return [
            int(payload) if topic == "obs" else decode_json(payload, PacksPublished)
            for topic, payload in self.queue.sent
        ]


def test_the_answer_follows_the_packs() -> None:
    assert World().ask(2) == [2, 3, PacksPublished("cars", LIFE, 2, 4)]


def test_the_same_packs_are_not_sent_again_while_they_are_under_way() -> None:
    world = World()
    world.ask(1)
    assert world.ask(1, now=1.0) == []
    assert world.ask(0, now=2.0) == []
    assert len(world.ask(1, now=2.0, asker="base-2")) == 4
    assert len(world.ask(2, now=2.5)) == 3, "who has got on is not kept waiting"
    assert len(world.ask(2, now=2.5 + pack_answers.RESEND_SECONDS)) == 3


def test_all_who_are_not_known_get_the_same_packs_once_in_a_while() -> None:
    world = World()
    assert len(world.ask(1, asker="lander", is_known=False)) == 4
    assert world.ask(1, now=1.0, asker="lander-2", is_known=False) == []
    assert len(world.ask(1, now=1.0, asker="base")) == 4
    later = 1.0 + pack_answers.RESEND_SECONDS
    assert len(world.ask(1, now=later, asker="lander-2", is_known=False)) == 4


def test_nothing_is_sent_again_while_much_waits_for_the_broker() -> None:
    world = World()
    world.queue.waiting = MAX_AHEAD + 1
    assert world.ask(1) == []
    assert world.ask(4) == [PacksPublished("cars", LIFE, 4, 4)], "nothing has to be sent"
    world.queue.waiting = 0
    assert len(world.ask(1)) == 4


def test_no_answer_overtakes_packs_that_the_queue_refuses() -> None:
    world = World()
    world.queue.room = 2
    assert world.ask(0) == [0, 1]
    world.queue.room = 1_000
    assert len(world.ask(0)) == 5, "asked again, it sends them all"


def test_askers_are_remembered_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pack_answers, "MAX_ASKERS", 2)
    world = World()
    for asker in "abc":
        world.ask(1, asker=asker)
    assert len(world.answers._resent) == 2
    assert world.ask(1, asker="c") == []


def test_askers_whose_packs_find_no_room_are_not_remembered() -> None:
    world = World()
    world.queue.room = 0
    for number in range(pack_answers.MAX_ASKERS + 10):
        assert world.ask(0, asker=f"base-{number}") == []
    assert world.answers._resent == {}
    world.queue.room = 1_000
    assert world.ask(0, asker="base-3") == [0, 1, 2, 3, PacksPublished("cars", LIFE, 0, 4)]
    assert len(world.answers._resent) == 1
