"""Asks the lake how much plans read of the past, through a process that stays ready.

EXPLAIN runs in a forked process, and SQLite does not survive a fork: it waits there for locks that
the console had. So a process begun anew opens the lake. Starting it takes seconds, an answer some
hundredths: it is started once, and forked processes reach it by the path of a socket.
"""

import atexit
import logging
import os
import pickle
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
        seconds: An answer may take so long; then the process ends, and another begins.
    """

    def __init__(self, settings: LakeSettings, seconds: float = SECONDS) -> None:
        self._settings, self._seconds = settings, seconds
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._listener: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._silent_in = 0

    @property
    def process(self) -> int | None:
        """The id of the process, or None: it is not there."""
        process = self._process
        return None if process is None or process.poll() is not None else process.pid

    def get_ready(self) -> None:
        """Start the process unless it runs; in the console, before it forks."""
        self._silent_in = 0
        if self.process is not None:
            return
        if self._process is not None and self._process.returncode:
            log.warning("the process that reads the lake for EXPLAIN has ended; it begins anew")
        self._end_process()
        try:
            listener = self._listener or self._listening()
            number = listener.fileno()
            command = ("-m", "deploy.history.past_sizes", str(number), str(self._seconds))
            process = subprocess.Popen(  # noqa: S603  (our own module)
                [sys.executable, *command], stdin=subprocess.PIPE, pass_fds=(number,)
            )
            self._process = process
            assert process.stdin is not None  # noqa: S101
            process.stdin.write(pickle.dumps(self._settings))
            process.stdin.flush()  # it stays open: when we end, it is closed, and the process ends
        except OSError as error:
            log.warning("the process that reads the lake for EXPLAIN cannot be started: %s", error)
            return
        # One that ends by itself is no zombie until the next EXPLAIN.
        threading.Thread(target=process.wait, name="past-sizes", daemon=True).start()

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
        self._end_process()
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def _end_process(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            if process.stdin is not None:
                process.stdin.close()

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
