"""Opens the lake in processes of trials and statements; the console itself does not load it."""

import logging
import pickle
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from federated_optimizer.coordinator.trials.history_runner import PastSize
from static_engine.lake.lake_settings import LakeSettings
from streamsql.algebra.operators import Plan
from streamsql.catalog.definitions import SourceDefinition

if TYPE_CHECKING:
    from deploy.history.order_run import KeptPast

log = logging.getLogger(__name__)

SIZES_SECONDS = 8.0
"""Less than a statement may take (`statement_seconds`): EXPLAIN says the rest without it."""


@dataclass(frozen=True, slots=True)
class OpenedPast:
    """Opens one lake.

    Args:
        settings: Where it is.
    """

    settings: LakeSettings

    def __call__(self, definitions: Sequence[SourceDefinition]) -> "KeptPast":
        """Return the past of some sources.

        Raises:
            LakeError: The lake cannot be opened.
        """
        # pyiceberg and Arrow take a second and 100 MB, which only trials need.
        from deploy.history.lake_past import LakePast  # noqa: PLC0415
        from static_engine.lake.lake import Lake  # noqa: PLC0415

        return LakePast(Lake(self.settings), {d.name: d for d in definitions})

    def sizes(self, plan: Plan) -> tuple[PastSize, ...]:
        """Return what a plan reads of the past, one per scan; blocking.

        EXPLAIN asks in a forked process, and SQLite does not survive a fork: it waits there for
        locks that the console had. So the lake is opened in a process begun anew.
        """
        try:
            done = subprocess.run(
                [sys.executable, "-m", "deploy.history.past_sizes"],
                input=pickle.dumps((self.settings, plan)),
                capture_output=True,
                timeout=SIZES_SECONDS,
                check=True,
            )
        except subprocess.TimeoutExpired:
            words = f"the lake has not answered within {SIZES_SECONDS:g} s; try again"
            return (PastSize("the past", problem=words),)
        except (OSError, subprocess.SubprocessError) as error:
            log.warning("the lake was not asked how much a plan reads: %s", error)
            return (PastSize("the past", problem=f"{type(error).__name__}; see the log"),)
        sizes: tuple[PastSize, ...] = pickle.loads(done.stdout)  # noqa: S301  (of our own process)
        return sizes
