"""Settings of a gateway or base site: one JSON file, read once at the start.

What is out of range is refused here, with the field's name, so that nobody further in has to ask.
"""

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from host.files.settings_file import read_settings, require
from streamsql.algebra.operators import SourceKind
from streamsql.catalog.definitions import SourceDefinition
from streamsql.errors import WireError
from streamsql.wire.site_messages import ENGINE_ROLES, SensorDescription, SiteRole
from streamsql.wire.site_settings import SiteSettings
from streamsql.wire.topics import check_id

MAX_ENDPOINTS = 200
CONNECTOR = "connector"
"""The field of an endpoint that names the kind of its connector; all others are that one's."""


class ClockSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The time a site lives in.

    A replay lives in the recording's time: it was `origin` when the wall clock showed
    `origin_wall` (both microseconds since 1970), and passes `speed` times as fast.

    Attributes:
        correct: Go by the coordinator's clock: what was found to be the difference is added to the
            time of this machine. Times that devices give are left alone (see `WrapperSettings`).
        warn_offset_ms: Milliseconds by which this machine's clock may differ from the
            coordinator's before the site complains.
    """

    speed: float = 1.0
    origin_wall: int | None = None
    origin: int | None = None
    correct: bool = False
    warn_offset_ms: float = 500.0

    def __post_init__(self) -> None:
        require(math.isfinite(self.speed) and self.speed > 0, "clock.speed must be above 0")
        both = (self.origin_wall is None) == (self.origin is None)
        require(both, "clock.origin and clock.origin_wall must be set together")
        require(self.warn_offset_ms >= 0, "clock.warn_offset_ms must be at least 0")


class WrapperSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A wrapper to run: its kind (`motes`, `soft_sensors`, `calendar`, `replay`) and options.

    Attributes:
        correct_times: Add this machine's clock correction to the event times that the wrapper
            gives: its devices go by this machine's clock. Only with `clock.correct`.
    """

    kind: str
    options: dict[str, Any] = {}
    correct_times: bool = False


class BufferSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Bounds of the disk buffer; beyond either, the oldest readings are dropped and counted."""

    max_bytes: int = 256_000_000
    max_hours: float = 72.0
    replay_per_second: int = 500

    def __post_init__(self) -> None:
        require(self.max_bytes > 0, "buffer.max_bytes must be above 0")
        require(self.max_hours > 0, "buffer.max_hours must be above 0")
        require(self.replay_per_second > 0, "buffer.replay_per_second must be above 0")


class SnapshotSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a site's state is kept on disk, so that it goes on where it was after a crash.

    Attributes:
        seconds: Between two snapshots. More pass where one takes long: it may take a twentieth of
            the time.
        max_bytes: Of a snapshot, and of the journal of what came after it.
        keep: Whether anything is kept at all.
    """

    seconds: float = 10.0
    max_bytes: int = 256_000_000
    keep: bool = True

    def __post_init__(self) -> None:
        require(0.1 <= self.seconds <= 86_400, "snapshots.seconds must be between 0.1 and 86400")
        require(self.max_bytes >= 10_000, "snapshots.max_bytes must be at least 10000")


class StepSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Budget of one query in one step; a query that exceeds it is stopped here.

    Attributes:
        seconds: Of CPU.
        max_bytes: By which the process may grow.
    """

    seconds: float = 20.0
    max_bytes: int = 2_000_000_000

    def __post_init__(self) -> None:
        require(0.1 <= self.seconds <= 86_400, "step.seconds must be between 0.1 and 86400")
        require(self.max_bytes >= 10_000_000, "step.max_bytes must be at least 10000000")


class GatewaySettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything a gateway or base site needs to know.

    Attributes:
        site: The federation, first level of every topic.
        gateway: This site's id, also its MQTT client id.
        role: GATEWAY (has devices) or BASE (hosts top fragments, no devices).
        broker: mqtt://[user:password@]host:port
        data_dir: For epoch, lock, buffer and snapshots.
        sources: The streams whose rows are produced here.
        grace_seconds: How long an offline sender's rows stay before they leave every answer.
        tick_ms: Longest rest between two steps while there is something to do. A step follows at
            once after silence; a site under load rests as long as its last step took, at most this
            long, and works on what arrived meanwhile as one batch.
        keepalive: Seconds of silence after which broker and site begin to doubt each other.
        functions: Python modules with functions of the user that may run here, with commas.
        engine: How the engine works, until an operator sets it otherwise.
        step: What one query may take in one step.
        connectors: Kinds of connectors that may run here; None: all that are installed.
        endpoints: What connectors connect to, by name: `{"connector": kind, …}` with the address
            and secrets that the connector takes. Definitions name it; they hold no secrets.
        broker_ca: Authority of the broker's certificate, with `mqtts`; empty for the system's.
        broker_cert: Our certificate, with `mqtts`.
        broker_key: Its private key, with `mqtts`.
    """

    site: str
    gateway: str
    broker: str
    data_dir: str
    role: SiteRole = SiteRole.GATEWAY
    sources: tuple[SourceDefinition, ...] = ()
    wrappers: tuple[WrapperSettings, ...] = ()
    sensors: tuple[SensorDescription, ...] = ()
    rooms: tuple[str, ...] = ()
    clock: ClockSettings = ClockSettings()
    buffer: BufferSettings = BufferSettings()
    snapshots: SnapshotSettings = SnapshotSettings()
    grace_seconds: float = 5.0
    tick_ms: int = 20
    keepalive: int = 5
    functions: str = ""
    engine: SiteSettings = SiteSettings()
    step: StepSettings = StepSettings()
    connectors: tuple[str, ...] | None = None
    endpoints: dict[str, dict[str, Any]] = {}
    broker_ca: str = ""
    broker_cert: str = ""
    broker_key: str = ""

    def __post_init__(self) -> None:
        for text, what in ((self.site, "site"), (self.gateway, "gateway")):
            try:
                check_id(text, what)
            except WireError as error:
                raise ValueError(str(error)) from None
        require(
            self.role in ENGINE_ROLES,
            f"role '{self.role}' is neither 'gateway' nor 'base'",
        )
        require(0 <= self.grace_seconds <= 86_400, "grace_seconds must be between 0 and 86400")
        require(1 <= self.tick_ms <= 10_000, "tick_ms must be between 1 and 10000")
        require(1 <= self.keepalive <= 3_600, "keepalive must be between 1 and 3600")
        names = [source.name for source in self.sources]
        require(len(names) == len(set(names)), "sources: a name appears twice")
        for source in self.sources:
            require(not source.is_table, f"sources: {source.name} is a table, not a stream")
            ends = len(source.key) >= 2 or source.kind != SourceKind.LINK
            require(ends, f"sources: link source {source.name} needs a key of source and target")

        _check_endpoints(self.endpoints)


def _check_endpoints(endpoints: Mapping[str, Mapping[str, Any]]) -> None:
    """Check what is the same for endpoints of all connectors; no value is shown.

    Raises:
        ValueError: A name is no id, or an endpoint names no connector.
    """
    require(len(endpoints) <= MAX_ENDPOINTS, f"endpoints: more than {MAX_ENDPOINTS}")
    for name, options in endpoints.items():
        try:
            check_id(name, "endpoint")
        except WireError as error:
            raise ValueError(str(error)) from None
        kind = options.get(CONNECTOR)
        named = isinstance(kind, str) and kind != ""
        require(named, f'endpoints: {name} names no connector: {{"connector": "mqtt", …}}')


def load_settings(path: Path, environ: Mapping[str, str] = os.environ) -> GatewaySettings:
    """Read settings from a JSON file; PANDO_BROKER, PANDO_SITE, … override it.

    Raises:
        DeploymentError: The file is missing or wrong; says where.
    """
    return read_settings(path, GatewaySettings, environ)
