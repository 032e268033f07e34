"""What every request passes: limits, and headers that keep pages from being misused."""

from urllib.parse import urlsplit

from fastapi.responses import JSONResponse
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_BODY = 1_000_000
_SAFE = ("GET", "HEAD", "OPTIONS")

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
    """Refuses large bodies and changes that pages of other origins ask for.

    Plain ASGI, so that event streams pass through without another task and queue in between.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refusal = _refusal(scope["method"], Headers(scope=scope))
        if refusal is not None:
            await refusal(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, with_headers)


def problem(status: int, code: str, message: str, hint: str = "") -> JSONResponse:
    """Return an error as the interface words all of them."""
    return JSONResponse({"error": {"code": code, "message": message, "hint": hint}}, status)


def _refusal(method: str, headers: Headers) -> JSONResponse | None:
    if method in _SAFE:
        return None
    origin = headers.get("origin")
    if origin is not None and urlsplit(origin).netloc != headers.get("host"):
        return problem(403, "forbidden", f"requests from {origin:.200} are not accepted")
    if "chunked" in headers.get("transfer-encoding", ""):
        return problem(411, "length_required", "send the length of the body")
    length = headers.get("content-length", "0")
    if not length.isdigit() or int(length) > MAX_BODY:
        return problem(413, "too_large", f"at most {MAX_BODY} bytes are accepted")
    return None
