"""A run of forged messages against the processes of a federation whose answers are known."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from broker.broker_testing import ConnectionClosed, RawClient, Received
from tests.broker.laws.secured import FEDERATION, NOT_AUTHORIZED
from tests.end_to_end.federation import wait
from tests.security.forgeries import Forgeries, Message
from tests.security.house import ATTACKER, INSIDER, MORE_MEMORY, House
from tests.security.wire_attempts import UNDER_WAY, published

ROUND = 300
"""Messages of each kind of attacker between two looks at the answers."""
LETTERS_PER_SERVICE = 1_000
LARGEST_LETTER = 20_000
REFUSED = 0x80
TOO_LARGE = b"x" * (8_388_608 + 1)


@dataclass
class Forged:
    """Counts of a run."""

    by_gateway: int = 0
    refused: int = 0
    by_insider: int = 0
    rounds: int = 0
    letters: dict[str, int] = field(default_factory=dict)
    memory: dict[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def messages(self) -> int:
        """All messages that were sent."""
        return self.by_gateway + self.refused + self.by_insider

    def figures(self) -> dict[str, Any]:
        """Return the counts as they are published."""
        return {
            "messages": self.messages,
            "of_a_gateway": self.by_gateway,
            "refused_by_the_broker": self.refused,
            "in_anybodys_name": self.by_insider,
            "answers_compared": self.rounds,
            "dead_letters": self.letters,
            "megabytes_before_and_after": {
                name: [round(size / 1e6, 1) for size in sizes]
                for name, sizes in self.memory.items()
            },
        }


def recorded(house: House) -> list[Received]:
    """Return real messages: those that are retained, and those of a few readings."""
    with house.client(INSIDER) as client:
        client.subscribe((f"pando/v1/{FEDERATION}/#", 1))
        found: list[Received] = []

        def everything() -> bool:
            house.feed(3)
            found.extend(client.sync())
            kinds = {m.topic.split("/")[5] for m in found if not m.retain and "/q/" in m.topic}
            return {"x", "out"} <= kinds

        wait(everything, explain=house.said)
    ours = (message for message in found if "/link/" not in message.topic)
    return [message for message in ours if message.payload]


def retained(house: House) -> set[str]:
    """Return the topics with a retained message, those of the attacking gateway aside."""
    with house.client(INSIDER) as client:
        client.subscribe((f"pando/v1/{FEDERATION}/#", 1))
        kept = {message.topic for message in client.sync() if message.retain and message.payload}
    # Last values of sensors are retained from time to time.
    return {t for t in kept if f"/{ATTACKER}/" not in f"{t}/" and "/last/" not in t}


def forge(house: House, messages: int, seed: int) -> Forged:
    """Send so many messages; after each round the answers are those of what was read.

    Raises:
        AssertionError: They are not, or something ended, grew, failed or was written.
    """
    run = Forged()
    queries = [each["id"] for each in house.http.get("/api/queries").json()]
    forgeries = Forgeries(FEDERATION, queries, recorded(house), seed)
    known, kept, files = house.known(), retained(house), house.contents()
    letters: list[Received] = []
    with house.client(ATTACKER) as gateway, house.client(INSIDER) as insider:
        insider.subscribe((f"pando/v1/{FEDERATION}/dead/+", 1))
        while run.messages < messages:
            run.by_gateway += send(gateway, forgeries.of_gateway(ROUND), retain=run.rounds % 3 == 0)
            run.refused += send_refused(gateway, forgeries.refused(ROUND // 3))
            run.by_insider += send(insider, forgeries.of_insider(ROUND))
            house.feed(2)
            wait(house.answers_are_right, explain=house.said)
            run.rounds += 1
            letters += insider.sync()
    _too_large(house)
    house.feed(2)
    wait(house.answers_are_right, explain=house.said)
    for service, size in house.resident().items():
        run.memory[service] = (house.memory[service], size)
        assert size - house.memory[service] < MORE_MEMORY, (service, run.memory)
    for letter in letters:
        sender = letter.topic.rpartition("/")[2]
        if sender != ATTACKER:
            assert len(letter.payload) < LARGEST_LETTER, letter.payload[:300]
            run.letters[sender] = run.letters.get(sender, 0) + 1
    assert max(run.letters.values()) <= LETTERS_PER_SERVICE, run.letters
    more = retained(house) - kept
    assert not more, f"these are retained, too: {sorted(more)}"
    sites = set(house.known().pop("/api/sites")) - {ATTACKER}
    assert {**house.known(), "/api/sites": sorted(sites)} == known
    assert house.contents() == files
    for name in house.processes:
        log = (house.folder / f"{name}.log").read_text("utf-8", "replace")
        assert "Traceback" not in log, log[log.index("Traceback") - 1_000 :][:4_000]
    return run


def _batches(messages: Iterator[Message]) -> Iterator[list[Message]]:
    while batch := list(islice(messages, UNDER_WAY)):
        yield batch


def send(client: RawClient, messages: Iterator[Message], *, retain: bool = False) -> int:
    """Publish messages that the broker lets pass; return how many."""
    count = 0
    for batch in _batches(messages):
        codes = published(client, batch, retain=retain)
        assert NOT_AUTHORIZED not in codes, batch[codes.index(NOT_AUTHORIZED)][0]
        count += len(batch)
    return count


def send_refused(client: RawClient, messages: Iterator[Message]) -> int:
    """Publish messages that the broker must refuse; return how many."""
    count = 0
    for batch in _batches(messages):
        codes = published(client, batch)
        passed = [
            topic for (topic, _), code in zip(batch, codes, strict=True) if code != NOT_AUTHORIZED
        ]
        assert passed == []
        count += len(batch)
    return count


def _too_large(house: House) -> None:
    """Publish a message that is larger than the broker takes; it hangs up or refuses."""
    with house.client(ATTACKER) as gateway:
        topic = f"pando/v1/{FEDERATION}/gw/{ATTACKER}/state"
        with contextlib.suppress(OSError, ConnectionClosed):
            assert gateway.publish(topic, TOO_LARGE) >= REFUSED
