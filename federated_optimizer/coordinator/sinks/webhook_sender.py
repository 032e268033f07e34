"""Messages of sinks to a web address: signed batches, sent again until they are taken.

The form and the signature are those of Standard Webhooks (version 1): `webhook-id`,
`webhook-timestamp` and `webhook-signature`, which is `v1,` and the base64 of the HMAC-SHA256 of
`id.timestamp.body`.
"""

import asyncio
import base64
import hashlib
import hmac
import random
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import httpx
from typing_extensions import override

from federated_optimizer.coordinator.contract.sink_endpoints import WebhookEndpoint
from federated_optimizer.coordinator.sinks.outgoing import Outgoing, Refusal, Sender
from federated_optimizer.coordinator.sinks.row_payloads import payload_of, row_objects
from federated_optimizer.coordinator.sinks.sink_memory import digest
from host.clocks import Clock
from streamsql.catalog.sinks import SinkDefinition, SinkMode
from streamsql.data.schema import Schema
from streamsql.data.types import MICROSECONDS
from streamsql.errors import DeploymentError, WireError

FIRST_PAUSE = 1.0
LONGEST_PAUSE = 300.0
LONGEST_ASKED = 3_600.0
"""Seconds that a receiver may ask us to wait."""
MAX_ANSWER = 2_000
"""Bytes of an answer that are read, for its reason."""

_BAD_CONTENT = frozenset({400, 413, 415, 422})
"""Answers about what was sent: sending it again would not help."""
_WAIT = frozenset({429, 503})
"""Answers whose Retry-After counts as no failure."""


@dataclass(frozen=True, slots=True)
class _Answer:
    """What came of one request.

    Attributes:
        reason: Empty: the receiver has the messages.
        is_final: Sending the same again would not help.
        wait: Seconds that the receiver asks for, or None.
    """

    reason: str = ""
    is_final: bool = False
    wait: float | None = None


Random = Callable[[], float]
"""Gives numbers from 0 to 1."""


