"""The wheel, installed as a user would: alone, and with what it needs."""

import os
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from deploy.cli.entry import OURS
from deploy.cli.main import app

ROOT = Path(__file__).resolve().parents[3]
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]

LEFT_OUT = (
    "broker/broker_testing.py",
    "deploy/make_environment.py",
    "federated_optimizer/testing",
    "gateway/testing",
    "host/mqtt/in_memory",
    "stream_engine/provenance/relative.py",
    "stream_engine/provenance/variable_order.py",
    "stream_engine/recursion/absorption/token_order.py",
    "stream_engine/recursion/baselines/",
    "stream_engine/simulation/",
    "stream_engine/testing/",
)
"""Test kits, simulated networks, and what recursions are compared with."""

LINKS = """CREATE LINK SOURCE link (src TEXT, dst TEXT, pdr DOUBLE);
           INSERT INTO link VALUES ('a', 'b', 0.5), ('b', 'c', 0.5), ('c', 'a', 1.0);
           DELETE FROM link WHERE src = 'c';"""
REACHED = "a,b\na,c\nb,c"

pytestmark = pytest.mark.timeout(300)


class Installed:
    """An environment with nothing but the wheel."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # hatchling is what `pip wheel` would fetch; here it is installed already.
        build = (sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder))
        subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
        (self.wheel,) = folder.glob("pando-*.whl")
        venv.create(folder / "env", with_pip=True)
        self.python = folder / "env" / "bin" / "python"
        self.environment = {
            name: value for name, value in os.environ.items() if not name.startswith("PYTHON")
        }
        install = ("-m", "pip", "install", "-q", "--no-deps", "--no-index", str(self.wheel))
        subprocess.run([self.python, *install], check=True, env=self.environment)

    def pando(
        self, *arguments: str, packages: str = "", stdin: str = ""
    ) -> subprocess.CompletedProcess[str]:
        """Run the installed script outside of the source tree."""
        return subprocess.run(
            [self.folder / "env" / "bin" / "pando", *arguments],
            cwd=self.folder,
            env={**self.environment, **({"PYTHONPATH": packages} if packages else {})},
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return Installed(tmp_path_factory.mktemp("wheel"))


@pytest.mark.parametrize("arguments", [(), ("up",), ("--help",), ("query", "list")])
def test_alone_it_says_what_to_install(installed: Installed, arguments: tuple[str, ...]) -> None:
    done = installed.pando(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr
    assert "needs the Python package" in done.stderr
    command = f"{installed.python} -m pip install 'pando[all] @ file://{installed.wheel}'"
    assert f"hint: {command}\n" in done.stderr


def test_the_command_it_names_is_understood(installed: Installed) -> None:
    """All but the fetching: the extra exists, and the address is that of the wheel."""
    said = installed.pando("up").stderr
    requirement = said.partition(" install '")[2].partition("'")[0]
    resolve = ("-m", "pip", "install", "--no-deps", "--no-index", "--dry-run", requirement)
    done = subprocess.run(
        [installed.python, *resolve],
        capture_output=True,
        text=True,
        check=False,
        env=installed.environment,
    )
    assert done.returncode == 0, done.stderr
    assert "does not provide the extra" not in done.stderr


@pytest.mark.parametrize("option", ["--version", "-V"])
def test_alone_it_knows_its_version(installed: Installed, option: str) -> None:
    done = installed.pando(option)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"pando {VERSION}\n", "")


def test_with_what_it_needs_it_works_outside_of_the_source_tree(installed: Installed) -> None:
    packages = sysconfig.get_path("purelib")
    script = """CREATE SOURCE s (a INTEGER, KEY (a)); INSERT INTO s VALUES (1), (2);
                SELECT SUM(a) AS total FROM s;"""
    done = installed.pando(
        "run", "-", "--local", "--format", "csv", packages=packages, stdin=script
    )
    assert done.returncode == 0, done.stderr
    assert "total\n3\n" in done.stdout
    helped = installed.pando("--help", packages=packages)
    assert helped.returncode == 0
    assert "--version" in helped.stdout


def test_the_wheel_has_every_file_of_the_packages_but_what_tests_need(
    installed: Installed,
) -> None:
    # Pages, SQL and sites are package data; an ignore rule could drop them silently.
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *OURS],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    shipped = {
        name for name in zipfile.ZipFile(installed.wheel).namelist() if ".dist-info" not in name
    }
    left_out = set(listed.stdout.split()) - shipped
    assert shipped <= set(listed.stdout.split())
    assert {name for name in left_out if not name.startswith(LEFT_OUT)} == set()
    assert all(any(name.startswith(each) for name in left_out) for each in LEFT_OUT)


def test_each_package_of_the_wheel_is_typed(installed: Installed) -> None:
    shipped = zipfile.ZipFile(installed.wheel).namelist()
    assert [package for package in OURS if f"{package}/py.typed" not in shipped] == []


def test_the_services_start_without_what_the_wheel_leaves_out(installed: Installed) -> None:
    """Their modules are imported from the wheel, with the packages that they need."""
    modules = (
        "gateway.__main__",
        "static_engine.__main__",
        "deploy.console",
        "deploy.local.supervisor",
    )
    done = subprocess.run(
        [installed.python, "-c", f"import {', '.join(modules)}"],
        cwd=installed.folder,
        env={**installed.environment, "PYTHONPATH": sysconfig.get_path("purelib")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_benchmarks_are_said_to_be_in_the_source_tree(installed: Installed) -> None:
    done = installed.pando("bench", "list", packages=sysconfig.get_path("purelib"))
    assert (done.returncode, done.stdout) == (2, "")
    assert "the source tree contains the benchmarks" in done.stderr
    assert "hint: in a clone of the source tree" in done.stderr
    assert "Traceback" not in done.stderr


def run_locally(installed: Installed, query: str, *options: str) -> tuple[int, str, str]:
    done = installed.pando(
        "run", "-", "--local", "--format", "csv", *options,
        packages=sysconfig.get_path("purelib"), stdin=f"{LINKS} {query};",
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("sites", ["1", "3"])
@pytest.mark.parametrize(
    "option",
    [
        "strategy = 'dred'",
        "strategy = 'set'",
        "strategy = 'recompute'",
        "strategy = 'relative'",
        "annotations = 'bdd'",
    ],
)
def test_what_is_for_comparison_is_refused_in_words(
    installed: Installed, option: str, sites: str
) -> None:
    query = f"SELECT src, dst FROM reachable WITH ({option})"
    status, out, error = run_locally(installed, query, "--sites", sites)
    assert status != 0
    assert REACHED not in out
    assert f"{option} is for comparison and is not in the installed package" in error
    assert f"checkout of Pando's source has {option}" in error
    assert "Traceback" not in error


@pytest.mark.parametrize(
    "options",
    ["", "strategy = 'ranked'", "way = 'flood'", "way = 'annotations'", "strategy = 'absorption'"],
)
def test_recursions_work_without_it(installed: Installed, options: str) -> None:
    chosen = f" WITH ({options})" if options else ""
    query = f"SELECT src, dst FROM reachable{chosen}"
    status, out, error = run_locally(installed, query, "--sites", "3")
    assert (status, REACHED in out) == (0, True), error


def test_confidence_works_without_it(installed: Installed) -> None:
    """Its decision diagrams are in the wheel; the variable orders of `annotations` are not."""
    pytest.importorskip("biodivine_aeon")
    query = "EXPLAIN CONFIDENCE (SELECT src, dst FROM reachable) USING link.pdr"
    status, out, error = run_locally(installed, query, "--format", "table")
    assert (status, "0.2500  ('a', 'c')" in out) == (0, True), error


@pytest.mark.parametrize("option", ["--version", "-V"])
def test_the_command_line_knows_its_version(option: str) -> None:
    done = CliRunner().invoke(app, [option])
    assert (done.exit_code, done.stdout) == (0, f"pando {VERSION}\n")
