"""The connector http_push: who may send what to which source, and when it is said to be kept."""

import asyncio
import base64
import binascii
import hmac
import ssl
from dataclasses import dataclass
from urllib.parse import unquote

import msgspec

from gateway.connectors.connector import ConnectorContext
from gateway.connectors.declared_source import DeclaredSource
from gateway.connectors.http.content import ContentError, in_utf_8
from gateway.connectors.http_push.bounded_server import (
    Answer,
    BoundedServer,
    Head,
    Limits,
    too_busy,
)
from gateway.connectors.http_push.push_options import PushEndpoint, PushSource
from gateway.connectors.reading import Reading
from gateway.connectors.turns import Turn
from streamsql.errors import DeploymentError
from streamsql.mapping.payloads.payload_reader import MAX_ROWS
from streamsql.mapping.source_mapping import PayloadFormat
from streamsql.mapping.topic_pattern import TopicPattern

MAX_WAITING = 32
"""Requests whose readings are not on disk yet; others are asked to come later."""
KEEP_SECONDS = 10.0
_LINES = frozenset({"application/x-ndjson", "application/jsonl", "application/x-jsonlines"})
_TEXTS = frozenset({PayloadFormat.JSON, PayloadFormat.TEXT, PayloadFormat.CSV})


@dataclass(frozen=True, slots=True)
class Route:
    """A source, the paths that are for it, and what its senders must show."""

    source: DeclaredSource
    pattern: TopicPattern
    token: bytes

    @property
    def form(self) -> PayloadFormat:
        """Format of bodies."""
        mapping = self.source.definition.mapping
        return PayloadFormat.JSON if mapping is None else mapping.format


class PushConnector:
    """Receives the requests of devices; a request is answered 202 when its readings are kept."""

    kind = "http_push"
    endpoint_options: type[msgspec.Struct] = PushEndpoint
    source_options: type[msgspec.Struct] = PushSource

    async def run(self, context: ConnectorContext) -> None:
        """Emit what is sent until cancelled.

        Raises:
            DeploymentError: The address cannot be listened on, or the certificate is wrong.
        """
        endpoint = context.endpoint_as(PushEndpoint)
        routes = [route for source in context.sources if (route := _route(source, endpoint))]
        server = BoundedServer(_Receiver(context, routes), Limits())
        where = f"{endpoint.host}:{endpoint.port}"
        try:
            async with server.listening(endpoint.host, endpoint.port, _tls(endpoint)) as port:
                context.note(f"listening on {endpoint.host}:{port}")
                await asyncio.Event().wait()
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise DeploymentError(f"cannot listen on {where}: {reason:.200}") from None


class _Receiver:
    """Hands the bodies of requests to the sources that they are for."""

    def __init__(self, context: ConnectorContext, routes: list[Route]) -> None:
        self._context = context
        self._routes = routes
        self._waiting = 0

    def admit(self, head: Head) -> Answer | None:
        """Return None, or why the request is refused.

        Who shows no token learns no path, and who shows one learns those of its sources only.
        """
        if not any(_is_shown(route.token, head) for route in self._routes):
            challenge = ("WWW-Authenticate", "Bearer")
            return Answer(401, {"error": "send Authorization: Bearer TOKEN"}, (challenge,))
        if not any(_is_shown(route.token, head) for route in self._found(head)):
            return Answer(404, {"error": "no source with this token has this path"})
        if head.method not in {"POST", "PUT"}:
            return Answer(405, {"error": "send a POST"}, (("Allow", "POST, PUT"),))
        if self._waiting >= MAX_WAITING:
            return too_busy(f"{self._waiting} requests wait to be kept")
        return None

    async def take(self, head: Head, body: bytes) -> Answer:
        """Emit the readings of a body; answer when they are kept."""
        readings: list[Reading] = []
        problems = 0
        reason = ""
        for route in self._found(head):
            if _is_shown(route.token, head):
                before = route.source.bad
                try:
                    readings += await self._read(route, head, body)
                except ContentError as error:
                    route.source.problem(f"{head.path:.100}: {error}")
                if route.source.bad > before:
                    problems += route.source.bad - before
                    reason = reason or route.source.last_bad
        if problems and not readings:
            return Answer(400, {"error": reason, "rows": 0, "problems": problems})
        return await self._kept(readings, problems)

    def refused(self, head: Head, reason: str) -> None:
        """Count a body that is too long, or packed in a way that is not known."""
        for route in self._found(head):
            if _is_shown(route.token, head):
                route.source.problem(f"{head.path:.100}: {reason}")

    async def _kept(self, readings: list[Reading], problems: int) -> Answer:
        self._waiting += 1
        try:
            await self._context.emit_in_parts(readings)
            async with asyncio.timeout(KEEP_SECONDS):
                await self._context.kept()
        except TimeoutError:
            error = {"error": f"not kept within {KEEP_SECONDS:g} s; send it again"}
            return Answer(503, error, (("Retry-After", "5"),))
        finally:
            self._waiting -= 1
        return Answer(202, {"rows": len(readings), "problems": problems})

    def _found(self, head: Head) -> list[Route]:
        path = _path(head)
        return [route for route in self._routes if route.pattern.facts(path) is not None]

    async def _read(self, route: Route, head: Head, body: bytes) -> list[Reading]:
        kind = head.headers.get("content-type", "")
        if route.form in _TEXTS:
            body = in_utf_8(body, kind)
        path = _path(head)
        levels = route.pattern.facts(path)
        if kind.partition(";")[0].strip().lower() not in _LINES:
            return await route.source.read_aside(body, levels, path=path)
        lines = body.splitlines()
        if len(lines) > MAX_ROWS:
            raise ContentError(f"{len(lines):,} lines; the max is {MAX_ROWS:,}")
        readings: list[Reading] = []
        turn = Turn()
        for line in lines:
            readings += await route.source.read_aside(line, levels, path=path)
            await turn.or_wait()
        return readings


def _path(head: Head) -> str:
    return unquote(head.path, errors="replace").strip("/")


def _is_shown(token: bytes, head: Head) -> bool:
    """Whether a request shows a token: as bearer, or as password of a basic login."""
    scheme, _, given = head.headers.get("authorization", "").partition(" ")
    shown = given.strip().encode("latin-1", "replace")
    if scheme.lower() == "basic":
        try:
            shown = base64.b64decode(shown, validate=True).partition(b":")[2]
        except binascii.Error:
            return False
    elif scheme.lower() != "bearer":
        return False
    return hmac.compare_digest(shown, token)


def _route(source: DeclaredSource, endpoint: PushEndpoint) -> Route | None:
    """Return the route to a source; what is wrong with it is the source's problem."""
    token = endpoint.token_of(source.name)
    if not token:
        source.problem(f"the endpoint has no token for {source.name}: add it to its `tokens`")
        return None
    try:
        pattern = TopicPattern(source.options_as(PushSource).path.strip("/") or source.name)
    except ValueError as error:
        source.problem(f"path: {error}")
        return None
    return Route(source, pattern, token.encode())


def _tls(endpoint: PushEndpoint) -> ssl.SSLContext | None:
    if not endpoint.certificate:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(endpoint.certificate, endpoint.certificate_key or None)
    return context
