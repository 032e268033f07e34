"""Bounds of what plans read of the lake, for EXPLAIN; a process of its own asks the lake.

`python -m deploy.history.past_sizes SOCKET SECONDS` gets the settings of the lake, pickled, from
its standard input, which stays open as long as the console lives. It answers one connection of the
listening socket with that number after the other: it acknowledges a pickled plan with one byte, and
sends the sizes, pickled. `asked_sizes` is the other end.
"""

import contextlib
import pickle
import select
import signal
import socket
import sys

from deploy.history.process_limits import give_way
from federated_optimizer.coordinator.trials.history_runner import PastSize
from static_engine.history.past_readings import PastReadings, past_of
from static_engine.lake.lake import Lake
from static_engine.lake.lake_settings import LakeSettings
from streamsql.algebra.operators import Plan
from streamsql.errors import FederationError

IDLE_SECONDS = 600.0
"""After which a process that nobody asks ends: it takes 190 MB."""
MEMORY = 1_000_000_000
_NICER = 5
_ASKING_SECONDS = 1.0


def sizes_in(settings: LakeSettings, plan: Plan) -> tuple[PastSize, ...]:
    """Return what a plan reads of a lake, one per scan.

    Args:
        settings: Where the lake is.
        plan: Its scans of the past stand still.
    """
    scans = past_of(plan)
    words = {scan: f"the past of {scan.source} {scan.history}" for scan in scans}
    try:
        past = PastReadings(Lake(settings))
    except FederationError as error:
        return tuple(PastSize(text, problem=error.message) for text in words.values())
    found: list[PastSize] = []
    for scan, text in words.items():
        try:
            lake = past.scan(scan).lake
        except FederationError as error:
            found.append(PastSize(text, problem=error.message))
        else:
            size = (len(lake.files), lake.rows, lake.bytes) if lake is not None else (0, 0, 0)
            found.append(PastSize(text, *size))
    return tuple(found)


def serve(listener: socket.socket, settings: LakeSettings, seconds: float) -> None:
    """Answer until the standard input is closed, or nobody has asked for a while.

    Args:
        listener: Listens already.
        settings: Where the lake is.
        seconds: An answer may take so long; then this process ends by SIGALRM.
    """
    while True:
        ready, _, _ = select.select([listener, sys.stdin.fileno()], [], [], IDLE_SECONDS)
        if listener not in ready:
            return
        connection, _ = listener.accept()
        signal.setitimer(signal.ITIMER_REAL, seconds)
        with connection, contextlib.suppress(OSError):  # who asked is gone
            connection.settimeout(_ASKING_SECONDS)
            with connection.makefile("rb") as asked:
                content = asked.read()
            connection.sendall(b"!")
            connection.sendall(pickle.dumps(_answer(settings, content)))
        signal.setitimer(signal.ITIMER_REAL, 0.0)


def _answer(settings: LakeSettings, content: bytes) -> tuple[PastSize, ...]:
    try:
        plan: Plan = pickle.loads(content)  # noqa: S301  (only our own user reaches the socket)
        return sizes_in(settings, plan)
    except Exception as error:  # noqa: BLE001  (told to whoever asked)
        return (PastSize("the past", problem=f"{type(error).__name__}: {error}"[:500]),)


def main() -> int:
    """Serve until nobody needs it; return 0."""
    settings: LakeSettings = pickle.load(sys.stdin.buffer)  # noqa: S301  (of the console)
    give_way(MEMORY, _NICER)
    with socket.socket(fileno=int(sys.argv[1])) as listener:
        serve(listener, settings, float(sys.argv[2]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
