"""Statements and commands of the documentation that need accounts run where there are some.

Passwords are given on standard input; places become those of the federation that runs.
"""

import json
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.markdown import PEOPLE, blocks, pages
from tests.end_to_end.federation import PANDO, PATIENCE, Federation, federation

pytestmark = [pytest.mark.end_to_end, pytest.mark.timeout(600)]

PASSWORD = "a long password of ann\n"
COMMANDS = [
    line
    for page in pages()
    for block in blocks(page, "sh")
    if block.note == PEOPLE
    for line in block.text.splitlines()
]
STATEMENTS = [b for page in pages() for b in blocks(page, "sql") if b.note == PEOPLE]


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Federation]:
    folder = tmp_path_factory.mktemp("people")
    with federation(folder / "data", "--no-spark", "--gateways", "1") as running:
        yield running


def run(up: Federation, line: str, home: Path) -> str:
    """Run a command as the page shows it; what is typed comes from standard input."""
    words = shlex.split(line)[1:]
    if words[0] == "login":
        words += ["--name", "ann", "--password-stdin"]
    elif words[:2] == ["user", "add"]:
        words.append("--password-stdin")
    places = {
        "pando-data": str(up.data),
        "/etc/pando/console.json": str(up.data / "run" / "console.json"),
        "https://pando.example": up.address,
    }
    words = [places.get(word, word) for word in words]
    if "--config" in words:
        words[words.index("ann")] = "root"  # ann is there already
    done = subprocess.run(
        [*PANDO, *words],
        env={**up.environment, "XDG_CONFIG_HOME": str(home)},
        input=PASSWORD,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
    return done.stdout


def test_the_commands_and_statements_about_people_run(up: Federation, tmp_path: Path) -> None:
    assert len(COMMANDS) > 8
    assert len(STATEMENTS) >= 2
    *before, last = COMMANDS
    for line in before:
        run(up, line, tmp_path)

    def listed() -> dict[str, str]:
        found = json.loads(run(up, "pando user list --format json", tmp_path))
        return {each["name"]: each["role"] for each in found}

    # The console looks every half second for accounts that were made without it.
    up.until(lambda: "root" in listed())
    assert listed() == {"ann": "administrator", "root": "administrator", "bob": "operator"}
    for number, block in enumerate(STATEMENTS):
        script = tmp_path / f"script-{number}.sql"
        script.write_text(block.text)
        run(up, f"pando run {script}", tmp_path)
    grants = run(up, "pando run " + str(_shown(tmp_path)), tmp_path)
    assert "seatsensor" in grants.lower()
    run(up, last, tmp_path)


def _shown(folder: Path) -> Path:
    script = folder / "grants.sql"
    script.write_text("SHOW GRANTS FOR USER ann;")
    return script
