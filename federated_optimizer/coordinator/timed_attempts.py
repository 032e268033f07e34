"""Pure work of a few milliseconds on the event loop, ended by a timer if it takes longer.

Most statements are planned sooner than a process is forked. Nobody knows before which ones, so the
work is begun, and a signal ends it: Python calls the handler of a signal between two steps of the
main thread, whatever it is doing, and an error that the handler raises ends the work there.
"""

import gc
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from types import FrameType
from typing import Final, TypeVar

from host.clocks import monotonic_clock
from streamsql.algebra.user_functions import INSTALLED, ForeignCodeRefused

T = TypeVar("T")

WAITING_FACTOR = 5
"""On a busy machine work may take so many times as long on the wall."""
AGAIN_SECONDS = 0.005
"""After which work is ended again that could not be ended, or went on all the same."""
_LEFT_ALONE = ("importlib.", "logging", "threading")
"""Modules that leave something behind if they are ended: half a module, or a lock that stays taken.

`logging` acquires the lock of all loggers before its `try`. Once that was taken for ever, all other
threads waited for it: those of MQTT, too.
"""


class Unfinished(Enum):
    """Outcome of an attempt that came to no end."""

    UNFINISHED = "unfinished"


UNFINISHED: Final = Unfinished.UNFINISHED

_undisturbed = 0


class _Ended(BaseException):
    """Raised in work that takes too long; no `except Exception` takes it for its own error."""


@contextmanager
def undisturbed() -> Iterator[None]:
    """Let no timer end what is inside: it changes what stays when the work has been ended."""
    global _undisturbed  # noqa: PLW0603 - one main thread, one timer
    _undisturbed += 1
    try:
        yield
    finally:
        _undisturbed -= 1


def can_attempt() -> bool:
    """Return whether work can be ended here: only the main thread gets signals."""
    return threading.current_thread() is threading.main_thread() and hasattr(signal, "setitimer")


def attempt(work: Callable[[], T], seconds: float) -> T | Unfinished:
    """Return the result of work, or `UNFINISHED` after some seconds.

    Code of users is not called here: what it does in C no signal ends.

    Args:
        work: Pure, but for what it does inside `undisturbed`.
        seconds: That this process computes from now on.

    Raises:
        BaseException: What the work raises.
    """
    timer, is_collecting = _Timer(seconds), gc.isenabled()
    gc.disable()  # a look at all objects takes longer than the work may
    try:
        timer.begin()
        try:
            with INSTALLED.refused():
                return work()
        finally:
            timer.is_armed = False
    except (_Ended, ForeignCodeRefused):
        return UNFINISHED
    finally:
        try:
            timer.end()
        finally:
            if is_collecting:  # here, where no timer ends what is to be done
                gc.enable()


class _Timer:
    """The timers of this process, borrowed from whoever else has set them."""

    def __init__(self, seconds: float) -> None:
        self._kinds = (
            (signal.ITIMER_PROF, signal.SIGPROF, seconds),
            (signal.ITIMER_REAL, signal.SIGALRM, WAITING_FACTOR * seconds),
        )
        self.is_armed = True
        self._began = monotonic_clock()
        self._handlers = [signal.getsignal(number) for _, number, _ in self._kinds]
        self._others = [(0.0, 0.0) for _ in self._kinds]
        self._reported = sys.unraisablehook

    def begin(self) -> None:
        sys.unraisablehook = self._report
        for _, number, _ in self._kinds:
            signal.signal(number, self._rings)
        self._others = [signal.setitimer(kind, wait) for kind, _, wait in self._kinds]

    def end(self) -> None:
        self.is_armed = False
        passed = (monotonic_clock() - self._began) / 1_000_000
        for (kind, number, _), handler, (left, interval) in zip(
            self._kinds, self._handlers, self._others, strict=True
        ):
            signal.setitimer(kind, 0)
            signal.signal(number, handler)
            if left:  # somebody else waits for an alarm of theirs
                signal.setitimer(kind, max(left - passed, 0.001), interval)
        sys.unraisablehook = self._reported

    def _report(self, found: "sys.UnraisableHookArgs") -> None:
        # Out of a destructor, or the callback of a weak reference, no error is raised: Python
        # reports it and the work goes on. The timer rings again, so there is nothing to report.
        if not isinstance(found.exc_value, _Ended):
            self._reported(found)

    def _rings(self, _number: int, frame: FrameType | None) -> None:
        if not self.is_armed:
            return
        signal.setitimer(signal.ITIMER_REAL, AGAIN_SECONDS)
        if not (_undisturbed or _is_left_alone(frame)):
            raise _Ended


def _is_left_alone(frame: FrameType | None) -> bool:
    while frame is not None and frame.f_code is not attempt.__code__:
        if str(frame.f_globals.get("__name__", "")).startswith(_LEFT_ALONE):
            return True
        frame = frame.f_back
    return False
