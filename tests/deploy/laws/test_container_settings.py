"""Settings of the containers: written by the job `site`, read by each service's own code."""

import ipaddress
import json
import ssl
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import gateway.gateway_settings
import static_engine.static_settings
import ui.console_settings
from host.certificates.certificate_facts import facts_of
from host.mqtt.broker_address import parse_address
from static_engine.lake.lake_settings import CATALOG_VARIABLE
from streamsql.catalog.open_folders import OpenFolders
from tests.deploy.compose_file import (
    COMPOSE,
    PYTHON_SERVICES,
    ROOT,
    SERVICES,
    example_environment,
)
from ui.console_names import Hosts
from ui.sign_in.exposure import proxies

READERS: dict[str, Callable[[Path, dict[str, str]], Any]] = {
    "gateway": gateway.gateway_settings.load_settings,
    "static_engine": static_engine.static_settings.load_settings,
    "deploy.console": ui.console_settings.load_settings,
}
SETTABLE = [name for name, module in PYTHON_SERVICES.items() if module in READERS]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run the job `site` as compose does, into a temporary folder."""
    folder = tmp_path_factory.mktemp("prepared")
    command = [sys.executable, *SERVICES["site"]["command"][1:]]
    command[command.index("--to") + 1] = str(folder)
    command += ["--authority", str(folder / "authority"), "--broker", str(folder / "broker")]
    ended = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=100, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return folder


def settings_of(service: str, prepared: Path) -> Any:
    """Read a service's settings as it would in its container."""
    path = SERVICES[service]["command"][-1]
    assert path.startswith("/srv/pando/"), "where the volume `site` is mounted"
    file = prepared / path.removeprefix("/srv/pando/")
    return READERS[PYTHON_SERVICES[service]](file, SERVICES[service]["environment"])


@pytest.mark.parametrize("service", SETTABLE)
def test_a_service_accepts_its_settings_and_knows_each_of_them(
    service: str, prepared: Path
) -> None:
    settings = settings_of(service, prepared)
    path = prepared / SERVICES[service]["command"][-1].removeprefix("/srv/pando/")
    known = set(type(settings).__struct_fields__)
    assert set(json.loads(path.read_text(encoding="utf-8"))) <= known
    assert settings.data_dir == "/var/lib/pando"
    assert f"{volume_at(service, '/var/lib/pando')}" in COMPOSE["volumes"]


def volume_at(service: str, mount: str) -> str:
    """Return the name of the volume mounted there."""
    (name,) = [v.split(":")[0] for v in SERVICES[service]["volumes"] if v.split(":")[1] == mount]
    return str(name)


@pytest.mark.parametrize("service", SETTABLE)
def test_every_variable_of_a_service_changes_a_setting(service: str, prepared: Path) -> None:
    plain = READERS[PYTHON_SERVICES[service]](
        prepared / SERVICES[service]["command"][-1].removeprefix("/srv/pando/"), {}
    )
    given = SERVICES[service]["environment"]
    changed = settings_of(service, prepared)
    values = {
        getattr(changed, field)
        for field in type(changed).__struct_fields__
        if getattr(changed, field) != getattr(plain, field)
    }
    settings = {name: value for name, value in given.items() if name != CATALOG_VARIABLE}
    assert values == set(settings.values())


