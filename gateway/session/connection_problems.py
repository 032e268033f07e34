"""The last time that a site could not reach its broker: why, since when, until when.

Told when it is back, and kept on disk: what was wrong may have been put right between processes.
"""

import logging
from pathlib import Path

from host.clocks import Clock
from host.files.atomic_file import replace_file
from host.files.json_file import read_kept
from host.mqtt.unreachable import Failure
from streamsql.wire.codec import encode_json
from streamsql.wire.site_messages import ConnectionProblem

log = logging.getLogger(__name__)

MAX_BYTES = 10_000
SHORT_MICROSECONDS = 1_000_000
"""An interruption that is over sooner is nobody's problem."""


class ConnectionProblems:
    """Book of one problem: the present or the last one.

    Args:
        file: Where it is kept.
        clock: Wall-clock microseconds.
    """

    def __init__(self, file: Path, clock: Clock) -> None:
        self._file = file
        self._clock = clock
        self._kept = read_kept(file, ConnectionProblem, "connection problem", max_bytes=MAX_BYTES)

    @property
    def last(self) -> ConnectionProblem | None:
        """The last problem that is over; None: there was none."""
        kept = self._kept
        return None if kept is None or kept.until is None else kept

    def failed(self, failure: Failure) -> None:
        """Note why there is no connection now."""
        kept = self._kept
        if kept is not None and kept.until is None:
            if kept.reason == failure.reason:
                return
            since = kept.since
        else:
            since = self._clock()
        self._keep(ConnectionProblem(failure.reason[:300], since))

    def over(self) -> None:
        """Note that the broker is reached."""
        kept = self._kept
        if kept is None or kept.until is not None:
            return
        now = self._clock()
        if now - kept.since < SHORT_MICROSECONDS:
            self._kept = None
            self._file.unlink(missing_ok=True)
            return
        self._keep(ConnectionProblem(kept.reason, kept.since, now))

    def _keep(self, problem: ConnectionProblem) -> None:
        self._kept = problem
        try:
            replace_file(self._file, encode_json(problem))
        except OSError as error:
            log.warning("%s is not written: %s", self._file, error.strerror)
