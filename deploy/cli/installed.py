"""Which extras are installed, and how to install the others; standard library only."""

import importlib.metadata
import json
import shlex
import sys
import tomllib
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "pyproject.toml"


def version() -> str:
    """Return the version of what runs: the source tree's, or the installed package's."""
    if SOURCE.is_file():
        return str(tomllib.loads(SOURCE.read_text(encoding="utf-8"))["project"]["version"])
    try:
        return importlib.metadata.version("pando")
    except importlib.metadata.PackageNotFoundError:
        return "unknown version: neither installed nor in its source tree"


def install_command() -> str:
    """Return the command that installs everything from where this installation came from."""
    if SOURCE.is_file():
        return f"make -C {shlex.quote(str(SOURCE.parent))} setup"
    wanted = "pando[all]"
    try:
        # Written by installers for what came from a file or an address (PEP 610).
        written = importlib.metadata.distribution("pando").read_text("direct_url.json")
        address = json.loads(written)["url"] if written else ""
    except (importlib.metadata.PackageNotFoundError, ValueError, KeyError, TypeError):
        address = ""
    if address:
        wanted = f"{wanted} @ {address}"
    return f"{shlex.quote(sys.executable)} -m pip install {shlex.quote(wanted)}"
