"""`pando bench`: run a file of `benchmarks/`."""

import ast
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from streamsql.errors import FederationError

BENCHMARKS = Path(__file__).resolve().parent.parent.parent / "benchmarks"


def run_benchmark(name: str, arguments: Sequence[str]) -> int:
    """Run a benchmark and return its exit status; "list" prints what there is.

    Args:
        name: Of a file in `benchmarks/`.
        arguments: Given to it as they are; it refuses what it does not know.

    Raises:
        FederationError: There is none of that name, or the sources are not here.
    """
    known = sorted(p.stem for p in BENCHMARKS.glob("*.py") if not p.stem.startswith("_"))
    if not known:
        raise FederationError(
            "the source tree contains the benchmarks, the installed package does not",
            hint="in a clone of the source tree: make setup-dev, then make bench NAME=operators",
        )
    if name == "list":
        width = max(map(len, known))
        for each in known:
            sys.stdout.write(f"{each:{width}}  {_question(each)}\n")
        return 0
    if name not in known:
        raise FederationError(f"there is no benchmark {name!r}", hint=f"one of: {', '.join(known)}")
    command = [sys.executable, "-m", f"benchmarks.{name}", *arguments]
    return subprocess.run(command, check=False, cwd=BENCHMARKS.parent).returncode  # noqa: S603


def _question(name: str) -> str:
    """Return the first line of a benchmark's description: what it asks."""
    tree = ast.parse((BENCHMARKS / f"{name}.py").read_text(encoding="utf-8"))
    return (ast.get_docstring(tree) or "").partition("\n")[0]
