"""Asks the lake how much plans read of the past, through a process that stays ready.

EXPLAIN runs in a forked process, and SQLite does not survive a fork: it waits there for locks that
the console had. So a process begun anew opens the lake. Starting it takes seconds, an answer some
hundredths: the first question starts it, and forked processes reach it by the path of a socket.
"""

import atexit
import contextlib
import logging
import os
import pickle
import select
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from federated_optimizer.coordinator.trials.history_runner import PastSize
from static_engine.lake.lake_settings import LakeSettings
from streamsql.algebra.operators import Plan

log = logging.getLogger(__name__)

SECONDS = 8.0
"""Less than a statement may take (`statement_seconds`): EXPLAIN says the rest without it."""
_WAITING = 16
_PART = 1 << 16


class AskedSizes:
    """Knows what plans read of one lake.

    Args:
        settings: Where it is.
        seconds: An answer may take so long; then the process ends, and the next question starts
            another.
    """

    def __init__(self, settings: LakeSettings, seconds: float = SECONDS) -> None:
        self._settings, self._seconds = settings, seconds
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._listener: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._wake: socket.socket | None = None
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._silent_in = 0

    @property
    def process(self) -> int | None:
        """The id of the process, or None: it is not there."""
        process = self._process
        return None if process is None or process.poll() is not None else process.pid

    def get_ready(self) -> None:
        """Listen for questions, of which the first starts the process; call it before forking."""
        self._silent_in = 0
        if self._listener is not None:
            return
        try:
            listener = self._listening()
        except OSError as error:
            log.warning("nobody can ask how much of the past a query reads: %s", error)
            return
        self._wake, woken = socket.socketpair()
        self._thread = threading.Thread(
            target=self._answer, args=(listener, woken), name="past-sizes", daemon=True
        )
        self._thread.start()

    def _answer(self, listener: socket.socket, woken: socket.socket) -> None:
        """Start the process whenever somebody asks and it is not there, until woken."""
        with woken:
            while self._listener is listener:
                ready, _, _ = select.select([listener, woken], [], [])
                if woken in ready:
                    return
                try:
                    status = self._ended(self._started(listener))
                except OSError as error:
                    log.warning("the process that reads the lake cannot be started: %s", error)
                    status = 1
                if status and self._listener is listener:
                    log.warning("the process that reads the lake for EXPLAIN has ended")
                    _hang_up(listener)

    def _ended(self, process: subprocess.Popen[bytes]) -> int:
        """Wait for the process; return its status."""
        status = process.wait()
        with contextlib.suppress(OSError):
            assert process.stdin is not None  # noqa: S101
            process.stdin.close()
        return status

    def _started(self, listener: socket.socket) -> subprocess.Popen[bytes]:
        number = listener.fileno()
        command = ("-m", "deploy.history.past_sizes", str(number), str(self._seconds))
        process = subprocess.Popen(  # noqa: S603  (our own module)
            [sys.executable, *command], stdin=subprocess.PIPE, pass_fds=(number,)
        )
        with self._starting:
            self._process = process
            if self._listener is not listener:  # closed meanwhile
                process.kill()
        assert process.stdin is not None  # noqa: S101
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(pickle.dumps(self._settings))
            process.stdin.flush()  # it stays open: when we end, it is closed, and the process ends
        return process

    def sizes(self, plan: Plan) -> tuple[PastSize, ...]:
        """Return what a plan reads of the past, one per scan; blocking, also in a forked process.

        Args:
            plan: Its scans of the past stand still.
        """
        if self._silent_in == os.getpid():
            return ()  # it was said once in this statement
        problem = "the process that reads it is still starting, or busy; try again in a few seconds"
        deadline = time.monotonic() + self._seconds
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
                connection.settimeout(self._seconds)
                connection.connect(self._path)
                connection.sendall(pickle.dumps(plan))
                connection.shutdown(socket.SHUT_WR)
                answer = bytearray()
                while part := connection.recv(_PART):
                    answer += part
                    problem = f"the lake has not answered within {self._seconds:g} s; try again"
                    connection.settimeout(max(deadline - time.monotonic(), 0.001))
        except TimeoutError:
            self._silent_in = os.getpid()
            return (PastSize("the past", problem=problem),)
        except OSError as error:
            return (PastSize("the past", problem=f"the lake was not asked: {error}"),)
        if len(answer) < 2:
            return (PastSize("the past", problem="the process that reads the lake has ended"),)
        found: tuple[PastSize, ...] = pickle.loads(answer[1:])  # noqa: S301  (of our own process)
        return found

    def close(self) -> None:
        """End the process, at once."""
        atexit.unregister(self.close)
        with self._starting:
            listener, self._listener = self._listener, None
            process = self._process
        if self._wake is not None:
            self._wake.close()
            self._wake = None
        if process is not None:
            process.kill()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if listener is not None:
            listener.close()
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def _listening(self) -> socket.socket:
        # Nobody else may enter the folder, so nobody else may ask.
        self._folder = tempfile.TemporaryDirectory(prefix="pando-past-")
        atexit.register(self.close)
        listener = self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            listener.bind(self._path)
            listener.listen(_WAITING)
        except OSError:  # the path of the folder for temporary files is too long
            self.close()
            raise
        return listener

    @property
    def _path(self) -> str:
        folder = self._folder
        return "" if folder is None else str(Path(folder.name) / "socket")


def _hang_up(listener: socket.socket) -> None:
    """Take who waits for an answer and say nothing: whoever asks next starts the process again."""
    listener.setblocking(False)
    with contextlib.suppress(OSError):
        for _ in range(_WAITING):
            listener.accept()[0].close()
    listener.setblocking(True)
