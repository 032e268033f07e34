"""Work on what users write, beside the event loop: within a time, and no longer than wanted.

Binding, planning and evaluating are Python, so a thread would not do: it takes the interpreter from
the loop, and nobody can end it. A forked process knows the catalog and all sites as they are at
that moment, needs nothing sent to it, and can be killed. Forking takes longer than planning most
statements, so short work is begun on the loop, and ended there by a timer.
"""

import asyncio
import contextlib
import ctypes
import gc
import os
import pickle
import resource
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextvars import ContextVar
from typing import Protocol, TypeVar

from federated_optimizer.coordinator.timed_attempts import Unfinished, attempt, can_attempt
from host.clocks import monotonic_clock
from host.process_memory import address_space_bytes
from streamsql.errors import FederationError, InternalError

T = TypeVar("T")
_MAX_AT_ONCE = 8
_CHUNK = 1 << 20
_MOST_FILES = 1 << 20
_NICER = 5
_PR_SET_PDEATHSIG = 1
ATTEMPT_SECONDS = 0.02
"""CPU that short work may take on the loop: what a fork takes with what the loop pays for it."""
PAUSE_FACTOR = 9
"""After an attempt in vain none is made for so many times as long: a tenth of the loop's time."""
_MORE_MEMORY = 2_000_000_000
"""Bytes that such work may take beyond what the process has when it begins."""

_charge: ContextVar[Callable[[int], None] | None] = ContextVar("charge", default=None)
Gone = Callable[[], Awaitable[object]]
"""Waits until whoever has asked for work is gone; cancelled where the work ends before."""
_unwanted: ContextVar[Gone | None] = ContextVar("unwanted", default=None)


@contextlib.contextmanager
def wanted_until(gone: Gone) -> Iterator[None]:
    """End work that begins inside when whoever has asked for it is gone.

    Nobody waits for that but while a process works: most statements need none.
    """
    token = _unwanted.set(gone)
    try:
        yield
    finally:
        _unwanted.reset(token)


@contextlib.contextmanager
def charged(charge: Callable[[int], None]) -> Iterator[None]:
    """Tell the microseconds that each piece of work takes which begins inside."""
    token = _charge.set(charge)
    try:
        yield
    finally:
        _charge.reset(token)


@contextlib.contextmanager
def _charged() -> Iterator[None]:
    begun = monotonic_clock()
    try:
        yield
    finally:
        charge = _charge.get()
        if charge is not None:
            charge(monotonic_clock() - begun)


class Beside(Protocol):
    """Runs work whose cost a user's text decides, in killable processes."""

    async def run(self, work: Callable[[], T], what: str) -> T:
        """Return the result of pure work; nothing it changes is seen here.

        Args:
            work: Called without arguments; its result, or error, must be picklable.
            what: Begins a sentence that says what took too long.

        Raises:
            FederationError: Its own, or it took too long or too much memory.
        """
        ...

    async def run_short(self, work: Callable[[], T], what: str) -> T:
        """Return the result of work that takes a few milliseconds as a rule; see `run`.

        It may be begun here and once more in a process.
        """
        ...


class OnTheLoop:
    """Does the work at once: for programs that serve nobody else."""

    async def run(self, work: Callable[[], T], what: str) -> T:  # noqa: ARG002
        """Return the result of work."""
        with _charged():
            return work()

    async def run_short(self, work: Callable[[], T], what: str) -> T:
        """Return the result of work."""
        return await self.run(work, what)


