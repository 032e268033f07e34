"""Links, commands, settings, functions and limits that the documentation names are as it says."""

import dataclasses
import json
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import typer

from broker.embedded.limits import Limits
from deploy.cli.main import app
from federated_optimizer.coordinator.contract.coordinator_settings import CoordinatorSettings
from gateway.connectors.calendar.calendar_connector import CalendarEndpoint
from gateway.connectors.motes.mote_options import MotesEndpoint
from gateway.connectors.replay.replay_connector import ReplayEndpoint
from gateway.connectors.soft_sensors.soft_sensors_connector import SoftSensorsEndpoint
from gateway.gateway_settings import (
    BufferSettings,
    ClockSettings,
    GatewaySettings,
    SnapshotSettings,
)
from static_engine.static_settings import StaticSettings
from streamsql.algebra.metrics import Metric
from streamsql.binder.expressions.scalar_functions import SIGNATURES
from streamsql.catalog.connectors import LOCAL_CONNECTORS
from streamsql.library import library_views
from streamsql.wire.site_settings import SiteSettings
from streamsql.wire.topics import Topics
from tests.docs.markdown import ROOT, anchors, blocks, commands, links, pages
from ui.console_settings import ConsoleSettings

OPERATIONS = ROOT / "docs" / "operations.md"
LANGUAGE = ROOT / "docs" / "streamsql.md"
TABLES: dict[str, type] = {
    "### Gateway and base site": GatewaySettings,
    "#### Clock": ClockSettings,
    "#### Buffer": BufferSettings,
    "#### Snapshots": SnapshotSettings,
    "#### Engine": SiteSettings,
    "#### motes": MotesEndpoint,
    "#### soft_sensors": SoftSensorsEndpoint,
    "#### calendar": CalendarEndpoint,
    "#### replay": ReplayEndpoint,
    "### Static engine": StaticSettings,
    "### Console and coordinator": ConsoleSettings,
    "Settings of the coordinator that no file contains": CoordinatorSettings,
    "The embedded broker:": Limits,
}
COMMAND_LINES = sorted({(page, line) for page in pages() for line in commands(page)})


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in links(page):
        path, _, fragment = target.partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), target
        assert file == ROOT or file.is_relative_to(ROOT), target
        if fragment:
            assert fragment in anchors(file), target


def test_named_files_exist() -> None:
    folders = "benchmarks|deploy|docs|federated_optimizer|gateway|host|static_engine|stream_engine"
    path = re.compile(rf"`((?:{folders}|streamsql|tests|ui)(?:/[\w.\-]+)+)`")
    named = {(page, name) for page in pages() for name in path.findall(page.read_text("utf-8"))}
    assert len(named) > 50
    assert not [(page.name, name) for page, name in named if not (ROOT / name).exists()]


def test_files_named_from_their_folder_exist() -> None:
    """`rooms/file.py` in a page or a docstring is the end of the path of some file."""
    command = ["git", "ls-files"]
    tracked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    files = [Path(name) for name in tracked.stdout.split()]
    ends = {str(Path(*file.parts[start:])) for file in files for start in range(len(file.parts))}
    modules = [ROOT / file for file in files if file.suffix == ".py" and file.parts[0] != "tests"]
    current = [page for page in pages() if page.name != "CHANGELOG.md"]
    path = re.compile(r"`([\w./]+/[\w.]+\.(?:py|sql|js))`")
    named = [
        (file.name, name)
        for file in [*current, *modules]
        if "decisions" not in file.parts
        for name in path.findall(file.read_text("utf-8"))
    ]
    assert len(named) > 50
    assert not [each for each in named if each[1] not in ends]


def test_every_page_is_reached_from_the_readme() -> None:
    reached, waiting = set(), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in reached or not page.exists():
            continue
        reached.add(page)
        found = [(page.parent / t.partition("#")[0]).resolve() for t in links(page)]
        waiting += [f for f in found if f.suffix == ".md"]
        waiting += [p for f in found if f.is_dir() and f != ROOT for p in f.glob("*.md")]
    assert set(pages()) <= reached


def _command(words: list[str]) -> tuple[Any, list[str]]:
    """Return the command that words name, and the words left over."""
    command: Any = typer.main.get_command(app)
    while words and words[0] in getattr(command, "commands", {}):
        command, words = command.commands[words[0]], words[1:]
    return command, words


@pytest.mark.parametrize(("page", "line"), COMMAND_LINES, ids=lambda value: str(value)[:60])
def test_commands_exist_with_their_options(page: Path, line: str) -> None:
    words = [word for word in shlex.split(line, comments=True)[1:] if word != "…"]
    command, rest = _command(words)
    # A group that does something by itself has options with values of its own.
    is_group = hasattr(command, "commands") and not command.invoke_without_command
    assert not is_group or all(word.startswith("--") for word in rest), (page, line)
    known = {name for parameter in command.params for name in parameter.opts} | {"--help"}
    if (
        command.name == "bench" and rest and rest[0] != "list"
    ):  # which hands a benchmark the options that it has
        program = (ROOT / "benchmarks" / f"{rest[0]}.py").read_text("utf-8")
        known |= set(re.findall(r'"(--[a-z-]+)"', program))
    given = {word.partition("=")[0] for word in rest if word.startswith("--")}
    assert given <= known, (page, line)


