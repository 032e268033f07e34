"""Payloads of a megabyte, each the worst that its format can be, and larger ones."""

from collections.abc import Iterator

from streamsql.mapping.payloads.payload_reader import MAX_PAYLOAD
from streamsql.mapping.source_mapping import PayloadFormat

LARGE: dict[PayloadFormat, list[bytes]] = {
    PayloadFormat.JSON: [b"[" * 1_000_000, b'{"rows":[' + b"{}," * 300_000 + b"{}]}",
                         b'{"d":"' + b"9" * 900_000 + b'"}', b"[" + b"1," * 400_000 + b"1]"],
    PayloadFormat.TEXT: [b"9" * 1_000_000],
    PayloadFormat.CSV: [b"a,b\n" * 250_000, b'"' * 999_999, b"," * 999_999],
    PayloadFormat.CBOR: [b"\x9f" * 999_999, b"\xbf" * 999_999, b"\x81" * 999_999,
                         b"\x9a\x00\x0f\x00\x00" + b"\x01" * 983_040],
    PayloadFormat.SENML: [b'[{"n":"d","v":1}' + b',{"n":"d","v":1}' * 60_000 + b"]",
                          b"[" + b",".join(b'{"n":"d","v":1,"u":"u%d"}' % n for n in range(35_000))
                          + b"]"],
    PayloadFormat.SENML_CBOR: [b"\x9f" + b"\xa2\x00\x61d\x02\x01" * 160_000 + b"\xff"],
    PayloadFormat.SPARKPLUG: [b"\x12\x00" * 499_999, b"\x0a" + b"\xff" * 999_000],
    PayloadFormat.XML: [b"<a>" * 333_333, b"<r>" + b"<row/>" * 160_000 + b"</r>",
                        b"<a " + b" ".join(b'x%d=""' % n for n in range(100_000)) + b"/>",
                        b"<a>" + b"&lt;" * 240_000 + b"</a>"],
    PayloadFormat.HTML: [b"<div>" * 200_000,
                         b"<a " + b" ".join(b"x%d" % n for n in range(140_000)) + b">",
                         b"<a x0='>' " + b" ".join(b"x%d='>'" % n for n in range(90_000)) + b">",
                         b"<!--" * 250_000, b"<table><tr><td>" * 66_000, b"<" * 1_000_000,
                         b"<table>" + b"<tr><td>1" * 100_000, b"<a x='" * 160_000,
                         b"<a x" * 249_000],
}  # fmt: skip


def oversized(form: PayloadFormat) -> Iterator[bytes]:
    """Yield the same payloads, one byte too large and ten times too large."""
    for payload in LARGE[form]:
        whole = payload * (MAX_PAYLOAD // len(payload) + 1)
        yield whole[: MAX_PAYLOAD + 1].ljust(MAX_PAYLOAD + 1)
        yield whole.ljust(10 * MAX_PAYLOAD)
