"""`python -m host.health_probe ADDRESS`: whether a service on this machine is well; no curl needed.

An address `http://host:port/health` has to answer with status 200, one `tcp://host:port` only to
accept a connection. The exit status is 0 or 1, as health checks of containers and units want it.
"""

import http.client
import socket
import sys
from urllib.parse import urlsplit

SECONDS = 3.0
MAX_ANSWER = 2_000


def problem_of(address: str) -> str:
    """Return what is wrong with the service at an address, or empty."""
    parts = urlsplit(address)
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if parts.scheme not in ("http", "tcp") or host is None or port is None:
        return f"{address!r:.80} is no address: write http://HOST:PORT/health or tcp://HOST:PORT"
    try:
        if parts.scheme == "tcp":
            socket.create_connection((host, port), SECONDS).close()
            return ""
        connection = http.client.HTTPConnection(host, port, timeout=SECONDS)
        try:
            connection.request("GET", parts.path or "/health")
            answer = connection.getresponse()
            text = answer.read(MAX_ANSWER).decode("utf-8", "replace").strip()
        finally:
            connection.close()
    except (OSError, http.client.HTTPException) as error:
        return f"{address} does not answer: {error}"
    return "" if answer.status == http.HTTPStatus.OK else f"status {answer.status}: {text}"


def main(arguments: list[str]) -> int:
    """Return the exit status, after saying what is wrong."""
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m host.health_probe http://HOST:PORT/health\n")
        return 1
    problem = problem_of(arguments[0])
    if problem:
        sys.stderr.write(f"{problem}\n")
    return int(bool(problem))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
