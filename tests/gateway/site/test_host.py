"""Sites on a broker that misbehaves: answers equal the reference, nothing stops a host."""

import asyncio
import logging
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from gateway.site import host, left_fragments
from gateway.testing import SEATS, until
from host import defects, heartbeats, resync_requests
from host.mqtt import dead_letters
from host.mqtt.in_memory import Faults
from streamsql.algebra.operators import RemoteSource
from streamsql.data.types import Value
from streamsql.errors import InternalError, WireError
from streamsql.wire.codec import decode_compressed_packed, decode_json, encode_json, encode_packed
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle
from streamsql.wire.messages import Command, DeadLetter, DeltaBatch, QueryProblem
from streamsql.wire.site_messages import SiteFlows, SiteState
from tests.gateway.site import federation as federation_module
from tests.gateway.site.federation import TOPICS, Federation, collecting, run
from tests.loop_turns import calls, loop_turns


async def two_gateways(federation: Federation, *filters: str) -> None:
    """A base site and two gateways with a row each, and the query over them."""
    await federation.begin(*filters)
    for name in ("base", "gw-1", "gw-2"):
        await federation.site(name)
    federation.install(collecting())
    federation.sites["gw-1"].put("m1")
    federation.sites["gw-2"].put("m2")
    await federation.until_rows(lambda: federation.expected("gw-1", "gw-2"))
    assert len(federation.rows()) == 2


def test_changes_arrive_and_flow_counts_agree() -> None:
    async def scenario(federation: Federation) -> None:
        await two_gateways(federation, TOPICS.flow())
        gateway = federation.sites["gw-1"]
        gateway.put("m1", 7.0)
        gateway.put("m3", 8.0)
        gateway.put("m3", delete=True)
        await federation.until_rows(lambda: federation.expected("gw-1", "gw-2"))
        assert [row[:2] for row in federation.rows()] == [("m1", 7.0), ("m2", 1.0)]

        def settled() -> bool:
            reports = {
                TOPICS.parts(message.topic)[1]: decode_compressed_packed(
                    message.payload, SiteFlows
                ).reports["q1"]
                for message in federation.told("/flow")
            }
            base = reports.get("base")
            return base is not None and all(
                name in reports and reports[name].sent["base"] == base.received.get(name)
                for name in ("gw-1", "gw-2")
            )

        await until(settled, "the counts of both ends agree")

    run(scenario)


def test_a_dead_gateways_rows_leave_after_the_grace_time_and_come_back_with_it() -> None:
    async def scenario(federation: Federation) -> None:
        await two_gateways(federation)
        federation.broker.cut("gw-1")
        await federation.until_rows(lambda: federation.expected("gw-2"))
        federation.broker.restore("gw-1")
        await federation.until_rows(lambda: federation.expected("gw-1", "gw-2"))
        # A new life: the old one's rows are not mixed with it.
        federation.broker.cut("gw-1")
        await federation.sites["gw-1"].stop()
        await federation.until_rows(lambda: federation.expected("gw-2"))
        again = await federation.site("gw-1", epoch=2)
        again.put("m1", 9.0)
        await federation.until_rows(lambda: federation.expected("gw-1", "gw-2"))
        assert len(federation.rows()) == 2

    run(scenario)


def test_a_gateway_that_is_back_within_the_grace_time_never_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(federation_module, "GRACE", 10.0)

    async def scenario(federation: Federation) -> None:
        await two_gateways(federation)
        before = federation.rows()
        seen = []
        federation.console.on_messages(lambda _burst: seen.append(federation.rows()))
        federation.broker.cut("gw-1")
        await loop_turns()
        federation.broker.restore("gw-1")
        federation.sites["gw-1"].put("later")
        await until(lambda: len(federation.rows()) > len(before), "what came after")
        assert all(row in rows for rows in seen for row in before)

    run(scenario)


@pytest.mark.parametrize("forget", [False, True], ids=["remembers", "forgets"])
def test_after_a_stop_of_the_broker_all_channels_resynchronise(forget: bool) -> None:
    async def scenario(federation: Federation) -> None:
        await two_gateways(federation)
        federation.broker.stop(forget=forget)
        gateway = federation.sites["gw-1"]
        gateway.put("m1", delete=True)
        gateway.put("m4", 4.0)
        federation.sites["gw-2"].put("m5", 5.0)
        await loop_turns()
        federation.broker.start()
        federation.install(collecting())  # as the coordinator does on every connect
        await federation.until_rows(lambda: federation.expected("gw-1", "gw-2"))
        assert [row[0] for row in federation.rows()] == ["m2", "m4", "m5"]

    run(scenario)


