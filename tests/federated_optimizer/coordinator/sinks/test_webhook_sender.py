"""Webhooks to a receiver on loopback: signed, repeated, given up, in order."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from federated_optimizer.coordinator.contract.sink_endpoints import WebhookEndpoint
from federated_optimizer.coordinator.sinks import webhook_sender
from federated_optimizer.coordinator.sinks.outgoing import Outgoing
from federated_optimizer.coordinator.sinks.webhook_sender import WebhookSender
from streamsql.catalog.sink_definitions import SinkConnector, SinkDefinition, SinkFormat, SinkMode
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.errors import DeploymentError
from tests.federated_optimizer.coordinator.sinks.web_receiver import SECRET, Answer, WebReceiver

SCHEMA = Schema.of(("desk", DataType.TEXT), ("n", DataType.INTEGER), ("ts", DataType.TIMESTAMP))
UPSERTS = SinkDefinition(
    "free",
    "SELECT",
    SinkConnector.WEBHOOK,
    SinkMode.UPSERT,
    endpoint="hook",
    key=("desk",),
    tries=3,
    timeout=5_000_000,
)
ONE = Outgoing(("a",), ("a", 1, 0))


def sender_to(
    receiver: WebReceiver, definition: SinkDefinition = UPSERTS, pause: float = 0.001
) -> WebhookSender:
    endpoint = WebhookEndpoint(url=receiver.url, secret=SECRET, headers={"authorization": "x"})
    return WebhookSender(
        definition,
        SCHEMA,
        endpoint,
        lambda: time.time_ns() // 1000,
        random.Random(1).random,
        first_pause=pause,
    )


async def until_there_is_a_problem(sender: WebhookSender) -> None:
    while not sender.problem:  # noqa: ASYNC110 - a sender has no event of its own
        await asyncio.sleep(0.001)


def run(scenario: Callable[[WebReceiver, WebhookSender], Awaitable[None]], **changes: Any) -> None:
    async def whole() -> None:
        async with asyncio.timeout(50), WebReceiver() as receiver:
            sender = sender_to(receiver, **changes)
            await scenario(receiver, sender)
            await sender.close()

    asyncio.run(whole())


def test_a_batch_is_one_request_of_upserts() -> None:
    async def scenario(receiver: WebReceiver, sender: WebhookSender) -> None:
        assert await sender.send([ONE, Outgoing(("b",), None)]) == []
        assert receiver.requests == [
            {
                "sink": "free",
                "mode": "upsert",
                "messages": [
                    {
                        "key": {"desk": "a"},
                        "row": {"desk": "a", "n": 1, "ts": "1970-01-01T00:00:00Z"},
                    },
                    {"key": {"desk": "b"}, "row": None},
                ],
            }
        ]

    run(scenario)


@pytest.mark.parametrize("answer", [Answer(), Answer(body="taken")])
def test_requests_go_over_one_connection(answer: Answer) -> None:
    async def scenario(receiver: WebReceiver, sender: WebhookSender) -> None:
        receiver.decide = lambda _messages: answer
        for _ in range(5):
            assert await sender.send([ONE]) == []
        assert (len(receiver.requests), receiver.connections) == (5, 1)

    run(scenario)


@pytest.mark.parametrize("status", [200, 503])
def test_of_a_long_answer_only_the_beginning_is_read(status: int) -> None:
    async def scenario(receiver: WebReceiver, sender: WebhookSender) -> None:
        receiver.decide = lambda _messages: Answer(
            status if len(receiver.requests) == 1 else 200, body="x" * 50_000_000
        )
        began = time.monotonic()
        assert await sender.send([ONE]) == []
        assert time.monotonic() - began < UPSERTS.timeout / 1_000_000

    run(scenario)


def test_what_is_taken_is_taken_although_the_rest_of_the_answer_never_comes() -> None:
    async def scenario(receiver: WebReceiver, sender: WebhookSender) -> None:
        receiver.decide = lambda _messages: Answer(missing=10)
        assert await sender.send([ONE]) == []
        assert len(receiver.requests) == 1

    run(scenario)


def test_rows_of_streams_have_numbers_and_senml_is_a_pack() -> None:
    definition = SinkDefinition(
        *("free", "SELECT", SinkConnector.WEBHOOK, SinkMode.APPEND), format=SinkFormat.SENML
    )

    async def scenario(receiver: WebReceiver, sender: WebhookSender) -> None:
        assert await sender.send([Outgoing(row=("a", 1, 2_500_000), number=7)]) == []
        records = [{"bn": "free/", "bt": 2.5, "n": "desk", "vs": "a"}, {"n": "n", "v": 1}]
        assert receiver.taken == [{"number": 7, "row": records}]

    run(scenario, definition=definition)


@pytest.mark.parametrize("status", [302, 401, 404, 410])
def test_what_is_refused_is_repeated_with_the_same_id_and_then_given_up(status: int) -> None:
    async def scenario(receiver: WebReceiver, sender: WebhookSender) -> None:
        receiver.decide = lambda _: Answer(status, takes=False, body="not you")
        (refused,) = await sender.send([ONE])
        assert (refused.message, refused.tries, len(receiver.requests)) == (ONE, 3, 3)
        assert len(set(receiver.ids)) == 1
        assert refused.reason == f"HTTP {status}: not you"
        receiver.decide = lambda _: Answer()
        assert await sender.send([ONE]) == []
        assert (sender.problem, len(set(receiver.ids))) == ("", 2)

    run(scenario)


@pytest.mark.parametrize("status", [0, 408, 425, 429, 500, 502, 503, 504])
def test_a_receiver_that_is_away_is_waited_for_however_long(status: int) -> None:
    async def scenario(receiver: WebReceiver, sender: WebhookSender) -> None:
        more_than_tries = 7

        def decide(_messages: object) -> Answer:
            away = len(receiver.requests) <= more_than_tries
            return Answer(status, takes=False) if away else Answer()

        receiver.decide = decide
        assert await sender.send([ONE]) == []
        assert len(receiver.requests) == more_than_tries + 1
        assert len(set(receiver.ids)) == 1

    run(scenario)


def test_refusals_between_outages_are_counted_alone() -> None:
    async def scenario(receiver: WebReceiver, sender: WebhookSender) -> None:
        answers = iter([503, 404, 0, 404, 500, 500, 404])
        receiver.decide = lambda _: Answer(next(answers), takes=False)
        (refused,) = await sender.send([ONE])
        assert (refused.reason, refused.tries, len(receiver.requests)) == ("HTTP 404", 3, 7)

    run(scenario)


def test_a_problem_is_told_while_it_lasts() -> None:
    async def scenario(receiver: WebReceiver, sender: WebhookSender) -> None:
        told: list[str] = []

        def decide(_messages: object) -> Answer:
            told.append(sender.problem)
            return Answer(500 if len(told) < 3 else 200, takes=len(told) == 3)

        receiver.decide = decide
        assert await sender.send([ONE]) == []
        assert told == ["", *["the receiver is away: HTTP 500"] * 2]
        assert sender.problem == ""

    run(scenario)


def test_only_what_the_receiver_finds_wrong_is_given_up() -> None:
    async def scenario(receiver: WebReceiver, sender: WebhookSender) -> None:
        def decide(messages: list[dict[str, Any]]) -> Answer:
            bad = any(message["key"]["desk"] == "b" for message in messages)
            return Answer(422, takes=False) if bad else Answer()

        receiver.decide = decide
        batch = [Outgoing((name,), (name, 1, 0)) for name in "abc"]
        (refused,) = await sender.send(batch)
        assert (refused.message, refused.reason) == (batch[1], "HTTP 422")
        assert [message["key"]["desk"] for message in receiver.taken] == ["a", "c"]

    run(scenario)


def test_a_receiver_that_asks_for_time_gets_it_and_that_counts_as_no_failure() -> None:
    async def scenario(receiver: WebReceiver, sender: WebhookSender) -> None:
        moments: list[float] = []

        def decide(_messages: object) -> Answer:
            moments.append(time.monotonic())
            if len(moments) <= 4:  # more than the tries
                wait = "1" if len(moments) == 1 else "0"
                return Answer(429, takes=False, headers=(("Retry-After", wait),))
            return Answer()

        receiver.decide = decide
        assert await sender.send([ONE]) == []
        assert len(moments) == 5
        assert moments[1] - moments[0] >= 1

    run(scenario)


def test_a_time_that_nobody_can_read_is_a_failure_like_any_other() -> None:
    async def scenario(receiver: WebReceiver, sender: WebhookSender) -> None:
        asked = iter(["1 Jan 99999999999999999999 0:0:0", "soon"])

        def decide(_messages: object) -> Answer:
            if (wait := next(asked, "")) == "":
                return Answer()
            return Answer(503, takes=False, headers=(("Retry-After", wait),))

        receiver.decide = decide
        assert await sender.send([ONE]) == []
        assert len(receiver.taken) == 1

    run(scenario)


def test_pauses_double_and_vary() -> None:
    sender = sender_to(WebReceiver(), pause=1.0)
    pauses = [sender._pause(tries, None) for tries in (1, 2, 3, 20)]
    for pause, whole in zip(pauses, (1, 2, 4, 300), strict=True):
        assert whole / 2 <= pause <= whole
    assert 7 <= sender._pause(1, 7.0) <= 8
    assert len({sender._pause(3, None) for _ in range(5)}) == 5


def test_a_receiver_that_does_not_answer_in_time_is_asked_again() -> None:
    definition = SinkDefinition(
        *("free", "SELECT", SinkConnector.WEBHOOK, SinkMode.UPSERT),
        key=("desk",),
        tries=1,
        timeout=500_000,
    )

    async def scenario(receiver: WebReceiver, sender: WebhookSender) -> None:
        told: list[str] = []

        def decide(_messages: object) -> Answer:
            told.append(sender.problem)
            return Answer(wait=2.0, takes=False) if len(told) < 3 else Answer()

        receiver.decide = decide
        assert await sender.send([ONE]) == []
        assert told == ["", *["the receiver is away: no answer within 0.5 s"] * 2]

    run(scenario, definition=definition)


def test_nobody_who_listens_is_waited_for() -> None:
    async def scenario(receiver: WebReceiver, sender: WebhookSender) -> None:
        await receiver.close()
        sending = asyncio.create_task(sender.send([ONE]))
        await until_there_is_a_problem(sender)
        assert sender.problem == "the receiver is away: nothing listens at 127.0.0.1"
        again = WebReceiver(port=receiver.port)
        async with again:
            assert await sending == []
        assert len(again.taken) == 1

    run(scenario)


def test_a_host_that_nobody_knows_is_named() -> None:
    async def scenario() -> None:
        endpoint = WebhookEndpoint(url="http://no-such-host.invalid/", secret=SECRET)
        sender = WebhookSender(UPSERTS, SCHEMA, endpoint, lambda: 0)
        sending = asyncio.create_task(sender.send([ONE]))
        await until_there_is_a_problem(sender)
        sending.cancel()
        assert "the host name 'no-such-host.invalid' is not known" in sender.problem
        await sender.close()

    asyncio.run(scenario())


def test_a_receiver_without_tls_is_named_as_such() -> None:
    async def speak(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 this port has no TLS\r\n\r\n")
        writer.close()

    async def scenario() -> None:
        async with await asyncio.start_server(speak, "127.0.0.1", 0) as server:
            url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
            sender = WebhookSender(
                UPSERTS, SCHEMA, WebhookEndpoint(url=url, secret=SECRET), lambda: 0
            )
            sending = asyncio.create_task(sender.send([ONE]))
            await until_there_is_a_problem(sender)
            sending.cancel()
            assert sender.problem.startswith("the receiver is away: TLS failed: WRONG_VERSION")
            await sender.close()

    asyncio.run(scenario())


def test_a_message_has_a_bound_and_a_request_is_cut_by_bytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(webhook_sender, "MAX_PAYLOAD_BYTES", 900)

    async def scenario(receiver: WebReceiver, sender: WebhookSender) -> None:
        names = ["a" * 200, "b" * 200, "c" * 2_000, "d" * 200, "e" * 200]
        batch = [Outgoing((name,), None) for name in names]
        (refused,) = await sender.send(batch)
        assert refused.message == batch[2]
        assert refused.reason == "the message takes 2030 bytes; the max is 900"
        sent = [[m["key"]["desk"][0] for m in r["messages"]] for r in receiver.requests]
        assert sent == [["a", "b", "d"], ["e"]]
        assert max(receiver.lengths) <= 900

    run(scenario)


def test_an_authority_that_is_no_file_is_told() -> None:
    endpoint = WebhookEndpoint(url="https://127.0.0.1:1/", secret=SECRET, ca="/no/such/file")
    sender = WebhookSender(UPSERTS, SCHEMA, endpoint, lambda: 0)
    with pytest.raises(DeploymentError, match="authority"):
        asyncio.run(sender.send([ONE]))
