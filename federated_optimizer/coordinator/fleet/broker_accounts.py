"""Commands for the broker's accounts, over the coordinator's own connection, and their answers."""

import asyncio
import secrets
from collections.abc import Sequence

from msgspec.structs import replace

from broker.access.rights import CONTROL_TOPIC, RESPONSE_TOPIC
from broker.access.security_commands import (
    Command,
    Response,
    decode_responses,
    encode_commands,
)
from host.mqtt import Message, MessageClient, MessagingError, SubscribeRefused
from streamsql.errors import DeploymentError

ANSWER_SECONDS = 5.0
MAX_WAITING = 100
_NO_ACCOUNTS = (
    "start the broker with accounts: Mosquitto with its plug-in for dynamic security, the embedded "
    "broker with --dynamic-security, or `pando up --secure`"
)


class AccountsError(DeploymentError):
    """The broker did not do what its accounts need."""

    code = "broker_accounts"


class BrokerAccounts:
    """Asks the broker, one request at a time or several.

    Args:
        client: The coordinator's; it may send commands and read the answers.
    """

    def __init__(self, client: MessageClient) -> None:
        self._client = client
        self._waiting: dict[str, asyncio.Future[tuple[Response, ...]]] = {}
        self._listens = False
        client.on_messages(self._heard)

    async def ask(
        self, commands: Sequence[Command], *, accepted: Sequence[str] = ()
    ) -> tuple[Response, ...]:
        """Let the broker carry out commands, in order, and return its answers.

        Args:
            commands: Sent in one message.
            accepted: Errors that are none here, such as "Role already exists".

        Raises:
            AccountsError: The broker is away, does not answer, or answers with another error.
        """
        if not self._client.connected:
            raise AccountsError("the broker cannot be reached", hint="try again when it is back")
        if len(self._waiting) >= MAX_WAITING:
            raise AccountsError(f"{MAX_WAITING} requests to the broker wait already")
        await self._listen()
        token = secrets.token_hex(8)
        tagged = [replace(command, correlation_data=token) for command in commands]
        future: asyncio.Future[tuple[Response, ...]] = asyncio.get_running_loop().create_future()
        self._waiting[token] = future
        try:
            self._client.publish(CONTROL_TOPIC, encode_commands(tagged))
            async with asyncio.timeout(ANSWER_SECONDS):
                answers = await future
        except TimeoutError:
            raise AccountsError(
                f"the broker did not answer within {ANSWER_SECONDS:g} s: it keeps no accounts, or "
                "the coordinator may not manage them",
                hint=_NO_ACCOUNTS,
            ) from None
        except MessagingError as error:
            raise AccountsError(f"the broker cannot be asked: {error}") from error
        finally:
            self._waiting.pop(token, None)
        for answer in answers:
            if answer.error and answer.error not in accepted:
                raise AccountsError(f"the broker refuses {answer.command}: {answer.error}")
        return answers

    async def _listen(self) -> None:
        if self._listens:
            return
        try:
            await self._client.subscribe(RESPONSE_TOPIC)
        except SubscribeRefused as error:
            raise AccountsError(
                "the broker does not let the coordinator manage its accounts", hint=_NO_ACCOUNTS
            ) from error
        self._listens = True

    def _heard(self, burst: Sequence[Message]) -> None:
        for message in burst:
            if message.topic == RESPONSE_TOPIC:
                self._answered(message.payload)

    def _answered(self, payload: bytes) -> None:
        """Pass on the answers to one message; those to somebody else's are none of ours."""
        try:
            answers = decode_responses(payload)
        except ValueError:
            return
        future = self._waiting.get(answers[0].correlation_data) if answers else None
        if future is not None and not future.done():
            future.set_result(answers)
