"""Figures of this process: CPU, memory, open files, its start.

The names are those that all Prometheus clients use. A figure that the system does not tell is left
out.
"""

import os
import time
from collections.abc import Iterator
from pathlib import Path

from host.metrics.families import Sample, counter, gauge
from host.process_memory import address_space_bytes, resident_bytes

CPU = counter("process_cpu_seconds_total", "CPU time of the process, user and system.")
RESIDENT = gauge("process_resident_memory_bytes", "Resident memory of the process.")
VIRTUAL = gauge("process_virtual_memory_bytes", "Address space of the process.")
STARTED = gauge("process_start_time_seconds", "Start of the process, seconds since 1970 UTC.")
OPEN_FILES = gauge("process_open_fds", "Open file descriptors of the process.")

_DESCRIPTORS = Path("/proc/self/fd")
_LOADED_AT = time.time()


def process_figures() -> Iterator[Sample]:
    """Yield the figures of the process as a whole."""
    times = os.times()
    yield CPU.at(times.user + times.system)
    resident, virtual = resident_bytes(), address_space_bytes()
    if resident is not None:
        yield RESIDENT.at(resident)
    if virtual is not None:
        yield VIRTUAL.at(virtual)
    yield STARTED.at(_LOADED_AT)
    if _DESCRIPTORS.is_dir():
        yield OPEN_FILES.at(len(os.listdir(_DESCRIPTORS)))  # noqa: PTH208 - only their number
