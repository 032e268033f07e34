"""The sampler, on a project of one module: what it finds, and that it leaves everything alone."""

import subprocess
import tomllib
from pathlib import Path

import pytest

from tests.mutation.__main__ import chosen_modules
from tests.mutation.modules import KEY_MODULES, found
from tests.mutation.sample import ROOT, MutationError, Sample, chosen_of, line_of, sampled

_PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PACKAGES: list[str] = _PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]

MODULE = '''"""Two functions, of which one is tested."""


def add(number: int) -> int:
    """Return more."""
    return number + 5


class Other:
    def untested(self, number: int) -> int:
        if number > 3:
            return number
        return 3
'''
PROJECT = """
[tool.hatch.build.targets.wheel]
packages = ["package"]
[tool.pytest.ini_options]
pythonpath = ["."]
addopts = ["--import-mode=importlib"]
"""
TEST = """
from package.module import Other, add

def test_both() -> None:
    assert add(1) == {expected}
    Other().untested(4)
"""


def project(folder: Path, *, expected: int) -> Path:
    (folder / "package").mkdir()
    (folder / "tests").mkdir()
    (folder / "package/module.py").write_text(MODULE)
    (folder / "tests/test_module.py").write_text(TEST.format(expected=expected))
    (folder / "pyproject.toml").write_text(PROJECT)
    subprocess.run(["git", "init", "--quiet"], cwd=folder, check=True)
    return folder


def test_every_key_module_is_one_file_and_its_tests_exist() -> None:
    counts = {name: len(found(ROOT, PACKAGES, name)) for name in KEY_MODULES}
    assert counts == dict.fromkeys(KEY_MODULES, 1)
    tests = {test for names in KEY_MODULES.values() for test in names}
    assert [test for test in sorted(tests) if not found(ROOT, ["tests"], test)] == []


# mutmut starts five times.
@pytest.mark.timeout(300)
def test_survivors_have_their_place_and_the_tree_stays_as_it_is(tmp_path: Path) -> None:
    root = project(tmp_path, expected=6)
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    counts, survivors = sampled("module", ["test_module"], Sample(12), root)
    assert counts["killed"] >= 2
    assert counts.total() - counts["killed"] == len(survivors)
    assert {survivor.place for survivor in survivors} <= {
        f"package/module.py:{line}" for line in (11, 12, 13)
    }
    assert any(survivor.diff[0].strip("- ") == "if number > 3:" for survivor in survivors)
    assert before == {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_the_sample_of_a_larger_number_contains_that_of_a_smaller_one() -> None:
    mutants = [str(number) for number in range(100)]
    assert chosen_of(mutants, Sample(30, seed=4))[:10] == chosen_of(mutants, Sample(10, seed=4))
    assert chosen_of(mutants, Sample(10, seed=4)) != chosen_of(mutants, Sample(10, seed=5))
    assert sorted(chosen_of(mutants, Sample(1_000))) == sorted(mutants)


def test_tests_that_fail_without_a_change_are_reported(tmp_path: Path) -> None:
    root = project(tmp_path, expected=7)
    with pytest.raises(MutationError, match="assert 6 == 7"):
        sampled("module", ["test_module"], Sample(1), root)


@pytest.mark.parametrize(
    ("mutant", "removed", "line"),
    [
        ("package.module.x_add__mutmut_1", "-    return number + 5", 6),
        ("package.module.xǁOtherǁuntested__mutmut_9", "-        return 3", 13),
        ("package.module.xǁOtherǁuntested__mutmut_9", "-    is nowhere", 10),
    ],
)
def test_the_line_of_a_change(mutant: str, removed: str, line: int) -> None:
    assert line_of(MODULE, mutant, [removed, "+    other"]) == line


def test_modules_are_chosen_by_name() -> None:
    assert chosen_modules(["reach", "join"]) == ["reach", "join"]
    assert chosen_modules([]) == list(KEY_MODULES)
    with pytest.raises(SystemExit, match="is no key module; there are aggregate"):
        chosen_modules(["nonsense"])
