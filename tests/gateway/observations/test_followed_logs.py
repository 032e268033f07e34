"""Whatever the network loses: each pack counts once and in order, or is named as missing."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.buffer.published_packs import PublishedPacks
from gateway.intake.validation import MAX_FUTURE
from gateway.observations import followed_logs, pack_log, unrecoverable_packs
from gateway.observations.followed_logs import FollowedLogs
from gateway.observations.unrecoverable_packs import Cause, Missing
from host.mqtt import Message
from streamsql.wire.codec import decode_json, encode_json
from streamsql.wire.messages import ObservationPack
from streamsql.wire.observation_logs import PacksPublished, PacksWanted

STREAM = "seat"
SECOND = 1_000_000


class State:
    """What a gateway says of itself, or the broker in its place."""

    def __init__(self, world: "World", *, online: bool) -> None:
        self.life, self.started = world.gateway.life, world.started
        self.online, self.at = online, world.moment
        self.streams = world.streams
        self.retained = False


Sending = ObservationPack | PacksPublished | State


class World:
    """A gateway, a base site, a broker that keeps one state, and what is under way between them.

    Times count seconds; the gateway's clock is that of the base site.
    """

    def __init__(self, seed: int = 0, *, in_order: bool = True) -> None:
        self.random = random.Random(seed)
        self.in_order = self.knows_since = in_order
        self.logs = FollowedLogs()
        self.now = self.started = 100
        self.connected = self.is_up = True
        self.answers = True
        self.streams: tuple[str, ...] = (STREAM,)
        self.under_way: list[Sending] = []
        self.published: list[tuple[int, int, int]] = []
        self.counted: list[tuple[int, int]] = []
        self.missing: list[Missing] = []
        self.packs: dict[tuple[int, int], ObservationPack] = {}
        self.asked = 0
        self.away_since: int | None = None
        self.gateway = PublishedPacks(1)
        self.may_lose = False
        self.logs.want([STREAM], self.moment)
        self.retained: State | None = None
        self.state()
        self.deliver()
        self.ask()
        self.deliver()

    @property
    def moment(self) -> int:
        return self.now * SECOND

    # --- the gateway ------------------------------------------------------------------------

    def publish(self) -> None:
        if not self.is_up:
            return
        life, number = self.gateway.life, self.gateway.next(STREAM)
        pack = self.packs[life, number] = ObservationPack(life, number, (), n=number)
        self.gateway.reaches(STREAM, self.moment)
        self.gateway.add(STREAM, f"{life} {number}", b"x" * 100)
        self.published.append((life, number, self.moment))
        self._send(pack)

    def state(self) -> None:
        self.retained = State(self, online=self.is_up)
        self._send(self.retained)

    def restart(self) -> None:
        if not self.in_order:
            self.deliver()  # a state overtakes packs, but not those of the life before
        heard = self.connected and not self.under_way and self.logs.are_whole() and self.is_up
        self.may_lose |= not heard
        self.gateway, self.started = PublishedPacks(self.gateway.life + 1), self.now
        self.is_up = True
        self.state()
        if heard:
            self.deliver()

    def die(self) -> None:
        """Vanish, or lose the broker: nobody can tell."""
        if self.is_up:
            self.is_up = False
            self.state()

    def revive(self) -> None:
        if not self.is_up:
            self.is_up = True
            self.state()

    def forget(self) -> None:
        """Let the gateway keep no more than its newest pack."""
        self.may_lose = True
        self.gateway._max_bytes = 100
        self.publish()
        self.gateway._max_bytes = 1_000_000

    def silence(self) -> None:
        """Answer no more, or again."""
        self.answers = not self.answers
        self.may_lose = True

    # --- the network and the base site -------------------------------------------------------

    def lose(self) -> None:
        """Lose a pack while all are connected; the next one shows the hole."""
        last = self.under_way[-1] if self.under_way else None
        if isinstance(last, ObservationPack) and self.is_up and self.in_order:
            del self.under_way[-1]
            self.publish()

    def cut(self) -> None:
        if self.connected:
            self.connected = False
            self.under_way.clear()
            self.away_since = self.logs.whole_at(self.moment)
            self.logs.cut_off(self.moment)

    def reconnect(self) -> None:
        if not self.connected:
            self.connected = True
            if self.retained is not None:
                self.retained.retained = True
                self._send(self.retained)

    def rebirth(self) -> None:
        """Kill the base site, and let it go on where it was."""
        self.deliver()
        if self.connected:
            self.away_since = self.logs.whole_at(self.moment)
        assert self.away_since is not None
        # The next life does not know since when a gateway is away that this one has given up.
        self.knows_since &= not any(log.excused or log.absent for log in self.logs._logs.values())
        self.collect()
        progress, known = self.logs.progress(), [key for key in self.logs._logs if self.counted]
        self.connected = False
        self.under_way.clear()
        self.logs = FollowedLogs()
        self.logs.want([STREAM], self.moment)
        self.logs.restore(known, progress, self.away_since)

    def remove(self) -> None:
        """Remove a gateway that is away permanently; it may come back all the same."""
        if not self.is_up and self.connected and not self.under_way:
            self.retained = None
            self.logs.removed("gw", self.moment)
            self.collect()

    def ask(self) -> None:
        if not self.connected:
            return
        for _gateway, wanted in self.logs.wanted(float(self.now), self.moment):
            self.asked += 1
            if self.is_up and self.answers:
                self._answer(wanted)
        self.collect()

    def _answer(self, wanted: PacksWanted) -> None:
        is_same = wanted.life == self.gateway.life
        again = self.gateway.since(STREAM, wanted.next) if is_same else ()
        for _number, topic, _payload in again:
            life, number = map(int, topic.split())
            self._send(self.packs[life, number])
        following = self.gateway.next(STREAM)
        first = (again[0][0] if again else following) if is_same else None
        newest = self.gateway.newest(STREAM)
        self._send(PacksPublished(STREAM, self.gateway.life, first, following, newest))

    def _send(self, message: Sending) -> None:
        if self.connected:
            self.under_way.append(message)

    def deliver(self, most: int = 1_000) -> None:
        for _ in range(min(most, len(self.under_way))):
            place = 0 if self.in_order else self.random.randrange(min(3, len(self.under_way)))
            self.hear(self.under_way.pop(place))

    def hear(self, message: Sending) -> None:
        due: list[Message] = []
        if isinstance(message, State):
            self.logs.heard(
                "gw",
                message.life,
                online=message.online,
                streams=message.streams,
                started=message.started * SECOND,
                at=message.at,
                now=self.moment,
                retained=message.retained,
            )
        elif isinstance(message, PacksPublished):
            due = self.logs.answered("gw", message, self.moment)
        else:
            content = Message("t", encode_json(message))
            due = self.logs.arrived("gw", content, STREAM, message, self.moment)
        self.count(due)
        self.collect()

    def collect(self) -> None:
        self.count(self.logs.due)
        self.logs.due.clear()
        for loss in self.logs.findings.losses:
            if isinstance(loss, Missing):
                self.missing.append(loss)
            else:
                self.missing = [known for known in self.missing if known.origin != loss.origin]
        self.logs.findings.losses.clear()

    def count(self, due: list[Message]) -> None:
        for message in due:
            pack = decode_json(message.payload, ObservationPack)
            assert pack.n is not None
            self.counted.append((pack.epoch, pack.n))

    def pass_time(self, seconds: int = 60, each: int = 11) -> None:
        """Let time pass, with a heartbeat of a gateway that is there."""
        for _ in range(seconds):
            self.now += each
            self.ask()
            if self.is_up:
                self.state()
            self.deliver()

    def settle(self) -> None:
        """Let time pass until nothing is asked any more."""
        self.reconnect()
        self.pass_time()
        assert self.logs.are_whole()

    def check(self) -> None:
        """What the base site claims to have it has, or has said that it lacks it."""
        if not self.connected or self.under_way or not self.logs.are_whole():
            return
        counted = set(self.counted)
        for life, number, moment in self.published:
            lost = any(
                moment <= loss.newest and (loss.since <= moment or not self.knows_since)
                for loss in self.missing
            )
            assert (life, number) in counted or lost, (life, number)


ACTIONS = st.lists(
    st.sampled_from(
        [
            *["publish"] * 5,
            *["deliver"] * 3,
            *["cut", "reconnect", "ask"] * 2,
            *("restart", "forget", "lose", "die", "revive", "remove", "rebirth", "silence"),
            *("pass", "state"),
        ]
    ),
    max_size=40,
)


@pytest.fixture(autouse=True)
def exact_clocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Readings are of the time at which they are published: bounds may not be too early."""
    monkeypatch.setattr(unrecoverable_packs, "MAX_FUTURE", 0)
    monkeypatch.setattr(pack_log, "CLOCK_TOLERANCE", 0)