def test_a_lost_batch_is_noticed_and_made_good(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resync_requests, "FIRST_PAUSE", 0.05)

    async def scenario(federation: Federation) -> None:
        await two_gateways(federation)
        await federation.lose_batch("gw-1", "m6")
        assert len(federation.rows()) == 2
        federation.sites["gw-1"].put("m7")  # the batch after the gap
        await federation.until_rows(lambda: federation.expected("gw-1", "gw-2"))
        assert len(federation.rows()) == 4

    run(scenario)


def test_a_request_for_a_snapshot_that_is_lost_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resync_requests, "FIRST_PAUSE", 0.05)

    async def scenario(federation: Federation) -> None:
        await two_gateways(federation)
        await federation.lose_batch("gw-1", "m6")
        route, lost = federation.broker.route, []

        def losing(topic: str, payload: bytes, qos: int, *, retain: bool) -> None:
            if "/cmd/resync" in topic:
                lost.append(topic)
            else:
                route(topic, payload, qos, retain=retain)

        monkeypatch.setattr(federation.broker, "route", losing)
        federation.sites["gw-1"].put("m7")
        await until(lambda: len(lost) >= 3, "it is asked for again and again")
        monkeypatch.setattr(federation.broker, "route", route)
        await federation.until_rows(lambda: federation.expected("gw-1", "gw-2"))

    run(scenario)


