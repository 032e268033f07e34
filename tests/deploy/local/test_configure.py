"""The settings `pando up` writes are those the services read."""

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from deploy.local import configure
from deploy.local.endpoints import add_endpoint, remove_endpoint
from deploy.local.layout import Layout
from deploy.local.recordings import Recording, inspect
from deploy.local.up_options import UpOptions
from gateway.connectors.options import convert_options, own_options
from gateway.connectors.registry import ConnectorRegistry
from gateway.gateway_settings import ClockSettings, GatewaySettings
from gateway.gateway_settings import load_settings as read_gateway
from static_engine.__main__ import store_of
from static_engine.static_settings import load_settings as read_static
from streamsql.errors import DeploymentError
from streamsql.mapping.assignment import Assigned, assignment
from tests.streamsql.from_text import catalog_of
from ui.console_settings import load_settings as read_console

BROKER = "mqtt://127.0.0.1:1883"
CLOCK = ClockSettings(600.0, 5, 7)
TRACE = (
    '{"location": "here", "node_count": 2}\n'
    "datetime,src,dst,channel,mean_rssi,pdr,tx_count\n"
    "2026-01-01 12:00:00,1,2,11,-60.5,0.9,100\n"
    "2026-01-01 12:00:00,2,1,11,-60.5,0.9,100\n"
)


def gateways(layout: Layout, options: UpOptions) -> list[GatewaySettings]:
    """Return the settings of all gateways as they read them."""
    recording = inspect(options.replay) if options.replay else None
    site = configure.read_site(options, recording)
    configure.write_site(site, layout, recording, options.gateways)
    found = []
    for number in range(1, options.gateways + 1):
        written = configure.gateway_settings(
            number,
            options=options,
            layout=layout,
            broker=BROKER,
            recording=recording,
            clock=CLOCK,
        )
        path = configure.write_settings(layout, written.gateway, written)
        read = read_gateway(path, {})
        assert read == written
        found.append(read)
    return found


def kinds(settings: GatewaySettings) -> list[str]:
    return [str(endpoint["connector"]) for endpoint in settings.endpoints.values()]


def names(settings: GatewaySettings, layout: Layout) -> set[str]:
    """Return the sources of the site's script that a gateway serves."""
    endpoints = {name: str(each["connector"]) for name, each in settings.endpoints.items()}
    return {
        source.name
        for source in catalog_of(layout.schema.read_text()).sources
        if source.mapping is not None
        and isinstance(assignment(source.mapping, settings.gateway, endpoints), Assigned)
    }


MOTES = {
    "seatsensor",
    "roomsensor",
    "temperature",
    "energymeter",
    "rfidbeacon",
    "machineload",
    "link",
}


def test_the_sample_building(tmp_path: Path) -> None:
    layout = Layout(tmp_path / "my data")
    first, second, third = gateways(layout, UpOptions(gateways=3))
    assert [s.gateway for s in (first, second, third)] == ["gw-1", "gw-2", "gw-3"]
    assert next(iter(first.endpoints)) == "building"
    assert kinds(first).count("calendar") == 1
    assert all("calendar" not in kinds(s) for s in (second, third))
    hosts = [s for s in (first, second, third) if "soft_sensors" in kinds(s)]
    assert len(hosts) == 1, "this machine stands at one desk"
    for settings in (first, second, third):
        expected = set(MOTES)
        expected |= {"process"} if "soft_sensors" in kinds(settings) else set()
        expected |= {"roomreservation"} if "calendar" in kinds(settings) else set()
        assert names(settings, layout) == expected
        assert settings.clock == CLOCK
    (live,) = [s.endpoints["building"]["live_machine"] for s in hosts]
    assert live == hosts[0].endpoints["machine"]["mid"]


