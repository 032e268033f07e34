"""Settings of a gateway or base site: one JSON file, read once at the start.

What is out of range is refused here, with the field's name, so that nobody further in has to ask.
"""

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from gateway.connectors.options import CONNECTOR, CORRECT_TIMES
from host.files.json_file import read_json
from host.files.settings_file import MAX_BYTES, check_port, read_settings, require
from streamsql.errors import DeploymentError, WireError
from streamsql.wire.site_messages import ENGINE_ROLES, SiteRole
from streamsql.wire.site_settings import SiteSettings
from streamsql.wire.topics import check_id

MAX_ENDPOINTS = 200
FORMER = ("sources", "wrappers", "sensors", "rooms")
"""Settings of version 0.1: what they said is said by CREATE SOURCE and by endpoints."""


class ClockSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The time a site lives in.

    A replay lives in the recording's time: it was `origin` when the wall clock showed
    `origin_wall` (both microseconds since 1970), and passes `speed` times as fast.

    Attributes:
        correct: Go by the coordinator's clock: what was found to be the difference is added to the
            time of this machine. Times that devices give are left alone, unless their
            endpoint has `correct_times`.
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
    """Saving of a site's state on disk, from which it continues after a crash.

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
            and secrets that the connector takes. Definitions name it; they hold no secrets. With
            `"correct_times": true` its devices go by this machine's clock: the correction is added
            to their event times.
        broker_ca: Authority of the broker's certificate, with `mqtts`; empty for the system's.
        broker_cert: Our certificate, with `mqtts`.
        broker_key: Its private key, with `mqtts`; empty when `broker_cert` holds both.
        broker_password_file: File whose first line is the password at the broker; empty: that of
            `broker`. The user is the one in `broker`, or this service's id.
        metrics_port: Where `/metrics` and `/health` are served; 0 for nowhere.
        metrics_host: Address to serve them on; there are no accounts on this port.
    """

    site: str
    gateway: str
    broker: str
    data_dir: str
    role: SiteRole = SiteRole.GATEWAY
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
    metrics_port: int = 0
    metrics_host: str = "127.0.0.1"
    broker_password_file: str = ""

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
        check_port(self.metrics_port, "metrics_port")
        _check_endpoints(self.endpoints)
        corrected = [name for name, each in self.endpoints.items() if each.get(CORRECT_TIMES)]
        require(
            self.clock.correct or not corrected,
            f"endpoints: {', '.join(corrected)}: {CORRECT_TIMES} needs clock.correct",
        )


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
        correct_times = options.get(CORRECT_TIMES, False)
        require(isinstance(correct_times, bool), f"endpoints: {name}: {CORRECT_TIMES} is a boolean")
        require(named, f'endpoints: {name} names no connector: {{"connector": "mqtt", …}}')


def load_settings(path: Path, environ: Mapping[str, str] = os.environ) -> GatewaySettings:
    """Read settings from a JSON file; PANDO_BROKER, PANDO_SITE, … override it.

    Raises:
        DeploymentError: The file is missing or wrong; says where.
    """
    _refuse_former(path)
    return read_settings(path, GatewaySettings, environ)


def _refuse_former(path: Path) -> None:
    """Refuse a file of version 0.1 that defines sources.

    Raises:
        DeploymentError: It is one, says what to do instead; or no JSON object.
    """
    if not path.is_file():
        return  # refused with a hint by whoever reads the settings
    given = read_json(path, dict[str, Any], "settings", max_bytes=MAX_BYTES)
    found = [name for name in FORMER if name in given]
    if not found:
        return
    wrappers = given.get("wrappers")
    named = [each.get("kind") for each in _objects(wrappers)]
    kind = next((each for each in named if isinstance(each, str)), "replay")
    raise DeploymentError(
        f"settings {path}: {' and '.join(found)} are no longer settings of a gateway; sources "
        "are defined once, in the catalog",
        hint=f'remove them; write an endpoint, "endpoints": {{"here": {{"connector": "{kind:.40}", '
        "…options of the wrapper…}}, and send once in the console or with pando source add: CREATE "
        f"SOURCE name (…columns…) WITH (connector = '{kind:.40}', endpoint = 'here')",
    )


def _objects(given: object) -> list[dict[str, Any]]:
    return [each for each in given if isinstance(each, dict)] if isinstance(given, list) else []
