"""Publishes device payloads at a steady rate: MQTT packets put together by hand, sent in chunks.

    python sender.py PORT RATE COUNT DEVICES QOS

Its cost must not hide that of the gateway: packets of about 5 ms are sent with one call.
"""

import socket
import struct
import sys
import threading
import time

CHUNK_SECONDS = 0.005
CONNECT = b"\x10\x15\x00\x04MQTT\x04\x02\x00\x3c\x00\x09intake-tx"
DISCONNECT = b"\xe0\x00"


def packet(number: int, devices: int, qos: int) -> bytes:
    """Return the PUBLISH of a reading."""
    topic = b"tele/s%d/SENSOR" % (number % devices)
    body = (
        b'{"number":%d,"ts":%d,"AM2301":{"Temperature":%.1f,"Humidity":54.9,"DewPoint":11.2},'
        b'"TempUnit":"C"}' % (number, time.time_ns() // 1_000, float(number * 7919 % 100))
    )
    identifier = struct.pack(">H", number % 65_535 + 1) if qos else b""
    rest = struct.pack(">H", len(topic)) + topic + identifier + body
    length = bytearray()
    left = len(rest)
    while True:
        left, digit = divmod(left, 128)
        length.append(digit | (0x80 if left else 0))
        if not left:
            return bytes([0x30 | qos << 1]) + bytes(length) + rest


def drain(connection: socket.socket) -> None:
    """Read acknowledgements and forget them."""
    while connection.recv(65_536):
        pass


def main(port: int, rate: int, count: int, devices: int, qos: int) -> None:
    """Send them all."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(CONNECT)
        threading.Thread(target=drain, args=(connection,), daemon=True).start()
        start, sent = time.monotonic(), 0
        while sent < count:
            due = min(int((time.monotonic() - start) * rate) + 1, count)
            if due > sent:
                connection.sendall(b"".join(packet(n, devices, qos) for n in range(sent, due)))
                sent = due
            else:
                time.sleep(min(CHUNK_SECONDS, 1 / rate))
            if rate > 1 / CHUNK_SECONDS:
                time.sleep(CHUNK_SECONDS)
        connection.sendall(DISCONNECT)
        time.sleep(0.5)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