def test_the_lakes_catalog_is_the_consoles_by_the_variable(
    prepared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = SERVICES["static"]["environment"]
    console = SERVICES["coordinator"]["environment"]
    assert given[CATALOG_VARIABLE] == console[CATALOG_VARIABLE] == console["PANDO_CATALOG_URL"]
    lake = settings_of("static", prepared).lake
    assert lake is not None
    monkeypatch.setenv(CATALOG_VARIABLE, given[CATALOG_VARIABLE])
    assert lake.catalog_url == given[CATALOG_VARIABLE]
    assert settings_of("coordinator", prepared).lake["warehouse"] == lake.warehouse


@pytest.mark.parametrize("service", SETTABLE)
def test_a_service_is_known_to_the_broker_by_its_id(service: str, prepared: Path) -> None:
    settings = settings_of(service, prepared)
    address = parse_address(settings.broker)
    users = dict(
        p.split(":") for p in SERVICES["broker"]["environment"]["PANDO_BROKER_USERS"].split()
    )
    assert (address.host, address.port) == ("broker", 8883)
    assert address.tls
    assert Path(settings.broker_ca).is_file()
    assert address.user is not None
    assert users[address.user] == address.password
    site_id = getattr(settings, "gateway", getattr(settings, "site_id", "coordinator"))
    assert address.user == site_id, "the access list goes by this id"


def test_the_brokers_certificate_is_for_its_name_and_its_key_private(prepared: Path) -> None:
    context = ssl.create_default_context(cafile=str(prepared / "run" / "ca.crt"))
    assert context.cert_store_stats()["x509_ca"] == 1
    names = facts_of((prepared / "broker" / "broker.crt").read_bytes()).names
    assert {"broker", "localhost", "127.0.0.1"} <= set(names)
    for private in (prepared / "broker" / "broker.key", prepared / "authority" / "ca.key"):
        assert private.stat().st_mode & 0o777 == 0o600


def test_keys_are_not_on_the_volume_that_all_services_read() -> None:
    mounts = {name: SERVICES[name].get("volumes", []) for name in SERVICES}
    holders = {
        volume: {n for n, m in mounts.items() if any(v.startswith(f"{volume}:") for v in m)}
        for volume in ("authority", "broker-certificate")
    }
    assert holders["broker-certificate"] == {"site", "broker"}
    assert holders["authority"] <= {"site", "coordinator"}


def test_no_password_is_written_to_the_shared_volume(prepared: Path) -> None:
    secrets = {v.encode() for v in example_environment().values() if v.startswith("change-me")}
    assert len(secrets) == 11
    for path in prepared.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert not [secret for secret in secrets if secret in content], path


def test_files_that_settings_name_are_on_the_shared_volume(prepared: Path) -> None:
    console = settings_of("coordinator", prepared)
    assert Path(console.site_file).is_file()
    assert Path(console.schema_file).is_file()
    assert Path(settings_of("static", prepared).base_dir).is_dir()
    for name in ("gw-1", "gw-2", "gw-3"):
        for endpoint in settings_of(name, prepared).endpoints.values():
            for option in ("file", "detectors", "location"):
                if option in endpoint:
                    assert Path(endpoint[option]).is_file(), (name, endpoint)


def test_the_console_answers_to_its_service_name_and_knows_which_files_tables_may_name(
    prepared: Path,
) -> None:
    console = settings_of("coordinator", prepared)
    hosts = Hosts(console.host, console.host_names)
    assert hosts.allow("coordinator:8080")
    assert hosts.allow("localhost:8080")
    assert not hosts.allow("elsewhere.example")
    static = settings_of("static", prepared)
    assert console.folders == OpenFolders(
        static.base_dir, static.table_folders, static.closed_folders
    )


def test_every_gateway_has_devices_and_the_base_none(prepared: Path) -> None:
    for name in ("gw-1", "gw-2", "gw-3"):
        assert settings_of(name, prepared).endpoints
    base = settings_of("base", prepared)
    assert base.role == "base"
    assert not base.endpoints


def test_people_of_a_home_network_cannot_say_that_they_are_proxies(prepared: Path) -> None:
    # Whoever is in a trusted network chooses the address that sign-ins are counted by.
    console = settings_of("coordinator", prepared)
    trusted = [ipaddress.ip_network(network) for network in proxies(console.trusted_proxy)]
    assert any(ipaddress.ip_address("172.18.0.1") in network for network in trusted)
    for home in ("192.168.1.5", "192.168.178.20", "10.0.0.5"):
        assert not any(ipaddress.ip_address(home) in network for network in trusted)
