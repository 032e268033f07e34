"""The same text gives the same bag of rows on every engine (streamsql.md, rule 4)."""

import contextlib
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.session import LocalSession
from deploy.session.engines import SparkExecutor
from streamsql.catalog.definitions import SourceDefinition
from streamsql.errors import FederationError
from streamsql.reference.reference_database import contents
from streamsql.syntax import CreateSource, CreateView, parse_script
from tests.conformance.duckdb_peer import Peer, rounded
from tests.conformance.script import Case, read_script, row_text, write_script
from tests.conformance.spark_batches import Batches

EMPTY = "# empty"
FOLDER = Path(__file__).parent
SCRIPTS = sorted(FOLDER.glob("*.slt"))
# Both sides of a comparison are texts; what is compared is far more exact than this.
DIGITS = 12
LEAST = {"reference": 860, "stream": 860, "spark": 757, "duckdb": 570}
"""Fewest queries that an engine must answer of all scripts."""

LACKING = {
    "spark": {"hundreds of relations in one job", "recursion"},
    "duckdb": {
        "CQL windows",
        "NULL for what is no number",
        "NULL in GREATEST and CONCAT",
        "VALUES joined before an ON",
        "arrays are text here",
        "exact sums of doubles",
        "functions of other names",
        "integer division",
        "recursion",
        "relations as streams",
        "rounding half to even",
        "ties by whole row",
        "time windows",
        "times are numbers here",
    },
}
"""What an engine may be excused from, by name; the stream engine and the reference from nothing."""


@pytest.fixture(scope="module")
def spark() -> Iterator[Batches]:
    with contextlib.closing(Batches(SparkExecutor())) as batches:
        yield batches


def run(path: Path, session: LocalSession, name: str) -> int:
    """Run a script; return how many queries were compared."""
    compared = 0
    for case in read_script(path):
        where = f"{path.name} line {case.line} on {name}"
        if case.kind == "error":
            with pytest.raises(FederationError) as caught:
                session.run(case.text)
            assert re.search(case.pattern, str(caught.value)), f"{where}: {caught.value}"
        elif case.kind == "ok":
            session.run(case.text)
        elif name not in case.skip:
            assert answer(session, case) == expectation(case), where
            compared += 1
    return compared


def answer(session: LocalSession, case: Case) -> Counter[str]:
    (result,) = session.run(case.text)
    return Counter(row_text(row, digits=DIGITS) for row in result.rows)


def expectation(case: Case) -> Counter[str]:
    return Counter(" | ".join(map(shortened, line.split(" | "))) for line in case.expected)


def shortened(text: str) -> str:
    """Return a number's text as `row_text` writes it; anything else as it is."""
    if "." not in text and "e" not in text:
        return text
    try:
        return row_text((float(text),), digits=DIGITS)
    except ValueError:
        return text


def expected_count(path: Path, engine: str) -> int:
    """Return how many queries of a script an engine has to answer."""
    return sum(case.kind == "query" and engine not in case.skip for case in read_script(path))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
@pytest.mark.parametrize(("engine", "sites"), [("reference", 1), ("stream", 1), ("stream", 3)])
def test_engines_agree(path: Path, engine: str, sites: int, request: pytest.FixtureRequest) -> None:
    with contextlib.closing(LocalSession(engine, sites)) as session:
        if engine == "reference" and request.config.getoption("--update-golden"):
            update(path, session)
        else:
            assert run(path, session, engine) == expected_count(path, engine)


@pytest.mark.spark
@pytest.mark.timeout(600)
@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_spark_agrees(path: Path, spark: Batches) -> None:
    session = LocalSession("reference")
    session._executor = spark
    compared = run(path, session, "spark")
    assert compared == expected_count(path, "spark")
    assert spark.compare() == compared


IN_DUCKDB = [path for path in SCRIPTS if expected_count(path, "duckdb")]


@pytest.mark.parametrize("path", IN_DUCKDB, ids=lambda path: path.stem)
def test_duckdb_agrees(path: Path) -> None:
    compared = 0
    with (
        contextlib.closing(LocalSession("reference")) as session,
        contextlib.closing(Peer("")) as peer,
    ):
        for case in read_script(path):
            if case.kind == "ok":
                session.run(case.text)
                define(peer, case.text)
            elif case.kind == "query" and "duckdb" not in case.skip:
                fill(peer, session)
                (result,) = session.run(case.text)
                where = f"{path.name} line {case.line}: {case.text}"
                assert peer.answer(case.text) == Counter(map(rounded, result.rows)), where
                compared += 1
    assert compared == expected_count(path, "duckdb")


def define(peer: Peer, text: str) -> None:
    """Create what a statement declares; rows are copied."""
    for statement in parse_script(text):
        if isinstance(statement, CreateSource | CreateView):
            peer.define(statement)


def fill(peer: Peer, session: LocalSession) -> None:
    """Give the peer the contents of all sources."""
    history = session.history
    for source in (*session.catalog.sources, *session.catalog.tables):
        assert isinstance(source, SourceDefinition)
        if source.name.startswith("sys_"):  # ours alone; no query of the scripts reads them
            continue
        rows = [row for _, row in contents(source.scan(), history.database, history.now)]
        peer.fill(source.name, rows)


def update(path: Path, session: LocalSession) -> None:
    cases = read_script(path)
    for case in cases:
        if case.kind == "error":
            with contextlib.suppress(FederationError):
                session.run(case.text)
            continue
        (result, *_) = session.run(case.text)
        case.expected = [row_text(row) for row in result.rows]
        case.head = [line for line in case.head if line != EMPTY]
        if case.kind == "query" and not case.expected:
            case.head.append(EMPTY)
    write_script(path, cases)


def test_every_engine_answers_most_queries(capsys: pytest.CaptureFixture[str]) -> None:
    queries = [case for path in SCRIPTS for case in read_script(path) if case.kind == "query"]
    for engine, least in LEAST.items():
        skipped = Counter(case.skip[engine] for case in queries if engine in case.skip)
        answered = len(queries) - skipped.total()
        reasons = ", ".join(f"{count} {reason}" for reason, count in skipped.most_common())
        with capsys.disabled():
            told = f"{engine}: {answered} queries; skipped {skipped.total()}: {reasons or '-'}"
            sys.stdout.write(f"\n{told}")
        assert answered >= least, engine
        assert set(skipped) <= LACKING.get(engine, set()), engine


def test_a_query_says_when_it_has_no_rows() -> None:
    for path in SCRIPTS:
        for case in read_script(path):
            told = EMPTY in case.head
            assert case.kind != "query" or told == (not case.expected), f"{path.name} {case.line}"
