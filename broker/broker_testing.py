"""For tests: run a real broker process, and speak MQTT to it byte by byte.

`RawClient` encodes packets by hand, on purpose not with the codec of the embedded broker: a test
that shared it would not see its mistakes.
"""

from __future__ import annotations

import os
import signal
import socket
import ssl
import struct
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from broker.broker_launch import BrokerSecurity, Preference, broker_command
from broker.free_ports import free_port

PATIENCE = 60.0
"""Seconds that a broker may take for anything on a machine which does much else."""


class BrokerProcess:
    """A broker as its own process on a free port; also a context manager."""

    def __init__(
        self, kind: Preference, folder: Path, security: BrokerSecurity | None = None
    ) -> None:
        self.kind = kind
        self.port = free_port()
        self._command = broker_command(self.port, folder, kind, security)
        self._log = folder / "broker.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Address for `host.mqtt.open_client`."""
        return f"mqtt://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """Process id of the running broker."""
        assert self._process is not None  # noqa: S101
        return self._process.pid

    def start(self) -> None:
        """Start and wait until it accepts connections."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log)  # noqa: S603
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                break
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
            except OSError:
                time.sleep(0.05)
            else:
                return
        raise RuntimeError(f"the broker did not start:\n{self._log.read_text()[-2000:]}")

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and wait for the end; return the exit status."""
        process, self._process = self._process, None
        if process is None:
            return 0
        process.send_signal(number)
        try:
            return process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(PATIENCE)
            raise

    @property
    def is_running(self) -> bool:
        """State of the process: started and not stopped."""
        return self._process is not None

    def freeze(self) -> None:
        """Stop the process without ending it (SIGSTOP)."""
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Let a frozen process go on (SIGCONT)."""
        os.kill(self.pid, signal.SIGCONT)

    def log(self) -> str:
        """Return what it has logged."""
        return self._log.read_text()

    def __enter__(self) -> BrokerProcess:
        """Start."""
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop, whatever state it is in."""
        if self._process is not None:
            self.thaw()
        self.stop()


@dataclass(frozen=True, slots=True)
class Received:
    """A PUBLISH as it came."""

    topic: str
    payload: bytes
    qos: int
    retain: bool
    dup: bool
    packet_id: int


class ConnectionClosed(Exception):  # noqa: N818 - reads as what happened
    """The broker closed the connection; `reason` is that of its DISCONNECT, or None."""

    def __init__(self, reason: int | None) -> None:
        super().__init__(f"closed, reason {reason}")
        self.reason = reason


def varint(value: int) -> bytes:
    """Encode a variable byte integer."""
    out = b""
    while True:
        value, digit = divmod(value, 128)
        out += bytes([digit | (128 if value else 0)])
        if not value:
            return out


def text(value: str | bytes) -> bytes:
    """Encode a string or bytes with their length."""
    data = value.encode() if isinstance(value, str) else value
    return struct.pack(">H", len(data)) + data


class RawClient:
    """A blocking MQTT client for one test; version 4 for MQTT 3.1.1, 5 for MQTT 5.

    Attributes:
        acknowledge: Whether QoS 1 messages are acknowledged when they are read.
        session_present: As in CONNACK.
        inbox: Messages read and not yet taken.
    """

    def __init__(
        self, port: int, client_id: str, version: int = 4, tls: ssl.SSLContext | None = None
    ) -> None:
        self.client_id = client_id
        self.version = version
        self.acknowledge = True
        self.session_present = False
        self.inbox: list[Received] = []
        self._socket = socket.create_connection(("127.0.0.1", port), PATIENCE)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls is not None:
            try:
                self._socket = tls.wrap_socket(self._socket, server_hostname="127.0.0.1")
            except OSError:
                self._socket.close()
                raise
        self._buffer = b""
        self._packet_id = 0

    # --- packets -------------------------------------------------------------------------------

    def send(self, data: bytes) -> None:
        """Send bytes as they are."""
        self._socket.sendall(data)

    def packet(self, first: int, body: bytes) -> None:
        """Send a packet."""
        self.send(bytes([first]) + varint(len(body)) + body)

    def receive(self, seconds: float = PATIENCE) -> tuple[int, bytes]:
        """Return the next packet as (first byte, body).

        Raises:
            ConnectionClosed: The broker hung up.
            TimeoutError: Nothing came.
        """
        deadline = time.monotonic() + seconds
        while (packet := self._cut()) is None:
            self._socket.settimeout(max(0.001, deadline - time.monotonic()))
            try:
                data = self._socket.recv(1 << 16)
            except ConnectionError as error:
                raise ConnectionClosed(None) from error
            if not data:
                raise ConnectionClosed(None)
            self._buffer += data
        if packet[0] == 0xE0:
            raise ConnectionClosed(packet[1][0] if packet[1] else 0)
        return packet

    def _cut(self) -> tuple[int, bytes] | None:
        size = shift = 0
        for index, digit in enumerate(self._buffer[1:5], start=2):
            size |= (digit & 127) << shift
            shift += 7
            if digit < 128:
                if len(self._buffer) < index + size:
                    return None
                first, body = self._buffer[0], self._buffer[index : index + size]
                self._buffer = self._buffer[index + size :]
                return first, body
        return None

    def expect(self, kind: int, seconds: float = PATIENCE) -> bytes:
        """Return the body of the next packet of a type.

        Publishes before it go to `inbox`; PUBACKs that nobody waited for are passed over.
        """
        while True:
            first, body = self.receive(seconds)
            if first >> 4 == kind:
                return body
            if first >> 4 == 4:
                continue
            if first >> 4 != 3:
                raise AssertionError(f"expected packet type {kind}, got 0x{first:02x} {body!r}")
            self._take_publish(first, body)

    def _take_publish(self, first: int, body: bytes) -> None:
        size = struct.unpack_from(">H", body)[0]
        topic, rest, packet_id = body[2 : 2 + size].decode(), body[2 + size :], 0
        qos = first >> 1 & 3
        if qos:
            packet_id, rest = struct.unpack_from(">H", rest)[0], rest[2:]
        if self.version == 5:
            length, used = self._varint_at(rest)
            rest = rest[used + length :]
        received = Received(topic, rest, qos, bool(first & 1), bool(first & 8), packet_id)
        self.inbox.append(received)
        if qos and self.acknowledge:
            self.packet(0x40, struct.pack(">H", packet_id))

    @staticmethod
    def _varint_at(data: bytes) -> tuple[int, int]:
        value = 0
        for index, digit in enumerate(data[:4]):
            value |= (digit & 127) << (7 * index)
            if digit < 128:
                return value, index + 1
        raise AssertionError(f"bad property length {data[:4]!r}")

    # --- conversations -------------------------------------------------------------------------

    def open(  # noqa: PLR0913 - the fields of CONNECT
        self,
        *,
        clean: bool = True,
        keepalive: int = 0,
        will: tuple[str, bytes, int, bool] | None = None,
        properties: bytes = b"",
        will_properties: bytes = b"",
        user: str | None = None,
        password: bytes | None = None,
    ) -> tuple[bool, int]:
        """Connect; return (session present, code). `will` is (topic, payload, qos, retain)."""
        flags = 2 * clean
        payload = text(self.client_id)
        if will is not None:
            topic, content, qos, retain = will
            flags |= 4 | qos << 3 | retain << 5
            if self.version == 5:
                payload += varint(len(will_properties)) + will_properties
            payload += text(topic) + text(content)
        if user is not None:
            flags |= 0x80
            payload += text(user)
        if password is not None:
            flags |= 0x40
            payload += text(password)
        head = text("MQTT") + bytes([self.version, flags]) + struct.pack(">H", keepalive)
        if self.version == 5:
            head += varint(len(properties)) + properties
        self.packet(0x10, head + payload)
        body = self.expect(2)
        self.session_present = bool(body[0] & 1)
        return self.session_present, body[1]

    def subscribe(self, *wishes: tuple[str, int]) -> list[int]:
        """Subscribe to (filter, options byte) pairs; return the codes."""
        body = self._id() + (b"\0" if self.version == 5 else b"")
        for topic_filter, options in wishes:
            body += text(topic_filter) + bytes([options])
        self.packet(0x82, body)
        return list(self.expect(9)[-len(wishes) :])

    def unsubscribe(self, *filters: str) -> None:
        """Unsubscribe."""
        body = self._id() + (b"\0" if self.version == 5 else b"")
        self.packet(0xA2, body + b"".join(text(f) for f in filters))
        self.expect(11)

    def publish(
        self, topic: str, payload: bytes, qos: int = 1, *, retain: bool = False, wait: bool = True
    ) -> int:
        """Publish; with `wait` and qos 1 return the reason of PUBACK (0 in MQTT 3.1.1)."""
        body = text(topic) + (self._id() if qos else b"")
        body += (b"\0" if self.version == 5 else b"") + payload
        self.packet(0x30 | qos << 1 | retain, body)
        answer = self.expect(4) if qos == 1 and wait else b""
        return answer[2] if len(answer) > 2 else 0

    def _id(self) -> bytes:
        self._packet_id = self._packet_id % 65535 + 1
        return struct.pack(">H", self._packet_id)

    def sync(self) -> list[Received]:
        """Return everything that the broker had sent us when it answers this ping."""
        self.send(b"\xc0\0")
        self.expect(13)
        return self.take()

    def wait_for(self, count: int, seconds: float = PATIENCE) -> list[Received]:
        """Wait for a number of messages and return them.

        Raises:
            TimeoutError: They did not come.
        """
        deadline = time.monotonic() + seconds
        while len(self.inbox) < count:
            first, body = self.receive(max(0.001, deadline - time.monotonic()))
            if first >> 4 != 3:
                raise AssertionError(f"expected a message, got 0x{first:02x}")
            self._take_publish(first, body)
        return self.take()

    def take(self) -> list[Received]:
        """Return and forget what was received."""
        found, self.inbox = self.inbox, []
        return found

    def wait_closed(self, seconds: float = PATIENCE) -> int | None:
        """Wait until the broker hangs up; return the reason of its DISCONNECT."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                self.receive(max(0.001, deadline - time.monotonic()))
            except ConnectionClosed as closed:
                return closed.reason

    def close(self) -> None:
        """Say goodbye and hang up."""
        self.packet(0xE0, b"")
        self._socket.close()

    def vanish(self) -> None:
        """Hang up silently, as a killed process does."""
        self._socket.close()

    def __enter__(self) -> RawClient:
        """Nothing to do: the socket is open."""
        return self

    def __exit__(self, *_: object) -> None:
        """Hang up."""
        self._socket.close()
