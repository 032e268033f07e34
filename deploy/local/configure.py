"""Write what every service reads: the site's files and one settings file per service."""

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import psutil

from broker.free_ports import HOST
from building.files.provision import Processor, provision
from building.files.site_files import write_atomically
from building.model.site_model import Site
from building.osm.osm_indoor import read_osm_indoor
from building.sample.k7_trace import read_k7
from building.sample.sample_building import sample_building
from deploy.local.kept_endpoints import CONSOLE, Endpoints, read_endpoints
from deploy.local.layout import Layout
from deploy.local.recordings import REPLAY_ENDPOINT, Recording
from deploy.local.up_options import UpOptions
from gateway.connectors.motes.mote_field import MoteField
from gateway.gateway_settings import ClockSettings, GatewaySettings
from host.files.atomic_file import PRIVATE
from host.files.json_file import read_json
from static_engine.lake.lake_settings import LakeSettings
from static_engine.landing.lander_settings import MIB, LanderSettings
from static_engine.static_settings import StaticSettings
from streamsql.errors import DeploymentError
from streamsql.wire.site_messages import SiteRole
from ui.console_settings import ConsoleSettings

FEDERATION = "demo"
MAX_SEGMENTS = 2_000 * MIB
"""Of a local federation: the disk is the user's."""
SCHEMAS = Path(__file__).resolve().parent.parent / "schema"


class _Node(msgspec.Struct):
    id: str


class _SoftSensor(msgspec.Struct):
    mid: str


class _GatewayFile(MoteField, frozen=True):
    """The provisioned file of a gateway: its motes, real machines and recorded nodes."""

    soft: tuple[_SoftSensor, ...] = ()
    nodes: tuple[_Node, ...] = ()


def read_site(options: UpOptions, recording: Recording | None) -> Site | None:
    """Return the site to show; None for recordings without places.

    Raises:
        DeploymentError: A file is wrong; names the feature or line.
    """
    if recording is not None:
        is_trace = recording.format == "k7"
        return read_k7(recording.path, gateways=options.gateways) if is_trace else None
    if options.site is not None:
        return read_osm_indoor(options.site)
    return sample_building()


def write_site(
    site: Site | None, layout: Layout, recording: Recording | None, gateways: int
) -> tuple[str, tuple[str, ...]]:
    """Write the site's files for so many gateways.

    Returns:
        Its script of CREATE statements, and what the user should know about the map.

    Raises:
        DeploymentError: The directory cannot be written.
    """
    warnings: tuple[str, ...] = ()
    if site is None:
        _remove_site(layout)
    else:
        host = socket.gethostname()
        paths = provision(site, layout.site, gateways=gateways, host=host, processor=_processor())
        warnings = (*paths.warnings, *_simulated(site))
    if recording is None:
        script = (SCHEMAS / "building.sql").read_text(encoding="utf-8")
    elif recording.format == "k7":
        script = (SCHEMAS / "trace.sql").read_text(encoding="utf-8")
    else:
        script = recording.schema
    write_atomically(layout.schema, script.encode())
    return script, warnings


def _simulated(site: Site) -> Iterator[str]:
    """Yield one sentence about what of a building is simulated, if anything is."""
    machines = sum(not machine.is_host for machine in site.machines)
    sensors = sum(map(site.is_simulated, site.sensors))
    if machines or sensors:
        yield (
            f"{machines} machines and {sensors} sensors of {site.name or 'the building'} "
            "are simulated; the load of this computer is measured"
        )


def _remove_site(layout: Layout) -> None:
    """Remove the site of an earlier run.

    Raises:
        DeploymentError: It cannot be removed.
    """
    try:
        (layout.site / "site.geojson").unlink(missing_ok=True)
        for path in (layout.site / "gateways").glob("*.json"):
            path.unlink()
    except OSError as error:
        raise DeploymentError(
            f"cannot remove {error.filename}: {error.strerror}",
            hint="choose another directory with --data",
        ) from error


