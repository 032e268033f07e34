"""Questions to a gateway over the broker, and its answers."""

import asyncio
import contextlib
import secrets
from collections.abc import Sequence

from federated_optimizer.coordinator.shared_parts import SharedParts
from host.mqtt import Message
from streamsql.data.types import Value
from streamsql.errors import DeploymentError, WireError
from streamsql.wire.codec import decode_json
from streamsql.wire.messages import CREDENTIALS, Command

ANSWER_SECONDS = 20.0
"""Within which a gateway has made a key, or written its files, or published some hours."""
MAX_WAITING = 100


class GatewayDialogue:
    """Asks gateways, and waits for their answers.

    Args:
        shared: The way to sites.
    """

    def __init__(self, shared: SharedParts) -> None:
        self._shared = shared
        self._waiting: dict[tuple[str, str], asyncio.Future[dict[str, Value]]] = {}
        shared.client.on_messages(self._heard)

    async def ask(self, gateway: str, arguments: dict[str, Value]) -> dict[str, Value]:
        """Send a command about credentials and return the answer.

        Raises:
            DeploymentError: The gateway is away, does not answer, or cannot do it.
        """
        hint = "its credentials are as they were; try again when it is there"
        answer = await self.answer(gateway, CREDENTIALS, arguments, hint)
        if not answer.get("done"):
            why = str(answer.get("message") or "it does not say why")
            raise DeploymentError(f"gateway {gateway} cannot change its credentials: {why:.300}")
        return answer

    async def answer(
        self, gateway: str, verb: str, arguments: dict[str, Value], hint: str
    ) -> dict[str, Value]:
        """Send a command and return the answer, whatever it says.

        Args:
            gateway: Whom.
            verb: What it is to do.
            arguments: Of the command.
            hint: Given with the error when it does not answer.

        Raises:
            DeploymentError: The gateway is away, does not answer, or too many are asked.
        """
        if len(self._waiting) >= MAX_WAITING:
            raise DeploymentError(f"{MAX_WAITING} answers are waited for", hint="retry later")
        self._shared.membership.check_reachable(gateway)
        key = (gateway, f"fleet-{secrets.token_hex(8)}")
        future: asyncio.Future[dict[str, Value]] = asyncio.get_running_loop().create_future()
        self._waiting[key] = future
        try:
            command = Command(id=key[1], arguments=arguments)
            self._shared.deployment.command(gateway, verb, command)
            async with asyncio.timeout(ANSWER_SECONDS):
                return await future
        except TimeoutError:
            raise DeploymentError(
                f"gateway {gateway} did not answer within {ANSWER_SECONDS:g} s", hint=hint
            ) from None
        finally:
            self._waiting.pop(key, None)

    def _heard(self, burst: Sequence[Message]) -> None:
        if not self._waiting:
            return
        for message in burst:
            # What cannot be read is set aside by whoever receives all messages.
            with contextlib.suppress(WireError):
                levels = self._shared.topics.parts(message.topic)
                if len(levels) == 4 and (levels[0], levels[2]) == ("gw", "rsp"):
                    self._answered((levels[1], levels[3]), message.payload)

    def _answered(self, key: tuple[str, str], payload: bytes) -> None:
        future = self._waiting.get(key)
        if future is not None and not future.done():
            future.set_result(dict(decode_json(payload, Command).arguments))
