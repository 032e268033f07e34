"""Opens the lake in processes of trials; the console itself does not load it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from static_engine.lake.lake_settings import LakeSettings
from streamsql.catalog.definitions import SourceDefinition

if TYPE_CHECKING:
    from deploy.history.order_run import KeptPast


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
