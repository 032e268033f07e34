"""A layer between pages and console that makes every text of every answer hostile.

Each text that is shown ends with markup that would run a script; what pages send back is cleaned
of it, so that they work as ever. The policy against scripts is taken away: texts have to be safe
without it.
"""

import json
from typing import Any
from urllib.parse import quote, unquote

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MARKUP = (
    "<img class=forged src=x onerror=window.forged=1>\"'>"
    "<svg onload=window.forged=1></svg><b class=forged>"
)
MACHINE_KEYS = frozenset(
    {
        "status",
        "freshness",
        "role",
        "type",
        "origin",
        "emit",
        "code",
        "state",
        "kind",
        "outcome",
        "layer",
        "followed",
        "severity",
    }
)
"""Keys whose values are of a fixed list, which nobody writes."""


class HostileTexts:
    """Changes answers of the interface, and requests to it.

    Args:
        app: The console.
        texts: False: only the policy is taken away.
    """

    def __init__(self, app: ASGIApp, *, texts: bool = True) -> None:
        self._app = app
        self._texts = texts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path = unquote(scope["path"]).replace(MARKUP, "")
        query = unquote(scope["query_string"].decode()).replace(MARKUP, "")
        scope["path"], scope["raw_path"] = path, quote(path).encode()
        scope["query_string"] = quote(query, safe="=&").encode()
        kind, held = "", b""

        async def cleaned() -> Message:
            message = await receive()
            body = message.get("body", b"")
            for spelled in (json.dumps(MARKUP)[1:-1], MARKUP):
                body = body.replace(spelled.encode(), b"")
            return {**message, "body": body} if "body" in message else message

        async def forged(message: Message) -> None:
            nonlocal kind, held
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                kind = headers.get("content-type", "")
                del headers["content-security-policy"]
                kind = kind if self._texts else ""
                if "json" in kind:
                    del headers["content-length"]
            elif "json" in kind:
                held += message.get("body", b"")
                if message.get("more_body", False):
                    return
                message = {**message, "body": json.dumps(hostile(json.loads(held))).encode()}
            elif "event-stream" in kind:
                message = {**message, "body": _events(message.get("body", b""))}
            await send(message)

        # A body that shrinks is shorter than its length says, which nobody checks behind this.
        await self._app(scope, cleaned, forged)


def _events(body: bytes) -> bytes:
    """Return server-sent events, each of whose lines of data is JSON, with hostile texts."""
    lines = body.split(b"\n")
    for number, line in enumerate(lines):
        head, found, data = line.partition(b"data: ")
        if found and not head and data.strip():
            lines[number] = b"data: " + json.dumps(hostile(json.loads(data))).encode()
    return b"\n".join(lines)


def hostile(value: Any, key: str = "") -> Any:
    """Return JSON whose texts end with markup; names of fields and machine words stay."""
    match value:
        case dict():
            return {name: hostile(each, name) for name, each in value.items()}
        case list():
            return [hostile(each, key) for each in value]
        case str() if key not in MACHINE_KEYS and not _is_time(value):
            return value + MARKUP
        case _:
            return value


def _is_time(text: str) -> bool:
    return len(text) > 10 and text[4:5] == "-" and text[10:11] == "T" and text.endswith("Z")