def _processor() -> Processor | None:
    """Return this computer's processor, where the system names it (Linux)."""
    cores = psutil.cpu_count() or 1
    with contextlib.suppress(OSError, UnicodeDecodeError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name" and value.strip():
                return Processor(value.strip(), cores)
    return None


def gateway_settings(  # noqa: PLR0913  (each comes from elsewhere)
    number: int,
    *,
    options: UpOptions,
    layout: Layout,
    broker: str,
    recording: Recording | None,
    clock: ClockSettings,
) -> GatewaySettings:
    """Return the settings of the `number`-th gateway, counted from 1.

    Raises:
        DeploymentError: A file of the site is damaged.
    """
    name = f"gw-{number}"
    path = layout.site / "gateways" / f"{name}.json"
    found = read_json(path, _GatewayFile, "motes") if path.exists() else None
    field = found or _GatewayFile(name)
    first = number == 1
    if recording is not None:
        nodes = [node.id for node in field.nodes]
        # No nodes would mean all nodes: in a trace only who has some replays, else only the first.
        mine = bool(nodes) if recording.format == "k7" else first
        ours = _replay_endpoint(recording, nodes) if mine else {}
    else:
        ours = _building_endpoints(field, path, layout, options, first=first)
    return GatewaySettings(
        site=FEDERATION,
        gateway=name,
        broker=broker,
        data_dir=str(layout.data(name)),
        clock=clock,
        endpoints={**ours, **read_endpoints(layout, name)},
        metrics_port=options.metrics_port_of(name),
    )


def base_settings(
    layout: Layout, broker: str, clock: ClockSettings, metrics_port: int = 0
) -> GatewaySettings:
    """Return the settings of the base site."""
    return GatewaySettings(
        site=FEDERATION,
        gateway="base",
        role=SiteRole.BASE,
        broker=broker,
        data_dir=str(layout.data("base")),
        clock=clock,
        metrics_port=metrics_port,
    )


def write_settings(layout: Layout, service: str, settings: object) -> Path:
    """Write a settings file and return its path."""
    path = layout.settings(service)
    # Addresses in it may hold passwords.
    write_atomically(path, msgspec.json.format(msgspec.json.encode(settings), indent=2), PRIVATE)
    return path


def console_settings(
    layout: Layout, broker: str, options: UpOptions, recording: Recording | None
) -> ConsoleSettings:
    """Return the settings of the console and the coordinator in it."""
    site_file = layout.site / "site.geojson"
    return ConsoleSettings(
        host=HOST,
        port=options.port,
        allowed_hosts=",".join(options.allow_hosts),
        site=FEDERATION,
        broker=broker,
        data_dir=str(layout.data("console")),
        catalog_url=options.database or "",
        site_file=str(site_file) if site_file.exists() else "",
        schema_file=str(layout.schema),
        layers="trace" if recording is not None else "building",
        base_dir=str(layout.tables),
        table_folders=options.table_folders,
        closed_folders=(str(layout.root),),
        endpoints=read_endpoints(layout, CONSOLE),
        lake=msgspec.to_builtins(lake_settings(layout, options)) if options.spark else None,
    )


def static_settings(layout: Layout, broker: str, options: UpOptions) -> StaticSettings:
    """Return the settings of the static engine."""
    return StaticSettings(
        broker=broker,
        site=FEDERATION,
        data_dir=str(layout.data("static")),
        base_dir=str(layout.tables),
        use_spark=options.spark,
        spark_master=options.spark_master or "local[*]",
        table_folders=options.table_folders,
        closed_folders=(str(layout.root),),
        secrets_file=str(options.secrets.resolve() if options.secrets else layout.secrets),
        metrics_port=options.metrics_port_of("static"),
        lake=lake_settings(layout, options),
        segments=str(layout.segments) if options.spark else "",
    )


def lander_settings(layout: Layout, broker: str, options: UpOptions) -> LanderSettings:
    """Return the settings of the lander."""
    return LanderSettings(
        broker=broker,
        site=FEDERATION,
        data_dir=str(layout.data("lander")),
        segments=str(layout.segments),
        max_folder_bytes=MAX_SEGMENTS,
        metrics_port=options.metrics_port_of("lander"),
    )


def lake_settings(layout: Layout, options: UpOptions) -> LakeSettings:
    """Return where the lake is: its catalog is in the database of the console's."""
    own = f"sqlite:///{layout.data('console') / 'catalog.db'}"
    return LakeSettings(options.database or own, str(layout.lake))


def _building_endpoints(
    field: _GatewayFile, path: Path, layout: Layout, options: UpOptions, *, first: bool
) -> Endpoints:
    """Return the endpoints that `deploy/schema/building.sql` names."""
    live = next((sensor.mid for sensor in field.soft), "")
    detectors = str(layout.tables / "rfid_detectors.csv")
    motes = {"file": str(path), "detectors": detectors, "live_machine": live}
    endpoints: Endpoints = {"building": {"connector": "motes", **motes}}
    if live:
        endpoints["machine"] = {"connector": "soft_sensors", "mid": live}
    if first:
        location = _calendar(options.calendar) or str(layout.site / "calendar.ics")
        endpoints["calendar"] = {"connector": "calendar", "location": location}
    return endpoints


def _calendar(given: str | None) -> str | None:
    return str(Path(given).resolve()) if given and "://" not in given else given


def _replay_endpoint(recording: Recording, nodes: list[str]) -> Endpoints:
    endpoint: dict[str, Any] = {
        "connector": "replay",
        "file": str(recording.path.resolve()),
        "format": recording.format,
        "nodes": nodes,
        "time_column": recording.time_column,
        "name_column": recording.name_column,
    }
    return {REPLAY_ENDPOINT: endpoint}
