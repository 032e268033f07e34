"""The wheel, installed as a user would: alone, and with what it needs."""

import os
import subprocess
import sys
import sysconfig
import tomllib
import venv
from pathlib import Path

import pytest
from typer.testing import CliRunner

from deploy.cli.entry import OURS
from deploy.cli.main import app

ROOT = Path(__file__).resolve().parents[2]
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]

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


def test_the_wheel_has_every_file_of_the_packages(installed: Installed) -> None:
    where = installed.folder / "env" / "lib"
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *OURS],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    (site,) = where.glob("python*/site-packages")
    missing = [name for name in listed.stdout.split() if not (site / name).exists()]
    assert missing == []


@pytest.mark.parametrize("option", ["--version", "-V"])
def test_the_command_line_knows_its_version(option: str) -> None:
    done = CliRunner().invoke(app, [option])
    assert (done.exit_code, done.stdout) == (0, f"pando {VERSION}\n")
