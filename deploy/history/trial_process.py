"""`python -m deploy.history.trial_process`: one trial, from standard input to standard output.

Its parent writes a pickled order and the settings of the lake, and reads messages in MessagePack,
each behind its length. It has its own memory limit, gives way to others, and ends with its parent.
"""

import ctypes
import os
import pickle
import resource
import signal
import sys
from collections.abc import Callable, Iterator, Sequence

from deploy.history.order_run import KeptPast, OrderRun
from deploy.history.process_messages import write_message
from federated_optimizer.coordinator.trials.history_runner import (
    HistoryEnd,
    HistoryMessage,
    HistoryOrder,
)
from host.process_memory import address_space_bytes
from streamsql.catalog.definitions import SourceDefinition
from streamsql.errors import FederationError, InternalError

_NICER = 10
_PR_SET_PDEATHSIG = 1
OpenPast = Callable[[Sequence[SourceDefinition]], KeptPast]
"""Opens the past of some sources; it must be picklable."""


def carry_out(order: HistoryOrder, open_past: OpenPast) -> Iterator[HistoryMessage]:
    """Yield the messages of a trial, the end last; whatever happens."""
    try:
        yield from OrderRun(order, open_past(order.sources)).messages()
    except FederationError as error:
        yield HistoryEnd(error.code, error.message, error.hint)
    except MemoryError:
        yield HistoryEnd(
            "statement_limit",
            f"the trial used more than {order.memory / 1e9:.1f} GB of memory",
            "try a shorter window, or a query with fewer rows",
        )
    except Exception as error:  # noqa: BLE001  (told to whoever asked for the trial)
        yield HistoryEnd(InternalError.code, f"the trial failed: {error!r:.500}")
    else:
        yield HistoryEnd()


def _limit(memory: int) -> None:
    """Give way to others, end with the parent, and take no more memory than allowed."""
    os.nice(_NICER)
    if sys.platform != "linux":
        return
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    taken = address_space_bytes()
    if taken is not None:
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        most = taken + memory
        if hard in (resource.RLIM_INFINITY, -1) or hard > most:
            resource.setrlimit(resource.RLIMIT_AS, (most, hard))


def main() -> int:
    """Return 0: how the trial ended is in its last message."""
    order, open_past = pickle.load(sys.stdin.buffer)  # noqa: S301  (our own parent wrote it)
    _limit(order.memory)
    for message in carry_out(order, open_past):
        write_message(message, sys.stdout.buffer)
    return 0


if __name__ == "__main__":
    sys.exit(main())
