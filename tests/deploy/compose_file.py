"""docker-compose.yml and the build files as plain data, for the tests beside this module."""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
CONTAINERS = ROOT / "deploy" / "containers"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PACKAGES: set[str] = set(PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"])


def example_environment() -> dict[str, str]:
    """Return the variables of example.env."""
    lines = (CONTAINERS / "example.env").read_text(encoding="utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def interpolate(text: str, variables: dict[str, str]) -> str:
    """Replace `${NAME}`, `${NAME:-default}` and `${NAME:?message}` as docker compose does."""

    def value_of(found: re.Match[str]) -> str:
        name, sort, rest = found.groups()
        if variables.get(name):
            return variables[name]
        assert sort != ":?", f"{name}: {rest}"
        return rest if sort == ":-" else ""

    return re.sub(r"\$\{(\w+)(?:(:[-?])([^}]*))?\}", value_of, text)


def load_compose() -> dict[str, Any]:
    """Return docker-compose.yml with the variables of example.env filled in."""
    text = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
    loaded = yaml.safe_load(interpolate(text, example_environment()))
    assert isinstance(loaded, dict)
    return loaded


COMPOSE = load_compose()
SERVICES: dict[str, Any] = {
    name: service for name, service in COMPOSE["services"].items() if "profiles" not in service
}
ON_DEMAND: dict[str, Any] = {
    name: service for name, service in COMPOSE["services"].items() if "profiles" in service
}
"""Services that run only when somebody adds a gateway."""
DOCKERFILES = sorted(CONTAINERS.glob("*.Dockerfile"))


def read_dockerfile(path: Path) -> list[tuple[str, str]]:
    """Return (instruction, arguments) per logical line of a build file."""
    text = re.sub(r"(?m)^\s*#.*\n", "", path.read_text(encoding="utf-8"))
    lines = re.sub(r"\\\n\s*", " ", text).splitlines()
    pairs = [line.split(None, 1) for line in lines if line.strip()]
    return [(pair[0], pair[1] if len(pair) > 1 else "") for pair in pairs]


def copied_sources(path: Path) -> list[str]:
    """Return what a build file copies from the build context."""
    sources: list[str] = []
    for instruction, arguments in read_dockerfile(path):
        if instruction == "COPY" and "--from=" not in arguments:
            words = [word for word in arguments.split() if not word.startswith("--")]
            sources += words[:-1]
    return sources


def built_from(service: str) -> Path:
    """Return the build file of a service."""
    build: dict[str, str] = SERVICES[service]["build"]
    return ROOT / build["context"] / build["dockerfile"]


def commands() -> Iterator[tuple[str, list[str]]]:
    """Yield (service, command): its own, or else its image's."""
    for name, service in SERVICES.items():
        described = dict(read_dockerfile(built_from(name)))
        command = service.get("command") or ast.literal_eval(described.get("CMD", "[]"))
        yield name, command


PYTHON_SERVICES = {name: words[2] for name, words in commands() if words[:2] == ["python", "-m"]}


def entry_module(service: str) -> str:
    """Return the module that `python -m` runs for a service."""
    module = PYTHON_SERVICES[service]
    is_package = (ROOT / module.replace(".", "/")).is_dir()
    return f"{module}.__main__" if is_package else module
