"""The set-up that `make` runs: what it reports, and what it says when it cannot go on."""

import subprocess
import sys
from pathlib import Path

import pytest

from deploy import make_environment

PIP_OUTPUT = """\
Collecting rich==15.0.0 (from -r base.txt (line 1))
  Downloading rich-15.0.0-py3-none-any.whl (243 kB)
Collecting pyspark==4.3.0 (from pyspark[sql]==4.3.0->-r base.txt (line 4))
Requirement already satisfied: idna==3.20 in ./.venv/lib (from -r base.txt (line 9)) (3.20)
Building wheels for collected packages: pyspark
  Building wheel for pyspark (pyproject.toml): started
Building wheel for pyspark (pyproject.toml): finished with status 'done'
Installing collected packages: rich, pyspark
"""


def test_progress_counts_packages_and_names_what_takes_long() -> None:
    notes: list[str] = []
    tail = make_environment.follow_pip(PIP_OUTPUT.splitlines(keepends=True), 3, notes.append)
    assert notes[:3] == ["1/3 rich 15.0.0", "2/3 pyspark 4.3.0", "3/3 idna 3.20"]
    assert any("building pyspark" in note for note in notes[3:])
    assert any("unpacking" in note for note in notes[3:])
    assert tail[-1] == "Installing collected packages: rich, pyspark"


def test_only_the_end_of_a_long_output_is_kept() -> None:
    lines = [f"line {number}\n" for number in range(10_000)]
    tail = make_environment.follow_pip(lines, 0, lambda _note: None)
    assert len(tail) == make_environment.TAIL_LINES
    assert tail[-1] == "line 9999"


def test_every_requirements_file_is_counted() -> None:
    text = (make_environment.ROOT / "requirements" / "gateway.txt").read_text(encoding="utf-8")
    assert make_environment.count_requirements(text) == text.count("==") - text.count(" == '")


def test_a_failing_pip_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "bin" / "python"
    fake.parent.mkdir()
    fake.write_text("#!/bin/sh\necho 'ERROR: hashes do not match'\nexit 7\n", encoding="utf-8")
    fake.chmod(0o755)
    monkeypatch.setattr(make_environment, "VENV", tmp_path)
    with pytest.raises(make_environment.SetupError, match=r"(?s)status 7.*hashes do not match"):
        make_environment.run_pip(["x"], 1, lambda _note: None)


def test_without_ensurepip_the_debian_package_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(make_environment, "VENV", tmp_path / "none")
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    with pytest.raises(make_environment.SetupError, match="python3-venv"):
        make_environment.create_environment(lambda _note: None)


def test_a_usable_environment_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(sys.executable)
    monkeypatch.setattr(make_environment, "VENV", tmp_path)
    notes: list[str] = []
    make_environment.create_environment(notes.append)
    assert notes == []


def test_what_is_installed_and_our_own_is_compiled_but_what_cannot_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = tmp_path / ".venv"
    packages = environment / "lib" / "python3" / "site-packages"
    (packages / "one").mkdir(parents=True)
    (packages / "one" / "good.py").write_text("x = 1\n")
    (packages / "one" / "template.py").write_text("print {{ name }} x\n")
    (tmp_path / "ours" / "inner").mkdir(parents=True)
    (tmp_path / "ours" / "__init__.py").touch()
    (tmp_path / "ours" / "inner" / "own.py").touch()
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "other.py").touch()
    (environment / "bin").mkdir()
    (environment / "bin" / "python").symlink_to(sys.executable)
    monkeypatch.setattr(make_environment, "ROOT", tmp_path)
    monkeypatch.setattr(make_environment, "VENV", environment)
    make_environment.compile_modules()
    compiled = {file.name.split(".")[0] for file in tmp_path.rglob("*.pyc")}
    assert compiled == {"good", "__init__", "own"}


def test_an_old_python_gets_a_sentence() -> None:
    # What an interpreter of version 3.9 would do: only the version it reports is changed.
    code = (
        "import runpy, sys; sys.version_info = (3, 9, 2);"
        f"runpy.run_path({make_environment.__file__!r}, run_name='__main__')"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 1
    assert "needs Python 3.11 or later, but this is Python 3.9.2" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("target", ["help", "up", "test", "check", "bench", "lock", "clean"])
def test_make_knows_its_targets(target: str) -> None:
    ended = subprocess.run(
        ["make", "--dry-run", target],
        cwd=make_environment.ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr


def test_the_build_script_is_valid_and_executable() -> None:
    script = make_environment.ROOT / ".ci" / "run"
    assert script.stat().st_mode & 0o111 == 0o111
    assert subprocess.run(["bash", "-n", str(script)], check=False).returncode == 0
