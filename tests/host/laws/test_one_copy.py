"""What services do with the world stands in `host` only."""

import ast
from collections import defaultdict
from collections.abc import Iterator

import pytest

from tests.docs.markdown import ROOT

PACKAGES = (
    "broker",
    "building",
    "deploy",
    "federated_optimizer",
    "gateway",
    "host",
    "static_engine",
    "stream_engine",
    "streamsql",
    "ui",
)


@pytest.fixture(scope="module")
def users() -> dict[str, list[str]]:
    """Return the product's files that name an attribute or import a name, by that name."""
    found: dict[str, list[str]] = defaultdict(list)
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            text = path.read_bytes()
            for name in {name for node in ast.walk(ast.parse(text)) for name in _names(node)}:
                found[name].append(str(path.relative_to(ROOT)))
    return found


def _names(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Attribute(attr=attribute):
            yield attribute
        case ast.ImportFrom(names=names):
            yield from (alias.name for alias in names)
        case _:
            pass


@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("flock", ["host/files/file_lock.py"]),
        ("fsync", ["host/files/atomic_file.py", "host/files/epoch_file.py"]),
        ("time_ns", ["host/clocks.py"]),
        ("monotonic_ns", ["host/clocks.py"]),
        ("basicConfig", ["host/service_log.py"]),
    ],
)
def test_it_stands_in_one_place(users: dict[str, list[str]], name: str, files: list[str]) -> None:
    assert users[name] == files
