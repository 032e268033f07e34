"""Malformed and hostile requests to every route of the console, from a seed."""

import contextlib
import gzip
import json
import random
import socket
import time
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import httpx

from federated_optimizer.coordinator.contract.principal import Role
from tests.security.console_attempts import address_of
from tests.security.desk import Desk

MORE_MEMORY = 150_000_000
MORE_DESCRIPTORS = 60
LOOK_EVERY = 500
"""Requests between two looks at the process."""
MAX_BODY = 1_000_000
TIRED = ("POST /api/sign-in", "POST /api/me/password")
"""Routes that hash a password each time, or wait when asked often."""
OF_OPERATORS = {"calibration_point", "radio_map", "receiver"}
"""Tables that an operator makes without a body."""
NOT_ASKED = {"POST /api/sign-out"}

WORDS = (
    "1",
    "levels",
    "readings",
    "high",
    "salaries",
    "r1",
    "%",
    "..",
    "%2e%2e%2f%2e%2e%2fetc%2fpasswd",
    "a" * 2_000,
    "é\u2028",
    "<script>alert(1)</script>",
    "' OR 1=1 --",
    "\x00",
    "%00",
    "%ff",
    "-1",
    "99999999999999999999",
    "NaN",
)
STATEMENTS = (
    "SELECT",
    "SELECT mid FROM readings WHERE level > ",
    "(" * 3_000,
    "SELECT * FROM people",
    "SHOW SOURCES",
    "SHOW TABLES",
    "DESCRIBE salaries",
    "EXPLAIN SELECT name FROM salaries",
    "SELECT name FROM salaries",
    "SELECT * FROM sys_audit",
    "SHOW GRANTS",
    "EXPLAIN SELECT mid FROM readings",
    "DROP SOURCE nothing",
    "CREATE TABLE t (a TEXT) WITH (source = 'csv', path = '/etc/passwd')",
    "CREATE TABLE t (a TEXT) WITH (source = 'sql', url = 'sqlite:////etc/passwd', table = 't')",
    "GRANT SELECT ON SOURCE readings TO USER nobody",
    "INSERT INTO people VALUES ('x')",
    "\x00\x01",
    "SELECT '" + "x" * 50_000 + "'",
)
NONSENSE: tuple[Any, ...] = (
    None,
    True,
    -1,
    2**63,
    1e308,
    "",
    "x" * 10_000,
    [],
    {},
    [[[[]]]],
    {"a": {"b": None}},
    ["readings"] * 500,
    "\ud800",
    "\x00",
)
BODIES = (
    b"",
    b"{",
    b"[" * 50_000,
    b'{"text":' * 20_000,
    b"\xff\xfe\x00",
    b"null",
    b"NaN",
    b'"' + b"x" * 200_000 + b'"',
    b'{"a":1,"a":2}',
    b"[" + b"0," * 100_000 + b"0]",
    b"9" * 100_000,
)
TYPES = (
    "application/json",
    "application/json; charset=utf-16",
    "text/plain",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "application/xml",
    "",
    "\u00e4/*",
)


@dataclass
class Requested:
    """Counts of a run, and what was answered otherwise than it may be."""

    statuses: Counter[str] = field(default_factory=Counter)
    memory: dict[str, int] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    @property
    def requests(self) -> int:
        """Requests that were sent."""
        return self.statuses.total()

    def figures(self) -> dict[str, Any]:
        """Return the counts as they are published."""
        return {
            "requests": self.requests,
            "answers": dict(sorted(self.statuses.items())),
            "megabytes_before_and_after": [round(n / 1e6, 1) for n in self.memory.values()],
        }


