"""Hostile payloads of every format, drawn from a seed: broken, huge, deep, wrong, random."""

import random
import struct
from collections.abc import Callable, Iterator

import cbor2

from streamsql.mapping.source_mapping import PayloadFormat

Draw = Callable[[random.Random], bytes]

# Values of a JSON text, as devices and attackers write them.
VALUES = (
    "1", "21.5", "-0.0", "1e308", "-1e-320", "9" * 30, "9" * 400, "1e400", "NaN", "Infinity",
    "true", "null", "[]", "{}", '""', '"ON"', '"21,5 °C"', '"0x1F"', '"nan"', '"\\ud800"',
    '"\\u0000"', '"0001-01-01T00:00:00"', '"0001-01-01T00:00:00+14:00"', '"9999-12-31T23:59:59"',
    '"9999-12-31T23:59:59-14:00"', '"2024-10-27T02:30:00"', '"' + "x" * 4_001 + '"',
    "-62135596800", "253402300800", "1700000000", "1700000000000000000", '"1e99999"',
    "[" * 70 + "]" * 70, '{"a":' * 70 + "1" + "}" * 70, '"' + "9" * 90 + '"', '"1E+400"',
)  # fmt: skip
FIELDS = ("device", "d", "i", "b", "t", "ts", "span", "rows", "deep", "hex", "comma", "ü", "")
SPLICES = (b"", b"\0", b"\xff", b"[", b"{", b'"', b"<", b">", b"\x9f", b"\xbf", b"\x5f", b"\x1b",
           b"\xc2", b",", b"\n", b"&a;", b"<!DOCTYPE x>", b"\x80" * 9, b"\x08\xff")  # fmt: skip


def hostile_payloads(form: PayloadFormat, seed: int, count: int) -> Iterator[bytes]:
    """Yield payloads of a format: one in eight as random bytes, half of the others mutated."""
    draw = _DRAWS[form]
    rng = random.Random(seed)
    for _ in range(count):
        if rng.randrange(8) == 0:
            yield rng.randbytes(rng.randrange(40))
            continue
        payload = draw(rng)
        yield payload if rng.randrange(2) else _mutated(payload, rng)


def _mutated(payload: bytes, rng: random.Random) -> bytes:
    place = rng.randrange(len(payload) + 1)
    match rng.randrange(4):
        case 0:
            return payload[:place]
        case 1:
            return payload[:place] + rng.choice(SPLICES) + payload[place:]
        case 2:
            return payload[:place] + bytes([rng.randrange(256)]) + payload[place + 1 :]
        case _:
            return payload[:place] + payload[rng.randrange(len(payload) + 1) :]


def _json(rng: random.Random) -> bytes:
    fields = ",".join(
        f'"{rng.choice(FIELDS)}":{rng.choice(VALUES)}' for _ in range(rng.randrange(5))
    )
    shape = rng.randrange(4)
    one = f"{{{fields}}}"
    whole = (one, f"[{one},{rng.choice(VALUES)}]", f'{{"rows":[{one},{one}]}}', rng.choice(VALUES))
    return whole[shape].encode("utf-8", "surrogatepass")


def _text(rng: random.Random) -> bytes:
    return rng.choice(VALUES).strip('"').encode()


def _csv(rng: random.Random) -> bytes:
    lines = [",".join(rng.choice(FIELDS) for _ in range(4))]
    lines += [
        ",".join(rng.choice(VALUES).replace(",", ";") for _ in range(4))
        for _ in range(rng.randrange(3))
    ]
    return "\r\n".join(lines).encode()


def _cbor_item(rng: random.Random, depth: int = 0) -> bytes:
    kind = rng.randrange(12 if depth < 4 else 8)
    if kind < 4:
        items = (0, -1, 2**63, -(2**64), 21.5, 1e308, float("nan"), float("inf"), True, None, "ON")
        return cbor2.dumps(rng.choice(items))
    if kind < 7:
        return cbor2.dumps(rng.choice(FIELDS) if kind < 6 else rng.randbytes(9))
    if kind == 7:
        return bytes([rng.randrange(0xC0, 0xDC), *rng.randbytes(rng.randrange(3))]) + b"\x01"
    if kind < 10:
        size = rng.randrange(4)
        return bytes([0x80 + size]) + b"".join(_cbor_item(rng, depth + 1) for _ in range(size))
    return _cbor_map(rng, depth)


def _cbor_map(rng: random.Random, depth: int = 0) -> bytes:
    size = rng.randrange(4)
    pairs = (cbor2.dumps(rng.choice(FIELDS)) + _cbor_item(rng, depth + 1) for _ in range(size))
    return bytes([0xA0 + size]) + b"".join(pairs)


def _cbor(rng: random.Random) -> bytes:
    match rng.randrange(5):
        case 0:
            return _cbor_item(rng)
        case 1 | 2:
            return _cbor_map(rng)
        case _:
            return b"\xa1\x64rows\x82" + _cbor_map(rng) + _cbor_map(rng)