class InProcesses:
    """Does each piece of work in a process forked for it, and short work on the loop first.

    Args:
        seconds: That a process may take.
        at_first: Seconds that short work may take on the loop; 0: it is not tried there.
    """

    def __init__(self, seconds: float, at_first: float = ATTEMPT_SECONDS) -> None:
        self._seconds = seconds
        self._at_first = at_first
        self._paused_until = 0
        self._room = asyncio.Semaphore(_MAX_AT_ONCE)

    async def run_short(self, work: Callable[[], T], what: str) -> T:
        """Return the result of work; see `Beside`."""
        begun = monotonic_clock()
        if self._at_first and begun >= self._paused_until and can_attempt():
            with _charged():
                found = attempt(work, self._at_first)
            if not isinstance(found, Unfinished):
                return found
            vain = monotonic_clock() - begun
            self._paused_until = begun + (1 + PAUSE_FACTOR) * vain
        return await self.run(work, what)

    async def run(self, work: Callable[[], T], what: str) -> T:
        """Return the result of work; see `Beside`."""
        async with self._room:
            with _charged():
                content = await self._content(work, what)
        done, result = pickle.loads(content)  # noqa: S301  (our own process wrote it)
        if not done:
            raise result
        found: T = result
        return found

    async def _content(self, work: Callable[[], object], what: str) -> bytes:
        loop = asyncio.get_running_loop()
        receiving, sending = os.pipe()
        pid = os.fork()
        if pid == 0:
            _work_and_exit(work, what, sending)
        os.close(sending)
        os.set_blocking(receiving, False)
        content, end = bytearray(), loop.create_future()

        def read() -> None:
            try:
                part = os.read(receiving, _CHUNK)
            except BlockingIOError:
                return
            content.extend(part)
            if not part and not end.done():
                end.set_result(None)

        loop.add_reader(receiving, read)
        try:
            await self._until(end, what)
        finally:
            loop.remove_reader(receiving)
            os.close(receiving)
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)  # noqa: ASYNC222  (it is dead, or has written its last word)
        if not content:
            raise InternalError(f"{what} ended unexpectedly", hint="read the log of the console")
        return bytes(content)

    async def _until(self, end: "asyncio.Future[None]", what: str) -> None:
        gone = _unwanted.get()
        waiting: set[asyncio.Future[object]] = {end}  # type: ignore[arg-type]
        watch = None if gone is None else asyncio.ensure_future(gone())
        if watch is not None:
            waiting.add(watch)
        try:
            done, _ = await asyncio.wait(
                waiting, timeout=self._seconds, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            if watch is not None:
                watch.cancel()
        if end in done:
            return
        if watch is not None and watch in done:
            raise FederationError(
                f"{what} was stopped because the client disconnected",
                hint="send it again",
                code="asker_gone",
            )
        raise FederationError(
            f"{what} took more than {self._seconds:g} s",
            hint="simplify the statement: fewer joins, shorter lists, constants instead of "
            "expressions; the setting statement_seconds of the console is the limit",
            code="statement_limit",
        )


def _work_and_exit(
    work: Callable[[], object], what: str, sending: int
) -> None:  # pragma: no cover - in a process of its own
    """Write the result of work to a pipe and end, without what a process does at its end."""
    status = 1
    try:
        # A connection that the parent closes, or loses, must not stay open here.
        os.closerange(3, sending)
        os.closerange(sending + 1, _MOST_FILES)
        gc.disable()  # no finalizer of what belongs to the parent
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        signal.set_wakeup_fd(-1)
        _end_with_parent()
        os.nice(_NICER)
        _bound_memory()
        content = _outcome(work, what)
        while content:
            content = content[os.write(sending, content) :]
        status = 0
    finally:
        os._exit(status)


def _outcome(work: Callable[[], object], what: str) -> bytes:
    try:
        return pickle.dumps((True, work()))
    except FederationError as error:
        return pickle.dumps((False, error))
    except MemoryError:
        hint = "simplify the statement"
        text = f"{what} used too much memory"
        return pickle.dumps((False, FederationError(text, hint=hint, code="statement_limit")))
    except Exception as error:  # noqa: BLE001  (told where it is awaited)
        return pickle.dumps((False, InternalError(f"{what} failed: {error!r:.500}")))


def _end_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _bound_memory() -> None:
    if sys.platform != "linux":
        return
    taken = address_space_bytes()
    if taken is None:
        return
    most = taken + _MORE_MEMORY
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    if hard in (resource.RLIM_INFINITY, -1) or hard > most:
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))
