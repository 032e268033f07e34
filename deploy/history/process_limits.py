"""Limits that processes of the console set themselves."""

import ctypes
import os
import resource
import signal
import sys

from host.process_memory import address_space_bytes

_PR_SET_PDEATHSIG = 1


def give_way(memory: int, nicer: int) -> None:
    """Give way to others, end with the parent, and take no more memory than allowed.

    Args:
        memory: Bytes beyond what the process has now.
        nicer: Added to its scheduling niceness.
    """
    os.nice(nicer)
    if sys.platform != "linux":
        return
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    taken = address_space_bytes()
    if taken is not None:
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        most = taken + memory
        if hard in (resource.RLIM_INFINITY, -1) or hard > most:
            resource.setrlimit(resource.RLIMIT_AS, (most, hard))
