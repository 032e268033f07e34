"""The clock of steps: ends the query, or in the last resort the process, that works for too long.

Three stages, each for what the one before cannot see, in seconds of CPU of the process:

1. A timer of the operating system calls Python every twentieth of the budget. A query that has
   spent its budget is interrupted where it stands; the others go on.
2. Python is not called while one operation of a library holds the interpreter. A second timer,
   which the first one puts off every time, then ends the process and leaves a trace.
3. What the site works on is noted in a mapped file, which outlives the process however that ends:
   with the trace, or with a second death in a long step, the next life knows which query not to
   run.
"""

import faulthandler
import logging
import mmap
import os
import resource
import signal
import sys
from pathlib import Path
from types import FrameType

from gateway.gateway_settings import StepSettings
from gateway.site.stopped_queries import DEATHS, StoppedQueries
from stream_engine.site.step_budget import StepBudgetExceeded
from streamsql.errors import FederationError, StepBudgetError
from streamsql.wire.fragments import FragmentBundle

log = logging.getLogger(__name__)

HINT = (
    "read fewer rows: a window, a stricter condition, a key in every join; then DROP QUERY "
    "and start it again. The settings step.seconds and step.max_bytes limit a step"
)
_IDLE, _WORKING, _LONG = 0, 1, 2
_SIZE = 1_024
_TICKS = 20
_HARD = 3
"""The process ends when it has not called Python for so many budgets."""
_SHARED = ("stream_engine.sharing.", "streamsql.algebra.regular_expressions.")
"""What queries have in common: it is left in one piece, and the query interrupted a tick later."""
_QUEUES = "stream_engine.scheduling."
_KILOBYTES = 1 if sys.platform == "darwin" else 1_024


class StepGuard:
    """Counts what queries spend; see `stream_engine.site.step_budget.StepBudget`.

    Only the main thread of a process may start one, and only one.

    Args:
        directory: The site's own, where notes for the next life are.
        settings: What a step may take.
        stopped: Where queries are noted that must not run again.
    """

    def __init__(self, directory: Path, settings: StepSettings, stopped: StoppedQueries) -> None:
        self._settings = settings
        self._stopped = stopped
        self._trace_path = directory / "stalled.txt"
        self._query = ""
        self._named = ""
        self._ticks = 0
        self._began = 0
        self._memory: int | None = None
        path = directory / "in_step"
        self._accuse(path)
        try:
            with path.open("wb") as new:
                new.write(bytes(_SIZE))
            with path.open("r+b") as file:
                self._note = mmap.mmap(file.fileno(), _SIZE)
            self._trace = self._trace_path.open("w", encoding="utf-8")
        except OSError as error:
            log.warning("the reason of this stop cannot be recorded for the next start: %s", error)
            self._note = mmap.mmap(-1, _SIZE)
            self._trace = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115  (until stop)

    def start(self) -> None:
        """Begin to count."""
        signal.signal(signal.SIGVTALRM, self._tick)
        faulthandler.register(signal.SIGPROF, self._trace, all_threads=False, chain=True)
        tick = self._settings.seconds / _TICKS
        signal.setitimer(signal.ITIMER_VIRTUAL, tick, tick)
        self._put_off_the_end()

    def stop(self) -> None:
        """Count no more."""
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGVTALRM, signal.SIG_DFL)
        faulthandler.unregister(signal.SIGPROF)
        self._note.close()
        self._trace.close()

    def begin(self, query: str) -> None:
        """Count for a query from now on."""
        if query != self._named:
            name = query.encode()[: _SIZE - 2]
            self._note[1:] = name.ljust(_SIZE - 1, b"\0")
            self._named = query
        self._note[0] = _WORKING
        self._began = self._ticks
        self._query = query

    def end(self) -> None:
        """Count no more."""
        query, self._query = self._query, ""
        if query and self._note[0] == _LONG:
            self._stopped.survived(query)
        self._memory = None
        self._note[0] = _IDLE

    def exceeded(self, bundle: FragmentBundle, error: FederationError) -> None:
        """Do not run a query again in any later life."""
        self._stopped.add(bundle.query, bundle.text, error)

    def _tick(self, _number: int, frame: FrameType | None) -> None:
        self._ticks += 1
        self._put_off_the_end()
        if not self._query:
            return
        # The first tick may come right after the beginning.
        spent = self._ticks - self._began - 1
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _KILOBYTES
        if self._memory is None:
            self._memory = peak
        if spent > 0:
            self._note[0] = _LONG
        if spent < _TICKS and peak - self._memory <= self._settings.max_bytes:
            return
        if _is_shared(frame):
            return
        raise StepBudgetExceeded(
            f"used more than {self._settings.seconds:g} s of CPU in one step"
            if spent >= _TICKS
            else f"used more than {self._settings.max_bytes} bytes of memory in one step"
        )

    def _put_off_the_end(self) -> None:
        signal.setitimer(signal.ITIMER_PROF, _HARD * self._settings.seconds)

    def _accuse(self, path: Path) -> None:
        """Find out whether the last life ended in a step of a query."""
        try:
            note = path.read_bytes()[:_SIZE]
            trace = self._trace_path.read_text("utf-8", "replace") if note else ""
        except OSError:
            return
        if len(note) < 2 or note[0] == _IDLE:
            return
        query = note[1:].rstrip(b"\0").decode("utf-8", "replace")
        if trace:
            log.warning("the last run of this site ended in query %s:\n%s", query, trace[:4_000])
            text = (
                f"one of its operations used more than {_HARD * self._settings.seconds:g} s of CPU"
            )
        elif note[0] == _LONG and self._stopped.died_in(query) >= DEATHS:
            text = f"the site died {DEATHS} times during a long step of the query"
        else:
            return
        error = StepBudgetError(f"query {query} stays stopped at this site: {text}", hint=HINT)
        self._stopped.add(query, None, error)


def _is_shared(frame: FrameType | None) -> bool:
    """Whether what is interrupted changes something that other queries use."""
    if frame is not None and str(frame.f_globals.get("__name__")).startswith(_QUEUES):
        return True
    while frame is not None:
        if str(frame.f_globals.get("__name__")).startswith(_SHARED):
            return True
        frame = frame.f_back
    return False
