"""Windows begin with what the lake has: every reading once, whenever a query or a site begins."""

import random
from collections.abc import Iterable
from typing import Any, cast

import pytest

from federated_optimizer import Topology
from federated_optimizer import plan as place
from gateway.observations.observation_reader import PACK
from gateway.site import window_fills
from gateway.site.window_fills import FILL, WindowFills
from host.mqtt import Message, MessageClient
from stream_engine.snapshot.recorded_site import RecordedSite
from streamsql.algebra.operators import Plan
from streamsql.algebra.window_reach import reaches_of
from streamsql.binder import bind_query
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.delta import Delta
from streamsql.data.events import SourceEvent
from streamsql.data.types import Row
from streamsql.reference import evaluate
from streamsql.reference.reference_database import Database
from streamsql.syntax import Query, parse_statement
from streamsql.wire.channel_protocol import ReceivingChannel
from streamsql.wire.codec import decode_packed, encode_packed
from streamsql.wire.fill_messages import Cut, FillRow, FillRows, FillWanted, PackName
from streamsql.wire.fragments import FragmentBundle
from streamsql.wire.messages import QueryProblem
from streamsql.wire.topics import Topics
from tests.docs.markdown import ROOT
from tests.streamsql.from_text import catalog_of

SECOND = 1_000_000
START = 1_000 * SECOND
TOPICS = Topics("demo")
CATALOG = catalog_of("CREATE SOURCE noise (room TEXT, level INTEGER)")
QUERIES = (
    "SELECT room, COUNT(*) AS n, SUM(level) AS total FROM noise [RANGE 5 MINUTES] GROUP BY room",
    "SELECT room, level FROM noise [PARTITION BY room ROWS 3]",
    "SELECT a.room, b.level FROM noise [RANGE 30 SECONDS] AS a JOIN noise [ROWS 4] AS b "
    "ON a.room = b.room AND a.level = b.level",
)


def definition(catalog: Catalog = CATALOG) -> SourceDefinition:
    found = catalog.find("noise")
    assert isinstance(found, SourceDefinition)
    return found


def planned(text: str, site: str, catalog: Catalog = CATALOG) -> tuple[Plan, FragmentBundle]:
    statement = parse_statement(text)
    assert isinstance(statement, Query)
    bound = bind_query(statement, catalog)
    topology = Topology({site: frozenset({"noise"})}, bases=(site,))
    found = place(bound, topology, query="q", text=text)
    fills = {"fills": ("noise",)}
    return bound.plan, FragmentBundle(
        **{name: getattr(found, name) for name in found.__struct_fields__} | fills
    )


