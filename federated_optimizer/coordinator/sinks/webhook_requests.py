"""One request of a webhook: its signature, and what came of it.

The form and the signature are those of Standard Webhooks (version 1): `webhook-id`,
`webhook-timestamp` and `webhook-signature`, which is `v1,` and the base64 of the HMAC-SHA256 of
`id.timestamp.body`.
"""

import asyncio
import base64
import contextlib
import hashlib
import hmac
import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto

import httpx

from federated_optimizer.coordinator.contract.sink_endpoints import WebhookEndpoint
from host.clocks import Clock
from host.retry_after import retry_after
from streamsql.data.types import MICROSECONDS
from streamsql.errors import DeploymentError

MAX_ANSWER = 2_000
"""Bytes of an answer that are read, for its reason."""
REST_SECONDS = 1.0
"""How long the rest of an answer is waited for after it has said that the messages are taken."""

_BAD_CONTENT = frozenset({400, 413, 415, 422})
_TOO_EARLY = frozenset({408, 425, 429})
_MAY_ASK = frozenset({429, 503})
"""Answers whose Retry-After is heeded."""


class Outcome(Enum):
    """Outcome of a request."""

    TAKEN = auto()
    AWAY = auto()  # nobody answers, or who answers cannot take anything now
    REFUSED = auto()  # an answer about us or the address: 401, 404, …
    BAD_CONTENT = auto()  # an answer about what was sent: sending it again does not help


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer to one request.

    Attributes:
        reason: In words; empty if it was taken.
        wait: Seconds that the receiver asks for, or None.
    """

    outcome: Outcome
    reason: str = ""
    wait: float | None = None


class WebhookRequests:
    """Posts signed bodies to one address, one at a time."""

    def __init__(self, name: str, endpoint: WebhookEndpoint, clock: Clock, timeout: float) -> None:
        self._name = name
        self._endpoint = endpoint
        self._key = endpoint.signing_key
        self._clock = clock
        self._timeout = timeout
        self._client: httpx.AsyncClient | None = None

    async def close(self) -> None:
        """Close the connection."""
        if self._client is not None:
            await self._client.aclose()

    async def post(self, body: bytes, name: str) -> Answer:
        """Send a body once.

        Args:
            body: JSON.
            name: Its `webhook-id`.

        Raises:
            DeploymentError: The file of the authority cannot be used.
        """
        stamp = str(self._clock() // MICROSECONDS)
        headers = {
            **self._endpoint.headers,
            "content-type": "application/json",
            "user-agent": "pando",
            "webhook-id": name,
            "webhook-timestamp": stamp,
            "webhook-signature": signature(self._key, name, stamp, body),
        }
        try:
            client = self._opened()
            async with (
                asyncio.timeout(self._timeout) as limit,
                client.stream("POST", self._endpoint.url, content=body, headers=headers) as answer,
            ):
                if 200 <= answer.status_code < 300:
                    limit.reschedule(None)  # whatever comes now, the messages are taken
                    await _read_rest(answer)
                    return Answer(Outcome.TAKEN)
                return await self._refusal(answer)
        except (TimeoutError, httpx.TimeoutException):
            return Answer(Outcome.AWAY, f"no answer within {self._timeout:g} s")
        except (httpx.HTTPError, OSError) as error:
            return Answer(Outcome.AWAY, self._words(error)[:300])

    def _opened(self) -> httpx.AsyncClient:
        if self._client is None:
            try:
                verify = ssl.create_default_context(cafile=self._endpoint.ca or None)
            except OSError as error:
                raise DeploymentError(
                    f"endpoint {self._name}: the file of the authority cannot be used: {error}"
                ) from error
            self._client = httpx.AsyncClient(
                verify=verify,
                limits=httpx.Limits(max_connections=1, max_keepalive_connections=1),
                timeout=self._timeout,
                trust_env=False,
                follow_redirects=False,
            )
        return self._client

    async def _refusal(self, answer: httpx.Response) -> Answer:
        code = answer.status_code
        said = await _beginning(answer)
        text = " ".join(said.decode("utf-8", "replace").split())[:120]
        wait = None
        if code in _MAY_ASK and "retry-after" in answer.headers:
            wait = retry_after(answer.headers["retry-after"], self._clock())
        return Answer(outcome_of(code), f"HTTP {code}: {text}" if text else f"HTTP {code}", wait)

    def _words(self, error: Exception) -> str:
        """Return why there is no connection; what httpx raises hides the cause."""
        host = httpx.URL(self._endpoint.url).host
        for cause in _causes(error):
            match cause:
                case ssl.SSLCertVerificationError():
                    why = cause.verify_message or str(cause)
                    return (
                        f"its certificate is not trusted: {why}; `ca` of endpoint {self._name} "
                        "names the file of the authority that signed it"
                    )
                case ssl.SSLError():
                    return f"TLS failed: {cause.reason or cause}; check https:// and the port"
                case socket.gaierror():
                    return f"the host name {host!r:.80} is not known ({cause.strerror})"
                case ConnectionRefusedError():
                    return f"nothing listens at {host}"
                case _:
                    pass
        return f"{type(error).__name__}: {error}"


async def _beginning(answer: httpx.Response) -> bytes:
    said = b""
    async for part in answer.aiter_raw(MAX_ANSWER):
        said += part
        if len(said) >= MAX_ANSWER:
            break
    return said[:MAX_ANSWER]


async def _read_rest(answer: httpx.Response) -> None:
    """Read an answer to its end, if that is near: only then its connection is used again."""
    with contextlib.suppress(TimeoutError, httpx.HTTPError):
        async with asyncio.timeout(REST_SECONDS):
            await _beginning(answer)


def outcome_of(status: int) -> Outcome:
    """Return what an HTTP status means for messages.

    Examples:
        >>> outcome_of(204), outcome_of(503), outcome_of(404), outcome_of(422)
        (<Outcome.TAKEN: 1>, <Outcome.AWAY: 2>, <Outcome.REFUSED: 3>, <Outcome.BAD_CONTENT: 4>)
    """
    if 200 <= status < 300:
        return Outcome.TAKEN
    if status >= 500 or status in _TOO_EARLY:
        return Outcome.AWAY
    return Outcome.BAD_CONTENT if status in _BAD_CONTENT else Outcome.REFUSED


def signature(key: bytes, name: str, stamp: str, body: bytes) -> str:
    """Return what a receiver computes itself to know that we have sent a request.

    Examples:
        >>> signature(b"0123456789abcdef", "msg_1", "1767225600", b"{}")
        'v1,0HTe6b1IvsriwPNgJphy578NOqw+6ptRTkMpgLtboYA='
    """
    signed = b".".join((name.encode(), stamp.encode(), body))
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and those it was raised from."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
