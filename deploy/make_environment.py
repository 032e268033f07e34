"""Prepare the virtual environment of `make`, and report progress.

    python3 deploy/make_environment.py requirements/base.txt

The Makefile runs this with the machine's own Python: it imports the standard library only, and an
older interpreter can parse it, so that it prints a sentence and no traceback.

Steps: check Python, create `.venv` if it is missing, install the pinned requirements (pip checks
every hash) and compile them on all cores (pip would use one), install Pando itself in place.
"""

import sys

if sys.version_info < (3, 11):  # noqa: UP036 - this file meets whatever `python3` is on the machine
    sys.exit(
        "Pando needs Python 3.11 or later, but this is Python "
        + ".".join(str(part) for part in sys.version_info[:3])
        + " ("
        + sys.executable
        + ").\nInstall a newer one and name it: make PYTHON=python3.12 up"
    )

import argparse
import importlib.util
import re
import subprocess
import time
from collections.abc import Callable, Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
STEPS = 4
NETWORK_SECONDS = 60
"""Seconds that pip waits for a silent server before it asks again; its default is 15."""
TAIL_LINES = 25
"""Lines of pip's output that are repeated when it fails."""

Say = Callable[[str], None]


class SetupError(Exception):
    """The environment could not be prepared; the message says what to do."""


def count_requirements(text: str) -> int:
    """Return how many packages a requirements text pins, whatever their markers.

    Examples:
        >>> count_requirements("aa==1 ; sys_platform == 'x'")
        1
    """
    return len(re.findall(r"(?m)^[A-Za-z0-9][\w.\[\],-]*==", text))


def describe_pip_line(line: str) -> str | None:
    """Return the progress note for a line of pip's output, or None.

    Examples:
        >>> describe_pip_line("Collecting rich==15.0.0 (from -r requirements/base.txt (line 7))")
        'rich 15.0.0'
        >>> describe_pip_line("  Downloading rich-15.0.0-py3-none-any.whl (243 kB)") is None
        True
    """
    found = re.match(r"(?:Collecting|Requirement already satisfied:) ([\w.-]+)\S*==([\w.]+)", line)
    if found:
        return f"{found.group(1)} {found.group(2)}"
    if line.startswith("Building wheel for "):
        return f"building {line.split()[3]} (the largest package: about half a minute)"
    if line.startswith("Installing collected packages:"):
        return "unpacking"
    return None


def follow_pip(lines: Iterable[str], total: int, say: Say) -> list[str]:
    """Say a note per event of pip's output, of `total` packages; return the last lines."""
    tail: list[str] = []
    seen = 0
    for line in lines:
        tail = [*tail[-TAIL_LINES + 1 :], line.rstrip()]
        note = describe_pip_line(line)
        if note is None:
            continue
        if note[0].isalnum() and "==" in line:
            seen += 1
            note = f"{min(seen, total)}/{total} {note}"
        say(note)
    return tail


def run_pip(arguments: list[str], total: int, say: Say) -> None:
    """Run the environment's pip and follow it.

    Raises:
        SetupError: pip failed; the end of its output is in the message.
    """
    command = [str(VENV / "bin" / "python"), "-m", "pip", "install", "--progress-bar", "off"]
    command += ["--disable-pip-version-check", "--timeout", str(NETWORK_SECONDS), *arguments]
    with subprocess.Popen(  # noqa: S603 - fixed program, arguments from this file
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        tail = follow_pip(process.stdout or [], total, say)
    if process.returncode != 0:
        shown = "\n    ".join(tail)
        raise SetupError(
            f"pip stopped with status {process.returncode}. Its last lines were:\n    {shown}\n"
            "Run the same make command again to continue; packages already fetched are kept."
        )


def create_environment(say: Say) -> None:
    """Create `.venv` unless there is a usable one.

    Raises:
        SetupError: `ensurepip` is missing (Debian packs it apart), or `venv` failed.
    """
    python = VENV / "bin" / "python"
    probe = [str(python), "-c", "import pip, sys; sys.exit(sys.version_info < (3, 11))"]
    if python.exists() and subprocess.run(probe, check=False).returncode == 0:  # noqa: S603
        return
    if importlib.util.find_spec("ensurepip") is None:
        raise SetupError(
            f"{sys.executable} cannot make virtual environments: its module `ensurepip` is missing."
            "\nOn Debian and Ubuntu: apt-get install python3-venv. Then run make again."
        )
    say(f"creating {VENV.name}")
    command = [sys.executable, "-m", "venv", "--clear", str(VENV)]
    made = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if made.returncode != 0:
        raise SetupError(f"could not create {VENV}:\n{made.stdout}{made.stderr}")


def compile_modules() -> None:
    """Compile what is installed and Pando itself; an import compiles what cannot be compiled here.

    Else the services, which start at once, would each compile the same modules.
    """
    packages = [str(folder) for folder in VENV.glob("lib/python*/site-packages")]
    packages += [str(file.parent) for file in ROOT.glob("*/__init__.py")]
    command = [str(VENV / "bin" / "python"), "-W", "ignore", "-m", "compileall"]
    command += ["-qq", "-j", "0", *packages]
    subprocess.run(command, cwd=ROOT, check=False)  # noqa: S603 - fixed program


def prepare(requirements: Path, say: Callable[[int, str], None]) -> None:
    """Do all steps; `say` gets the number of the step (1 to `STEPS`) and a note.

    Raises:
        SetupError: A step failed.
    """
    say(1, f"Python {'.'.join(map(str, sys.version_info[:3]))} is fine")
    create_environment(lambda note: say(2, note))
    say(2, f"environment {VENV.name} is there")
    total = count_requirements(requirements.read_text(encoding="utf-8"))
    say(3, f"installing {total} pinned packages of {requirements.name} (a minute or two at first)")
    pinned = ["--require-hashes", "--no-compile", "--requirement", str(requirements)]
    run_pip(pinned, total, lambda note: say(3, note))
    say(3, "compiling")
    compile_modules()
    say(4, "installing Pando itself, in place")
    editable = ["--no-deps", "--no-build-isolation", "--editable", "."]
    run_pip(editable, 1, lambda _note: None)


def main() -> int:
    """Parse the command line, prepare the environment, report durations; return the exit status."""
    parser = argparse.ArgumentParser(description="Prepare Pando's virtual environment.")
    parser.add_argument("requirements", type=Path, help="file of pinned, hashed requirements")
    chosen = parser.parse_args()
    began = time.monotonic()

    def say(step: int, note: str) -> None:
        print(f"[{step}/{STEPS}] {time.monotonic() - began:5.1f} s  {note}", flush=True)  # noqa: T201

    try:
        prepare(chosen.requirements, say)
    except SetupError as error:
        sys.stderr.write(f"set-up failed: {error}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("set-up interrupted; run the same command again to continue\n")
        return 130
    say(STEPS, "ready")
    return 0


if __name__ == "__main__":
    sys.exit(main())
