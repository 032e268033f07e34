"""Commands of the coordinator: carried out, answered where an answer was asked for, bounded."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from gateway.session.command_answers import MAX_RUNNING, Answer, CommandAnswers
from host.mqtt.in_memory import InMemoryBroker
from streamsql.wire.codec import decode_json
from streamsql.wire.messages import Command
from streamsql.wire.topics import Topics

TOPICS = Topics("house")


def run(
    handlers: dict[str, Callable[[Command], Any]],
    scenario: Callable[[CommandAnswers], Awaitable[None]],
) -> dict[str, dict[str, Any]]:
    """Let a site hear commands; return its answers by id."""
    answers: dict[str, dict[str, Any]] = {}

    async def whole() -> None:
        broker = InMemoryBroker()
        site, reader = broker.client("gw-1"), broker.client("reader")
        await site.connect()
        await reader.connect()
        heard = asyncio.Event()

        def note(burst: list[Any]) -> None:
            for message in burst:
                answer = decode_json(message.payload, Command)
                answers[answer.id] = dict(answer.arguments)
                if answer.id == "last":
                    heard.set()

        reader.on_messages(note)
        await reader.subscribe(TOPICS.response())
        commands = CommandAnswers(
            "gw-1", site, TOPICS, {**handlers, "last": lambda _command: {"done": True}}
        )
        await scenario(commands)
        commands.heard("last", Command(id="last"))
        async with asyncio.timeout(20):
            await heard.wait()
        await commands.close()
        await site.close()
        await reader.close()

    asyncio.run(whole())
    del answers["last"]
    return answers


def test_answers_go_to_those_who_gave_an_id() -> None:
    async def scenario(commands: CommandAnswers) -> None:
        commands.heard("ping", Command(id="a"))
        commands.heard("ping", Command())
        commands.heard("dance", Command(id="b"))

    answers = run({"ping": lambda _command: {"done": True}}, scenario)
    assert answers == {
        "a": {"done": True},
        "b": {"done": False, "message": "unknown command dance"},
    }


def test_a_command_that_takes_a_while_is_answered_then_and_their_number_is_bounded() -> None:
    began: list[str] = []

    async def slow(command: Command) -> Answer:
        began.append(command.id)
        await asyncio.Event().wait()
        return {}

    async def quick(command: Command) -> Answer:
        return {"done": True, "id": command.id}

    async def scenario(commands: CommandAnswers) -> None:
        commands.heard("quick", Command(id="q"))
        await asyncio.sleep(0)
        for number in range(2 * MAX_RUNNING):
            commands.heard("slow", Command(id=f"s{number}"))
        await asyncio.sleep(0)

    answers = run({"slow": slow, "quick": quick}, scenario)
    assert answers["q"] == {"done": True, "id": "q"}
    assert 0 < len(began) <= MAX_RUNNING
    refused = [each for each in answers.values() if not each["done"]]
    assert len(refused) >= MAX_RUNNING
    assert refused[0]["message"] == "too many commands at once"