class WebhookSender(Sender):
    """Posts the messages of one sink, one request at a time."""

    def __init__(  # noqa: PLR0913, PLR0917 - each is one seam
        self,
        definition: SinkDefinition,
        schema: Schema,
        endpoint: WebhookEndpoint,
        clock: Clock,
        chance: Random = random.random,
        first_pause: float = FIRST_PAUSE,
    ) -> None:
        self._definition = definition
        self._endpoint = endpoint
        self._key = endpoint.signing_key
        self._clock = clock
        self._chance = chance
        self._first_pause = first_pause
        self._object_of = row_objects(definition, schema)
        self._key_schema = Schema(
            tuple(schema.fields[schema.index_of(name)] for name in definition.key)
        )
        self._client: httpx.AsyncClient | None = None
        self._problem = ""

    @property
    @override
    def max_batch(self) -> int:
        return self._definition.batch

    @property
    @override
    def problem(self) -> str:
        return self._problem

    @override
    async def send(self, batch: Sequence[Outgoing]) -> list[Refusal]:
        refused: list[Refusal] = []
        messages = []
        for message in batch:
            try:
                payload_of(made := self._message(message))
            except (ValueError, WireError) as error:
                refused.append(Refusal(message, str(error)))
            else:
                messages.append((message, made))
        if messages:
            refused += await self._deliver(messages)
        self._problem = ""
        return refused

    @override
    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()

    async def _deliver(self, messages: Sequence[tuple[Outgoing, object]]) -> list[Refusal]:
        """Send until it is taken or given up; what a receiver finds wrong is sent one by one."""
        body = payload_of(
            {
                "sink": self._definition.name,
                "mode": str(self._definition.mode),
                "messages": [made for _, made in messages],
            }
        )
        name = f"msg_{digest(body + str(self._clock()).encode())}"
        tries, answer = 0, _Answer()
        while tries < self._definition.tries:
            answer = await self._post(body, name)
            if not answer.reason:
                return []
            if answer.is_final:
                break
            if answer.wait is None:
                tries += 1
            self._problem = answer.reason
            if tries < self._definition.tries:
                await asyncio.sleep(self._pause(tries, answer.wait))
        if answer.is_final and len(messages) > 1:
            return [found for one in messages for found in await self._deliver([one])]
        tried = max(tries, 1)
        return [Refusal(message, answer.reason, tried) for message, _ in messages]

    def _message(self, message: Outgoing) -> dict[str, object]:
        row = None if message.row is None else self._object_of(message.row)
        if self._definition.mode == SinkMode.APPEND:
            return {"number": message.number, "row": row}
        return {"key": self._key_schema.to_object(message.key), "row": row}

    def _pause(self, tries: int, asked: float | None) -> float:
        """Return seconds to wait: doubled each time, of it a part by chance; or what is asked."""
        if asked is not None:
            return asked + self._chance() * self._first_pause
        whole = min(self._first_pause * 2.0 ** (tries - 1), LONGEST_PAUSE)
        return whole * (0.5 + 0.5 * self._chance())

    async def _post(self, body: bytes, name: str) -> _Answer:
        stamp = str(self._clock() // MICROSECONDS)
        headers = {
            **self._endpoint.headers,
            "content-type": "application/json",
            "user-agent": "pando",
            "webhook-id": name,
            "webhook-timestamp": stamp,
            "webhook-signature": signature(self._key, name, stamp, body),
        }
        seconds = self._definition.timeout / MICROSECONDS
        try:
            client = self._opened()
            async with (
                asyncio.timeout(seconds),
                client.stream("POST", self._endpoint.url, content=body, headers=headers) as answer,
            ):
                return await self._answer(answer)
        except TimeoutError:
            return _Answer(f"no answer within {seconds:g} s")
        except httpx.HTTPError as error:
            return _Answer(f"{type(error).__name__}: {error}"[:200])
        except OSError as error:
            return _Answer(f"cannot connect: {error.strerror or error}"[:200])

    def _opened(self) -> httpx.AsyncClient:
        if self._client is None:
            try:
                verify = ssl.create_default_context(cafile=self._endpoint.ca or None)
            except OSError as error:
                raise DeploymentError(
                    f"endpoint {self._definition.endpoint}: the file of the authority cannot be "
                    f"used: {error}"
                ) from error
            seconds = self._definition.timeout / MICROSECONDS
            limits = httpx.Limits(max_connections=1, max_keepalive_connections=1)
            self._client = httpx.AsyncClient(
                verify=verify,
                limits=limits,
                timeout=seconds,
                trust_env=False,
                follow_redirects=False,
            )
        return self._client

    async def _answer(self, answer: httpx.Response) -> _Answer:
        code = answer.status_code
        if 200 <= code < 300:
            return _Answer()
        said = b""
        async for part in answer.aiter_raw(MAX_ANSWER):
            said += part
            if len(said) >= MAX_ANSWER:
                break
        text = " ".join(said[:MAX_ANSWER].decode("utf-8", "replace").split())[:120]
        reason = f"HTTP {code}: {text}" if text else f"HTTP {code}"
        wait = None
        if code in _WAIT and "retry-after" in answer.headers:
            wait = seconds_asked(answer.headers["retry-after"], self._clock())
        return _Answer(reason, code in _BAD_CONTENT, wait)


def signature(key: bytes, name: str, stamp: str, body: bytes) -> str:
    """Return what a receiver computes itself to know that we have sent a request.

    Examples:
        >>> signature(b"0123456789abcdef", "msg_1", "1767225600", b"{}")
        'v1,0HTe6b1IvsriwPNgJphy578NOqw+6ptRTkMpgLtboYA='
    """
    signed = b".".join((name.encode(), stamp.encode(), body))
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()


def seconds_asked(text: str, now: int) -> float | None:
    """Return the seconds of a Retry-After, at most an hour; None: nobody can read it.

    Args:
        text: A number of seconds, or a date.
        now: Microseconds since 1970.

    Examples:
        >>> seconds_asked("120", 0), seconds_asked("Thu, 01 Jan 1970 00:00:05 GMT", 2_000_000)
        (120.0, 3.0)
        >>> seconds_asked("soon", 0) is None
        True
    """
    if text.strip().isdecimal():
        return min(float(text.strip()[:10]), LONGEST_ASKED)
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    left = (moment - datetime.fromtimestamp(now / MICROSECONDS, UTC)).total_seconds()
    return min(max(left, 0.0), LONGEST_ASKED)