def act(world: World, actions: list[str]) -> None:
    for action in actions:
        world.now += 1
        if action == "deliver":
            world.deliver(world.random.randint(1, 5))
        elif action == "pass":
            world.pass_time(1)
        else:
            getattr(world, action)()
        world.check()


@given(ACTIONS, st.integers(0, 9), st.booleans())
def test_what_is_whole_lacks_nothing_that_is_not_named(
    actions: list[str], seed: int, in_order: bool
) -> None:
    world = World(seed, in_order=in_order)
    act(world, actions)
    world.settle()
    world.check()
    if world.may_lose or {"die", "rebirth", "lose"} & set(actions):
        return
    first = [pack for place, pack in enumerate(world.counted) if pack not in world.counted[:place]]
    assert first == sorted(first), "in the order in which they were published"
    assert world.missing == [], "what the gateway keeps is not lost"
    assert len(first) == len(world.published)


@given(ACTIONS, st.integers(0, 9))
def test_whatever_has_happened_two_minutes_later_nothing_waits(
    actions: list[str], seed: int
) -> None:
    world = World(seed)
    act(world, actions)
    world.reconnect()
    world.deliver()
    world.pass_time(14, each=10)
    assert world.logs.are_whole()
    world.check()


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
    world.settle()
    assert world.counted == [(1, 0)]


