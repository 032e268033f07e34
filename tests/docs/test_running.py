"""Every statement and every command of the documentation runs in a federation, as a user runs it.

One federation of the sample building serves all. A block marked `sql` is sent as it stands; its
queries have to come to run without a complaint. The commands in a page's `sh` blocks run in their
order, without those marked `walk`, which end_to_end/test_devices.py runs, and `people`, which
test_people.py runs where there are accounts. That those within sentences exist, with their options,
is checked in test_facts.py.
"""

import contextlib
import re
import shlex
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.docs.markdown import KEPT, PEOPLE, ROOT, WALK, Block, blocks, pages
from tests.end_to_end.federation import PANDO, PATIENCE, Federation, federation

pytestmark = [pytest.mark.end_to_end, pytest.mark.timeout(1200)]

EXAMPLES = [b for page in pages() for b in blocks(page, "sql") if not b.note]
GUIDES = [page for page in pages() if "decisions" not in page.parts and page.name != "CHANGELOG.md"]
OWN_TESTS = re.compile(
    r"pando (up|bench)\b"  # test_supervision.py, test_real_input.py, benchmarks/test_options.py
    r"|pando run docs/examples"  # test_examples.py
    r"|pando shell"  # test_session.py
    r"|pando source (try|discover|add)"  # end_to_end/test_devices.py: with devices that are there
)


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Federation]:
    folder = tmp_path_factory.mktemp("docs")
    functions = ("--functions", "deploy.samples.readings")
    with federation(folder / "data", "--no-spark", *functions) as running:
        yield running


@pytest.fixture(scope="module")
def known(up: Federation) -> set[str]:
    return set(defined(up))


@pytest.fixture
def tidy(up: Federation, known: set[str]) -> Iterator[Federation]:
    """Remove afterwards what a test has started and defined."""
    queries = {query["id"] for query in up.http.get("/api/queries").json()}
    yield up
    for query in up.http.get("/api/queries").json():
        if query["id"] not in queries and query["origin"] != "alarm":
            up.stop_query(query["id"])
    # Asking for definitions binds all of them, so it is asked again only where there was something.
    found = defined(up)
    made = [name for name in found if name not in known]
    while left := [name for name in made if not dropped(up, found[name], name)]:
        assert len(left) < len(made)  # what others read goes after its readers
        made = left
    assert set(defined(up) if made else found) == known


def defined(up: Federation) -> dict[str, str]:
    """Return the kinds of definitions by their names."""
    return {found["name"]: found["kind"] for found in up.http.get("/api/definitions").json()}


def dropped(up: Federation, kind: str, name: str) -> bool:
    """Return whether a definition could be dropped."""
    drop = f'DROP {kind.upper()} IF EXISTS "{name}"'
    return up.http.post("/api/statements", json={"text": drop}).is_success


def begun(up: Federation, query: str) -> dict[str, Any]:
    """Return a query once it does not start any more."""
    up.until(lambda: up.query(query)["status"] != "starting")
    return up.query(query)


def complaint(query: dict[str, Any]) -> str:
    """Return what is wrong with a query, or an empty string."""
    return str(query["error"]) if query["error"] or query["status"] == "failed" else ""


@pytest.mark.parametrize("block", EXAMPLES, ids=str)
def test_example_runs(block: Block, tidy: Federation) -> None:
    if block.text.startswith(ANALYZE):
        tidy.start_query(block.text.removeprefix(ANALYZE).strip(" ;\n"))
    answer = tidy.http.post("/api/statements", json={"text": block.text})
    assert answer.is_success, answer.text
    started = [result["query"]["id"] for result in answer.json() if result.get("query")]
    for query in started:
        assert complaint(begun(tidy, query)) == ""


