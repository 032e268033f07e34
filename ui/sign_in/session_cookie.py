"""The cookie that holds a session's secret."""

from http.cookies import CookieError, SimpleCookie

from starlette.datastructures import Headers
from starlette.responses import Response

MAX_COOKIES = 8_192
"""Characters of a Cookie header that are looked at."""


class SessionCookie:
    """Of one console; consoles at other ports of a host get the same cookies, so names differ."""

    def __init__(self, port: int) -> None:
        self._name = f"pando_{port}"

    def secret(self, headers: Headers, scheme: str) -> str:
        """Return the secret that a request brings, or nothing."""
        text = headers.get("cookie", "")
        if not text or len(text) > MAX_COOKIES:
            return ""
        cookies = SimpleCookie()
        try:
            cookies.load(text)
        except CookieError:
            return ""
        found = cookies.get(self._named(scheme))
        return found.value if found is not None else ""

    def put(self, response: Response, secret: str, scheme: str, seconds: int) -> None:
        """Let the browser keep a secret: for this console's own pages, unseen by scripts."""
        response.set_cookie(
            self._named(scheme),
            secret,
            max_age=seconds,
            path="/",
            secure=scheme == "https",
            httponly=True,
            samesite="strict",
        )

    def remove(self, response: Response, scheme: str) -> None:
        """Let the browser forget it."""
        response.delete_cookie(
            self._named(scheme),
            path="/",
            secure=scheme == "https",
            httponly=True,
            samesite="strict",
        )

    def _named(self, scheme: str) -> str:
        # Browsers take the prefix only over TLS, from this very host: no neighbour can set it.
        return f"__Host-{self._name}" if scheme == "https" else self._name
