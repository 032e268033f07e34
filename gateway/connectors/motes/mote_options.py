"""Options of endpoints and sources of simulated motes."""

import msgspec

from gateway.connectors.options import Seconds
from host.files.settings_file import require


class MotesEndpoint(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The motes of a gateway.

    Attributes:
        file: The gateway's provisioned JSON file.
        detectors: CSV of all detectors of the building; visitors walk past them. Empty: none do.
        seed: Of everything random.
        period: Between two readings of a sensor.
        visitors: Badges that walk about.
        turnover: Mean time until somebody sits down or leaves.
        live_machine: Machine id that this computer stands for: its load is measured, its seat and
            meter are simulated. Empty: none.
    """

    file: str
    detectors: str = ""
    seed: int = 1
    period: Seconds = Seconds(5)
    visitors: int = 3
    turnover: Seconds = Seconds(240)
    live_machine: str = ""

    def __post_init__(self) -> None:
        require(self.file != "", "file is empty")
        require(self.period >= 0.05, "period must be at least 0.05 s")
        require(self.turnover > 0, "turnover must be above 0 s")
        require(0 <= self.visitors <= 1_000, "visitors must be between 0 and 1000")


class MotesSource(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which readings feed a source.

    Attributes:
        topic: One of `sensing.TOPICS`; empty: the source's name.
    """

    topic: str = ""
