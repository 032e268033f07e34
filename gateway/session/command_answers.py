"""Commands of the coordinator to a site: each verb's handler, and the answer that is asked for."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping

from host.mqtt import MessageClient
from host.mqtt.publishing import publish_or_warn
from streamsql.data.types import Value
from streamsql.wire.codec import encode_json
from streamsql.wire.messages import Command
from streamsql.wire.topics import Topics, check_id

log = logging.getLogger(__name__)

MAX_RUNNING = 20
"""Commands that may take a while, at once."""

Answer = dict[str, Value]
Handler = Callable[[Command], Answer | Coroutine[object, object, Answer] | None]


class CommandAnswers:
    """Carries out commands and answers those that have an id.

    Args:
        me: This site.
        client: Its connection.
        topics: Of the federation.
        handlers: By verb. A handler returns the answer, a coroutine for it, or None: it answers by
            itself, or nobody is answered.
    """

    def __init__(
        self, me: str, client: MessageClient, topics: Topics, handlers: Mapping[str, Handler]
    ) -> None:
        self._me = me
        self._client = client
        self._topics = topics
        self._handlers = handlers
        self._running: set[asyncio.Task[None]] = set()

    def heard(self, verb: str, command: Command) -> None:
        """Carry out a command; one that is unknown is answered, too."""
        handler = self._handlers.get(verb)
        if handler is None:
            log.warning("unknown command %r %s", verb[:40], command.id[:40])
            self._answer(command, {"done": False, "message": f"unknown command {verb:.40}"})
            return
        answer = handler(command)
        if isinstance(answer, dict):
            self._answer(command, answer)
        elif isinstance(answer, Coroutine) and len(self._running) >= MAX_RUNNING:
            answer.close()
            self._answer(command, {"done": False, "message": "too many commands at once"})
        elif answer is not None:
            task = asyncio.ensure_future(self._later(command, answer))
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    async def close(self) -> None:
        """End what runs."""
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    async def _later(self, command: Command, answer: Coroutine[object, object, Answer]) -> None:
        self._answer(command, await answer)

    def _answer(self, command: Command, answer: Answer) -> None:
        if not command.id:
            return
        topic = self._topics.response(self._me, check_id(command.id))
        payload = encode_json(Command(id=command.id, arguments=answer))
        publish_or_warn(self._client, topic, payload, otherwise="command not answered")
