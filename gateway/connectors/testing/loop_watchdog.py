"""Sees when code blocks the event loop, and where."""

import asyncio
import contextlib
import sys
import threading
import traceback
from collections.abc import Collection, Iterator
from types import FrameType

TICK_SECONDS = 0.02
MOST_BLOCKED_SECONDS = 0.5


class LoopWatchdog:
    """A thread that asks the loop for an answer all the time.

    Its own ticks are the clock: on a machine that gives this process no time it counts none, and
    nobody is blamed.

    Args:
        excused: Modules that may block, such as that of a test's simulator.

    Attributes:
        complaint: Where the loop was blocked for half a second for the first time, or empty.
    """

    def __init__(self, excused: Collection[str]) -> None:
        self.complaint = ""
        self._excused = frozenset(excused)
        self._answered = threading.Event()
        self._ended = threading.Event()

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Watch the running loop until the block ends."""
        loop, thread = asyncio.get_running_loop(), threading.get_ident()
        watch = threading.Thread(
            target=self._watch, args=(loop, thread), name="loop watchdog", daemon=True
        )
        watch.start()
        try:
            yield
        finally:
            self._ended.set()
            watch.join()

    def _watch(self, loop: asyncio.AbstractEventLoop, thread: int) -> None:
        missed = 0
        loop.call_soon_threadsafe(self._answered.set)
        while not self._ended.wait(TICK_SECONDS):
            if self._answered.is_set():
                self._answered.clear()
                loop.call_soon_threadsafe(self._answered.set)
                missed = 0
                continue
            missed += 1
            if missed * TICK_SECONDS >= MOST_BLOCKED_SECONDS:
                missed = 0
                self._complain(sys._current_frames().get(thread))  # noqa: SLF001  (documented)

    def _complain(self, frame: FrameType | None) -> None:
        if frame is None or self.complaint:
            return
        stack = list(traceback.walk_stack(frame))
        if any(each.f_globals.get("__name__") in self._excused for each, _ in stack):
            return
        calls = (
            f"{each.f_code.co_qualname} ({each.f_globals.get('__name__')}:{line})"
            for each, line in stack[:3]
        )
        self.complaint = (
            f"it blocks the event loop for {MOST_BLOCKED_SECONDS:g} s: {', called by '.join(calls)}"
        )
