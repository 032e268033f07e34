"""`python -m deploy.history.trial_process`: one trial, from standard input to standard output.

Its parent writes a pickled order and the settings of the lake, and reads messages in MessagePack,
each behind its length. It has its own memory limit, gives way to others, and ends with its parent.
"""

import pickle
import sys
from collections.abc import Callable, Iterator, Sequence

from deploy.history.order_run import KeptPast, OrderRun
from deploy.history.process_limits import give_way
from deploy.history.process_messages import write_message
from federated_optimizer.coordinator.trials.history_runner import (
    HistoryEnd,
    HistoryMessage,
    HistoryOrder,
)
from streamsql.catalog.definitions import SourceDefinition
from streamsql.errors import FederationError, InternalError

_NICER = 10
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


def main() -> int:
    """Return 0: how the trial ended is in its last message."""
    order, open_past = pickle.load(sys.stdin.buffer)  # noqa: S301  (our own parent wrote it)
    give_way(order.memory, _NICER)
    for message in carry_out(order, open_past):
        write_message(message, sys.stdout.buffer)
    return 0


if __name__ == "__main__":
    sys.exit(main())
