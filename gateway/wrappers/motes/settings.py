"""What a gateway's simulated motes are: read from the provisioned file, validated."""

import csv
from pathlib import Path

import msgspec

from host.files.json_file import read_json
from host.files.settings_file import require
from streamsql.errors import DeploymentError


class Mote(msgspec.Struct, frozen=True):
    """One simulated sensor; `kind` is seat, light, temperature, rfid, energy or load."""

    sensor: str
    kind: str
    rid: str = ""
    mid: str | None = None
    x: float = 0.0
    y: float = 0.0
    level: int = 0
    unit: str = ""


class Peer(msgspec.Struct, frozen=True):
    """A possible radio link from a mote of this gateway; distance in metres."""

    src: str
    dst: str
    distance: float


class MoteField(msgspec.Struct, frozen=True):
    """All motes of one gateway."""

    gateway: str
    rooms: tuple[str, ...] = ()
    motes: tuple[Mote, ...] = ()
    peers: tuple[Peer, ...] = ()


class MoteOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Options of the motes wrapper.

    Attributes:
        file: The gateway's provisioned JSON file.
        detectors: CSV of all detectors of the building; visitors walk past them. Empty: none do.
        seed: Of everything random.
        period: Seconds between two readings of a sensor.
        visitors: Badges that walk about.
        turnover: Mean seconds until somebody sits down or leaves.
        live_machine: Machine id that a real machine stands for; its load is measured, its seat
            and meter are simulated.
    """

    file: str
    detectors: str = ""
    seed: int = 1
    period: float = 5.0
    visitors: int = 3
    turnover: float = 240.0
    live_machine: str = ""

    def __post_init__(self) -> None:
        require(self.period >= 0.05, "period must be at least 0.05 s")
        require(self.turnover > 0, "turnover must be above 0 s")
        require(0 <= self.visitors <= 1_000, "visitors must be between 0 and 1000")


class Detector(msgspec.Struct, frozen=True):
    """An RFID detector of the building."""

    detector: str
    x: float
    y: float
    level: int


def load_field(path: Path) -> MoteField:
    """Read a gateway's motes.

    Raises:
        DeploymentError: The file is missing or wrong.
    """
    return read_json(path, MoteField, "motes")


def load_detectors(path: Path) -> tuple[Detector, ...]:
    """Read all detectors.

    Raises:
        DeploymentError: The file is missing, lacks a column or has a bad number.
    """
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return tuple(
                Detector(r["detector"], float(r["x"]), float(r["y"]), int(r["level"]))
                for r in csv.DictReader(file)
            )
    except OSError as error:
        raise DeploymentError(f"cannot read detectors {path}: {error.strerror}") from error
    except (KeyError, TypeError, ValueError, csv.Error) as error:
        raise DeploymentError(f"detectors {path}: {error}") from error
