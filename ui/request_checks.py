"""Checks of every request: host and origin, limits, protective headers."""

from fastapi.responses import JSONResponse
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ui.console_names import Hosts

MAX_BODY = 1_000_000
TOO_LARGE = f"at most {MAX_BODY} bytes are accepted"

# The editor and Leaflet's ant path bring style elements of their own; scripts are only ours.
POLICY = (
    "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
}


class Guard:
    """Refuses foreign names, requests that pages of other origins make, and large bodies.

    Plain ASGI, so that event streams pass through without another task and queue in between.
    """

    def __init__(self, app: ASGIApp, hosts: Hosts) -> None:
        self._app = app
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        received, started = 0, False

        async def with_headers(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        async def bounded() -> Message:
            """Count the body as it comes, whatever the headers say of its length."""
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received <= MAX_BODY:
                return message
            if started:
                return {"type": "http.disconnect"}
            raise HTTPException(413, TOO_LARGE)

        refusal = self._refusal(Headers(scope=scope))
        await (refusal or self._app)(scope, bounded, with_headers)

    def _refusal(self, headers: Headers) -> JSONResponse | None:
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self._hosts.allow(hosts[0]):
            named = f"{hosts[0]!r:.120}" if len(hosts) == 1 else f"{len(hosts)} names"
            return problem(
                421,
                "wrong_host",
                f"this console has no host name {named}",
                "to allow it, start the console with --allow-host NAME (setting allowed_hosts)",
            )
        origin = headers.get("origin")
        if origin is not None and origin.partition("://")[2].lower() != hosts[0].lower():
            return problem(403, "forbidden", f"requests from {origin:.200} are not accepted")
        if _is_from_elsewhere(headers):
            return problem(403, "forbidden", "requests from pages of other sites are not accepted")
        length = headers.get("content-length", "0")
        if not length.isascii() or not length.isdigit() or int(length[:20]) > MAX_BODY:
            return problem(413, "too_large", TOO_LARGE)
        return None


def _is_from_elsewhere(headers: Headers) -> bool:
    """Whether a browser says that a page of another site asks; following a link is no such request.

    A picture or script of a foreign page has no Origin header, and would hold an event stream open.
    """
    site = headers.get("sec-fetch-site", "same-origin")
    return site in ("cross-site", "same-site") and headers.get("sec-fetch-mode") != "navigate"


def problem(status: int, code: str, message: str, hint: str = "") -> JSONResponse:
    """Return an error as the interface words all of them."""
    return JSONResponse({"error": {"code": code, "message": message, "hint": hint}}, status)