def test_a_full_queue_is_made_good_by_snapshots(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(host, "FULL_PAUSE", 0.05)

    async def scenario(federation: Federation) -> None:
        await federation.begin()
        await federation.site("base")
        gateway = await federation.site("gw-1", max_pending=3)
        federation.install(collecting(("gw-1",)))
        await federation.until_rows(list)
        publish = gateway.client._flush
        gateway.client._flush = lambda: None  # type: ignore[method-assign]  # nothing is taken
        for number in range(20):
            gateway.put(f"m{number}")
            await asyncio.sleep(0.01)  # time passes: each change is a batch of its own
        assert "snapshots will follow" in caplog.text
        gateway.client._flush = publish  # type: ignore[method-assign]
        publish()
        await federation.until_rows(lambda: federation.expected("gw-1"))
        assert len(federation.rows()) == 20

    with caplog.at_level(logging.WARNING):
        run(scenario)


def test_a_query_stopped_while_a_site_was_away_stops_there_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(left_fragments, "PATIENCE", 0.1)

    async def scenario(federation: Federation) -> None:
        await two_gateways(federation)
        federation.install(collecting(query="q2"))
        gateway = federation.sites["gw-1"].engine
        await until(lambda: set(gateway.queries) == {"q1", "q2"}, "q2 is installed")
        federation.broker.cut("gw-1")
        federation.withdraw("q2", "base", "gw-1", "gw-2")
        await loop_turns()
        federation.broker.restore("gw-1")
        await until(lambda: set(gateway.queries) == {"q1"}, "q2 is stopped")
        stepping = federation.sites["gw-1"].host
        stepping.wake()
        await calls(stepping, "_step", 1)
        assert set(gateway.queries) == {"q1"}

    run(scenario)


def test_a_site_that_died_while_the_broker_was_away_is_missed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(heartbeats, "TRUST_SECONDS", 0.3)

    async def scenario(federation: Federation) -> None:
        await two_gateways(federation)
        federation.broker.stop()  # no will is published
        await federation.sites["gw-1"].stop()
        await loop_turns()
        federation.broker.start()
        states = encode_json(SiteState(True, 1, 0))

        async def beat() -> None:
            while True:
                federation.console.publish(TOPICS.state("gw-2"), states, retain=True)
                await asyncio.sleep(0.02)

        heart = asyncio.create_task(beat())
        try:
            await federation.until_rows(lambda: federation.expected("gw-2"))
        finally:
            heart.cancel()

    run(scenario)


ACTIONS = st.lists(
    st.sampled_from(["put", "put", "put", "delete", "cut", "restore", "stop", "start", "wait"]),
    max_size=15,
)


@hypothesis_settings(max_examples=25)
@given(ACTIONS, st.integers(0, 1_000), st.sampled_from([0.0, 0.1]))
def test_whatever_the_network_does_the_answer_is_right_in_the_end(
    actions: list[str], seed: int, lose: float
) -> None:
    async def scenario(federation: Federation) -> None:
        await two_gateways(federation)
        chance = random.Random(seed)
        federation.broker._random.seed(seed)
        federation.broker.faults = Faults(reorder=True, duplicate=0.2, lose=lose)
        running = True
        for action in actions:
            name = chance.choice(["gw-1", "gw-2"])
            if action in ("put", "delete"):
                federation.sites[name].put(f"{name}-m{chance.randrange(3)}", delete=action != "put")
            elif action == "cut" and running:
                federation.broker.cut(chance.choice([name, "base"]))
            elif action == "restore" and running:
                for every in ("gw-1", "gw-2", "base"):
                    federation.broker.restore(every)
            elif action == "stop":
                federation.broker.stop()
                running = False
            elif action == "start":
                federation.broker.start()
                running = True
            await asyncio.sleep(chance.choice([0, 0, 0.01, 0.05]))
        federation.broker.faults = Faults()
        # A broker loses what it had accepted only together with the sessions.
        federation.broker.stop()
        federation.broker.start()
        await federation.until_rows(lambda: federation.expected("gw-1", "gw-2"))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(resync_requests, "FIRST_PAUSE", 0.03)
        patch.setattr(resync_requests, "LONGEST_PAUSE", 0.1)
        run(scenario)


# Who may ask --------------------------------------------------------------------------------


FORGET: dict[str, Value] = {"version": 1, "watermark": 10**17, "port f0": 10**17}


@pytest.mark.parametrize(
    ("verb", "sender", "channel", "obeyed"),
    [
        ("resync", "base", "base", True),
        ("resync", "coordinator", "base", False),
        ("resync", "coordinator", "out", False),
        ("resync", "", "base", True),
        ("resync", "", "out", True),
        ("resync", "gw-2", "base", False),
        ("resync", "gw-2", "out", False),
        ("forget", "base", "base", True),
        ("forget", "gw-2", "base", False),
        ("forget", "coordinator", "base", False),
        ("rebirth", "base", "base", False),
    ],
)
def test_a_site_obeys_only_who_is_a_party_of_the_channel(
    verb: str, sender: str, channel: str, *, obeyed: bool
) -> None:
    async def scenario(federation: Federation) -> None:
        await two_gateways(federation)
        site = federation.sites["gw-1"]
        done: list[str] = []
        engine: Any = site.engine
        engine.resync = lambda _query, to: not done.append(to or "out")  # type: ignore[func-returns-value]
        engine.forget = lambda to, _told: not done.append(to)  # type: ignore[func-returns-value]
        arguments = FORGET if verb == "forget" else {}
        command = Command(query="q1", channel=channel, arguments=arguments)
        before = site.host.dead_letters.count
        # Without a sender it is a command, which only the coordinator may give.
        topic = TOPICS.request("gw-1", verb, sender) if sender else TOPICS.command("gw-1", verb)
        federation.console.publish(topic, encode_json(command))
        await until(lambda: bool(done) or site.host.dead_letters.count > before, "it is judged")
        assert done == [channel] * obeyed

    run(scenario)


def test_a_batch_of_a_site_that_has_no_channel_is_refused() -> None:
    async def scenario(federation: Federation) -> None:
        await two_gateways(federation)
        base = federation.sites["base"]
        batch = DeltaBatch(1, 1, 0, "f0", reset=True)
        topic = TOPICS.exchange("q1", "base", "gw-9")
        federation.console.publish(topic, encode_packed(batch))
        await until(lambda: base.host.dead_letters.count == 1, "it is refused")
        assert federation.rows() == federation.expected("gw-1", "gw-2")

    run(scenario)


# Bad payloads ---------------------------------------------------------------------------------

ME = "gw-1"
SUBSCRIBED = {
    "state": TOPICS.state("other"),
    "own state": TOPICS.state(ME),
    "fragment": TOPICS.fragment("q9", ME),
    "exchange": TOPICS.exchange("q1", ME, "gw-2"),
    "resync": TOPICS.request(ME, "resync", "base"),
    "flow": TOPICS.command(ME, "flow"),
    "mark": TOPICS.command(ME, "mark"),
    "other command": TOPICS.command(ME, "anything"),
}
BAD = {
    "nothing known": b"\x00\xff\xfe",
    "not UTF-8": b'{"online":"\xff","id":"\xff"}',
    "deep JSON": b"[" * 100_000 + b"]" * 100_000,
    "deep JSON object": b'{"arguments":' * 5_000 + b"1" + b"}" * 5_000,
    "deep MessagePack": b"\x91" * 100_000 + b"\x01",
    "a number": b"7",
    "wrong types": b'{"online":"yes","epoch":"one","ts":null,"id":5,"query":[]}',
    "huge": b'"' + b"x" * 9_000_000 + b'"',
    "huge number": b'{"online":true,"epoch":1e400,"ts":0,"arguments":{"a":1e999}}',
    "length beyond the end": b"\xdd\xff\xff\xff\xff",
    "wrong MessagePack": encode_packed({"version": "1", "epoch": None, "deltas": 3}),
    "an array of bundles": encode_packed([[]]),
}


@pytest.mark.parametrize("topic", SUBSCRIBED.values(), ids=SUBSCRIBED)
@pytest.mark.parametrize("payload", BAD.values(), ids=BAD)
def test_bad_payloads_are_counted_and_kept_and_harm_nobody(topic: str, payload: bytes) -> None:
    async def scenario(federation: Federation) -> None:
        await two_gateways(federation, TOPICS.dead())
        site = federation.sites[ME]
        for _ in range(3):
            federation.console.publish(topic, payload)
        await until(lambda: site.host.dead_letters.count == 3, "all are counted")
        await until(lambda: bool(federation.told("/dead/")), "one is kept")
        await federation.broker.settle()
        letters = [decode_json(m.payload, DeadLetter) for m in federation.told(f"/dead/{ME}")]
        assert [letter.topic for letter in letters] == [topic], "only the first of a kind"
        assert len(letters[0].payload) <= dead_letters.MAX_KEPT
        assert letters[0].error
        site.put("after", 5.0)
        await federation.until_rows(lambda: federation.expected("gw-1", "gw-2"))
        assert site.task is not None
        assert not site.task.done()

    run(scenario)


def test_dead_letters_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dead_letters, "MAX_KINDS", 5)

    async def scenario(federation: Federation) -> None:
        await two_gateways(federation, TOPICS.dead())
        for number in range(20):
            federation.console.publish(TOPICS.state(f"liar-{number}"), b"{")
        site = federation.sites[ME]
        await until(lambda: site.host.dead_letters.count == 20, "all are counted")
        await federation.broker.settle()
        assert len(federation.told(f"/dead/{ME}")) == 5
        assert len(site.host.dead_letters._kinds) == 5

    run(scenario)


