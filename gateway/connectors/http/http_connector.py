"""The connector http: all pages of an endpoint, each asked at its interval."""

import asyncio
import ssl
from collections.abc import Mapping
from http.cookiejar import CookieJar, DefaultCookiePolicy

import httpx
import msgspec

from gateway.connectors.connector import ConnectorContext
from gateway.connectors.declared_source import DeclaredSource
from gateway.connectors.http.http_options import HttpEndpoint, HttpSource, Login, page_urls
from gateway.connectors.http.page import Content, Page, PageError
from streamsql.errors import DeploymentError
from streamsql.mapping.source_mapping import PayloadFormat

MAX_REQUESTS = 16
"""At the same time, over all hosts of an endpoint."""
KEPT_OPEN = 5.0
"""Seconds for which a connection waits for the next request; small devices have few of them."""
MAX_PAUSE = 60.0
"""Seconds from one try to the next while a page cannot be read, unless its interval is longer."""


class HttpConnector:
    """Asks for pages at intervals; a host gets one request at a time."""

    kind = "http"
    endpoint_options: type[msgspec.Struct] = HttpEndpoint
    source_options: type[msgspec.Struct] = HttpSource

    async def run(self, context: ConnectorContext) -> None:
        """Emit what the pages hold until cancelled."""
        endpoint = context.endpoint_as(HttpEndpoint)
        polls = _Polls(context)
        async with _client(endpoint, context.endpoint_name) as client, asyncio.TaskGroup() as tasks:
            for source in context.sources:
                options = source.options_as(HttpSource)
                try:
                    urls = page_urls(endpoint, options)
                except ValueError as error:
                    source.problem(str(error))
                    continue
                for url in urls:
                    # Rows of a key live as long as their device says so, be it by "unchanged".
                    definition = source.definition
                    renews = definition.ttl is not None and bool(definition.key)
                    page = Page(client, url, _format(source), endpoint.timeout, renews=renews)
                    tasks.create_task(polls.follow(source, page, options.interval))
            await asyncio.Event().wait()


class _Polls:
    """The polls of an endpoint."""

    def __init__(self, context: ConnectorContext) -> None:
        self._context = context
        self._all = asyncio.Semaphore(MAX_REQUESTS)
        self._hosts: dict[str, asyncio.Lock] = {}

    async def follow(self, source: DeclaredSource, page: Page, interval: float) -> None:
        """Read a page again and again; while that fails, after pauses that double."""
        loop = asyncio.get_running_loop()
        failures = 0
        while True:
            began = loop.time()
            pause = interval
            try:
                content = await self._read(page)
            except PageError as error:
                failures += 1
                self._complain(source, page, error)
                pause = max(interval, min(interval * 2.0 ** min(failures - 1, 20), MAX_PAUSE))
                pause = max(pause, error.retry_after)
            else:
                failures = 0
                if content is not None:
                    await self._emit(source, page, content)
                    # A gateway that is behind is not asked to keep more.
                    await self._context.kept()
            await asyncio.sleep(max(began + pause - loop.time(), 0))

    async def _read(self, page: Page) -> Content | None:
        async with self._hosts.setdefault(page.host, asyncio.Lock()), self._all:
            return await page.read()

    async def _emit(self, source: DeclaredSource, page: Page, content: Content) -> None:
        bad = source.bad
        readings = await source.read_aside(content.body, host=page.host, url=page.url)
        if readings:
            await self._context.emit_in_parts(readings)
        elif source.bad > bad and content.is_html and _format(source) != PayloadFormat.HTML:
            source.problem(f"{page.url}: the answer is an HTML page; is a login needed?")

    def _complain(self, source: DeclaredSource, page: Page, error: PageError) -> None:
        if error.unreachable:
            self._context.problem(f"{page.url}: {error}")
        else:
            source.problem(f"{page.url}: {error}")


def _format(source: DeclaredSource) -> PayloadFormat:
    mapping = source.definition.mapping
    return PayloadFormat.JSON if mapping is None else mapping.format


def _client(endpoint: HttpEndpoint, name: str) -> httpx.AsyncClient:
    """Return the client of an endpoint.

    Raises:
        DeploymentError: A header or a file of certificates is wrong.
    """
    # Packed as `content` unpacks it, within bounds; httpx would do it without any.
    headers: Mapping[str, str] = {"Accept-Encoding": "gzip, deflate", "User-Agent": "pando"}
    auth: httpx.Auth | None = None
    if endpoint.token:
        headers = {**headers, "Authorization": f"Bearer {endpoint.token}"}
    elif endpoint.user:
        login = httpx.DigestAuth if endpoint.login == Login.DIGEST else httpx.BasicAuth
        auth = login(endpoint.user, endpoint.password)
    try:
        return httpx.AsyncClient(
            auth=auth,
            headers={**headers, **endpoint.headers},
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),  # pages set them for ever
            verify=_certificates(endpoint),
            timeout=httpx.Timeout(endpoint.timeout),
            limits=httpx.Limits(max_connections=MAX_REQUESTS, keepalive_expiry=KEPT_OPEN),
            trust_env=False,  # neither proxies nor .netrc: devices are near
        )
    except (OSError, ValueError) as error:
        raise DeploymentError(f"endpoint {name}: {error!s:.200}") from None


def _certificates(endpoint: HttpEndpoint) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=endpoint.ca_file or None)
    if not endpoint.check_certificate:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
