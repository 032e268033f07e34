"""Simulated motes of a gateway, read from the provisioned file."""

import csv
from pathlib import Path

import msgspec

from host.files.json_file import read_json
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
