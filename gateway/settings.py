"""Settings of a gateway or base site: one JSON file, read once at the start."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from streamsql.catalog.definitions import SourceDefinition
from streamsql.errors import DeploymentError
from streamsql.wire.messages import SensorDescription
from streamsql.wire.topics import check_id


class ClockSettings(msgspec.Struct, frozen=True):
    """The time a site lives in.

    A replay lives in the recording's time: it was `origin` when the wall clock showed
    `origin_wall` (both microseconds since 1970), and passes `speed` times as fast.
    """

    speed: float = 1.0
    origin_wall: int | None = None
    origin: int | None = None


class WrapperSettings(msgspec.Struct, frozen=True):
    """A wrapper to run: its kind (`motes`, `soft_sensors`, `calendar`, `replay`) and options."""

    kind: str
    options: dict[str, Any] = {}


class BufferSettings(msgspec.Struct, frozen=True):
    """Bounds of the disk buffer; beyond either, the oldest readings are dropped and counted."""

    max_bytes: int = 256_000_000
    max_hours: float = 72.0
    replay_per_second: int = 500


class GatewaySettings(msgspec.Struct, frozen=True):
    """Everything a gateway or base site needs to know.

    Attributes:
        site: The federation, first level of every topic.
        gateway: This site's id, also its MQTT client id.
        role: "gateway" (has devices) or "base" (hosts top fragments, no devices).
        broker: mqtt://[user:password@]host:port
        data_dir: For epoch, lock and buffer.
        sources: The streams whose rows are produced here.
        grace_seconds: How long an offline sender's rows stay before they leave every answer.
        tick_ms: Shortest time between two steps; what arrives meanwhile is one batch.
    """

    site: str
    gateway: str
    broker: str
    data_dir: str
    role: str = "gateway"
    sources: tuple[SourceDefinition, ...] = ()
    wrappers: tuple[WrapperSettings, ...] = ()
    sensors: tuple[SensorDescription, ...] = ()
    rooms: tuple[str, ...] = ()
    clock: ClockSettings = ClockSettings()
    buffer: BufferSettings = BufferSettings()
    grace_seconds: float = 5.0
    tick_ms: int = 20
    keepalive: int = 5

    def __post_init__(self) -> None:
        """Refuse ids that cannot be topic levels, and roles nobody knows."""
        check_id(self.site, "site")
        check_id(self.gateway, "gateway")
        if self.role not in ("gateway", "base"):
            raise ValueError(f"role {self.role!r} is neither 'gateway' nor 'base'")


def load_settings(path: Path, environ: Mapping[str, str] = os.environ) -> GatewaySettings:
    """Read settings from a JSON file; PANDO_BROKER, PANDO_SITE and PANDO_DATA override it.

    Raises:
        DeploymentError: The file is missing or wrong; says where.
    """
    try:
        settings = msgspec.json.decode(path.read_bytes(), type=GatewaySettings)
    except OSError as error:
        raise DeploymentError(
            f"cannot read settings {path}: {error.strerror}",
            hint="give --config the path of a gateway's JSON settings",
        ) from error
    except msgspec.MsgspecError as error:
        raise DeploymentError(f"settings {path}: {error}") from error
    changes = {
        field: environ[variable] for variable, field in _VARIABLES.items() if environ.get(variable)
    }
    return msgspec.structs.replace(settings, **changes) if changes else settings


_VARIABLES = {"PANDO_BROKER": "broker", "PANDO_SITE": "site", "PANDO_DATA": "data_dir"}
