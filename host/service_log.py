"""One form of log lines for all services: time with its zone, level, text."""

import logging
import sys
from datetime import UTC, datetime

from streamsql.redaction import redacted

CHATTY = ("httpx", "httpcore", "asyncua", "coap")
"""Libraries that log each request, with its whole address, at INFO: only their warnings count."""


class _Formatter(logging.Formatter):
    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: ARG002, N802
        """Return local time with its zone."""
        moment = datetime.fromtimestamp(record.created, UTC).astimezone()
        return moment.isoformat(timespec="milliseconds")

    def format(self, record: logging.LogRecord) -> str:
        """Return a line, and the trace below it, without passwords of addresses."""
        return redacted(super().format(record))


def log_to_stderr(level: str) -> None:
    """Let a process log to its standard error, from a level on.

    A line begins like `2026-01-02T03:04:05.678+01:00 WARNING `.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Formatter("%(asctime)s %(levelname)s %(message)s"))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    if level.upper() != "DEBUG":
        for name in CHATTY:
            logging.getLogger(name).setLevel(logging.WARNING)