@hypothesis_settings(max_examples=30)
@given(
    st.sampled_from(sorted(SUBSCRIBED.values())),
    st.lists(st.binary(max_size=60) | st.text(max_size=30).map(str.encode), max_size=10),
)
def test_no_bytes_stop_a_host(topic: str, payloads: list[bytes]) -> None:
    async def scenario(federation: Federation) -> None:
        await two_gateways(federation)
        for payload in payloads:
            federation.console.publish(topic, payload)
        federation.sites[ME].put("after", 5.0)
        await federation.until_rows(lambda: federation.expected("gw-1", "gw-2"))

    run(scenario)


def batch(**changes: Any) -> bytes:
    plain: dict[str, Any] = {
        "version": 1,
        "epoch": 1,
        "seq": 0,
        "port": "f0",
        "deltas": [],
        "reset": True,
    }
    return encode_packed({**plain, **changes})


def test_wrong_batches_leave_other_senders_alone() -> None:
    """Batches that decode but fit no plan: wrong port, width, sender; or are of another version."""
    wrong = [
        batch(port="nowhere"),
        batch(deltas=[[["m"], 1]]),
        batch(deltas=[[["m", 1.0, 1, 1, 1], 1]]),
        batch(port="f0/fix", annotated=[[["m"], b"\xff"]]),
        batch(kills=[2**62]),
        batch(version=99, deltas=[[["x", 1.0, 1], 1]]),
    ]

    async def scenario(federation: Federation) -> None:
        await two_gateways(federation)
        for sender in ("gw-9", "gw-1"):
            for payload in wrong:
                federation.console.publish(TOPICS.exchange("q1", "base", sender), payload)
        await federation.broker.settle()
        federation.sites["gw-2"].put("after", 5.0)
        await until(lambda: ("after",) in [row[:1] for row in federation.rows()], "gw-2 is heard")
        assert federation.sites["base"].host.dead_letters.count >= 8

    run(scenario)


