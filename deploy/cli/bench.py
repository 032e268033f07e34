"""`pando bench`: run a file of `benchmarks/`."""

import ast
import subprocess
import sys
from pathlib import Path

from streamsql.errors import FederationError

BENCHMARKS = Path(__file__).resolve().parent.parent.parent / "benchmarks"


def run_benchmark(name: str, *, quick: bool, as_json: bool) -> int:
    """Run a benchmark and return its exit status; "list" prints what there is.

    Raises:
        FederationError: There is none of that name, or the sources are not here.
    """
    known = sorted(p.stem for p in BENCHMARKS.glob("*.py") if not p.stem.startswith("_"))
    if not known:
        raise FederationError("benchmarks come with the source tree, not with the package")
    if name == "list":
        width = max(map(len, known))
        for each in known:
            sys.stdout.write(f"{each:{width}}  {_question(each)}\n")
        return 0
    if name not in known:
        raise FederationError(f"there is no benchmark {name!r}", hint=f"one of: {', '.join(known)}")
    flags = ["--quick"] * quick + ["--json"] * as_json
    command = [sys.executable, "-m", f"benchmarks.{name}", *flags]
    return subprocess.run(command, check=False, cwd=BENCHMARKS.parent).returncode  # noqa: S603


def _question(name: str) -> str:
    """Return the first line of a benchmark's description: what it asks."""
    tree = ast.parse((BENCHMARKS / f"{name}.py").read_text(encoding="utf-8"))
    return (ast.get_docstring(tree) or "").partition("\n")[0]
