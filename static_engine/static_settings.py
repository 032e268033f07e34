"""Settings of the static engine's process, read once from a JSON file."""

import math
import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from host.files.settings_file import check_port, read_settings
from static_engine.lake.lake_settings import LakeSettings
from static_engine.sources.object_stores import StoreSettings
from static_engine.spark.session_properties import check_properties
from static_engine.spark.spark_masters import master_kind
from streamsql.catalog.table_options import CHANGED_SOURCES
from streamsql.errors import DeploymentError, WireError
from streamsql.wire.topics import check_id


class StaticSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of one static engine.

    Attributes:
        broker: `mqtt://host:port` or `mqtts://…`.
        data_dir: Folder of ours: epoch, Spark's log and scratch files, snapshots of tables, rows of
            refreshed views.
        site: The federation's name, second level of every topic.
        site_id: Our own site id.
        base_dir: Folder that relative paths of tables start from, and whose files they may name;
            empty means the folder the process was started in.
        table_folders: Further folders whose files tables may name.
        closed_folders: Folders whose files they may not, though within an open one; `data_dir` is.
        table_stores: Stores of objects (S3) that tables may name by URL.
        secrets_file: Lines `name = address` of databases that tables name as `secret:name`.
        database_dialects: Databases a table may name by URL, as SQLAlchemy calls them.
        changed_sources: Sources whose tables take INSERT, UPDATE, DELETE and MERGE: lake, sql.
        use_spark: False evaluates in this process instead.
        spark_master: `local[*]`, `spark://…`, `k8s://…`, `yarn` or `sc://…`.
        spark_properties: Further properties of Spark's: memory and cores of executors, the image of
            Kubernetes' pods, …
        memory: Heap limit of the driver JVM.
        max_evaluation_seconds: For which Spark may evaluate one fragment.
        class_data_archive: Keep an archive of loaded classes, for faster later starts.
        bridge_rows: While Spark warms up, plans over tables with together at most this many rows
            are evaluated in this process; 0 makes them wait.
        local_rows: Plans that read and pair together at most this many rows are evaluated in this
            process, which is quicker, though Spark runs; 0 for none, -1 for as many as this machine
            does in the time that Spark takes for a few.
        poll_seconds: How often files are looked at for changes.
        max_table_rows: Most rows a table may have that is kept in this process.
        max_result_rows: Most rows one fragment may produce.
        max_gateway_rows: Most rows of a table that one query's gateways keep; a row counts as
            several from 100 bytes on. Plans are made for at most 10,000: the estimate may be four
            times too low before the query is planned again.
        max_view_rows: Most rows a refreshed view may have that Spark evaluates on this machine.
        epoch_file: Where the session number is kept; empty means in `data_dir`.
        broker_ca: Authority of the broker's certificate, with `mqtts`; empty for the system's.
        broker_cert: Our certificate, with `mqtts`.
        broker_key: Its private key, with `mqtts`; empty when `broker_cert` holds both.
        broker_password_file: File whose first line is the password at the broker; empty: that of
            `broker`. The user is the one in `broker`, or this service's id.
        functions: Python modules with functions of the user that may run here, with commas.
        metrics_port: Where `/metrics` and `/health` are served; 0 for nowhere.
        metrics_host: Address to serve them on; there are no accounts on this port.
        lake: Where readings and managed tables are kept; None: nowhere.
        segments: Folder of the lander's segments; empty: readings are not kept. Workers of a
            cluster have to see it, too.
        batch_seconds: Between two batches of readings into the lake.
    """

    broker: str
    data_dir: str
    site: str = "demo"
    site_id: str = "static"
    base_dir: str = ""
    table_folders: tuple[str, ...] = ()
    closed_folders: tuple[str, ...] = ()
    table_stores: tuple[StoreSettings, ...] = ()
    secrets_file: str = ""
    database_dialects: tuple[str, ...] = ("sqlite", "postgresql")
    changed_sources: tuple[str, ...] = CHANGED_SOURCES
    use_spark: bool = True
    spark_master: str = "local[*]"
    spark_properties: dict[str, str] = {}
    memory: str = "1g"
    max_evaluation_seconds: float = 600.0
    class_data_archive: bool = True
    bridge_rows: int = 5_000
    local_rows: int = -1
    poll_seconds: float = 2.0
    max_table_rows: int = 2_000_000
    max_result_rows: int = 1_000_000
    max_gateway_rows: int = 40_000
    max_view_rows: int = 20_000_000
    epoch_file: str = ""
    broker_ca: str = ""
    broker_cert: str = ""
    broker_key: str = ""
    broker_password_file: str = ""
    functions: str = ""
    metrics_port: int = 0
    metrics_host: str = "127.0.0.1"
    lake: LakeSettings | None = None
    segments: str = ""
    batch_seconds: float = 3.0

    def __post_init__(self) -> None:
        check_port(self.metrics_port, "metrics_port")
        for name in ("site", "site_id"):
            try:
                check_id(getattr(self, name), name)
            except WireError as error:
                raise DeploymentError(error.message, hint=error.hint) from None
        if not self.data_dir:
            raise DeploymentError("setting data_dir is empty", hint="set a writable folder")
        for source in self.changed_sources:
            if source not in CHANGED_SOURCES:
                raise DeploymentError(
                    f"setting changed_sources names {source!r:.40}",
                    hint=f"write some of {', '.join(CHANGED_SOURCES)}, or none",
                )
        if not (math.isfinite(self.poll_seconds) and 0.05 <= self.poll_seconds <= 3600):
            raise DeploymentError(
                f"setting poll_seconds is {self.poll_seconds}; it must be between 0.05 and 3600"
            )
        if not (math.isfinite(self.batch_seconds) and 0.2 <= self.batch_seconds <= 3600):
            raise DeploymentError(
                f"setting batch_seconds is {self.batch_seconds}; it must be between 0.2 and 3600"
            )
        if self.segments and self.lake is None:
            raise DeploymentError(
                "setting segments needs the setting lake", hint="set both, or neither"
            )
        for name, least in (
            ("max_table_rows", 1),
            ("max_result_rows", 1),
            ("max_gateway_rows", 1),
            ("max_view_rows", 1),
            ("bridge_rows", 0),
            ("local_rows", -1),
        ):
            if getattr(self, name) < least:
                raise DeploymentError(f"setting {name} must be at least {least}")
        if not 1 <= self.max_evaluation_seconds <= 86_400:
            raise DeploymentError(
                f"setting max_evaluation_seconds is {self.max_evaluation_seconds}; it must be "
                "between 1 and 86400"
            )
        if self.use_spark:
            master_kind(self.spark_master)
            check_properties(self.spark_properties)

    @property
    def data_path(self) -> Path:
        """Our folder."""
        return Path(self.data_dir).absolute()

    @property
    def base_path(self) -> Path:
        """Where relative paths of tables start."""
        return Path(self.base_dir or ".").absolute()

    @property
    def epoch_path(self) -> Path:
        """Where the session number is kept."""
        return Path(self.epoch_file).absolute() if self.epoch_file else self.data_path / "epoch"


def load_settings(path: Path, environ: Mapping[str, str] = os.environ) -> StaticSettings:
    """Return the settings in a JSON file; PANDO_BROKER, PANDO_SITE, … override it.

    Raises:
        DeploymentError: It cannot be read, is not JSON, or holds an unknown or unfit setting.
    """
    return read_settings(path, StaticSettings, environ)