class Requests:
    """Makes requests; equal seeds make equal ones."""

    def __init__(self, desk: Desk, routes: list[str], seed: int) -> None:
        self._desk = desk
        self._random = random.Random(seed)
        self._routes = [route for route in routes if route not in NOT_ASKED]
        document = desk.askers[Role.ADMINISTRATOR].get("/openapi.json").json()
        self._fields = {
            f"{method.upper()} {path}": _fields(operation, document)
            for path, operations in document["paths"].items()
            for method, operation in operations.items()
        }
        self.run = Requested()

    def send(self, number: int) -> Requested:
        """Send so many requests, and look after the process from time to time."""
        run, rng = self.run, self._random
        known = self._kept()
        looked = 0
        while run.requests < number:
            if rng.random() < 0.08:
                self._raw()
            else:
                self._request()
            if run.requests >= min(looked + LOOK_EVERY, number):
                looked = run.requests
                assert self._desk.answers()
        run.memory = self._desk.growth()
        if run.memory["after"] - run.memory["before"] > MORE_MEMORY:
            run.wrong.append(f"it has grown: {run.memory}")
        if set(known) != set(self._kept()):
            run.wrong.append(f"definitions have changed: {set(known) ^ set(self._kept())}")
        return run

    def _kept(self) -> list[str]:
        """Return the definitions: no request here makes or drops another."""
        return [n for n in self._desk.state("/api/definitions", "name") if n not in OF_OPERATORS]

    def _request(self) -> None:
        rng = self._random
        route = rng.choice(self._routes)
        if route in TIRED and rng.random() < 0.95:
            return
        method, _ = address_of(route)
        asker = rng.choice(list(self._desk.askers))
        url = f"http://127.0.0.1:{self._desk.port}{self._path(route)}"
        headers, body = self._body(route)
        if rng.random() < 0.05:
            headers["Origin"] = rng.choice(("http://evil.example", "null", "x" * 3_000))
        if rng.random() < 0.05:
            headers["Host"] = rng.choice(("evil.example", "", "127.0.0.1.evil.x"))
        strange = {"Host", "Origin"} & headers.keys()
        try:
            client = self._desk.askers[asker]
            with client.stream(method, url, headers=headers, content=body) as answer:
                status, text = answer.status_code, ""
                if "event-stream" not in answer.headers.get("content-type", ""):
                    answer.read()
                    text = answer.text
        except (httpx.InvalidURL, ValueError, UnicodeError):
            return  # this client refuses to send it
        except (httpx.RemoteProtocolError, httpx.WriteError, httpx.ReadError):
            self.run.statuses["hung up"] += 1
            return
        self._note(f"{asker} asks {method} {url[:200]}", status, text)
        if strange and status < 400:
            self.run.wrong.append(f"{route} from a foreign page or name: {status} {headers}")
        if len(body) > MAX_BODY and status < 400:
            self.run.wrong.append(f"{route} with {len(body)} bytes: {status}")

    def _note(self, what: str, status: int, text: str) -> None:
        self.run.statuses[str(status)] += 1
        if status >= 500 and status != 503:
            self.run.wrong.append(f"{what}: {status} {text[:300]}")
        # A new token is told once, to whoever has made it; those are not among the secrets.
        if leaks := self._desk.leaks(text):
            self.run.wrong.append(f"{what}: {status} tells {leaks}")

    def _path(self, route: str) -> str:
        rng = self._random
        path = route.partition(" ")[2]
        while "{" in path:
            word = rng.choice(WORDS)
            value = word if word.startswith("%") and len(word) > 1 else quote(word, safe="")
            path = path[: path.index("{")] + value + path[path.index("}") + 1 :]
        if rng.random() < 0.3:
            names = ("limit", "order", "name", "account", "snapshot", "query", "after", "x")
            path += f"?{rng.choice(names)}={quote(rng.choice(WORDS), safe='')}"
        return path

    def _body(self, route: str) -> tuple[dict[str, str], bytes]:
        rng = self._random
        headers = {"Content-Type": rng.choice(TYPES[:1] * 12 + TYPES[:-1])}
        dice = rng.random()
        if dice < 0.25:
            body = rng.choice(BODIES)
        elif dice < 0.3:
            body = rng.randbytes(rng.choice((1, 50, 5_000)))
        elif dice < 0.32:
            body = b'"' + b"x" * (MAX_BODY + rng.randint(0, 2_000_000)) + b'"'
        else:
            body = self._fitting(route)
        if rng.random() < 0.06:
            name, packed = rng.choice(
                (("gzip", gzip.compress(b"[" * 5_000_000, 1)), ("deflate", zlib.compress(body)))
            )
            headers["Content-Encoding"] = name
            body = packed
        return headers, body

    def _fitting(self, route: str) -> bytes:
        """Return a body with the fields of a route, some of them with nonsense."""
        rng = self._random
        told: dict[str, Any] = {}
        for name, example in self._fields.get(route, {}).items():
            if rng.random() < 0.15:
                continue
            told[name] = rng.choice(NONSENSE) if rng.random() < 0.3 else self._value(name, example)
        return json.dumps(told).encode()

    def _value(self, name: str, schema: dict[str, Any]) -> Any:
        rng = self._random
        if name in {"text", "sql", "query"}:
            return rng.choice(STATEMENTS)
        if "enum" in schema:
            return rng.choice(schema["enum"])
        match schema.get("type"):
            case "integer":
                return rng.choice((0, 1, -1, 10**6, 2**53))
            case "number":
                return rng.choice((0.0, 1.5, -1e9, 1e300))
            case "boolean":
                return rng.random() < 0.5
            case "array":
                return rng.choice(([], ["1"], [1, 2], [{}], WORDS))
            case "object":
                return rng.choice(({}, {"a": 1}, {"x": WORDS}))
            case _:
                return rng.choice(WORDS)

    def _raw(self) -> None:
        """Send what no client library would; any answer is a refusal."""
        rng = self._random
        route = rng.choice(self._routes)
        method, path = address_of(route)
        host = f"Host: 127.0.0.1:{self._desk.port}"
        head = rng.choice(
            (
                f"{method} {path} HTTP/1.1\r\n{host}\r\n{host}\r\n\r\n",
                f"{method} {path} HTTP/1.1\r\n\r\n",
                f"{method} {path} HTTP/9.9\r\n{host}\r\n\r\n",
                f"{method} {path}\r\n",
                f"{method} {path} HTTP/1.1\r\n{host}\r\n" + "X: y\r\n" * 20_000 + "\r\n",
                f"{method} {path} HTTP/1.1\r\n{host}\r\nX: " + "y" * 100_000 + "\r\n\r\n",
                f"{method} /{'x' * 100_000} HTTP/1.1\r\n{host}\r\n\r\n",
                f"{method} {path} HTTP/1.1\r\n{host}\r\nContent-Length: -1\r\n\r\n",
                f"POST /api/validate HTTP/1.1\r\n{host}\r\nContent-Length: 5\r\n"
                "Transfer-Encoding: chunked\r\n\r\nzz\r\n",
                f"POST /api/validate HTTP/1.1\r\n{host}\r\n"
                "Transfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\nx",
                f"POST /api/validate HTTP/1.1\r\n{host}\r\nContent-Length: {10**17}\r\n\r\n",
                f"{method} {path} HTTP/1.1\r\n{host}\r\nCookie: \x00\x01=;;;=\r\n\r\n",
                f"{method} {path} HTTP/1.1\r\nHost: evil.example\r\n\r\n",
                "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
                "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                f"CONNECT evil.example:80 HTTP/1.1\r\n{host}\r\n\r\n",
                f"TRACE {path} HTTP/1.1\r\n{host}\r\n\r\n",
                f"GET http://evil.example/ HTTP/1.1\r\n{host}\r\n\r\n",
                f"{method} {path} HTTP/1.1\r\n{host}\r\n folded: x\r\n\r\n",
            )
        )
        read = b""
        with socket.create_connection(("127.0.0.1", self._desk.port), timeout=20) as connection:
            try:
                connection.sendall(head.encode("latin-1"))
                connection.shutdown(socket.SHUT_WR)
                while part := connection.recv(65_536):
                    read += part
                    if b"text/event-stream" in read:
                        break
            except (ConnectionError, TimeoutError):
                pass
        words = read.split(b" ", 2)
        if not read.startswith(b"HTTP/") or len(words) < 2:
            self.run.statuses["hung up"] += 1
            return
        self._note(f"raw {head[:120]!r}", int(words[1]), read.decode("latin-1"))


