"""One page of one host: asked with what is known of it, read within bounds."""

import asyncio
from dataclasses import dataclass

import httpx

from gateway.connectors.http.content import Body, ContentError, in_utf_8
from host.clocks import wall_clock
from host.retry_after import retry_after
from streamsql.mapping.payloads.payload_reader import MAX_PAYLOAD
from streamsql.mapping.source_mapping import PayloadFormat

MAX_REDIRECTS = 3
MAX_RENEWED = 16_000
"""Bytes of a page that is kept to be read again; a thousand hosts may have one each."""
_TEXTS = frozenset({PayloadFormat.JSON, PayloadFormat.TEXT, PayloadFormat.CSV})
"""Formats that do not say themselves how their text is encoded."""
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


class PageError(Exception):
    """A page could not be read; the text says why.

    Attributes:
        unreachable: Whether its host did not answer at all.
        retry_after: Seconds that the host asks to be left alone, or 0.
    """

    def __init__(self, text: str, *, unreachable: bool = False, retry_after: float = 0.0) -> None:
        super().__init__(text)
        self.unreachable = unreachable
        self.retry_after = retry_after


@dataclass(frozen=True, slots=True)
class Content:
    """Content of a page.

    Attributes:
        body: In UTF-8 if the format is a text.
        is_html: Whether the host says that it is an HTML page.
    """

    body: bytes
    is_html: bool


class Page:
    """A page that is read again and again.

    Args:
        client: Of the endpoint: with login, timeouts and certificates.
        url: Of the page.
        form: How its payload is read.
        seconds: For one request, its redirects and its whole answer.
        renews: Whether a page that is the same as last time counts as read again.
    """

    def __init__(
        self,
        client: httpx.AsyncClient,
        url: str,
        form: PayloadFormat,
        seconds: float,
        *,
        renews: bool = False,
    ) -> None:
        self.url = url
        self.host = httpx.URL(url).host
        self._client = client
        self._form = form
        self._seconds = seconds
        self._known: dict[str, str] = {}
        self._renews = renews
        self._last: Content | None = None

    async def read(self) -> Content | None:
        """Return the page; None: it is the same as last time, says its host, and is not renewed.

        Raises:
            PageError: It cannot be read.
        """
        try:
            # httpx has a time limit for each chunk only.
            async with asyncio.timeout(self._seconds):
                return await self._read()
        except TimeoutError:
            raise PageError(f"no answer within {self._seconds:g} s", unreachable=True) from None
        except httpx.TransportError as error:
            reason = str(error) or type(error).__name__
            raise PageError(f"no answer: {reason:.200}", unreachable=True) from None
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, OSError) as error:
            raise PageError(f"{type(error).__name__}: {error!s:.200}") from None
        except ContentError as error:
            raise PageError(str(error)) from None

    async def _read(self) -> Content | None:
        request = self._client.build_request("GET", self.url, headers=self._known)
        for _ in range(MAX_REDIRECTS + 1):
            response = await self._client.send(request, stream=True)
            try:
                if response.status_code not in _REDIRECTS or response.next_request is None:
                    return await self._content(response)
                request = self._followed(request, response.next_request)
            finally:
                await response.aclose()
        raise PageError(f"more than {MAX_REDIRECTS} redirects")

    def _followed(self, request: httpx.Request, following: httpx.Request) -> httpx.Request:
        """Return the request that a redirect asks for.

        Raises:
            PageError: It leads to another host, which the endpoint does not name.
        """
        here, there = request.url, following.url
        if there.host != here.host or there.scheme not in {here.scheme, "https"}:
            raise PageError(
                f"redirected to {there.scheme}://{there.host:.80}, which is not followed"
            )
        return following

    async def _content(self, response: httpx.Response) -> Content | None:
        if response.status_code == 304:
            return self._last
        if response.status_code != 200:
            asked = retry_after(response.headers.get("Retry-After", ""), wall_clock())
            raise PageError(_status(response), retry_after=asked or 0.0)
        kind = response.headers.get("Content-Type", "")
        body = Body(response.headers.get("Content-Encoding", ""), MAX_PAYLOAD)
        async for part in response.aiter_raw():
            body.add(part)
        whole = body.whole()
        if self._form in _TEXTS:
            whole = in_utf_8(whole, kind)
        content = Content(whole, is_html=kind.lower().startswith("text/html"))
        self._remember(response, content)
        return content

    def _remember(self, response: httpx.Response, content: Content) -> None:
        self._known = {}
        if self._renews:
            self._last = content if len(content.body) <= MAX_RENEWED else None
            if self._last is None:
                return  # it is sent each time
        headers = (("ETag", "If-None-Match"), ("Last-Modified", "If-Modified-Since"))
        self._known = {
            back: value
            for name, back in headers
            if 0 < len(value := response.headers.get(name, "")) <= 1_000 and value.isascii()
        }


def _status(response: httpx.Response) -> str:
    status = f"status {response.status_code} {response.reason_phrase:.60}".rstrip()
    if response.status_code in {401, 403}:
        return f"{status}: check user and password, or token, of the endpoint"
    return status
