"""What must hold for the repository as a whole: clean of traces of machines, documented, packed."""

import ast
import json
import re
import subprocess
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import shares_spark

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PACKAGES: list[str] = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]

# Spelled apart, so that this file does not find itself.
MACHINE_PATHS = re.compile(r"(?<![\w.:/}$])/" + r"(?:work|root|home/\w+|Users/\w+)/")
REGISTRIES = re.compile(
    r"(?i)\b(?:py" + r"pi\.org|files\.python" + r"hosted|registry\.npm" + r"js|npm\.pkg|"
    r"artifact"
    + r"ory|nex"
    + r"us\.|repo1?\.maven|proxy\.gol"
    + r"ang|ghcr\.i"
    + r"o|docker\.i"
    + r"o)"
)
TEXT_LIMIT = 2_000_000
VENDORED = "ui/static/vendor/"


def tracked_files() -> list[Path]:
    """Return the files git knows, as paths below the root."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True
    )
    found = [Path(name) for name in listed.stdout.split("\0") if name]
    return [path for path in found if (ROOT / path).is_file()]


def tracked_texts() -> Iterator[tuple[Path, str]]:
    """Yield every tracked text file; binary files are those that are not UTF-8."""
    for path in tracked_files():
        content = (ROOT / path).read_bytes()
        if len(content) > TEXT_LIMIT or b"\0" in content:
            continue
        try:
            yield path, content.decode()
        except UnicodeDecodeError:
            continue


def lines_that_match(pattern: re.Pattern[str], *, skip: str = "") -> list[str]:
    """Return `file:line: text` for every match, for a readable failure."""
    return [
        f"{path}:{number}: {line.strip()[:120]}"
        for path, text in tracked_texts()
        if not (skip and str(path).startswith(skip))
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]


def python_modules() -> list[Path]:
    """Return the tracked modules of our packages."""
    return [path for path in tracked_files() if path.suffix == ".py" and path.parts[0] in PACKAGES]


def test_enough_files_are_looked_at() -> None:
    # A floor, so that the tests below cannot pass by looking at nothing.
    assert len(tracked_files()) > 50
    assert len(python_modules()) > 20


def test_no_paths_of_a_machine() -> None:
    assert lines_that_match(MACHINE_PATHS, skip=VENDORED) == []


def test_no_package_registry_is_named() -> None:
    # Vendored scripts may cite where they came from; our own files name no registry.
    assert lines_that_match(REGISTRIES, skip=VENDORED) == []


def test_the_patterns_find_what_they_are_for() -> None:
    assert MACHINE_PATHS.search("data = '/wo" + "rk/main/x'")
    assert not MACHINE_PATHS.search("deploy/wo" + "rk/x and https://host/ho" + "me/x/")
    assert REGISTRIES.search("https://py" + "pi.org/simple")


@pytest.mark.parametrize("name", ["base", "console", "dev", "gateway", "static"])
def test_requirements_are_pinned_hashed_and_hold_no_address(name: str) -> None:
    text = (ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8")
    assert "://" not in text
    assert not re.search(r"(?m)^\s*-[a-z-]*(?:index|find|trusted)", text)
    entries = [entry for entry in re.split(r"(?m)^(?=[A-Za-z0-9])", text) if entry.strip()]
    assert entries
    for entry in entries:
        assert re.match(r"[A-Za-z0-9_.\[\],-]+==[\w.]+", entry), entry[:80]
        assert "--hash=sha256:" in entry, entry[:80]


def pins(name: str) -> dict[str, str]:
    """Return package and version of every line of a requirements file."""
    text = (ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8")
    return dict(re.findall(r"(?m)^([\w.-]+)(?:\[[\w,]+\])?==([\w.]+)", text))


@pytest.mark.parametrize("name", ["base", "console", "gateway", "static"])
def test_every_image_runs_the_versions_that_are_tested(name: str) -> None:
    assert pins(name).items() <= pins("dev").items()


def test_node_packages_are_pinned_hashed_and_hold_no_address() -> None:
    asked = json.loads((ROOT / "package.json").read_text(encoding="utf-8"))["devDependencies"]
    locked = json.loads((ROOT / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    assert asked
    for name, version in asked.items():
        assert re.fullmatch(r"\d+\.\d+\.\d+", version), name
        assert locked[f"node_modules/{name}"]["version"] == version
    for path, package in locked.items():
        assert "resolved" not in package, path
        assert not path or package["integrity"].startswith("sha512-"), path


def test_a_gateway_needs_neither_spark_nor_a_parser() -> None:
    assert not pins("gateway").keys() & {"pyspark", "pandas", "pyarrow", "sqlglot", "fastapi"}


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_says_what_it_is(package: str) -> None:
    module = ROOT / package / "__init__.py"
    assert ast.get_docstring(ast.parse(module.read_text(encoding="utf-8"))), module


def test_every_module_has_a_docstring() -> None:
    bare = [
        str(path)
        for path in python_modules()
        if not ast.get_docstring(ast.parse((ROOT / path).read_text(encoding="utf-8")))
    ]
    assert bare == []


def test_no_module_is_called_after_nothing() -> None:
    vague = {"common", "utils", "util", "helpers", "helper", "manager", "managers", "core", "misc"}
    assert [str(path) for path in python_modules() if vague & {*path.parts, path.stem}] == []


def test_the_changelog_has_a_section_for_this_version() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"\n## {PROJECT['project']['version']}" in changelog


def test_the_licence_is_whole() -> None:
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert "Apache License" in text
    assert "END OF TERMS AND CONDITIONS" in text


def test_all_lists_of_packages_agree() -> None:
    tools = PROJECT["tool"]
    on_disk = {
        path.parent.name
        for path in ROOT.glob("*/__init__.py")
        if path.parent.name not in ("tests", "benchmarks")
    }
    assert set(PACKAGES) == on_disk
    assert set(tools["importlinter"]["root_packages"]) == on_disk
    assert on_disk <= set(tools["mypy"]["files"])
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    named = re.search(r"(?m)^PACKAGES := (.*)$", makefile)
    assert named
    assert set(named.group(1).split()) == on_disk


SUITES = {
    "benchmarks",
    "conformance",
    "docs",
    "end_to_end",
    "hostile",
    "mutation",
    "random_queries",
    "security",
}
"""Folders of tests that are about the product, not about one of its folders."""


def test_every_test_file_is_found_from_the_module_or_the_room_that_it_tests() -> None:
    """`a/b/c.py` is tested by `tests/a/b/test_c.py`, all of `a/b` by `tests/a/b/laws`."""
    code = [path for path in tracked_files() if path.suffix in {".py", ".js"}]
    modules = {path.with_suffix("") for path in code if path.parts[0] != "tests"}
    rooms = {path.parent for path in code if path.parts[0] != "tests"}
    lost = []
    for path in tracked_files():
        folder, name = Path(*path.parts[1:-1]), path.stem.removeprefix("test_")
        is_test = path.parts[0] == "tests" and path.match("test_*.py")
        if not is_test or len(path.parts) == 2 or path.parts[1] in SUITES:
            continue
        if path.parent.name == "laws" and folder.parent in rooms:
            continue
        if folder / name not in modules | rooms and folder.name != name:
            lost.append(str(path))
    assert lost == []


def product_modules() -> list[Path]:
    """Return the tracked Python and JavaScript files of our packages, vendored ones aside."""
    return [
        path
        for path in tracked_files()
        if path.suffix in {".py", ".js"}
        and path.parts[0] in PACKAGES
        and not str(path).startswith(VENDORED)
    ]


def test_every_file_name_occurs_once() -> None:
    """Who searches for a file by its name finds one."""
    names = Counter(path.name for path in product_modules())
    assert len(names) > 500
    twice = {name for name, number in names.items() if number > 1}
    assert twice == {"__init__.py", "__main__.py"}


def test_no_module_has_more_than_400_lines() -> None:
    lengths = {
        str(path): len((ROOT / path).read_text(encoding="utf-8").splitlines())
        for path in product_modules()
    }
    assert {path: length for path, length in lengths.items() if length > 400} == {}


NO_NOUNS = 143
"""Docstrings of the product that begin with What, Who, Whose, How or Where. May only fall."""


def test_few_docstrings_begin_with_a_question() -> None:
    """The first line of a module, class or function names the thing."""
    found = [
        f"{path}:{getattr(node, 'lineno', 1)}: {text.splitlines()[0]}"
        for path in python_modules()
        for node in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8")))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and (text := ast.get_docstring(node))
        and re.match(r"(What|Who|Whose|How|Where)\b", text)
    ]
    assert len(found) <= NO_NOUNS, found


def test_whoever_shares_the_spark_session_runs_with_the_others_that_share_it() -> None:
    """Elsewhere its process may have stopped a session of its own, and with it the shared one."""
    elsewhere = [
        path
        for path in tracked_files()
        if path.is_relative_to("tests/static_engine")
        and path.name.startswith("test_")
        and "spark: RunningSpark" in (ROOT / path).read_text(encoding="utf-8")
        and not shares_spark(path.as_posix())
    ]
    assert not elsewhere