class Lake:
    """Packs that were landed, and answers from them, a few rows at a time."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.landed: dict[PackName, list[SourceEvent]] = {}

    def answer(self, wanted: FillWanted) -> FillRows:
        missing = sum(pack not in self.landed for pack in wanted.awaited)
        if missing:
            return FillRows(wanted.id, missing=missing)
        rows = sorted(
            ((event.ts, *pack, place), event)
            for pack, events in self.landed.items()
            for place, event in enumerate(events)
            if wanted.gateway in ("", pack[0]) and event.ts >= wanted.since
        )
        rest = [row for row in rows if wanted.after is None or row[0] > tuple(wanted.after)]
        sent = rest[: self.chance.randrange(1, 9)]
        packs = tuple(dict.fromkeys(cursor[1:4] for cursor, _event in sent))
        return FillRows(
            wanted.id,
            packs,
            tuple(FillRow(packs.index(c[1:4]), e.ts, e.row, e.delete) for c, e in sent),
            sent[-1][0] if sent else wanted.after,
            done=len(sent) == len(rest),
            expected=len(rows),
        )


class Published:
    """A client that keeps what is published."""

    def __init__(self) -> None:
        self.connected = True
        self.payloads: list[bytes] = []

    def publish(self, topic: str, payload: bytes) -> None:
        assert topic.startswith("pando/v1/demo/host/static/fill/")
        self.payloads.append(payload)


class World:
    """A site with its queries, publishing or reading packs, and a lake that lags."""

    def __init__(
        self, seed: int, *, is_base: bool, catalog: Catalog = CATALOG, lake: type[Lake] = Lake
    ) -> None:
        self.chance = random.Random(seed)
        self.is_base = is_base
        self.scan = definition(catalog).scan()
        self.lake = lake(self.chance)
        self.site = "base" if is_base else "gw-1"
        self.client = Published()
        self.journal: list[bytes] = []
        self.snapshot: bytes | None = None
        self.host: object = None
        self.now = START
        self.moment = 0.0
        self.epoch = 1
        self.numbers: dict[str, int] = {}
        self.unlanded: list[tuple[PackName, list[SourceEvent]]] = []
        self.every: list[SourceEvent] = []
        self.said: list[QueryProblem | None] = []
        self.seen: list[PackName] = []
        self.wanted: list[FillWanted] = []
        self.begin()

    def begin(self) -> None:
        self.engine = RecordedSite(self.site, self.epoch, self.journal.append)
        self.engine.declare(self.scan)
        self.fills = WindowFills(
            self.engine,
            cast("MessageClient", self.client),
            TOPICS,
            lambda: self.now,
            is_base=self.is_base,
        )
        self.fills.cut = self.cut
        self.fills.say = lambda _query, problem: self.said.append(problem)

    def restart(self) -> None:
        """Crash, and come back with what was on disk."""
        self.epoch += 1
        self.begin()
        restored = self.engine.restore(self.snapshot, list(self.journal), self.now)
        before = cast("list[tuple[Any, ...]]", restored.host or [])
        self.fills.resume(before, restored.notes, restored.unsaved, self.moment)

    def save(self) -> None:
        if self.engine.is_at_rest:
            self.snapshot = self.engine.snapshot(self.fills.to_remember())
            self.journal.clear()

    def cut(self, _source: str) -> Cut:
        number = self.numbers.get(f"gw-1/{self.epoch}", 0)
        recent = tuple(pack for pack, _events in self.unlanded)
        return Cut(self.epoch, number, recent, 0)

    def read(self) -> None:
        """A pack of readings, which the site gets at once, and the lake later."""
        gateway = self.chance.choice(("gw-1", "gw-2")) if self.is_base else "gw-1"
        epoch = 1 if self.is_base else self.epoch
        number = self.numbers.get(f"{gateway}/{epoch}", 0)
        self.numbers[f"{gateway}/{epoch}"] = number + 1
        pack = (gateway, epoch, number)
        events = []
        for _ in range(self.chance.randrange(1, 4)):
            ts = self.now - self.chance.choice((0, 0, 3, 40)) * SECOND
            row: Row = (self.chance.choice("abc"), self.chance.randrange(4))
            events.append(SourceEvent(row if self.scan.time_column is None else (*row, ts), ts))
        self.every += events
        self.unlanded.append((pack, events))
        if self.is_base:
            self.fills.heard("noise", pack)
        self.engine.take_in(
            {"noise": events},
            (PACK, (pack[0], "noise", *pack[1:])),
            gateway if self.is_base else "",
        )

    def land(self, *, everything: bool = False) -> None:
        count = len(self.unlanded) if everything else self.chance.randrange(len(self.unlanded) + 1)
        for pack, events in self.unlanded[:count]:
            self.lake.landed[pack] = events
        del self.unlanded[:count]

    def exchange(self) -> None:
        """Let the site ask and the lake answer, perhaps."""
        self.fills.ask(self.moment)
        for message in self.asked():
            wanted = decode_packed(message, FillWanted)
            self.wanted.append(wanted)
            if self.chance.random() < 0.8:
                payload = encode_packed(self.lake.answer(wanted))
                for _ in range(self.chance.choice((1, 1, 2))):  # answers may come twice
                    self.fills.take(Message(TOPICS.fill(self.site), payload), self.moment)

    def asked(self) -> list[bytes]:
        payloads, self.client.payloads = self.client.payloads, []
        return payloads

    def go_on(self) -> None:
        """Read, land, save and crash for a while; then let the windows become full."""
        chance = self.chance
        for _ in range(80):
            if chance.random() < 0.6:
                self.read()
            self.tick(chance.random() * 2)
            self.land()
            self.exchange()
            if chance.random() < 0.7:
                self.engine.step(self.now)
            if chance.random() < 0.15:
                self.save()
            if chance.random() < 0.08:
                self.restart()
        self.land(everything=True)
        for _ in range(400):
            if not self.fills.to_remember():
                break
            self.tick(1.0)
            self.exchange()

    def tick(self, seconds: float) -> None:
        self.now += int(seconds * SECOND)
        self.moment += seconds


def shown(engine: RecordedSite, now: int) -> Delta:
    """Return the query's result."""
    channel = ReceivingChannel(version=1)
    engine.resync("q", "")
    for _ in range(3):
        for sent in engine.step(now).outgoing:
            if sent.destination:
                engine.receive("q", engine.site, sent.batch)
            else:
                channel.accept(sent.batch)
    total: Delta = {}
    for rows in channel.contents.values():
        for row, weight in rows.items():
            total[row] = total.get(row, 0) + weight
    return {row: weight for row, weight in total.items() if weight}


def expected(plan: Plan, events: Iterable[SourceEvent], now: int) -> Delta:
    database = Database()
    for event in events:
        database.append("noise", [event], clock=event.ts)
    return evaluate(plan, database, now)


