"""Every error code is on docs/errors.md, and is raised by its example there."""

import ast
import contextlib
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

import deploy
import federated_optimizer
import gateway
import host
import static_engine
import stream_engine
import streamsql
import ui
from deploy.session import LocalSession
from streamsql.algebra.user_functions import INSTALLED, modules_of
from streamsql.errors import FederationError, QueryError
from streamsql.syntax import parse_script, parse_statement
from tests.docs.error_page import ERROR_CODES, HEADINGS, SCHEMA, STATEMENT_CODES, ErrorCode
from tests.docs.markdown import ROOT

PACKAGES = (
    deploy,
    federated_optimizer,
    gateway,
    host,
    static_engine,
    stream_engine,
    streamsql,
    ui,
)
WITHOUT_EXAMPLE = {
    "not_computable": "no expression of constants fails today: NULL comes instead",
    "unsupported_query": "the parser takes queries only where the binder asks for one",
    "local_only": "a federation refuses it: tests/federated_optimizer/coordinator",
    "not_writable": "a federation refuses it: tests/federated_optimizer/coordinator",
}
RAISING = {"BindingError", "QueryError", "QuerySyntaxError", "UnsupportedError", "DeploymentError"}
HELPERS = {"error", "unsupported", "fail", "refuse"}


@pytest.fixture
def functions() -> Iterator[None]:
    """Allow the functions of the samples, as PANDO_FUNCTIONS does."""
    before = INSTALLED.modules
    INSTALLED.allow(modules_of("deploy.samples.readings"))
    yield
    INSTALLED.allow(before)


def _run(text: str) -> None:
    with contextlib.closing(LocalSession("reference", 1)) as session:
        for statement in parse_script(SCHEMA):
            session.execute(statement)
        session.execute(parse_statement(text))


def _with_example() -> list[ErrorCode]:
    return [entry for entry in STATEMENT_CODES if entry.example]


def test_codes_are_unique_and_all_have_an_example() -> None:
    codes = [entry.code for entry in STATEMENT_CODES]
    assert len(set(codes)) == len(codes) >= 60
    assert codes == HEADINGS, "an entry of the page has another form than the others"
    assert {e.code for e in STATEMENT_CODES if not e.example} == set(WITHOUT_EXAMPLE)


@pytest.mark.parametrize("entry", _with_example(), ids=lambda entry: entry.code)
@pytest.mark.usefixtures("functions")
def test_example_raises_exactly_its_code(entry: ErrorCode) -> None:
    with pytest.raises(QueryError) as refusal:
        _run(entry.example)
    assert refusal.value.code == entry.code
    span = refusal.value.span
    assert span is not None
    line = [*entry.example.splitlines(), ""][span.line - 1]
    assert 1 <= span.column <= len(line) + 1
    assert line[span.column - 1 :].startswith(span.text.splitlines()[0] if span.text else "")
    assert refusal.value.report.endswith(f"\ncode: {entry.code}")


@pytest.mark.parametrize("entry", _with_example(), ids=lambda entry: entry.code)
@pytest.mark.usefixtures("functions")
def test_what_to_write_instead_is_accepted(entry: ErrorCode) -> None:
    if entry.instead:
        _run(entry.instead)


def _codes(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the codes that a module gives to errors, in calls and in classes."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ClassDef) and "Error" in node.name:
            for part in node.body:
                if isinstance(part, ast.Assign | ast.AnnAssign) and part.value is not None:
                    target = part.targets[0] if isinstance(part, ast.Assign) else part.target
                    if isinstance(target, ast.Name) and target.id == "code":
                        yield node.lineno, str(ast.literal_eval(part.value))
        if isinstance(node, ast.Call):
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            for keyword in node.keywords:
                known = name in RAISING or name in HELPERS
                if known and keyword.arg == "code" and isinstance(keyword.value, ast.Constant):
                    yield node.lineno, str(keyword.value.value)


def test_no_error_has_a_code_that_the_page_does_not_know() -> None:
    given = [
        (path.relative_to(ROOT), line, code)
        for package in PACKAGES
        for path in sorted((ROOT / package.__name__).rglob("*.py"))
        if "node_modules" not in path.parts
        for line, code in _codes(path)
    ]
    assert len(given) > 200
    assert not [found for found in given if found[2] not in ERROR_CODES]
    raised = {code for _, _, code in given}
    computed = {"unexpected_token", "unexpected_end", "unclosed_bracket", "current_time"}
    computed |= {"unsupported_expression", "unknown_option", "bad_option", "not_a_source"}
    assert {entry.code for entry in STATEMENT_CODES} <= raised | computed


def test_classes_of_errors_have_codes_of_the_page() -> None:
    waiting, seen = [FederationError], set()
    for name in (
        "streamsql.errors",
        "host.mqtt.message_client",
        "static_engine.evaluation.static_executor",
    ):
        importlib.import_module(name)
    while waiting:
        kind = waiting.pop()
        if kind not in seen:
            seen.add(kind)
            waiting += kind.__subclasses__()
    of_ours = {kind for kind in seen if not kind.__module__.startswith("tests")}
    assert len(of_ours) > 12
    assert not [kind for kind in of_ours if kind.code not in ERROR_CODES]
