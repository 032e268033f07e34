"""Figures of this process beside what psutil measures."""

import time

import psutil
import pytest

from host.metrics.process_figures import process_figures


def test_the_figures_are_those_of_the_process() -> None:
    found = {sample.family.name: sample.value for sample in process_figures()}
    process = psutil.Process()
    with process.oneshot():
        times = process.cpu_times()
        memory = process.memory_info()
    assert found["process_cpu_seconds_total"] == pytest.approx(times.user + times.system, abs=0.5)
    assert found["process_resident_memory_bytes"] == pytest.approx(memory.rss, rel=0.1)
    assert found["process_virtual_memory_bytes"] == pytest.approx(memory.vms, rel=0.1)
    assert found["process_open_fds"] == pytest.approx(process.num_fds(), abs=3)
    assert process.create_time() - 1 <= found["process_start_time_seconds"] <= time.time()