SENML = {-6: "bs", -5: "bv", -4: "bu", -3: "bt", -2: "bn", -1: "bver", 0: "n", 1: "u", 2: "v",
         3: "vs", 4: "vb", 5: "s", 6: "t", 7: "ut", 8: "vd", 9: "x_"}  # fmt: skip


SENML_CBOR: dict[int, tuple[object, ...]] = {
    0: ("d", "i", ""), -2: ("dev:", ""), 2: (1, 21.5), -3: (1.7e9, -60), 6: (1, -5.5), -1: (10,),
}  # fmt: skip


def _senml(rng: random.Random) -> bytes:
    def value(label: str) -> str:
        if label in {"n", "bn"} and rng.randrange(4):
            return f'"{rng.choice(("dev:", "d", "i", "", "urn:dev:x"))}"'
        if label in {"v", "s", "bt", "bv", "bs"} and rng.randrange(4):
            return rng.choice(("1", "21.5", "1700000000", "-60"))
        if label in {"u", "bu"} and rng.randrange(4):
            return f'"{rng.choice(("Cel", "degF", "V", "nope", "%"))}"'
        return rng.choice(VALUES)

    def record() -> str:
        labels = {"n", "v", *rng.sample(list(SENML.values())[:15], rng.randrange(3))}
        labels |= {"x_"} if rng.randrange(20) == 0 else set()
        return "{" + ",".join(f'"{label}":{value(label)}' for label in labels) + "}"

    return f"[{','.join(record() for _ in range(rng.randrange(4)))}]".encode()


def _senml_cbor(rng: random.Random) -> bytes:
    def value(label: int) -> bytes:
        usual = SENML_CBOR.get(label)
        return cbor2.dumps(rng.choice(usual)) if usual and rng.randrange(4) else _cbor_item(rng, 4)

    def record() -> bytes:
        labels = {0, 2, *rng.sample(list(SENML), rng.randrange(2))}
        pairs = (cbor2.dumps(label) + value(label) for label in labels)
        return bytes([0xA0 + len(labels)]) + b"".join(pairs)

    size = rng.randrange(4)
    return bytes([0x80 + size]) + b"".join(record() for _ in range(size))


def _field(number: int, wire: int, body: bytes) -> bytes:
    size = bytes([len(body)]) if wire == 2 and len(body) < 128 else b""
    return bytes([(number << 3 | wire) & 127]) + size + body


def _sparkplug(rng: random.Random) -> bytes:
    def metric() -> bytes:
        parts = [_field(1, 2, rng.choice(FIELDS).encode())] if rng.randrange(4) else []
        parts.append(_field(4, 0, bytes([rng.randrange(36)])))
        parts.append(_field(rng.randrange(16), 0, rng.randbytes(1)))
        parts.append(_field(13, 1, struct.pack("<d", rng.choice((21.5, 1e308, float("nan"))))))
        parts.append(_field(10, 0, b"\xfe\xff\xff\xff\x0f"))
        rng.shuffle(parts)
        return b"".join(parts)

    head = _field(1, 0, b"\x80\xe8\x92\xee\xbc\x31" if rng.randrange(2) else b"\xff" * 9 + b"\x01")
    return head + b"".join(_field(2, 2, metric()) for _ in range(rng.randrange(4)))


def _xml(rng: random.Random) -> bytes:
    def element() -> str:
        name = rng.choice(("d", "i", "t", "ts", "row", "x:d"))
        inner = rng.choice(VALUES)[:300].replace("<", "&lt;") if rng.randrange(3) else ""
        return f'<{name} id="{rng.randrange(9)}">{inner}</{name}>'

    rows = "".join(
        f"<row device='a'>{''.join(element() for _ in range(3))}</row>"
        for _ in range(rng.randrange(3))
    )
    head = rng.choice(
        (
            "",
            '<?xml version="1.0" encoding="latin-1"?>',
            "<!DOCTYPE r>",
            '<?xml version="1.0" encoding="utf-16"?>',
        )
    )
    return f'{head}<r xmlns="urn:a">{element()}{rows}{element()}</r>'.encode()


def _html(rng: random.Random) -> bytes:
    cells = "".join(
        f"<{rng.choice(('td', 'th', 'b', 'td class=d'))}>{rng.choice(VALUES)[:300]}"
        for _ in range(4)
    )
    rows = f"<tr>{cells}" * rng.randrange(3)
    return f"<table id=pdu{rng.choice((' ', '>', ''))}>{rows}</table>".encode()


_DRAWS: dict[PayloadFormat, Draw] = {
    PayloadFormat.JSON: _json,
    PayloadFormat.TEXT: _text,
    PayloadFormat.CSV: _csv,
    PayloadFormat.CBOR: _cbor,
    PayloadFormat.SENML: _senml,
    PayloadFormat.SENML_CBOR: _senml_cbor,
    PayloadFormat.SPARKPLUG: _sparkplug,
    PayloadFormat.XML: _xml,
    PayloadFormat.HTML: _html,
}
FORMATS = tuple(_DRAWS)
