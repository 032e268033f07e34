"""Hostile payloads derived from the schemas of messages, from a seed.

Most of a payload is legal, so that it gets past the first check; one part or a few are not: numbers
out of every range, NaN, other types, deep nesting, huge texts, unknown fields, fields twice, lone
surrogates, cut and flipped bytes.
"""

import enum
import math
import random
import struct
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from msgspec import inspect

Write = Callable[[Any], bytes]

NUMBERS: tuple[Any, ...] = (
    -1,
    2**31,
    2**53 - 1,
    2**53,
    2**62 + 1,
    2**63 - 1,
    2**63,
    2**64 - 1,
    -(2**63),
    -(2**63) - 1,
    99999999999999999999999999,
    10**400,
    -0.0,
    5e-324,
    1.7976931348623157e308,
    math.nan,
    math.inf,
    -math.inf,
)


class Raw:
    """Bytes that stand in a payload as they are."""

    def __init__(self, json: bytes, packed: bytes) -> None:
        self.json = json
        self.packed = packed


SURROGATE = Raw(rb'"\ud800"', b"\xa3\xed\xa0\x80")
SURROGATES = Raw(rb'"a\udc00\ud800z"', b"\xa5a\xed\xb0\x80z")
DEEP = Raw(b"[" * 300 + b"]" * 300, b"\x91" * 300 + b"\xc0")
DEEPER = Raw(b'{"a":' * 5_000 + b"1" + b"}" * 5_000, b"\x81\xa1a" * 5_000 + b"\xc0")
OPEN = Raw(b"[" * 40, b"\xdd\xff\xff\xff\xff")
LONG = Raw(b'"' + b"x" * 150_000 + b'"', b"\xdb" + struct.pack(">I", 150_000) + b"x" * 150_000)
EXTENSION = Raw(b"1e999", b"\xc7\x03\x05abc")
RAWS = (SURROGATE, SURROGATES, DEEP, OPEN, EXTENSION)
RARE = (DEEPER, LONG)


class Pairs(list[tuple[str, Any]]):
    """An object whose names may be there twice."""