def test_there_are_enough_commands_to_check() -> None:
    assert len(COMMAND_LINES) > 25


def _rows(heading: str) -> Iterator[list[str]]:
    """Yield the cells of the first table below a heading or line."""
    lines = OPERATIONS.read_text(encoding="utf-8").splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith(heading))
    begun = False
    for line in lines[start + 1 :]:
        if line.startswith("|"):
            begun = True
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if cells[0].startswith("`"):
                yield cells
        elif begun:
            return


def _default(value: Any) -> str:
    if isinstance(value, msgspec.Struct):
        return "{}"
    return json.dumps(value, ensure_ascii=False, default=_as_written)


def _as_written(value: Any) -> Any:
    return str(value) if isinstance(value, Metric) else dataclasses.asdict(value)


@pytest.mark.parametrize(("heading", "settings"), TABLES.items(), ids=lambda value: str(value)[:40])
def test_settings_are_all_there_with_their_defaults(heading: str, settings: type) -> None:
    if issubclass(settings, msgspec.Struct):
        fields = msgspec.structs.fields(settings)
        code = {
            f.name: "" if f.default is msgspec.NODEFAULT else _default(f.default) for f in fields
        }
        factories = {f.name: f.default_factory for f in fields}
        for name, factory in factories.items():
            if factory is not msgspec.NODEFAULT:
                code[name] = _default(factory())
    else:
        made: Any = settings()
        names = [field.name for field in dataclasses.fields(made)]
        code = {name: _default(getattr(made, name)) for name in names}
    written = {cells[0].strip("`"): cells[1].strip("`") for cells in _rows(heading)}
    assert written == code


def test_every_connector_of_pando_up_has_its_table() -> None:
    text = OPERATIONS.read_text(encoding="utf-8")
    assert all(f"#### {kind}\n" in text for kind in LOCAL_CONNECTORS)


def test_every_topic_is_listed() -> None:
    topics = Topics("s")
    made = {
        re.sub(r"\{\w+\}|\+|static", "*", topic)
        for topic in (
            getattr(topics, name)()
            for name in vars(Topics)
            if not name.startswith("_") and name != "parts"
        )
    }
    written = {
        "pando/v1/s/" + re.sub(r"\{\w+\}", "*", cells[0].strip("`"))
        for cells in _rows("## Topics and messages")
    }
    assert written == made


def test_the_function_table_is_the_code() -> None:
    usages = {signature.usage for found in SIGNATURES.values() for signature in found}
    text = LANGUAGE.read_text(encoding="utf-8")
    section = text.partition("The functions below")[2].partition("## ")[0]
    written = set(re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE))
    assert written == usages


def test_every_function_and_aggregate_has_an_example_that_runs() -> None:
    run = "\n".join(b.text for b in blocks(LANGUAGE, "sql") if b.note == "local").upper()
    used = set(re.findall(r"\b[A-Z][A-Z_0-9]+\b", run))
    functions = {s.usage.partition("(")[0].upper() for known in SIGNATURES.values() for s in known}
    text = LANGUAGE.read_text(encoding="utf-8")
    table = text.partition("\n## Aggregates\n")[2].partition("Each accepts `FILTER")[0]
    cells = " ".join(line.split("|")[1] for line in table.splitlines() if line.startswith("|"))
    aggregates = set(re.findall(r"\b[A-Z][A-Z_]{2,}(?=\(|`)", cells))
    assert len(aggregates) > 20
    assert (functions | aggregates) - used == set()


def test_the_library_table_is_the_library() -> None:
    text = LANGUAGE.read_text(encoding="utf-8")
    section = text.partition("## Library views")[2].partition("## ")[0]
    first_cells = "\n".join(line.split("|")[1] for line in section.splitlines() if "|" in line)
    written = dict(re.findall(r"`(\w+)\(([^)]*)\)`", first_cells))
    views = {view.name: ", ".join(view.columns) for view in library_views()}
    assert written == views


def test_environment_variables_are_those_the_code_reads() -> None:
    text = OPERATIONS.read_text(encoding="utf-8")
    section = text.partition("## Environment variables")[2].partition("## ")[0]
    written = set(re.findall(r"`(PANDO_[A-Z_]+[A-Z])`", section))
    sources = [
        *(
            p
            for d in ("gateway", "host", "static_engine", "ui", "deploy")
            for p in (ROOT / d).rglob("*")
        ),
        ROOT / "docker-compose.yml",
    ]
    code = "\n".join(
        p.read_text(encoding="utf-8")
        for p in sources
        if p.is_file() and p.suffix in (".py", ".yml", ".sh", ".env", ".sql")
    )
    read = set(re.findall(r"PANDO_[A-Z_]+[A-Z]\b", code))
    passwords = {name for name in read if name.startswith("PANDO_PASSWORD")}
    assert written == read - passwords


def test_json_of_the_documentation_is_json() -> None:
    for page in pages():
        for block in blocks(page, "json"):
            json.loads(block.text)