def test_options_of_endpoints_are_those_that_their_connectors_take(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    recording = tmp_path / "r.csv"
    recording.write_text("ts,a\n1,2\n")
    registry = ConnectorRegistry()
    for options in (UpOptions(gateways=2), UpOptions(gateways=1, replay=recording)):
        for settings in gateways(layout, options):
            for name, endpoint in settings.endpoints.items():
                struct = registry.factory(endpoint["connector"])().endpoint_options
                convert_options(own_options(endpoint), struct, name)
                for option in ("file", "detectors", "location"):
                    place = endpoint.get(option, str(tmp_path))
                    assert Path(place).is_absolute()
                    assert Path(place).exists()


def test_endpoints_that_were_added_stand_beside_ours(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    add_endpoint(layout, "gw-1", "home", {"connector": "mqtt", "address": BROKER})
    (settings,) = gateways(layout, UpOptions(gateways=1))
    assert {"building", "calendar", "home"} <= settings.endpoints.keys()
    add_endpoint(layout, "gw-1", "shop", {"connector": "mqtt", "address": BROKER})
    running = read_gateway(layout.settings("gw-1"), {})
    assert running.endpoints.keys() == settings.endpoints.keys() | {"shop"}
    remove_endpoint(layout, "gw-1", "home")
    running = read_gateway(layout.settings("gw-1"), {})
    assert {"building", "calendar", "shop"} <= running.endpoints.keys()
    assert "home" not in running.endpoints
    with pytest.raises(DeploymentError, match="pando up creates the endpoint building itself"):
        add_endpoint(layout, "gw-1", "building", {"connector": "mqtt", "address": BROKER})


def test_a_csv_recording_is_replayed_by_the_first_gateway(tmp_path: Path) -> None:
    recording = tmp_path / "water.csv"
    recording.write_text("ts,tank\n1,a\n")
    layout = Layout(tmp_path / "data")
    gateways(layout, UpOptions(gateways=2))
    assert (layout.site / "site.geojson").exists()
    first, second = gateways(layout, UpOptions(gateways=2, replay=recording))
    assert (kinds(first), kinds(second)) == (["replay"], [])
    assert (names(first, layout), names(second, layout)) == ({"water"}, set())
    assert not (layout.site / "site.geojson").exists(), "the map of an earlier run goes"
    assert 'CREATE SOURCE "water"' in layout.schema.read_text()


def test_a_link_trace_is_split_by_who_owns_the_node(tmp_path: Path) -> None:
    recording = tmp_path / "here.k7"
    recording.write_text(TRACE)
    layout = Layout(tmp_path / "data")
    found = gateways(layout, UpOptions(gateways=2, replay=recording))
    nodes = [node for s in found for each in s.endpoints.values() for node in each["nodes"]]
    assert sorted(nodes) == ["1", "2"]
    for settings in found:
        assert kinds(settings) in (["replay"], [])
        if settings.endpoints:
            assert settings.endpoints["recording"]["nodes"], "none would mean all"
            assert names(settings, layout) == {"link"}


@pytest.mark.parametrize("calendar", [None, "https://example.org/rooms.ics", "rooms.ics"])
def test_the_calendar(
    tmp_path: Path, calendar: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rooms.ics").write_text("")
    layout = Layout(tmp_path / "data")
    (settings,) = gateways(layout, UpOptions(gateways=1, calendar=calendar))
    location = settings.endpoints["calendar"]["location"]
    expected = {None: str(layout.site / "calendar.ics"), "rooms.ics": str(tmp_path / "rooms.ics")}
    assert location == expected.get(calendar, calendar)


def test_console_base_and_static(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    options = UpOptions(port=9123, spark=False, database="postgresql://db/pando")
    gateways(layout, options)
    console = configure.console_settings(layout, BROKER, options, None)
    read = read_console(configure.write_settings(layout, "console", console), {})
    assert read == console
    assert (read.port, read.catalog_url, read.layers) == (9123, options.database, "building")
    assert Path(read.site_file).is_file()
    assert Path(read.schema_file).is_file()
    trace = Recording(tmp_path / "r", "k7", "link", 0)
    assert configure.console_settings(layout, BROKER, options, trace).layers == "trace"
    base = configure.base_settings(layout, BROKER, CLOCK)
    assert read_gateway(configure.write_settings(layout, "base", base), {}) == base
    assert (base.role, base.endpoints) == ("base", {})
    static = configure.static_settings(layout, BROKER, options)
    path = configure.write_settings(layout, "static", static)
    assert read_static(path, {}) == static
    assert not static.use_spark
    assert (Path(static.base_dir) / "machines.csv").is_file()
    folders = {s.data_dir for s in (console, base, static)}
    assert len(folders) == 3
    assert msgspec.json.decode(path.read_bytes())["broker"] == BROKER


def test_a_map_says_what_it_lacks(tmp_path: Path) -> None:
    site = configure.read_site(UpOptions(), None)
    assert site is not None
    lacking = replace(site, warnings=("room 7 has no door",))
    _, warnings = configure.write_site(lacking, Layout(tmp_path), None, 1)
    door, simulated = warnings
    assert door == "room 7 has no door"
    made_up = sum(not machine.is_host for machine in site.machines)
    assert simulated.startswith(f"{made_up} machines and ")


def test_a_directory_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "site").write_text("a file")
    with pytest.raises(DeploymentError, match="cannot write"):
        configure.write_site(configure.read_site(UpOptions(), None), Layout(tmp_path), None, 1)
    with pytest.raises(DeploymentError, match=r"cannot write|cannot remove"):
        configure.write_site(None, Layout(tmp_path), Recording(tmp_path, "csv", "r", 0), 1)


def test_tables_may_name_files_of_the_site_and_of_the_folder_it_is_started_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = tmp_path / "project"
    started.mkdir()
    monkeypatch.chdir(started)
    layout = Layout(started / "pando-data")
    options = UpOptions(data=layout.root)
    written = configure.static_settings(layout, BROKER, options)
    console = configure.console_settings(layout, BROKER, options, None).folders
    assert console is not None
    locations = store_of(written)._locations.folders()
    for folders in (console, locations):
        assert folders.allow(str(layout.tables / "rooms.csv"))
        assert folders.allow(str(started / "mine.csv"))
        assert not folders.allow(str(layout.root / "state" / "console" / "catalog.db"))
        assert not folders.allow(str(layout.secrets))
        assert not folders.allow("/etc/passwd")
    chosen = UpOptions(data=layout.root, tables=(tmp_path,))
    assert chosen.table_folders == (str(tmp_path),)
    monkeypatch.setenv("HOME", str(started))
    assert UpOptions(data=layout.root).table_folders == ()


def test_settings_and_data_of_services_are_for_their_owner_only(tmp_path: Path) -> None:
    """Also where an earlier release has left them open."""
    layout = Layout(tmp_path / "data")
    old = layout.data("console") / "catalog.db"
    old.parent.mkdir(parents=True, mode=0o755)
    old.write_bytes(b"")
    settings = configure.base_settings(layout, "mqtt://me:s3cret@127.0.0.1:1", CLOCK)
    path = configure.write_settings(layout, "base", settings)
    for open_before in (path, old.parent, path.parent):
        open_before.chmod(0o755)
    layout.keep_private()
    configure.write_settings(layout, "base", settings)

    def mode(of: Path) -> int:
        return of.stat().st_mode & 0o777

    assert (mode(path), mode(path.parent)) == (0o600, 0o700)
    assert (mode(old.parent), mode(old.parent.parent)) == (0o700, 0o700)