class HostilePayloads:
    """Payloads of one kind of message.

    Args:
        kind: The message.
        seed: Equal seeds give equal payloads.
        packed: As MessagePack instead of JSON.
        legal: Legal messages, whose parts make the generated ones likelier to be looked at.
        words: Texts that mean something to the receiver: ids, names, verbs.
    """

    def __init__(
        self,
        kind: Any,
        seed: int,
        *,
        packed: bool,
        legal: tuple[Any, ...] = (),
        words: tuple[str, ...] = (),
    ) -> None:
        self._info = inspect.type_info(kind)
        self._random = random.Random(f"{kind}{seed}")
        self._write: Write = _packed if packed else _json
        encode = msgspec.msgpack.encode if packed else msgspec.json.encode
        self._legal = tuple(map(encode, legal))
        self._trees = [msgspec.to_builtins(message, builtin_types=(bytes,)) for message in legal]
        self._words = (*words, "", "x", "gw-1", "base", "ä\u0000\n", "x" * 1_001)

    def payloads(self, count: int) -> Iterator[bytes]:
        """Yield payloads."""
        for _ in range(count):
            yield self._payload()

    def _payload(self) -> bytes:
        rng = self._random
        dice = rng.random()
        if self._legal and dice < 0.25:
            return self._mutated(rng.choice(self._legal))
        if self._trees and dice < 0.5:
            return self._write(self._spoiled(rng.choice(self._trees), rng.choice((0.02, 0.1))))
        payload = self._write(self._value(self._info, 0, rng.choice((0.0, 0.05, 0.3))))
        return self._mutated(payload) if dice > 0.9 else payload

    def _mutated(self, payload: bytes) -> bytes:
        """Return bytes that are cut, flipped, doubled or put elsewhere."""
        rng, content = self._random, bytearray(payload)
        for _ in range(rng.randint(1, 3)):
            place = rng.randrange(len(content) + 1)
            match rng.randrange(5):
                case 0:
                    del content[place:]
                case 1 if content:
                    content[place - 1] ^= 1 << rng.randrange(8)
                case 2:
                    content[place:place] = rng.randbytes(rng.randint(1, 8))
                case 3:
                    end = rng.randrange(len(content) + 1)
                    content[place:place] = content[min(place, end) : max(place, end)]
                case _:
                    del content[place : place + rng.randint(1, 8)]
        return bytes(content)

    def _spoiled(self, tree: Any, chance: float) -> Any:
        """Return a copy of a legal message with some parts replaced."""
        if self._random.random() < chance:
            return self._nonsense()
        if isinstance(tree, dict):
            pairs = Pairs((name, self._spoiled(value, chance)) for name, value in tree.items())
            return self._with_strangers(pairs, chance)
        if isinstance(tree, list | tuple):
            return [self._spoiled(value, chance) for value in tree]
        return tree

    def _nonsense(self) -> Any:
        rng = self._random
        match rng.randrange(8):
            case 0 | 1 | 2:
                return rng.choice(NUMBERS)
            case 3:
                return rng.choice(RARE) if rng.random() < 0.01 else rng.choice(RAWS)
            case 4:
                return rng.choice((None, True, [], {}, [[]], "", b"\xff"))
            case 5:
                return rng.choice(self._words)
            case 6:
                return [rng.choice(NUMBERS)] * rng.choice((1, 3, 200))
            case _:
                return rng.randint(-3, 300)

    def _value(self, info: inspect.Type, depth: int, chance: float) -> Any:
        rng = self._random
        if rng.random() < chance or depth > 12:
            return self._nonsense()
        match info:
            case inspect.StructType():
                return self._struct(info, depth, chance)
            case inspect.UnionType(types=types):
                return self._value(rng.choice(types), depth + 1, chance)
            case inspect.VarTupleType(item_type=item) | inspect.ListType(item_type=item):
                count = 0 if depth > 8 else rng.choice((0, 1, 1, 2, 5))
                return [self._value(item, depth + 1, chance) for _ in range(count)]
            case inspect.TupleType(item_types=items):
                return [self._value(item, depth + 1, chance) for item in items]
            case inspect.DictType(key_type=key, value_type=value):
                count = rng.choice((0, 1, 3))
                return Pairs(
                    (str(self._value(key, depth, 0.0)), self._value(value, depth + 1, chance))
                    for _ in range(count)
                )
            case inspect.EnumType(cls=cls):
                return _plain(rng.choice(list(cls)))
            case inspect.IntType():
                return rng.choice((0, 1, 2, 7, rng.randint(0, 2**53 - 1)))
            case inspect.FloatType():
                return rng.choice((0.0, 1.5, -2.0, 1e300, rng.random()))
            case inspect.BoolType():
                return rng.random() < 0.5
            case inspect.BytesType():
                return rng.randbytes(rng.randint(0, 20))
            case inspect.StrType():
                return rng.choice(self._words)
            case inspect.LiteralType(values=values):
                return rng.choice(values)
            case _:
                return None

    def _struct(self, info: inspect.StructType, depth: int, chance: float) -> Any:
        rng = self._random
        wanted = [f for f in info.fields if f.required or rng.random() < 0.6]
        if info.array_like:
            return [self._value(field.type, depth + 1, chance) for field in wanted]
        pairs = Pairs((f.encode_name, self._value(f.type, depth + 1, chance)) for f in wanted)
        if info.tag_field is not None:
            pairs.insert(0, (info.tag_field, info.tag))
        return self._with_strangers(pairs, chance)

    def _with_strangers(self, pairs: Pairs, chance: float) -> Pairs:
        """Add an unknown field, or one that is there already."""
        rng = self._random
        if rng.random() < chance:
            name = rng.choice(pairs)[0] if pairs and rng.random() < 0.5 else "stranger"
            pairs.insert(rng.randrange(len(pairs) + 1), (name, self._nonsense()))
        return pairs


def _plain(member: enum.Enum) -> Any:
    return member.value


def _json(value: Any) -> bytes:
    match value:
        case Raw():
            return value.json
        case Pairs():
            return b"{" + b",".join(_json(n) + b":" + _json(v) for n, v in value) + b"}"
        case dict():
            return _json(Pairs((str(n), v) for n, v in value.items()))
        case list() | tuple():
            return b"[" + b",".join(map(_json, value)) + b"]"
        case None | bool() | str() | bytes():
            return msgspec.json.encode(value)
        case _:
            return repr(value).replace("nan", "NaN").replace("inf", "Infinity").encode()


def _packed(value: Any) -> bytes:
    match value:
        case Raw():
            return value.packed
        case Pairs():
            body = b"".join(_packed(n) + _packed(v) for n, v in value)
            return b"\xde" + struct.pack(">H", len(value)) + body
        case dict():
            return _packed(Pairs((str(n), v) for n, v in value.items()))
        case list() | tuple():
            return b"\xdd" + struct.pack(">I", len(value)) + b"".join(map(_packed, value))
        case int() if not isinstance(value, bool) and not -(2**63) <= value < 2**64:
            return b"\xcf" + b"\xff" * 8
        case _:
            return msgspec.msgpack.encode(value)
