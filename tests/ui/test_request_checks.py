"""Bodies above the limit are refused by every route, however they are encoded."""

import gzip
import re
from collections.abc import Iterator

import httpx
import pytest

from ui.request_checks import MAX_BODY
from ui.sign_in.route_roles import ROUTES

WITH_BODY = sorted(route for route in ROUTES if route.split()[0] in ("POST", "PATCH"))
JSON = {"content-type": "application/json"}
FORM = {"content-type": "application/x-www-form-urlencoded"}
PARTS = {"content-type": "multipart/form-data; boundary=b"}


def pieces(content: bytes) -> Iterator[bytes]:
    """Yield a body of unknown length: it goes out in chunks."""
    for begin in range(0, len(content), 50_000):
        yield content[begin : begin + 50_000]


LARGE = b'{"text": "' + b"x" * MAX_BODY + b'"}'
PART = b'--b\r\ncontent-disposition: form-data; name="text"; filename="f"\r\n\r\n'
BOMB = gzip.compress(b"x" * 200_000_000)
FIVE = gzip.compress(b'{"text": "SELECT 1"}') * 40_000
"""More than the limit also as it comes."""


def send(
    client: httpx.Client, route: str, kind: dict[str, str], content: bytes, chunked: bool
) -> int:
    method, _, path = route.partition(" ")
    path = re.sub(r"\{[^}]*\}", "1", path)
    body = pieces(content) if chunked else content
    return client.request(method, path, content=body, headers=kind).status_code


@pytest.mark.parametrize("chunked", [False, True], ids=["whole", "chunked"])
@pytest.mark.parametrize(
    ("kind", "content"),
    [
        (JSON, LARGE),
        (FORM, b"text=" + b"x" * MAX_BODY),
        (PARTS, PART + b"x" * MAX_BODY + b"\r\n--b--\r\n"),
        ({**JSON, "content-encoding": "gzip"}, FIVE),
        ({**JSON, "content-encoding": "identity"}, LARGE),
    ],
    ids=["json", "form", "multipart", "gzip", "identity"],
)
def test_large_bodies_are_refused_everywhere(
    client: httpx.Client, chunked: bool, kind: dict[str, str], content: bytes
) -> None:
    assert len(content) > MAX_BODY
    found = {route: send(client, route, kind, content, chunked) for route in WITH_BODY}
    # Routes that read no body answer before it has come; it is dropped as it comes.
    unread = {route for route, status in found.items() if status != 413}
    assert not chunked or all(found[route] < 500 for route in unread), found
    if not chunked:
        assert unread == set()
    reading = {
        "POST /api/statements",
        "POST /api/validate",
        "POST /api/complete",
        "POST /api/sign-in",
    }
    assert not reading & unread


def test_what_is_compressed_is_never_expanded(client: httpx.Client) -> None:
    """200 MB in 0.2 MB: refused as no JSON, without the memory or the time to expand it."""
    assert len(BOMB) < MAX_BODY
    for encoding in ("gzip", "deflate", "br", "zstd", "gzip, gzip"):
        kind = {**JSON, "content-encoding": encoding}
        assert send(client, "POST /api/validate", kind, BOMB, chunked=False) in (400, 422)
    said = client.post("/api/validate", content=b'{"text": "SELECT 1"}', headers=JSON)
    assert said.elapsed.total_seconds() < 20
