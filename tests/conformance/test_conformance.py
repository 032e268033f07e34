"""The same text gives the same bag of rows on every engine (streamsql.md, rule 4)."""

import contextlib
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.session import LocalSession
from deploy.session.engines import Executor, executor_for
from streamsql.errors import FederationError
from tests.conformance.script import Case, read_script, row_text, write_script

FOLDER = Path(__file__).parent
SCRIPTS = sorted(FOLDER.glob("*.slt"))
MIN_QUERIES = 60
# Spark adds doubles in whatever order its tasks end; the others round the exact sum once.
DIGITS = 12


@pytest.fixture(scope="module")
def spark() -> Iterator[Executor]:
    executor = executor_for("spark", 1)
    yield executor
    executor.close()


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
    return Counter(" | ".join(map(rounded, line.split(" | "))) for line in case.expected)


def rounded(text: str) -> str:
    """Return a number's text as `row_text` writes it; anything else as it is."""
    if "." not in text and "e" not in text:
        return text
    try:
        return row_text((float(text),), digits=DIGITS)
    except ValueError:
        return text


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
@pytest.mark.parametrize(("engine", "sites"), [("reference", 1), ("stream", 1), ("stream", 3)])
def test_engines_agree(path: Path, engine: str, sites: int, request: pytest.FixtureRequest) -> None:
    with contextlib.closing(LocalSession(engine, sites)) as session:
        if engine == "reference" and request.config.getoption("--update-golden"):
            update(path, session)
        else:
            assert run(path, session, engine) > 0


@pytest.mark.spark
@pytest.mark.timeout(600)
@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_spark_agrees(path: Path, spark: Executor) -> None:
    session = LocalSession("reference")
    session._executor = spark
    run(path, session, "spark")


def update(path: Path, session: LocalSession) -> None:
    cases = read_script(path)
    for case in cases:
        if case.kind == "error":
            with contextlib.suppress(FederationError):
                session.run(case.text)
            continue
        (result, *_) = session.run(case.text)
        case.expected = [row_text(row) for row in result.rows]
    write_script(path, cases)


def test_there_are_enough_queries() -> None:
    queries = [case for path in SCRIPTS for case in read_script(path) if case.kind == "query"]
    assert len(queries) >= MIN_QUERIES
    assert all(case.expected for case in queries if "empty" not in " ".join(case.head))
