"""What is for comparison is refused in words where it is not installed, and nothing else is."""

from collections.abc import Collection
from importlib.util import find_spec

import msgspec
import pytest

from stream_engine.recursion import strategies
from stream_engine.recursion.foreseen import foreseen
from stream_engine.recursion.strategies import FOR_COMPARISON, recursive_operator
from streamsql.algebra.choices import Strategy
from streamsql.algebra.operators import Fixpoint, RecursionChoice, walk_plan
from streamsql.binder import bind_query, define
from streamsql.binder.statements.options.recursion_options import VALUES
from streamsql.catalog.catalog import Catalog
from streamsql.errors import UnsupportedError
from streamsql.library import library_views
from streamsql.syntax import CreateSource, Query, parse_script

ALONE = ("base",)
TOGETHER = ("base", "base-2")
NAMED = [choice for choice in FOR_COMPARISON if choice != ("annotations", "relative")]
"""What a query can name; relative annotations come with their strategy."""


def fixpoint(**choice: str) -> Fixpoint:
    catalog = Catalog(library_views())
    source, query = parse_script(
        "CREATE LINK SOURCE link (src TEXT, dst TEXT); SELECT * FROM reachable"
    )
    assert isinstance(source, CreateSource)
    catalog.define(define(source, catalog))
    assert isinstance(query, Query)
    nodes = {n for n in walk_plan(bind_query(query, catalog).plan) if isinstance(n, Fixpoint)}
    (node,) = nodes
    return msgspec.structs.replace(node, choice=msgspec.convert(choice, RecursionChoice))


def install_only(monkeypatch: pytest.MonkeyPatch, without: Collection[str]) -> None:
    monkeypatch.setattr(
        strategies, "find_spec", lambda name: None if name in without else find_spec(name)
    )


@pytest.fixture
def _of_the_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    install_only(monkeypatch, FOR_COMPARISON.values())


@pytest.mark.usefixtures("_of_the_wheel")
@pytest.mark.parametrize("sites", [ALONE, TOGETHER])
@pytest.mark.parametrize(("name", "value"), NAMED)
def test_what_is_not_installed_is_refused_in_words(
    name: str, value: str, sites: tuple[str, ...]
) -> None:
    node = fixpoint(**{name: value})
    with pytest.raises(UnsupportedError) as planned:
        foreseen(node, sites)
    with pytest.raises(UnsupportedError) as at_the_site:
        recursive_operator(node, site="base", sites=sites, epoch=1)
    default = "dnf" if name == "annotations" else "auto"
    for refused in (planned.value, at_the_site.value):
        assert refused.message == (
            f"{name} = '{value}' is for comparison and is not in the installed package"
        )
        assert f"the default, {name} = '{default}', gives the same rows" in refused.hint
        assert f"checkout of Pando's source has {name} = '{value}'" in refused.hint


@pytest.mark.usefixtures("_of_the_wheel")
@pytest.mark.parametrize(
    "choice",
    [{"strategy": s} for s in Strategy if ("strategy", s) not in FOR_COMPARISON]
    + [{"way": way} for way in VALUES["way"]]
    + [{"way": "annotations", "ship": ship} for ship in VALUES["ship"]]
    + [{"annotations": "dnf", "order": order} for order in VALUES["order"]],
)
def test_everything_else_works_without_it(choice: dict[str, str]) -> None:
    sites = TOGETHER if "way" in choice else ALONE
    assert foreseen(fixpoint(**choice), sites)


@pytest.mark.parametrize(("name", "value"), NAMED)
def test_a_checkout_has_it(name: str, value: str) -> None:
    assert foreseen(fixpoint(**{name: value}), ALONE)


def test_only_what_is_missing_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    install_only(monkeypatch, {"stream_engine.provenance.relative"})
    assert foreseen(fixpoint(strategy="dred"), ALONE) == "delete and rederive"
    with pytest.raises(UnsupportedError, match="strategy = 'relative' is for comparison"):
        foreseen(fixpoint(strategy="relative"), ALONE)
