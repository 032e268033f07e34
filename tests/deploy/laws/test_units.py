"""The systemd units: systemd takes them, they start what exists, and nothing is left open."""

import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "deploy" / "systemd"
UNITS = sorted(FOLDER.glob("*.service"))
PYTHON = "/opt/pando/bin/python"
NEWER = ("RestartSteps", "RestartMaxDelaySec")
"""Since systemd 254; older ones ignore them and say so."""
HARDENED = {
    "User": "pando",
    "UMask": "0077",
    "NoNewPrivileges": "yes",
    "CapabilityBoundingSet": "",
    "ProtectSystem": "strict",
    "ProtectHome": "yes",
    "PrivateTmp": "yes",
    "PrivateDevices": "yes",
    "SystemCallFilter": "@system-service",
    "Restart": "on-failure",
    "RestartPreventExitStatus": "2",
}


def settings_of(unit: Path) -> dict[str, str]:
    """Return the settings of a unit by name."""
    lines = unit.read_text(encoding="utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_a_unit_is_hardened_and_restarts(unit: Path) -> None:
    settings = settings_of(unit)
    assert {name: settings.get(name) for name in HARDENED} == HARDENED
    assert settings["StateDirectory"].startswith("pando/")
    assert "MemoryMax" in settings


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_a_unit_starts_a_module_that_exists(unit: Path) -> None:
    command = settings_of(unit)["ExecStart"].split()
    assert command[:2] == [PYTHON, "-m"]
    assert find_spec(command[2]) is not None
    assert command[3] == "--config"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_systemd_takes_a_unit(unit: Path, tmp_path: Path) -> None:
    copy = tmp_path / unit.name
    # Only the interpreter is another one: systemd looks whether it is there.
    copy.write_text(unit.read_text(encoding="utf-8").replace(PYTHON, sys.executable))
    name = tmp_path / unit.name.replace("@.", "@gw-7.")
    command = ["systemd-analyze", "verify", "--man=no", str(name)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    said = [line for line in done.stderr.splitlines() if str(tmp_path) in line]
    assert [line for line in said if not any(f"'{key}'" in line for key in NEWER)] == []


def test_the_documentation_says_how_each_unit_is_installed() -> None:
    page = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    section = page.partition("\n## Systemd units\n")[2].partition("\n## ")[0]
    for unit in UNITS:
        assert unit.name.replace(".service", "") in section, unit.name
    for path in re.findall(r"deploy/systemd/[\w@.*-]+", section):
        assert list(ROOT.glob(path)), path