def _fields(operation: dict[str, Any], document: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of the body of an operation with their schemas."""
    content = operation.get("requestBody", {}).get("content", {})
    schema = content.get("application/json", {}).get("schema", {})
    return dict(_resolved(schema, document).get("properties", {}))


def _resolved(schema: dict[str, Any], document: dict[str, Any]) -> dict[str, Any]:
    if "$ref" in schema:
        return dict(document["components"]["schemas"][schema["$ref"].rpartition("/")[2]])
    return schema


@contextlib.contextmanager
def held_open(desk: Desk, number: int) -> Iterator[list[socket.socket]]:
    """Keep connections open that begin a request and never end it."""
    heads = (b"GET / HTTP/1.1\r\n", b"P", b"POST /api/validate HTTP/1.1\r\nContent-Length: 9\r\n")
    with contextlib.ExitStack() as stack:
        held = []
        for count in range(number):
            connection = socket.create_connection(("127.0.0.1", desk.port), timeout=20)
            held.append(stack.enter_context(connection))
            connection.sendall(heads[count % 3])
        yield held


def closed_in_time(held: list[socket.socket], seconds: float) -> bool:
    """Whether the console closes all of them within a time."""
    deadline = time.monotonic() + seconds
    for connection in held:
        connection.settimeout(max(0.01, deadline - time.monotonic()))
        try:
            while connection.recv(65_536):
                pass
        except TimeoutError:
            return False
        except ConnectionError:
            pass
    return True