def page_commands(page: Path) -> list[str]:
    """Return the commands of a page's shell blocks."""
    shown = [block for block in blocks(page, "sh") if block.note not in (WALK, PEOPLE, KEPT)]
    text = "\n".join(block.text.replace("\\\n", " ") for block in shown)
    lines = [line.split(" #")[0].strip() for line in text.splitlines()]
    other = next((n for n, line in enumerate(lines) if REPLAYS.match(line)), len(lines))
    return [
        line for line in lines[:other] if line.startswith("pando ") and not OWN_TESTS.match(line)
    ]


def run(up: Federation, line: str, folder: Path) -> tuple[int, str]:
    """Run a command; one that follows a query is interrupted once it has printed something."""
    text = line.replace("$(cat docs/examples/walk.sql)", _walk().replace('"', '\\"'))
    words = shlex.split(text)[1:]
    if line.startswith(f"{AS_LONG} ") and "--quick" not in words:
        words.append("--quick")
    process = subprocess.Popen(
        [*PANDO[:-1], INTERRUPTIBLE + PANDO[-1], *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=up.environment,
        cwd=folder,
    )
    said: list[str] = []
    printed = threading.Event()

    def read() -> None:
        assert process.stdout is not None
        for part in process.stdout:
            said.append(part)
            printed.set()
        printed.set()

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    follows = words[:2] == ["query", "run"] and not {"--for", "--limit", "--until-settled"} & {
        *words
    }
    if follows:
        printed.wait(PATIENCE)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(2.0)  # one that is refused ends by itself
        process.send_signal(signal.SIGINT)
    try:
        status = process.wait(LONG_PATIENCE)
    except subprocess.TimeoutExpired:
        status = -1  # it did not end
        process.kill()
        process.wait(PATIENCE)
    reader.join(PATIENCE)
    assert process.stdout is not None
    process.stdout.close()
    return status, "".join(said)


def _walk() -> str:
    return (ROOT / "docs" / "examples" / "walk.sql").read_text(encoding="utf-8")


INTERRUPTIBLE = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
"""Where the tests run in the background, Ctrl-C is ignored, and by what they start as well."""
LONG_PATIENCE = 3 * PATIENCE
"""A command may wait for what simulated people do now and then, beside other work."""
REPLAYS = re.compile(r"pando up --replay")
"""What follows is asked of another federation: test_real_input.py asks it."""
ANALYZE = "EXPLAIN ANALYZE"
"""It is about a query that runs."""
AS_LONG = "pando calibrate"
"""Alone it measures for as long as users wait; the other ways to calibrate get `--quick` here."""
REFUSED = ("wieght",)
"""Commands with this word show what a mistake looks like."""


@pytest.mark.parametrize(
    "page", [page for page in GUIDES if page_commands(page)], ids=lambda page: page.name
)
def test_commands_run_in_their_order(page: Path, tidy: Federation, tmp_path: Path) -> None:
    for name, block in named_files(page).items():
        (tmp_path / name).write_text(block)
    (tmp_path / "script.sql").write_text("SELECT 1 AS one;")
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    failed = []
    for line in page_commands(page):
        if line.startswith("pando alarm acknowledge"):
            tidy.until(lambda: tidy.http.get("/api/alarms/count").json()["raised"])
        status, said = run(tidy, line, tmp_path)
        expected = 2 if any(word in line for word in REFUSED) else 0
        if status != expected:
            failed.append(f"{line}\n  status {status}: {said[-600:]}")
    assert failed == []


def named_files(page: Path) -> dict[str, str]:
    """Return the files a page tells to write: "Put this into a file `NAME`" above a block."""
    text = page.read_text(encoding="utf-8")
    found = {}
    for block in blocks(page, "sql"):
        above = "\n".join(text.splitlines()[: block.line - 1][-3:])
        if name := re.search(r"into a file `([\w.]+)`", above):
            found[name[1]] = block.text
    return found


def test_there_are_enough_of_both() -> None:
    assert len(EXAMPLES) > 20
    assert sum(len(page_commands(page)) for page in GUIDES) > 20
