"""Broken copies of a file, from a seed: bytes, lines, fields and numbers that are wrong."""

import gzip
import random
from collections.abc import Callable, Iterator

WORDS = (
    b"NaN",
    b"Infinity",
    b"-1e999",
    b"99999999999999999999999999",
    b"1e308",
    b"-0",
    b"null",
    b"true",
    b"{}",
    b"[]",
    b'""',
    b'"',
    b",",
    b"\x00",
    b"\xff\xfe",
    b"\xed\xa0\x80",
    b"\\ud800",
    b"\xef\xbb\xbf",
    b"0001-01-01T00:00:00",
    b"9999-12-31T23:59:59.999999",
    b"[" * 2_000,
    b'{"a":' * 2_000,
    b"9" * 5_000,
    b"x" * 70_000,
)


def broken_copies(samples: list[bytes], seed: int, count: int) -> Iterator[bytes]:
    """Yield copies of samples with one to four changes each, some of them packed by gzip."""
    rng = random.Random(seed)
    for _ in range(count):
        content = rng.choice(samples)
        for _ in range(rng.randint(1, 4)):
            content = rng.choice(_CHANGES)(rng, content)
        if rng.random() < 0.05:
            packed = bytearray(gzip.compress(content, 1))
            if rng.random() < 0.7:
                packed[rng.randrange(len(packed))] ^= 1 << rng.randrange(8)
            content = bytes(packed[: rng.choice((len(packed), len(packed) // 2))])
        yield content


def _cut(rng: random.Random, content: bytes) -> bytes:
    return content[: rng.randrange(len(content) + 1)]


def _flipped(rng: random.Random, content: bytes) -> bytes:
    changed = bytearray(content)
    for _ in range(rng.choice((1, 1, 8))):
        if changed:
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _without(rng: random.Random, content: bytes) -> bytes:
    start = rng.randrange(len(content) + 1)
    return content[:start] + content[start + rng.choice((1, 10, 100)) :]


def _with_word(rng: random.Random, content: bytes) -> bytes:
    start = rng.randrange(len(content) + 1)
    return content[:start] + rng.choice(WORDS) + content[start:]


def _with_other_token(rng: random.Random, content: bytes) -> bytes:
    """Replace what stands between two separators."""
    start = rng.randrange(len(content) + 1)
    found = (content.find(mark, start + 1) for mark in (b",", b"\n", b"}", b":"))
    ends = [place for place in found if place > 0]
    begin = max(content.rfind(mark, 0, start) for mark in (b",", b"\n", b"[", b":"))
    return content[: begin + 1] + rng.choice(WORDS) + content[min(ends, default=start) :]


def _with_lines_again(rng: random.Random, content: bytes) -> bytes:
    lines = content.splitlines(keepends=True) or [b""]
    start = rng.randrange(len(lines))
    part = lines[start : start + rng.choice((1, 3, 20))]
    place = rng.randrange(len(lines) + 1)
    return b"".join([*lines[:place], *part, *lines[place:]])


def _without_lines(rng: random.Random, content: bytes) -> bytes:
    lines = content.splitlines(keepends=True) or [b""]
    start = rng.randrange(len(lines))
    return b"".join(lines[:start] + lines[start + rng.choice((1, 2, 5)) :])


_CHANGES: tuple[Callable[[random.Random, bytes], bytes], ...] = (
    _cut,
    _flipped,
    _without,
    _with_word,
    _with_other_token,
    _with_other_token,
    _with_other_token,
    _with_lines_again,
    _without_lines,
)
