"""Work on the event loop comes to an end in time, whatever it does."""

import contextlib
import gc
import importlib
import logging
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from federated_optimizer.coordinator.timed_attempts import (
    UNFINISHED,
    attempt,
    can_attempt,
    undisturbed,
)
from streamsql.algebra.user_functions import INSTALLED
from streamsql.data.types import DataType
from streamsql.errors import BindingError


def endless() -> None:
    while True:
        pass


def stubborn() -> None:
    """Take every exception for an error of its own, but for what ends processes."""
    while True:
        with contextlib.suppress(Exception):
            endless()


def ended_late() -> None:
    """Go on for a while after it was ended."""
    for _ in range(3):
        with contextlib.suppress(BaseException):  # as no code should
            endless()
    endless()


def sleeping() -> None:
    time.sleep(60)  # time passes: work that computes nothing and hangs


class Destroyed:
    """An object whose end takes longer than the work may."""

    def __del__(self) -> None:
        endless()


def ended_in_destructors() -> None:
    """Go on after the end of work was swallowed twice."""
    Destroyed()
    Destroyed()
    endless()


@pytest.fixture
def _functions() -> Iterator[None]:
    INSTALLED.allow([__name__])
    yield
    INSTALLED.allow([])


def test_work_that_ends_gives_its_result_or_its_error() -> None:
    assert attempt(lambda: 7, 1.0) == 7

    def fail() -> None:
        raise BindingError("no", code="unknown_column")

    with pytest.raises(BindingError, match="no"):
        attempt(fail, 1.0)


@pytest.mark.parametrize("work", [endless, stubborn, ended_late, sleeping])
def test_work_that_does_not_end_is_ended(work: Callable[[], None]) -> None:
    began = time.perf_counter()
    assert attempt(work, 0.02) is UNFINISHED
    assert time.perf_counter() - began < 2.0
    assert attempt(lambda: "next", 1.0) == "next"


def test_what_others_have_set_rings_for_them() -> None:
    rang = threading.Event()
    handler = signal.signal(signal.SIGALRM, lambda *_: rang.set())
    others = signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        assert attempt(lambda: 7, 0.01) == 7
        assert attempt(endless, 0.01) is UNFINISHED
        assert rang.wait(10)
        assert signal.getsignal(signal.SIGALRM) is not handler
    finally:
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, *others)


def test_what_stays_is_not_left_half_done() -> None:
    done: list[int] = []

    def work() -> None:
        with undisturbed():
            end = time.perf_counter() + 0.2
            while time.perf_counter() < end:
                pass
            done.append(1)
        endless()

    assert attempt(work, 0.02) is UNFINISHED
    assert done == [1]


def test_no_module_stays_half_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ("import time", "end = time.perf_counter() + 0.2", "while time.perf_counter() < end:")
    name = "imported_slowly"
    (tmp_path / f"{name}.py").write_text("\n".join([*lines, "    pass", "whole = True", ""]))
    monkeypatch.syspath_prepend(str(tmp_path))

    def work() -> None:
        importlib.import_module(name)
        endless()

    assert attempt(work, 0.02) is UNFINISHED
    assert sys.modules.pop(name).whole


def test_no_lock_of_loggers_stays_taken() -> None:
    logger = logging.getLogger("pando.tests.attempts")
    known: dict[int, bool] = logger._cache  # type: ignore[attr-defined]

    def is_enabled() -> bool:
        known.clear()  # else it is answered without the lock
        return logger.isEnabledFor(logging.DEBUG)

    def work() -> None:
        while True:
            is_enabled()
            sum(number * number for number in range(20))

    def ask(answered: threading.Event) -> None:
        is_enabled()
        answered.set()

    for _ in range(300):
        assert attempt(work, 0.001) is UNFINISHED
    answered = threading.Event()
    threading.Thread(target=ask, args=(answered,), daemon=True).start()
    assert answered.wait(10), "another thread waits for a lock for ever"


@pytest.mark.usefixtures("_functions")
def test_code_of_users_is_not_called() -> None:
    assert attempt(lambda: INSTALLED.function(f"{__name__}:endless", DataType.TEXT), 1.0) is (
        UNFINISHED
    )
    assert INSTALLED.function(f"{__name__}:endless", DataType.TEXT) is not None


def test_only_the_main_thread_can_be_ended() -> None:
    found: list[bool] = []
    thread = threading.Thread(target=lambda: found.append(can_attempt()))
    thread.start()
    thread.join()
    assert (can_attempt(), found) == (True, [False])


def test_work_that_is_ended_in_a_destructor_ends_and_nothing_is_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reported: list[object] = []
    hook = reported.append
    monkeypatch.setattr(sys, "unraisablehook", hook)
    assert attempt(ended_in_destructors, 0.01) is UNFINISHED
    assert reported == []
    assert sys.unraisablehook is hook, "as it was"


class Broken:
    """An object whose end fails."""

    def __del__(self) -> None:
        raise ValueError("of somebody else")


def test_other_errors_in_destructors_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    reported: list[str] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda found: reported.append(str(found.exc_value)))

    def work() -> int:
        Broken()
        return 1

    assert attempt(work, 1.0) == 1
    assert reported == ["of somebody else"]


def test_the_collector_looks_at_nothing_within_an_attempt_and_again_afterwards() -> None:
    looks: list[str] = []

    def noted(phase: str, _info: dict[str, int]) -> None:
        looks.append(phase)

    def work() -> tuple[int, object]:
        kept = [[] for _ in range(100_000)]  # type: ignore[var-annotated]
        return len(looks), kept

    gc.callbacks.append(noted)
    try:
        found = attempt(work, 10.0)
        after, _ = work()
    finally:
        gc.callbacks.remove(noted)
    assert isinstance(found, tuple)
    within, _ = found
    assert not within
    assert after
    assert gc.isenabled()


def test_the_collector_goes_on_wherever_work_is_ended() -> None:
    for part in range(1, 40):
        assert attempt(endless, part * 0.0005) is UNFINISHED
        assert gc.isenabled()