def test_a_gateway_that_is_heard_first_after_a_cut_is_read_from_its_beginning() -> None:
    world = World()
    world.cut()
    world.logs = FollowedLogs()
    world.logs.want([STREAM], 1)
    world.logs.cut_off(1)
    for _ in range(3):
        world.publish()
    world.settle()
    assert world.counted == [(1, 0), (1, 1), (1, 2)]
    assert world.missing == []


def test_a_gateway_of_which_only_the_second_life_is_heard_may_have_published_before() -> None:
    world = World()
    world.logs = FollowedLogs()
    world.logs.want([STREAM], world.moment)
    world.cut()
    world.now += 1
    world.publish()
    world.restart()
    world.settle()
    assert [lost.newest for lost in world.missing] == [world.started * SECOND]


# --- streams that a gateway does not have ---------------------------------------------------


def test_a_gateway_that_does_not_have_a_stream_is_not_waited_for() -> None:
    world = World()
    world.logs = FollowedLogs()
    world.streams = ("other",)
    world.logs.want([STREAM], world.moment)
    world.state()
    world.deliver()
    world.cut()
    world.reconnect()
    world.deliver()
    assert world.logs.are_whole()
    assert world.logs.next_due() is None


def test_a_life_without_the_stream_ends_a_log_in_which_nothing_was_published() -> None:
    world = World()
    world.cut()
    world.streams = ()
    world.restart()
    world.settle()
    assert world.missing == []


def test_a_stream_that_a_life_heard_from_its_beginning_adds_is_whole() -> None:
    world = World()
    world.logs = FollowedLogs()
    world.logs.want([STREAM], world.moment)
    world.streams = ()
    world.state()
    world.deliver()
    world.streams = (STREAM,)
    world.restart()
    world.deliver()
    assert world.logs.next_due() is None
    world.publish()
    world.publish()
    del world.under_way[0]
    world.deliver()
    assert not world.logs.are_whole()


