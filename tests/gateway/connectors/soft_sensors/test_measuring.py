"""This very machine, measured."""

import os
import time

import psutil

from gateway.connectors.soft_sensors import measuring
from gateway.connectors.soft_sensors.measuring import measure


def test_what_is_measured_is_this_machine() -> None:
    measured = measure(10_000)
    assert 0.0 <= measured.memory <= 1.0
    assert abs(measured.memory - psutil.virtual_memory().percent / 100) < 0.2
    assert 0.0 <= measured.cpu <= 1.0
    assert measured.users >= 0
    assert measured.celsius is None or -50 < measured.celsius < 150
    ours = [task for task in measured.tasks if task.pid == os.getpid()]
    assert len(ours) == 1
    assert ours[0].name == psutil.Process().name()
    assert list(measured.tasks) == sorted(measured.tasks, key=lambda t: (-t.cpu, -t.memory, t.pid))


def test_a_busy_process_is_seen() -> None:
    """Its share is the processor time it used, over the time that went by: little if others ran."""
    began = time.monotonic()
    measure(1)
    used_from = time.process_time()
    while (used := time.process_time() - used_from) < 0.3:
        sum(range(10_000))
    measured = measure(10_000)
    (ours,) = [task for task in measured.tasks if task.pid == os.getpid()]
    # The system counts a process's time in ticks of 10 ms.
    assert ours.cpu >= (used - 0.03) / (time.monotonic() - began)


def test_names_that_are_no_unicode_are_made_readable() -> None:
    assert measuring._readable("bad\udcff" + "x" * 500) == "bad?" + "x" * 196
