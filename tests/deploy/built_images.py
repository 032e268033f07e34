"""Images built without an engine: a build file's steps, in a folder with its own environment."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator
from importlib.metadata import distribution
from importlib.util import cache_from_source
from pathlib import Path

from packaging.requirements import Requirement

from tests.deploy.compose_file import CONTAINERS, ROOT, read_dockerfile

MADE_BY_ROOT = {"useradd", "mkdir", "chown", "rm", "apt-get"}
"""Programs of RUN steps that only root of an image may run: not run here."""
BUILD_SECONDS = 600


class BuiltImage:
    """Content of an image below a folder, and the programs of its environment.

    Args:
        name: Of the build file.
        root: Folder that stands for the image's root.
        environments: Where environments are, one for each file of requirements.
    """

    def __init__(self, name: str, root: Path, environments: Path) -> None:
        self._root, self._environments = root, environments
        self._folder = root
        self._variables: dict[str, str] = {}
        self._python = Path(sys.executable)
        self.command: list[str] = []
        for instruction, arguments in read_dockerfile(CONTAINERS / f"{name}.Dockerfile"):
            self._step(instruction, arguments)

    def _step(self, instruction: str, arguments: str) -> None:
        match instruction:
            case "FROM":
                version = ".".join(map(str, sys.version_info[:2]))
                assert arguments.startswith(f"python:{version}-"), arguments
            case "ENV":
                for name, value in re.findall(r"(\w+)=(\S+)", arguments):
                    self._variables[name] = self._inside(value)
            case "WORKDIR":
                self._folder = self._below(arguments)
                self._folder.mkdir(parents=True, exist_ok=True)
            case "COPY":
                self._copy(arguments)
            case "RUN":
                self._run(arguments)
            case "CMD":
                self.command = [self._inside(word) for word in eval_list(arguments)]
            case "USER" | "VOLUME" | "EXPOSE" | "ENTRYPOINT":
                pass
            case _:
                raise AssertionError(f"{instruction} {arguments}")

    def _below(self, path: str) -> Path:
        return self._root / path.lstrip("/")

    def _inside(self, text: str) -> str:
        """Return a value whose paths of the image are paths below the folder."""
        return text.replace("/opt/pando", str(self._below("/opt/pando")))

    def _copy(self, arguments: str) -> None:
        words = [word for word in arguments.split() if not word.startswith("--")]
        for source in words[:-1]:
            target = self._folder / words[-1]
            if (ROOT / source).is_dir():
                left_out = shutil.ignore_patterns("__pycache__")
                shutil.copytree(ROOT / source, target, dirs_exist_ok=True, ignore=left_out)
            else:
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / source, target)

    def _run(self, arguments: str) -> None:
        for step in arguments.split("&&"):
            words = shlex.split(step)
            if words[:2] == ["pip", "install"]:
                self._install(words)
            else:
                assert words[0] in MADE_BY_ROOT, step

    def _install(self, words: list[str]) -> None:
        """Put in what the image installs, from what is installed here: pip takes minutes for it.

        The versions have to be the same. That the hashes are those that pip has checked here is a
        test of `test_images.py`; that nothing is missing is asked of pip.
        """
        assert "--require-hashes" in words
        requirements = self._folder / words[words.index("-r") + 1]
        environment = self._environments / requirements.stem
        self._python = environment / "bin" / "python"
        if self._python.exists():
            return
        venv.create(environment, symlinks=True)
        (packages,) = environment.glob("lib/python*/site-packages")
        for name, version in pinned_here(requirements):
            link_distribution(name, version, packages)
        done = subprocess.run(
            [sys.executable, "-m", "pip", "--python", self._python, "check"],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def environment(self, **more: str) -> dict[str, str]:
        """Return the variables of a process: the image's, nothing of the project's own."""
        ours = {"PYTHONPATH", "VIRTUAL_ENV", "PYTHONHOME"}
        given = {name: value for name, value in os.environ.items() if name not in ours}
        return {**given, **self._variables, "PYTHONNOUSERSITE": "1", **more}

    def run(
        self, command: list[str], given: str = "", **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """Run `python …` of the image to its end, with text on its standard input."""
        assert command[0] == "python"
        return subprocess.run(
            [self._python, *command[1:]],
            cwd=self._folder,
            env=self.environment(**variables),
            input=given,
            capture_output=True,
            text=True,
            timeout=BUILD_SECONDS,
            check=False,
        )

    def start(self, command: list[str], log: Path, **variables: str) -> subprocess.Popen[bytes]:
        """Start `python …` of the image; its folder is not the project's."""
        assert command[0] == "python"
        with log.open("ab") as output:
            return subprocess.Popen(
                [self._python, *command[1:]],
                cwd=self._folder,
                env=self.environment(**variables),
                stdout=output,
                stderr=output,
            )


def pinned_here(requirements: Path) -> Iterator[tuple[str, str]]:
    """Yield name and version of what a file of requirements pins for this machine."""
    for line in re.findall(r"(?m)^\w.*==.*?(?= *\\\\?$)", requirements.read_text(encoding="utf-8")):
        found = Requirement(line)
        if found.marker is None or found.marker.evaluate():
            (version,) = found.specifier
            yield found.name, version.version


def link_distribution(name: str, version: str, packages: Path) -> None:
    """Link the files of an installed distribution, compiled ones too, below another folder."""
    found = distribution(name)
    assert found.version == version, f"{name} {found.version} is not {version}: run make setup-dev"
    assert found.files, name
    for file in found.files:
        if ".." in file.parts:  # its scripts name the interpreter of this environment
            continue
        source = Path(str(file.locate()))
        link(source, packages / file)
        if source.suffix == ".py":
            compiled = Path(cache_from_source(str(source)))
            if compiled.exists():
                link(compiled, packages / file.parent / "__pycache__" / compiled.name)


def link(source: Path, target: Path) -> None:
    """Link a file of one distribution, which may have been named twice."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if not target.is_symlink():
        target.symlink_to(source)


def eval_list(text: str) -> list[str]:
    """Return the words of a command in exec form."""
    return re.findall(r'"([^"]*)"', text)