# --- gateways that are away -----------------------------------------------------------------


def test_a_restart_during_a_cut_leaves_a_gap_that_ends_with_the_new_life() -> None:
    world = World()
    world.now += 50
    world.state()
    world.deliver()
    heard = world.moment
    world.now += 5
    world.cut()
    world.publish()
    world.now += 5
    world.restart()
    world.now += 100
    world.settle()
    assert [(lost.since, lost.newest) for lost in world.missing] == [
        (heard, world.started * SECOND)
    ]


def test_the_latest_event_time_allows_for_the_most_that_gateways_accept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(unrecoverable_packs, "MAX_FUTURE", MAX_FUTURE)
    world = World()
    world.cut()
    world.restart()
    world.settle()
    assert [lost.newest for lost in world.missing] == [world.started * SECOND + MAX_FUTURE]


def test_a_gateway_that_is_away_is_named_and_the_loss_withdrawn_when_it_goes_on() -> None:
    world = World()
    world.publish()
    world.deliver()
    world.cut()
    world.publish()
    world.die()
    world.settle()
    assert [lost.cause for lost in world.missing] == [Cause.ABSENT]
    world.revive()
    world.deliver()
    assert not world.logs.are_whole()
    world.settle()
    assert world.missing == []
    assert world.counted == [(1, 0), (1, 1)]


def test_a_loss_by_absence_is_replaced_when_a_new_life_begins() -> None:
    world = World()
    world.cut()
    world.publish()
    world.die()
    world.settle()
    world.restart()
    world.deliver()
    world.settle()
    assert [(lost.cause, lost.newest) for lost in world.missing] == [
        (Cause.NOT_KEPT, world.started * SECOND)
    ]


def test_an_answer_on_its_way_while_a_gateway_is_removed_withdraws_the_loss() -> None:
    """Both may come before anybody is told of either."""
    world = World()
    world.cut()
    world.publish()
    world.reconnect()
    world.deliver()
    world.ask()
    answer = world.under_way
    world.logs.removed("gw", world.moment)
    for message in answer:
        world.hear(message)
    world.collect()
    assert world.missing == []
    assert world.counted == [(1, 0)]


def test_a_gateway_that_was_removed_and_comes_back_counts_nothing_twice() -> None:
    world = World()
    world.publish()
    world.publish()
    world.deliver()
    world.logs.removed("gw", world.moment)
    assert world.logs.are_whole()
    assert world.logs.wanted(1e9, 0) == []
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
    world.logs.removed("gw", world.moment)
    progress, jumps = world.logs.progress(), world.logs.jumps
    assert progress == jumps[-1:]
    world.logs = FollowedLogs()
    world.logs.want([STREAM], 50)
    world.logs.restore([("gw", STREAM)], progress, 7)
    assert world.logs.are_whole()
    assert world.logs.progress() == progress
    world.logs.removed("gw", world.moment)
    world.collect()
    assert world.missing == []
    world.publish()
    world.settle()
    assert world.counted == [(1, 0), (1, 1)]


def test_a_gateway_that_is_removed_while_it_owes_something_leaves_a_gap() -> None:
    world = World()
    world.cut()
    world.publish()
    world.logs.removed("gw", world.moment)
    world.collect()
    assert [(lost.gateway, lost.stream) for lost in world.missing] == [("gw", STREAM)]
    assert world.logs.are_whole()


# --- gateways that do not answer ------------------------------------------------------------


def test_a_gateway_that_does_not_answer_is_asked_less_and_less_then_given_up() -> None:
    world = World()
    world.publish()
    world.deliver()
    world.answers = False
    world.cut()
    world.publish()
    world.reconnect()
    world.deliver()
    asked = world.asked
    world.pass_time(119, each=1)
    assert 12 < world.asked - asked < 18
    assert not world.logs.are_whole()
    world.pass_time(3, each=1)
    assert world.logs.are_whole()
    assert [lost.cause for lost in world.missing] == [Cause.UNANSWERED]
    assert "cmd/packs" in world.missing[0].reason
    world.publish()
    world.deliver()
    assert world.counted == [(1, 0), (1, 2)], "what comes next is first"