def impossible(query: str) -> FragmentBundle:
    """A bundle that is well formed and cannot be run: it reads a fragment that is not there."""
    plan = RemoteSource("f7", SEATS.schema)
    return FragmentBundle(query, 1, (Fragment("f0", Engine.GATEWAY, plan, (ME,)),), SEATS.schema)


def test_a_bundle_that_cannot_be_run_is_a_problem_of_its_query() -> None:
    async def scenario(federation: Federation) -> None:
        await two_gateways(federation, TOPICS.error(), TOPICS.dead())
        federation.install(impossible("q5"))
        await until(lambda: bool(federation.told("/q/q5/error/gw-1")), "the problem is told")
        problem = decode_json(federation.told("/q/q5/error/")[0].payload, QueryProblem)
        assert "f7" in problem.message
        assert problem.code == InternalError.code
        federation.console.publish(TOPICS.fragment("q6", ME), encode_packed(collecting()))
        await until(lambda: len(federation.told("/dead/")) == 2, "a bundle on a wrong topic")

    run(scenario)


def test_a_query_whose_rows_cannot_be_sent_stops_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    encode = encode_packed

    def refusing(message: object) -> bytes:
        if isinstance(message, DeltaBatch) and any("bad" in row.row for row in message.deltas):
            raise WireError("cannot encode DeltaBatch: integer out of range")
        return encode(message)

    monkeypatch.setattr(host, "encode_packed", refusing)

    async def scenario(federation: Federation) -> None:
        await two_gateways(federation, TOPICS.error())
        federation.install(collecting(("gw-2",), query="q2"))
        engine = federation.sites["gw-2"].engine
        await until(lambda: "q2" in engine.queries, "q2 runs")
        federation.sites["gw-1"].put("bad")
        await until(lambda: bool(federation.told("/q/q1/error/gw-1")), "the problem is told")
        assert federation.sites["gw-1"].engine.queries == {}
        assert set(engine.queries) == {"q1", "q2"}

    run(scenario)


def test_a_step_that_meets_a_defect_is_made_good_by_the_next_ones(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(federation: Federation) -> None:
        await two_gateways(federation)
        site = federation.sites[ME]
        publish = site.host.flow_reports.publish
        met: list[float] = []

        def broken(now: float) -> None:
            if len(met) < defects.MAX_IN_A_ROW - 1:
                met.append(now)
                raise OverflowError("an int too big")
            publish(now)

        site.host.flow_reports.publish = broken  # type: ignore[method-assign]
        site.put("m7", 7.0)
        for _ in range(defects.MAX_IN_A_ROW):
            site.host.wake()
            await until(lambda: site.host.defects.count == len(met), "it goes on")
        await federation.until_rows(lambda: federation.expected("gw-1", "gw-2"))
        assert site.host.defects.count >= 1
        assert "an int too big" in site.host.problem

    with caplog.at_level(logging.ERROR):
        run(scenario)
    assert caplog.text.count("a defect interrupted a step") == 1, "said once a minute"


def test_a_defect_in_stepping_that_stays_ends_the_host_instead_of_hanging() -> None:
    async def scenario(federation: Federation) -> None:
        await two_gateways(federation)
        site = federation.sites[ME]

        def broken(_now: int) -> None:
            raise AssertionError("a defect")

        site.engine.step = broken  # type: ignore[assignment,method-assign]
        site.host.wake()
        assert site.task is not None
        await asyncio.wait({site.task}, timeout=60)
        with pytest.raises(ExceptionGroup, match="TaskGroup"):
            await site.task
        site.task = asyncio.create_task(asyncio.sleep(0))

    run(scenario)


def test_a_defect_met_by_a_message_is_a_dead_letter_and_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(federation: Federation) -> None:
        await two_gateways(federation, TOPICS.dead())
        site = federation.sites[ME]

        def broken(query: str, destination: str) -> bool:
            raise KeyError(f"a defect, {query} {destination}")

        site.engine.resync = broken  # type: ignore[method-assign]
        command = encode_json(Command(query="q1", channel="base"))
        federation.console.publish(TOPICS.request(ME, "resync", "base"), command)
        await until(lambda: bool(federation.told("/dead/gw-1")), "it is kept")
        assert "a defect interrupted the handling of a message" in caplog.text
        site.put("after", 5.0)
        await federation.until_rows(lambda: federation.expected("gw-1", "gw-2"))

    run(scenario)