@pytest.mark.parametrize("text", QUERIES)
@pytest.mark.parametrize("is_base", [False, True], ids=["gateway", "base"])
def test_every_reading_is_in_a_window_once(
    text: str, is_base: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(window_fills, "SETTLE_SECONDS", 30.0)
    for seed in range(25):
        world = World(seed, is_base=is_base)
        chance = world.chance
        plan, bundle = planned(text, world.site)
        for _ in range(chance.randrange(40)):
            world.read()
            world.tick(chance.random() * 3)
            if chance.random() < 0.5:
                world.engine.step(world.now)
            world.land()
        world.engine.step(world.now)
        world.fills.begin(bundle, world.moment)
        world.engine.install(bundle)
        if is_base:  # what was published before it listened is landed soon
            world.engine.step(world.now)
            world.land(everything=True)
        world.go_on()
        assert not world.fills.to_remember(), seed
        assert shown(world.engine, world.now) == expected(plan, world.every, world.now), seed


def test_while_the_static_engine_is_away_the_query_says_so_and_is_filled_later() -> None:
    world = World(1, is_base=False)
    plan, bundle = planned(QUERIES[0], world.site)
    for _ in range(5):
        world.read()
        world.engine.step(world.now)
    world.land(everything=True)
    world.fills.begin(bundle, world.moment)
    world.engine.install(bundle)
    assert world.fills.is_filling("q", world.moment)
    for _ in range(100):
        world.tick(1.0)
        world.fills.ask(world.moment)
    assert not world.fills.is_filling("q", world.moment)
    assert world.said[-1] is not None
    assert "the static engine does not answer" in world.said[-1].message
    assert len(world.asked()) < 20  # ever more seldom
    for _ in range(200):
        world.tick(1.0)
        world.exchange()
    assert world.said[-1] is None
    assert shown(world.engine, world.now) == expected(plan, world.every, world.now)


def test_how_soon_a_window_at_a_base_site_is_full_is_documented() -> None:
    page = (ROOT / "docs" / "data.md").read_text(encoding="utf-8")
    assert f"is full after {window_fills.SETTLE_SECONDS:g} s at the earliest" in page


def test_a_query_that_is_stopped_asks_no_more() -> None:
    world = World(1, is_base=False)
    _plan, bundle = planned(QUERIES[0], world.site)
    world.fills.begin(bundle, world.moment)
    world.engine.install(bundle)
    world.fills.drop("q")
    world.tick(100.0)
    world.fills.ask(world.moment)
    assert world.asked() == []
    assert world.fills.next_due() is None


def test_only_windows_over_sources_without_rows_of_their_own_are_filled() -> None:
    catalog = catalog_of(
        "CREATE SOURCE noise (room TEXT, level INTEGER);"
        "CREATE SOURCE heat (device TEXT, level INTEGER, KEY (device));"
        "CREATE SOURCE seen (tag TEXT) WITH (ttl = '7 s')"
    )
    text = (
        "SELECT n.room FROM noise [RANGE 7 DAYS] AS n JOIN heat [RANGE 1 DAYS] AS h "
        "ON h.device = n.room JOIN seen AS s ON s.tag = n.room"
    )
    statement = parse_statement(text)
    assert isinstance(statement, Query)
    topology = Topology({"gw-1": frozenset({"noise", "heat", "seen"})}, bases=("base",))
    placed = place(bind_query(statement, catalog), topology, query="q", text=text)
    (reach,) = reaches_of(placed.fragments)
    assert (reach.source, reach.back) == ("noise", 7 * 86_400 * SECOND)


def test_notes_of_fillings_are_plain() -> None:
    world = World(1, is_base=False)
    _plan, bundle = planned(QUERIES[0], world.site)
    world.fills.begin(bundle, world.moment)
    world.engine.install(bundle)
    world.restart()
    (kept,) = world.fills.to_remember()
    assert kept[:3] == ("q", 1, "noise")
    assert FILL == "fill"


def test_a_window_of_too_many_rows_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window_fills, "MAX_FILLED", 10)
    world = World(1, is_base=False)
    _plan, bundle = planned(QUERIES[0], world.site)
    for _ in range(60):
        world.read()
    world.engine.step(world.now)
    world.land(everything=True)
    world.fills.begin(bundle, world.moment)
    world.engine.install(bundle)
    for _ in range(60):
        world.tick(1.0)
        world.exchange()
    assert world.fills.to_remember() == []
    assert world.said[-1] is not None
    assert "more than 10 rows here" in world.said[-1].message


def test_a_source_that_is_not_kept_is_not_waited_for() -> None:
    world = World(1, is_base=True)
    _plan, bundle = planned(QUERIES[0], world.site)
    world.fills.begin(bundle, world.moment)
    world.engine.install(bundle)
    world.fills.ask(world.moment)
    (asked,) = world.asked()
    answer = FillRows(decode_packed(asked, FillWanted).id, done=True, kept=False)
    world.fills.take(Message(TOPICS.fill("base"), encode_packed(answer)), world.moment)
    assert not world.fills.is_filling("q", world.moment)
