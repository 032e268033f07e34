"""A port for a server that starts a moment later."""

import random
import socket
from pathlib import Path

HOST = "127.0.0.1"
LOWEST = 15_000
USUAL_FIRST = 32_768
"""Where Linux begins to number outgoing connections, unless told otherwise."""
TRIES = 100

_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")


def free_port() -> int:
    """Return a loopback port that nobody listens on at present.

    The system numbers outgoing connections from a range of its own, and a port out of that range
    may be taken by one of them before the server binds it. So this one lies below the range; only
    if nothing is free there the system chooses.
    """
    chance = random.SystemRandom()
    below = range(LOWEST, first_outgoing())
    for port in chance.sample(below, min(TRIES, len(below))):
        with socket.socket() as probe:
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
            return port
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def first_outgoing() -> int:
    """Return the lowest port that an outgoing connection may get."""
    try:
        return int(_RANGE.read_text(encoding="ascii").split()[0])
    except (OSError, ValueError, IndexError):  # not Linux: its range begins higher still
        return USUAL_FIRST
