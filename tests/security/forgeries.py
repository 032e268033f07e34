"""Messages that must change no answer, from a seed.

Those of gateway gw-2 are anything on topics on which the broker lets it publish; it is no party of
the running queries. Those of an insider, whom the broker lets publish anything in anybody's name,
are messages that a receiver can tell from real ones: no message at all, one of an earlier epoch or
of another version, or one that has come before.
"""

import json
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from broker.broker_testing import Received
from streamsql.data.types import DataType, Value
from streamsql.wire.alarm_messages import AlarmChange
from streamsql.wire.fill_messages import FillColumn, FillRows, FillWanted
from streamsql.wire.fragments import FragmentBundle
from streamsql.wire.messages import (
    Command,
    DeadLetter,
    DeltaBatch,
    FlowReport,
    LinkMessage,
    ObservationPack,
    QueryProblem,
    TableSet,
    WeightedRow,
)
from streamsql.wire.observation_logs import Interest, PacksPublished, PacksWanted
from streamsql.wire.site_messages import Birth, SiteFlows, SiteRole, SiteState, SourceCount
from streamsql.wire.site_settings import ReportRequest, SiteSettings
from streamsql.wire.source_orders import SourceOrder
from streamsql.wire.stored_tables.table_changes import TableChanged
from streamsql.wire.topics import PREFIX
from tests.hostile.payloads import HostilePayloads
from tests.security.broker_rights import stated_by_method
from tests.security.house import ATTACKER

Message = tuple[str, bytes]

KINDS: dict[str, tuple[Any, ...]] = {
    "state": (SiteState,),
    "birth": (Birth,),
    "observation": (ObservationPack,),
    "history": (ObservationPack,),
    "last": (ObservationPack,),
    "link": (LinkMessage,),
    "command": (Command,),
    "request": (Command, PacksWanted, PacksPublished),
    "settings": (SiteSettings,),
    "clock": (Command,),
    "response": (TableChanged,),
    "dead": (DeadLetter,),
    "host_state": (SiteState,),
    "tables": (TableSet,),
    "reports": (ReportRequest,),
    "alarms": (AlarmChange,),
    "fill_request": (FillWanted,),
    "fill": (FillRows,),
    "interest": (Interest,),
    "source": (SourceOrder,),
    "fragment": (FragmentBundle,),
    "exchange": (DeltaBatch,),
    "output": (DeltaBatch,),
    "flow": (SiteFlows,),
    "columns": (SourceCount,),
    "error": (QueryProblem,),
}
"""Messages on the topics of each method of `Topics`."""
PACKED = {FragmentBundle, DeltaBatch, SiteFlows, SourceCount, TableChanged, FillWanted, FillRows}
NOT_READ = ("observation", "history")
"""Messages of gw-2 itself, whose readings would be part of answers if it said the truth."""

LARGE = 100_000
JSON_NONSENSE = (
    b"{",
    b"[" * 20_000,
    b'{"a":' * 5_000,
    b"[" + b"0," * 50_000 + b"0]",
    b"\xff\xfe",
    b'"\\ud800',
    b"1e999",
    b"null",
    b"x" * LARGE,
)
PACKED_NONSENSE = (
    b"\xc1",
    b"\x91" * 20_000,
    b"\xdd\xff\xff\xff\xff",
    b"\xdc\xff\xff" + b"\x00" * 65_535,
    b"\xc0",
    b"\x93\x01",
    b"\x00" * LARGE,
    b"\xcf" + b"\xff" * 8,
)


def legal_messages(query: str) -> dict[Any, tuple[Any, ...]]:
    """Return messages that gw-2 might send as a site that is no party of a query."""
    row = WeightedRow(("m0", "r1", 99), 1)
    state = SiteState(True, 3, 1_700_000_000_000_000)
    numbers: dict[str, Value] = {"version": 1, "watermark": 2**60, "port f0": 2**60}
    return {
        SiteState: (state, *(msgspec.structs.replace(state, role=role) for role in SiteRole)),
        Birth: tuple(Birth(ATTACKER, 3, 0, 1, role=role, rooms=("r1",)) for role in SiteRole),
        LinkMessage: (LinkMessage("a", "b", 1.0),),
        Command: (
            Command("c1", query, ATTACKER, numbers),
            Command("c1", query, "base", numbers),
            Command("c1", query, "out", numbers),
        ),
        PacksWanted: (PacksWanted("readings", 1, 1),),
        PacksPublished: (PacksPublished("readings", 1, 1, 4),),
        DeltaBatch: tuple(
            DeltaBatch(version, epoch, 0, port, (row,), reset=reset)
            for version in (1, 2)
            for epoch in (1, 2)
            for port in ("f0", "f1", "out")
            for reset in (False, True)
        ),
        SiteFlows: (SiteFlows({query: FlowReport(1, 1, {}, {"base": 9})}),),
        SourceCount: tuple(
            SourceCount(count, count, count, {}, source="seatsensor") for count in (0, 1, 2**40)
        ),
        QueryProblem: (QueryProblem("deployment_error", "forged", "", 1, ATTACKER),),
        TableChanged: (TableChanged("i1"),),
        FillWanted: tuple(
            FillWanted("fill1", query, "room", (FillColumn("rid", DataType.TEXT),), gateway, 0)
            for gateway in ("", "gw-1", ATTACKER)
        ),
        FillRows: (FillRows("fill1", done=True), FillRows("fill1", problem="forged")),
    }


