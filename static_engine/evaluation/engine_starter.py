"""Starts the engine in the background, and again when it is lost."""

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable

from static_engine.evaluation.static_executor import StaticExecutor
from streamsql.errors import FederationError, InternalError

log = logging.getLogger(__name__)

Progress = Callable[[str], None]

_FIRST_PAUSE = 5.0
_LOOK_SECONDS = 1.0
_LONGEST_PAUSE = 300.0


class EngineStarter:
    """Holds the executor, once there is one. All methods belong to the event loop but `stop`.

    The start runs on a daemon thread: a process that is stopped meanwhile does not wait for a JVM,
    which ends with the process.

    Args:
        make: Starts the engine, reporting progress; blocking.
        changed: Called on the event loop whenever something here changed.

    Attributes:
        executor: The engine, or None while there is none.
        problem: Why the last start failed, or None.
        detail: For people.
    """

    def __init__(
        self, make: Callable[[Progress], StaticExecutor], changed: Callable[[], None]
    ) -> None:
        self._make = make
        self._changed = changed
        self._pause = _FIRST_PAUSE
        self._retry: asyncio.TimerHandle | None = None
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._made: StaticExecutor | None = None  # under the lock: whom `stop` is to end
        self.executor: StaticExecutor | None = None
        self.problem: FederationError | None = None
        self.detail = "starting"

    def start(self) -> None:
        """Start the engine; returns at once."""
        if self._stopped.is_set():
            return
        loop = asyncio.get_running_loop()
        threading.Thread(
            target=self._run, args=(loop,), name="static-engine-start", daemon=True
        ).start()

    def restart(self, reason: str) -> None:
        """Replace an engine that is gone.

        The next one starts when this one has ended: PySpark knows one JVM per process, and ending
        an old session would take the new one's away.
        """
        lost, self.executor = self.executor, None
        with self._lock:
            self._made = None
        self.detail = f"{reason}; restarting it"
        if lost is None:
            self._later()
        else:
            threading.Thread(
                target=self._end,
                args=(asyncio.get_running_loop(), lost),
                name="static-engine-stop",
                daemon=True,
            ).start()
        self._changed()

    def stop(self) -> None:
        """End the engine, also one that was made just now; blocking."""
        with self._lock:
            self._stopped.set()
            made, self._made = self._made, None
        if made is not None:
            made.stop()

    def _later(self) -> None:
        loop = asyncio.get_running_loop()
        self._retry = loop.call_later(self._pause, self.start)
        self._pause = min(self._pause * 2, _LONGEST_PAUSE)

    def _end(self, loop: asyncio.AbstractEventLoop, lost: StaticExecutor) -> None:
        try:
            lost.stop()
        finally:
            if not self._stopped.is_set():
                with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
                    loop.call_soon_threadsafe(self._later)

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        def report(action: Callable[..., None], *arguments: object) -> None:
            if not self._stopped.is_set():
                with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
                    loop.call_soon_threadsafe(action, *arguments)

        try:
            executor = self._make(lambda text: report(self._progress, text))
        except FederationError as error:
            report(self._failed, error)
        except Exception as error:
            log.exception("the engine did not start")
            report(self._failed, InternalError(f"the engine did not start: {error}"))
        else:
            with self._lock:
                stopped = self._stopped.is_set()
                self._made = None if stopped else executor
            if stopped:
                executor.stop()
            report(self._started, executor)

    def _progress(self, text: str) -> None:
        self.detail = f"Spark is warming up: {text}"
        self._changed()

    def _started(self, executor: StaticExecutor) -> None:
        self.executor, self.problem, self._pause = executor, None, _FIRST_PAUSE
        self.detail = executor.description
        log.info("ready: %s", executor.description)
        self._changed()
        self._look(executor)

    def _look(self, executor: StaticExecutor) -> None:
        """Replace the engine when it has ended: others than queries may wait for it."""
        if self._stopped.is_set() or self.executor is not executor:
            return
        if executor.is_gone:
            log.warning("the engine has ended; starting it again")
            self.restart("the engine has ended")
            return
        asyncio.get_running_loop().call_later(_LOOK_SECONDS, self._look, executor)

    def _failed(self, error: FederationError) -> None:
        log.warning("the engine does not start: %s", error)
        self.problem = error
        self.detail = str(error).replace("\n", "; ")
        self._later()
        self._changed()
