"""Bodies are unpacked within their bounds, and texts come in UTF-8."""

import gzip
import zlib

import pytest

from gateway.connectors.http.content import Body, ContentError, in_utf_8


@pytest.mark.parametrize(
    ("encoding", "packed"),
    [("", b"abc"), ("identity", b"abc"), ("gzip", gzip.compress(b"abc", mtime=0)),
     ("deflate", zlib.compress(b"abc"))],
)  # fmt: skip
@pytest.mark.parametrize("step", [1, 100])
def test_a_body_is_whole_however_it_comes(encoding: str, packed: bytes, step: int) -> None:
    body = Body(encoding, limit=3)
    for start in range(0, len(packed), step):
        body.add(packed[start : start + step])
    assert body.whole() == b"abc"


@pytest.mark.parametrize(
    "packed", [b"abcd", gzip.compress(b"abcd", mtime=0), gzip.compress(b"\0" * 10**7, mtime=0)]
)
def test_a_body_over_its_limit_is_refused(packed: bytes) -> None:
    body = Body("gzip" if packed[:2] == b"\x1f\x8b" else "", limit=3)
    with pytest.raises(ContentError) as refusal:
        body.add(packed)
    assert refusal.value.too_large


def test_an_unknown_packing_is_no_matter_of_size() -> None:
    with pytest.raises(ContentError) as refusal:
        Body("zstd", limit=3)
    assert not refusal.value.too_large


@pytest.mark.parametrize(
    "charset", ["punycode", "idna", "unicode_escape", "zlib_codec", "x" * 40, "utf-7", "raw"]
)
def test_charsets_that_no_device_uses_are_not_read(charset: str) -> None:
    with pytest.raises(ContentError, match="is not read"):
        in_utf_8(b"a" * 100_000, f"text/plain; charset={charset}")


def test_the_charset_is_that_of_the_header() -> None:
    assert (
        in_utf_8("ü".encode("cp1252"), 'text/csv; header=present; charset="CP1252"') == b"\xc3\xbc"
    )
    assert in_utf_8(b"\xff", "text/csv") == b"\xff"
