"""A sample of the small changes of a module, and which of them no test notices.

mutmut changes and runs; here is chosen which changes, by a seed. All of it happens in a copy of the
repository, which is removed at the end: the working tree is only read.
"""

import ast
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.mutation.modules import found

ROOT = Path(__file__).resolve().parents[2]

_MUTANT = re.compile(r"\.(?:x_|xǁ(?P<owner>\w+)ǁ)(?P<name>\w+)__mutmut_\d+$")
_STATUS = re.compile(r"^\s+(?P<mutant>\S+): (?P<status>[a-z ]+)$", re.MULTILINE)

_CHANGED = re.compile(r"[-+](?![-+]{2})")
_DIFFS = """
import json, sys
from mutmut.mutation.diff_apply import get_diff_for_mutant
print(json.dumps([get_diff_for_mutant(mutant) for mutant in sys.argv[1:]]))
"""
_SPINNER = re.compile(r"\s*[⠀-⣿]")

SETTINGS = """
[tool.mutmut]
source_paths = {packages}
only_mutate = [{module}]
do_not_mutate_patterns = ['raise \\w+\\(']  # mostly what it says
pytest_add_cli_args_test_selection = {tests}
pytest_add_cli_args = ["-p", "no:cacheprovider", "-p", "no:xdist"]
timeout_constant = 5.0  # seconds beside the multiple of what the tests take
timeout_multiplier = 4.0
use_git_change_detection = false
# Forked from a process that has run no test: else caches hold what the unchanged program computed.
process_isolation = "forkserver"
"""


class MutationError(Exception):
    """There is nothing to sample: the message has what mutmut or the tests wrote."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Which mutants of a module are run.

    Attributes:
        number: How many at most.
        seed: Chooses them; the sample of a larger number contains that of a smaller one.
        jobs: Processes at a time.
    """

    number: int
    seed: int = 0
    jobs: int = 1


@dataclass(frozen=True, slots=True)
class Survivor:
    """A change that no test noticed.

    Attributes:
        mutant: The name that mutmut gave it.
        place: File and line.
        status: "survived", "no tests", "timeout" or "suspicious".
        diff: The lines that go and come.
    """

    mutant: str
    place: str
    status: str
    diff: tuple[str, ...]


def copy_tree(root: Path, target: Path) -> None:
    """Copy what git tracks or does not ignore, as it is in the working tree."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        capture_output=True,
        check=True,
        text=True,
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (root / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, target / name)


def python(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python in a copy; it finds the copy's modules only."""
    environment = dict(os.environ, HYPOTHESIS_PROFILE="mutants")
    environment.pop("PYTHONPATH", None)
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        capture_output=True,
        check=False,
        text=True,
        env=environment,
    )


def mutmut(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run mutmut in a copy."""
    return python(folder, str(Path(sys.executable).parent / "mutmut"), *arguments)


def diffs(folder: Path, mutants: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the lines that go and come by mutant.

    `mutmut show` tells it of one and takes seconds to start, so mutmut is asked for all of them.
    """
    every: list[str] = json.loads(python(folder, "-c", _DIFFS, *mutants).stdout)
    return {
        mutant: tuple(line for line in diff.splitlines() if _CHANGED.match(line))
        for mutant, diff in zip(mutants, every, strict=True)
    }


def statuses(folder: Path) -> dict[str, str]:
    """Return what has become of every mutant."""
    listed = mutmut(folder, "results", "--all", "true").stdout
    return {line["mutant"]: line["status"] for line in _STATUS.finditer(listed)}


def line_of(source: str, mutant: str, diff: Sequence[str]) -> int:
    """Return the line of a module that a mutant changes, or that of its function.

    Args:
        source: Of the module.
        mutant: Its name has the names of the class and the function.
        diff: Its first removed line is looked for in the function.
    """
    name = _MUTANT.search(mutant)
    gone = next((line[1:].strip() for line in diff if line.startswith("-")), None)
    lines = source.splitlines()
    scopes: list[tuple[str | None, ast.AST]] = [(None, ast.parse(source))]
    for owner, scope in scopes:  # grows
        for node in ast.iter_child_nodes(scope):
            if isinstance(node, ast.ClassDef):
                scopes.append((node.name, node))
            if (
                isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
                and name is not None
                and (owner, node.name) == (name["owner"], name["name"])
            ):
                last = node.end_lineno or node.lineno
                within = range(node.lineno, last + 1)
                return next((n for n in within if lines[n - 1].strip() == gone), node.lineno)
    return 1


def chosen_of(mutants: Sequence[str], sample: Sample) -> list[str]:
    """Return the mutants of a sample."""
    order = list(mutants)
    random.Random(sample.seed).shuffle(order)
    return order[: sample.number]


def sampled(
    name: str, tests: Sequence[str], sample: Sample, root: Path
) -> tuple[Counter[str], list[Survivor]]:
    """Run a sample of a module's mutants; return how many became what, and the survivors.

    Args:
        name: Of the module, as in `KEY_MODULES`.
        tests: Names of test files.
        sample: Which mutants.
        root: Of the repository.

    Raises:
        MutationError: The tests fail without any change, or no test runs the module.
    """
    with tempfile.TemporaryDirectory(prefix="pando-mutants-") as copy:
        folder = Path(copy)
        copy_tree(root, folder)
        project = (folder / "pyproject.toml").read_text(encoding="utf-8")
        packages = tomllib.loads(project)["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
        (module,) = found(folder, packages, name)
        files = [path for test in tests for path in found(folder, ["tests"], test)]
        settings = SETTINGS.format(
            packages=json.dumps(packages),
            module=json.dumps(module),
            tests=json.dumps([*files, module]),
        )
        (folder / "pyproject.toml").write_text(project + settings, encoding="utf-8")
        # A name that no mutant has: all are written and the tests are timed, but nothing is run.
        prepared = mutmut(folder, "run", "none")
        every = sorted(statuses(folder))
        if not every or "nothing matches" not in prepared.stderr:
            # mutmut keeps what its processes print to itself.
            tests_alone = python(folder, "-m", "pytest", "-q", "-x", *files, module)
            raise MutationError(_report(module, prepared) + tests_alone.stdout)
        chosen = chosen_of(every, sample)
        ran = mutmut(folder, "run", "--max-children", str(sample.jobs), *chosen)
        became = statuses(folder)
        counts = Counter(became[mutant] for mutant in chosen)
        if ran.returncode != 0 or counts["not checked"]:
            raise MutationError(_report(module, ran))
        source = (folder / module).read_text(encoding="utf-8")
        left = [mutant for mutant in chosen if became[mutant] not in {"killed", "timeout"}]
        changed = diffs(folder, left)
        survivors = [
            Survivor(
                mutant,
                f"{module}:{line_of(source, mutant, changed[mutant])}",
                became[mutant],
                changed[mutant],
            )
            for mutant in left
        ]
        return counts, survivors


def _report(module: str, run: subprocess.CompletedProcess[str]) -> str:
    """Return what a run printed, without the wheel that turns meanwhile."""
    lines = (run.stdout + run.stderr).splitlines()
    return "\n".join([f"{module}:", *(line for line in lines if not _SPINNER.match(line))])
