"""The cookie of a session, with and without TLS."""

import pytest
from starlette.datastructures import Headers
from starlette.responses import Response

from ui.sign_in.session_cookie import SessionCookie


@pytest.mark.parametrize(("scheme", "name"), [("http", "pando_1"), ("https", "__Host-pando_1")])
def test_what_is_put_is_found(scheme: str, name: str) -> None:
    cookie, answer = SessionCookie(1), Response()
    cookie.put(answer, "abc", scheme, 60)
    text = answer.headers["set-cookie"]
    assert text.startswith(f"{name}=abc;")
    assert ("; Secure" in text) == (scheme == "https")
    assert "Domain" not in text
    assert cookie.secret(Headers({"cookie": f"other=1; {name}=abc"}), scheme) == "abc"
    # What was set without TLS, by whoever, counts for nothing over TLS.
    other = {"http": "https", "https": "http"}[scheme]
    assert cookie.secret(Headers({"cookie": f"{name}=abc"}), other) == ""


def test_long_headers_are_not_looked_at() -> None:
    text = "a=1; " * 5_000 + "pando_1=abc"
    assert SessionCookie(1).secret(Headers({"cookie": text}), "http") == ""
