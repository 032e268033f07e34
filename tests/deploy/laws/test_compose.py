"""docker-compose.yml: its services, and how they depend on each other."""

import re
from pathlib import Path

import pytest

from deploy.containers.prepare import FIGURES
from tests.deploy.compose_file import (
    COMPOSE,
    DOCKERFILES,
    PYTHON_SERVICES,
    ROOT,
    SERVICES,
    built_from,
    example_environment,
)


def test_every_service_of_the_architecture_is_there() -> None:
    expected = {"broker", "postgres", "spark-master", "spark-worker", "coordinator", "static"}
    expected |= {"lander", "site", "base", "gw-1", "gw-2", "gw-3"}
    assert set(SERVICES) == expected


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_has_a_build_file_and_knows_its_neighbours(service: str) -> None:
    described = SERVICES[service]
    assert built_from(service) in DOCKERFILES
    wanted = described.get("depends_on", [])
    for other in wanted:
        assert other in SERVICES
        if isinstance(wanted, dict) and wanted[other]["condition"] == "service_healthy":
            assert "healthcheck" in SERVICES[other], f"{service} waits for {other} in vain"
    for volume in described.get("volumes", []):
        assert volume.split(":")[0] in COMPOSE["volumes"], volume


def test_services_of_one_image_agree_on_its_build_file() -> None:
    built: dict[str, Path] = {}
    for name, service in SERVICES.items():
        assert built.setdefault(service["image"], built_from(name)) == built_from(name)
    assert sorted(built.values()) == DOCKERFILES


def test_no_volume_is_declared_in_vain() -> None:
    services = COMPOSE["services"].values()
    mounted = {v.split(":")[0] for s in services for v in s.get("volumes", [])}
    assert set(COMPOSE["volumes"]) <= mounted


def test_the_example_environment_names_exactly_what_is_used() -> None:
    text = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
    assert set(re.findall(r"\$\{(\w+)", text)) == set(example_environment())


def test_only_the_console_is_published_and_only_here() -> None:
    published = {name: s["ports"] for name, s in SERVICES.items() if "ports" in s}
    assert published == {"coordinator": ["127.0.0.1:8080:8080"]}


def test_eight_services_are_ours() -> None:
    modules = sorted(PYTHON_SERVICES.values())
    expected = ["deploy.console", "deploy.containers.prepare", *["gateway"] * 4, "static_engine"]
    expected.append("static_engine.landing")
    assert modules == expected


def test_every_service_that_stays_has_a_health_check_with_what_its_image_has() -> None:
    """Jobs end; images of ours have no curl, but Python and the probe."""
    for name, service in SERVICES.items():
        if name == "site":
            continue
        command = service["healthcheck"]["test"]
        if command[:2] == ["CMD", "python"]:
            assert command[1:4] == ["python", "-m", "host.health_probe"]
            assert built_from(name).read_text(encoding="utf-8").count("COPY host/ host/") == 1
        else:
            assert command[1] in {"nc", "pg_isready"}


def test_health_checks_ask_the_port_that_the_settings_name() -> None:
    asked = {
        service["healthcheck"]["test"][-1]
        for name, service in SERVICES.items()
        if name in {"coordinator", "static", "lander", "base", "gw-1", "gw-2", "gw-3"}
    }
    assert asked == {f"http://127.0.0.1:{FIGURES['metrics_port']}/health"}
