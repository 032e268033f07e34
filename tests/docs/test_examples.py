"""Every SQL example of the documentation works as the text around it says.

A block marked `sql` is bound against the sample building; its definitions hold until it ends. One
marked `sql local` is run by a local session, and a `text` block right below is its printed answer.
Every line of one marked `sql refused` is refused, with a place and a hint.
"""

import contextlib
import io
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from deploy.session import LocalSession
from deploy.session.session_results import print_result
from federated_optimizer.coordinator.trials.tried_past import tried_past
from streamsql.binder import (
    bind_confidence,
    bind_deletions,
    bind_query,
    bind_what_if,
    bind_why,
    define,
)
from streamsql.catalog.catalog import Catalog
from streamsql.errors import QueryError
from streamsql.syntax import (
    AlterSite,
    AlterUser,
    CreateAlarm,
    CreateDisplay,
    CreateFunction,
    CreateSink,
    CreateSource,
    CreateView,
    Explain,
    ExplainConfidence,
    ExplainWhatIf,
    ExplainWhy,
    Grant,
    Query,
    Revoke,
    RunOnHistory,
    Show,
    ShowGrants,
    Statement,
    Subscribe,
    parse_script,
)
from tests.docs.markdown import ROOT, Block, blocks, pages

EXAMPLES = [block for page in pages() for block in blocks(page, "sql")]
SCRIPTS = sorted((ROOT / "docs" / "examples").glob("*.sql"))
LOCAL = [script for script in SCRIPTS if "--local" in script.read_text().splitlines()[0]]


def _with_note(note: str) -> list[Block]:
    return [block for block in EXAMPLES if block.note == note]


def _bind(statement: Statement, catalog: Catalog) -> None:
    match statement:
        case (
            CreateSource()
            | CreateView()
            | CreateFunction()
            | CreateDisplay()
            | CreateAlarm()
            | CreateSink()
        ):
            catalog.define(define(statement, catalog), replace=True)
        case Explain(inner=inner) | Subscribe(inner=inner):
            _bind(inner, catalog)
        case Query():
            bind_query(statement, catalog)
        case ExplainWhy():
            bind_why(statement, catalog)
        case ExplainWhatIf():
            if statement.inner is None:
                bind_deletions(statement, catalog)
            else:
                bind_what_if(statement, catalog)
        case ExplainConfidence():
            bind_confidence(statement, catalog)
        case RunOnHistory():
            tried_past(statement, catalog, None)
        case AlterSite() | AlterUser() | Grant() | Revoke() | ShowGrants():
            pass  # it names a site or accounts of a federation that runs
        case Show(kind="network"):
            pass  # of a federation, too: test_shown_network.py runs it
        case _:
            pytest.fail(f"{type(statement).__name__} belongs into a block marked `sql local`")


def _printed(text: str, engine: str, sites: int) -> str:
    output = io.StringIO()
    console = Console(file=output, width=200)
    with contextlib.closing(LocalSession(engine, sites)) as session:
        for statement in parse_script(text):
            print_result(session.execute(statement), "csv", console)
    return output.getvalue()


def test_there_are_examples_of_every_kind() -> None:
    # Those of docs/errors.md, marked `codes`, are run by test_error_codes.py, those of
    # docs/sinks.md, marked `sink`, by test_sinks.py; those marked `walk`, with devices, by
    # end_to_end/test_devices.py; those marked `people`, with accounts, by test_people.py.
    notes = {"", "local", "refused", "codes", "sink", "walk", "people", "kept", "shared"}
    assert {block.note for block in EXAMPLES} == notes
    assert len(_with_note("")) >= 10
    assert len(_with_note("local")) >= 4
    assert LOCAL
    assert set(SCRIPTS) - set(LOCAL)


# Blocks `kept` need a lake, or a large table: end_to_end/test_kept_readings.py runs their like.
@pytest.mark.parametrize(
    "block", [*_with_note(""), *_with_note("kept"), *_with_note("shared")], ids=str
)
def test_example_binds_in_the_building(block: Block, building: Catalog) -> None:
    statements = parse_script(block.text)
    assert statements, "an empty example"
    for statement in statements:
        _bind(statement, building)


@pytest.mark.parametrize("block", _with_note("local"), ids=str)
@pytest.mark.parametrize(("engine", "sites"), [("stream", 1), ("stream", 3), ("reference", 1)])
def test_local_example_prints_what_is_shown(
    block: Block, engine: str, sites: int, in_folder: Callable[[], Path]
) -> None:
    in_folder()
    printed = _printed(block.text, engine, sites)
    if block.answer:
        assert printed == block.answer


@pytest.mark.parametrize("block", _with_note("refused"), ids=str)
def test_refused_example_is_refused_with_a_hint(block: Block, building: Catalog) -> None:
    for line in block.text.splitlines():
        with pytest.raises(QueryError) as refusal:
            _bind(parse_script(line)[0], building)
        assert refusal.value.span is not None, line
        assert refusal.value.hint, line


@pytest.mark.parametrize("script", sorted(set(SCRIPTS) - set(LOCAL)), ids=lambda path: path.name)
def test_example_script_binds_in_the_building(script: Path, building: Catalog) -> None:
    assert "make up" in script.read_text(encoding="utf-8").splitlines()[0]
    # `pando query run "$(cat …)"` would take a text that begins with "--" for an option.
    assert not script.read_text(encoding="utf-8").startswith("-")
    for statement in parse_script(script.read_text(encoding="utf-8")):
        _bind(statement, building)


@pytest.mark.parametrize("script", LOCAL, ids=lambda path: path.name)
def test_example_script_runs_and_all_engines_agree(
    script: Path, in_folder: Callable[[], Path]
) -> None:
    text = script.read_text(encoding="utf-8")
    in_folder()
    expected = _printed(text, "reference", 1)
    assert expected
    assert _printed(text, "stream", 1) == expected
    assert _printed(text, "stream", 3) == expected