class Forgeries:
    """A stream of messages.

    Args:
        federation: Its name.
        queries: Ids of those that run.
        recorded: Real messages, of which copies are made.
        seed: Equal seeds give equal messages.
    """

    def __init__(
        self, federation: str, queries: Sequence[str], recorded: Sequence[Received], seed: int
    ) -> None:
        self._random = random.Random(seed)
        self._recorded = list(recorded)
        self._root = f"{PREFIX}/{federation}/"
        words = (*queries, "f0", "f1", "out", "gw-1", "base", "coordinator", "static", "room")
        topics = stated_by_method(
            federation, query=(*queries, "q9"), stream=("readings", "sys_stream", "x")
        )
        self._own = [
            (method, each.topic)
            for method, stated in topics.items()
            for each in stated
            if ATTACKER in each.write
        ]
        # Not those of dead letters: they are counted.
        anybodys = ((m, each.topic) for m, stated in topics.items() for each in stated)
        self._anybodys = [(method, topic) for method, topic in anybodys if method != "dead"]
        self._makers = self._makers_of(words, queries[0], seed)

    @staticmethod
    def _makers_of(
        words: tuple[str, ...], query: str, seed: int
    ) -> dict[str, list[Iterator[bytes]]]:
        legal = legal_messages(query)

        def endless(kind: Any) -> Iterator[bytes]:
            made = HostilePayloads(
                kind, seed, packed=kind in PACKED, legal=legal.get(kind, ()), words=words
            )
            while True:
                yield from made.payloads(1_000)

        return {method: [endless(kind) for kind in kinds] for method, kinds in KINDS.items()}

    def of_gateway(self, number: int) -> Iterator[Message]:
        """Yield messages of gw-2 on topics on which it may publish."""
        rng = self._random
        for _ in range(number):
            method, topic = rng.choice(self._own)
            match rng.randrange(10):
                case 0:
                    yield topic, rng.randbytes(rng.choice((0, 1, 20, 300)))
                case 1 | 2 if self._recorded and method not in NOT_READ:
                    yield topic, rng.choice(self._similar(topic)).payload
                case 3 if self._recorded and method not in NOT_READ:
                    yield topic, self._mutated(rng.choice(self._similar(topic)).payload)
                case 4:
                    yield topic, rng.choice(JSON_NONSENSE + PACKED_NONSENSE)
                case _:
                    yield topic, next(rng.choice(self._makers[method]))

    def _similar(self, topic: str) -> list[Received]:
        """Return what was recorded on topics of that kind; anything if there is nothing."""
        kind = _kind(topic, self._root)
        return [m for m in self._recorded if _kind(m.topic, self._root) == kind] or self._recorded

    def refused(self, number: int) -> Iterator[Message]:
        """Yield messages of gw-2 on topics on which the broker must not let it publish."""
        own = {topic for _, topic in self._own}
        others = [(method, topic) for method, topic in self._anybodys if topic not in own]
        rng = self._random
        for _ in range(number):
            method, topic = rng.choice(others)
            if self._recorded and rng.random() < 0.5:
                message = rng.choice(self._recorded)
                if message.topic not in own:
                    yield message.topic, message.payload
                    continue
            yield topic, next(rng.choice(self._makers[method]))

    def of_insider(self, number: int) -> Iterator[Message]:
        """Yield messages in anybody's name that their receivers can tell from real ones."""
        rng = self._random
        makers: tuple[Callable[[], Message | None], ...] = (
            self._no_message,
            self._no_message,
            self._repeated,
            self._cut,
            self._outdated,
        )
        count = 0
        while count < number:
            made = rng.choice(makers)()
            if made is not None:
                count += 1
                yield made

    def _no_message(self) -> Message:
        rng = self._random
        method, topic = rng.choice(self._anybodys)
        packed = KINDS[method][0] in PACKED
        if rng.random() < 0.3:
            return topic, (b"\xc1" if packed else b"\xff") + rng.randbytes(rng.randint(0, 200))
        return topic, rng.choice(PACKED_NONSENSE if packed else JSON_NONSENSE)

    def _repeated(self) -> Message | None:
        """Return a message of a channel as it was: its number in the sequence has come before."""
        message = self._random.choice(self._recorded)
        return message.topic, message.payload

    def _cut(self) -> Message | None:
        message = self._random.choice(self._recorded)
        # A gateway that cannot read a definition serves the source no more, and says why.
        if len(message.payload) < 2 or message.topic.startswith(f"{self._root}source/"):
            return None
        return message.topic, message.payload[: self._random.randrange(1, len(message.payload))]

    def _outdated(self) -> Message | None:
        """Return a real message of an earlier epoch, or for another version of the query."""
        rng, message = self._random, self._random.choice(self._recorded)
        levels = message.topic.removeprefix(self._root).split("/")
        match levels:
            case ["q", _, "x" | "out", *_]:
                batch = msgspec.msgpack.decode(message.payload)
                batch[0], batch[1] = rng.choice(
                    ((batch[0], max(0, batch[1] - 1)), (0, batch[1]), (batch[0] + 7, batch[1]))
                )
                if batch[1] == msgspec.msgpack.decode(message.payload)[1] and batch[0] == 1:
                    return None
                return message.topic, msgspec.msgpack.encode(batch)
            case ["gw" | "host", _, "state" | "birth"]:
                said = json.loads(message.payload)
                if not said["epoch"]:
                    return None
                said["epoch"] -= 1
                if "online" in said:
                    said["online"] = rng.random() < 0.5
                return message.topic, json.dumps(said).encode()
            case _:
                return None

    def _mutated(self, payload: bytes) -> bytes:
        rng, content = self._random, bytearray(payload)
        for _ in range(rng.randint(1, 4)):
            if content:
                content[rng.randrange(len(content))] = rng.randrange(256)
        return bytes(content)


def _kind(topic: str, root: str) -> tuple[str, str]:
    levels = topic.removeprefix(root).split("/")
    return levels[0], levels[2] if len(levels) > 2 else ""
