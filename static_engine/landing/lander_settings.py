"""Settings of a lander's process, read once from a JSON file."""

import math
import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from host.files.settings_file import check_port, read_settings
from streamsql.errors import DeploymentError, WireError
from streamsql.wire.topics import check_id

MIB = 1 << 20
MAX_MESSAGES = 1_024
"""Of a segment: half of what brokers of ours send before the first is acknowledged."""


class LanderSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of one lander.

    Attributes:
        broker: `mqtt://host:port` or `mqtts://…`.
        data_dir: Folder of ours: the lock and the session number.
        segments: Folder of segments, which the pipeline reads; several landers may share it.
        site: The federation's name, second level of every topic.
        site_id: Our own site id. Each lander has its own; the broker keeps messages for it.
        segment_seconds: A segment is closed when its first message has waited so long.
        segment_messages: It is closed when it has so many messages. At most half of the broker's
            `max_inflight_messages`, which else holds messages back until the time is over.
        segment_bytes: It is closed when its payloads have so many bytes.
        max_folder_bytes: While the folder's segments have more bytes, nothing is taken.
        spare_bytes: Room that is left on the disk for others.
        broker_ca: Authority of the broker's certificate, with `mqtts`; empty for the system's.
        broker_cert: Our certificate, with `mqtts`.
        broker_key: Its private key, with `mqtts`; empty when `broker_cert` holds both.
        broker_password_file: File whose first line is the password at the broker; empty: that of
            `broker`. The user is the one in `broker`, or this service's id.
        metrics_port: Where `/metrics` and `/health` are served; 0 for nowhere.
        metrics_host: Address to serve them on; there are no accounts on this port.
    """

    broker: str
    data_dir: str
    segments: str
    site: str = "demo"
    site_id: str = "lander"
    segment_seconds: float = 1.0
    segment_messages: int = MAX_MESSAGES
    segment_bytes: int = 8 * MIB
    max_folder_bytes: int = 20_000 * MIB
    spare_bytes: int = 200 * MIB
    broker_ca: str = ""
    broker_cert: str = ""
    broker_key: str = ""
    broker_password_file: str = ""
    metrics_port: int = 0
    metrics_host: str = "127.0.0.1"

    def __post_init__(self) -> None:
        check_port(self.metrics_port, "metrics_port")
        for name in ("site", "site_id"):
            try:
                check_id(getattr(self, name), name)
            except WireError as error:
                raise DeploymentError(error.message, hint=error.hint) from None
        for name in ("data_dir", "segments"):
            if not getattr(self, name):
                raise DeploymentError(f"setting {name} is empty", hint="set a writable folder")
        seconds = self.segment_seconds
        if not (math.isfinite(seconds) and 0.01 <= seconds <= 60):
            raise DeploymentError(
                f"setting segment_seconds is {seconds}; it must be between 0.01 and 60"
            )
        bounds = (
            ("segment_messages", 1, 30_000),
            ("segment_bytes", 1, 1_000 * MIB),
            ("max_folder_bytes", MIB, 1 << 60),
            ("spare_bytes", 0, 1 << 60),
        )
        for name, least, most in bounds:
            if not least <= getattr(self, name) <= most:
                raise DeploymentError(f"setting {name} must be between {least:,} and {most:,}")

    @property
    def data_path(self) -> Path:
        """Our folder."""
        return Path(self.data_dir).absolute()

    @property
    def segments_path(self) -> Path:
        """Folder of segments."""
        return Path(self.segments).absolute()


def load_settings(path: Path, environ: Mapping[str, str] = os.environ) -> LanderSettings:
    """Return the settings in a JSON file; PANDO_BROKER, PANDO_SITE, … override it.

    Raises:
        DeploymentError: It cannot be read, is not JSON, or holds an unknown or unfit setting.
    """
    return read_settings(path, LanderSettings, environ)