def test_a_gateway_of_which_nothing_comes_is_asked_a_few_times() -> None:
    logs = FollowedLogs()
    logs.want([STREAM], 0)
    logs.heard("gw", 1, online=True, streams=[STREAM], started=0, at=0, now=0)
    requests = sum(len(logs.wanted(float(now), now)) for now in range(1_000))
    assert requests == followed_logs.MAX_FIRST
    assert logs.next_due() is None


def test_a_gateway_that_does_not_count_ends_the_doubt() -> None:
    world = World()
    world.answers = False
    world.cut()
    world.reconnect()
    world.deliver()
    pack = ObservationPack(1, 7, ())
    message = Message("t", encode_json(pack))
    assert world.logs.arrived("gw", message, STREAM, pack, world.moment) == [message]
    world.collect()
    assert world.logs.are_whole()
    assert [lost.cause for lost in world.missing] == [Cause.UNCOUNTED]
    assert world.logs.arrived("gw", message, STREAM, pack, world.moment) == [message]
    world.collect()
    assert len(world.missing) == 1


# --- bounds ---------------------------------------------------------------------------------


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


def test_an_answer_that_nobody_asked_for_changes_nothing() -> None:
    world = World()
    world.publish()
    world.deliver()
    jumps = len(world.logs.jumps)
    for number in range(5):
        world.hear(PacksPublished(STREAM, 1, 0, number + 3))
    assert world.logs.are_whole()
    assert len(world.logs.jumps) == jumps


def test_an_answer_that_says_nothing_new_is_not_written_down() -> None:
    world = World()
    world.publish()
    world.deliver()
    for _ in range(3):
        world.cut()
        world.settle()
    assert len(world.logs.jumps) == 1, "where the log begins"


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
    monkeypatch.setattr(pack_log, "MAX_HELD_BYTES", 3_300)
    world = World()
    world.publish()
    world.under_way.clear()
    for _ in range(20):
        world.publish()
    world.deliver()
    assert 2_600 < world.logs.findings.held_bytes <= 3_300
    world.settle()
    assert len(set(world.counted)) == 21
    assert world.logs.findings.held_bytes == 0


def test_a_pack_that_finds_no_room_to_wait_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pack_log, "MAX_HELD_BYTES", 0)  # as if another gateway had filled it
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


def test_streams_that_nobody_reads_any_more_hold_nothing() -> None:
    world = World()
    world.publish()
    world.under_way.clear()
    world.publish()
    world.deliver()
    world.logs.want([], world.moment)
    assert world.logs.are_whole()
    assert world.logs.findings.held_bytes == 0
    assert world.logs.next_due() is None


def test_a_step_looks_only_at_logs_that_are_open() -> None:
    logs = FollowedLogs()
    logs.want([STREAM], 0)
    for number in range(1_000):
        name = f"gw-{number}"
        logs.heard(name, 1, online=True, streams=[STREAM], started=0, at=0, now=0)
        pack = ObservationPack(1, 0, (), n=0)
        logs.arrived(name, Message("t", b"{}"), STREAM, pack, 0)
    assert logs._open == {}
    pack = ObservationPack(1, 2, (), n=2)
    logs.arrived("gw-7", Message("t", b"{}"), STREAM, pack, 0)
    assert list(logs._open) == [("gw-7", STREAM)]


# --- restarts of the base site ----------------------------------------------------------------


def test_a_restored_site_goes_on_where_it_was() -> None:
    world = World()
    world.publish()
    world.publish()
    world.deliver()
    progress = world.logs.progress()
    assert progress == [("gw", STREAM, 1, 2)]
    world.publish()
    world.under_way.clear()
    world.logs = FollowedLogs()
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
    world.logs = FollowedLogs()
    world.logs.want([STREAM], 50)
    world.logs.restore([("gw", STREAM)], [], 7)
    world.settle()
    assert world.counted == [(1, 0), (1, 1), (1, 2)]
    assert [(lost.since, lost.newest) for lost in world.missing] == [(7, 100 * SECOND)]
