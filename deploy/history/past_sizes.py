"""Bounds of what plans read of the lake, for EXPLAIN; a process of its own asks the lake.

`python -m deploy.history.past_sizes` reads settings and plan from its standard input, and writes
the sizes, pickled, as `OpenedPast.sizes` sends and reads them.
"""

import pickle
import sys

from federated_optimizer.coordinator.trials.history_runner import PastSize
from static_engine.history.past_readings import PastReadings, past_of
from static_engine.lake.lake import Lake
from static_engine.lake.lake_settings import LakeSettings
from streamsql.algebra.operators import Plan
from streamsql.errors import FederationError


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


if __name__ == "__main__":
    asked = pickle.load(sys.stdin.buffer)  # noqa: S301  (of the console that has started this)
    sys.stdout.buffer.write(pickle.dumps(sizes_in(*asked)))
