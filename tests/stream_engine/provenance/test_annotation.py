"""The encodings obey the laws of positive Boolean functions; truth tables are the oracle."""

import sys
from collections.abc import Callable
from itertools import chain, combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_engine.provenance.annotation import (
    AnnotationEncoding,
    AnnotationTooWideError,
    Support,
    least_supports,
)
from stream_engine.provenance.bdd import BddEncoding
from stream_engine.provenance.dnf import DnfEncoding
from stream_engine.provenance.encodings import encoding_named
from stream_engine.provenance.tokens import TokenSource
from streamsql.errors import DeploymentError, FederationError, QueryError, WireError
from tests.stream_engine.provenance.formulas import annotation_of

SOURCES = [TokenSource(0, 1), TokenSource(1, 900)]
TOKENS = [SOURCES[i % 2].fresh() for i in range(6)]
SUBSETS = [frozenset(s) for s in chain.from_iterable(combinations(TOKENS, n) for n in range(7))]
Formula = list[Support]
FORMULAS = st.lists(st.frozensets(st.sampled_from(TOKENS), min_size=1, max_size=4), max_size=6)
ENCODINGS: list[Callable[[], AnnotationEncoding[Any]]] = [
    lambda: DnfEncoding(1_000),
    lambda: BddEncoding(1_000),
]
Encoding = AnnotationEncoding[Any]


@pytest.fixture(params=ENCODINGS, ids=["dnf", "bdd"], scope="module")
def encoding(request: pytest.FixtureRequest) -> Encoding:
    made: Encoding = request.param()
    return made


def table(formula: Formula) -> list[bool]:
    """Return the truth table over all subsets of tokens."""
    return [any(support <= alive for support in formula) for alive in SUBSETS]


def table_of(encoding: Encoding, annotation: Any) -> list[bool]:
    return table(encoding.supports(annotation, 1_000))


@given(FORMULAS, FORMULAS)
def test_and_or_are_those_of_boolean_functions(encoding: Encoding, f: Formula, g: Formula) -> None:
    a, b = annotation_of(encoding, f), annotation_of(encoding, g)
    both = [x and y for x, y in zip(table(f), table(g), strict=True)]
    either = [x or y for x, y in zip(table(f), table(g), strict=True)]
    assert table_of(encoding, encoding.conjoin(a, b)) == both
    assert table_of(encoding, encoding.disjoin(a, b)) == either


@given(FORMULAS, FORMULAS)
def test_absorption(encoding: Encoding, f: Formula, g: Formula) -> None:
    a, b = annotation_of(encoding, f), annotation_of(encoding, g)
    absorbed = encoding.conjoin(a, encoding.disjoin(a, b))
    assert encoding.implies(absorbed, a)
    assert encoding.implies(a, absorbed)
    implied = all(y or not x for x, y in zip(table(f), table(g), strict=True))
    assert encoding.implies(a, b) == implied
    difference = encoding.difference(a, b)
    assert encoding.is_false(difference) == implied
    assert encoding.implies(encoding.disjoin(difference, b), encoding.disjoin(a, b))
    assert encoding.implies(encoding.disjoin(a, b), encoding.disjoin(difference, b))


@given(FORMULAS, st.frozensets(st.sampled_from(TOKENS)))
def test_restrict_sets_tokens_to_false(
    encoding: Encoding, f: Formula, dead: frozenset[int]
) -> None:
    restricted = encoding.restrict(annotation_of(encoding, f), dead)
    assert table_of(encoding, restricted) == table([s for s in f if s.isdisjoint(dead)])
    assert dead.isdisjoint(encoding.tokens(restricted))
    assert encoding.restrict(restricted, dead) is restricted


@given(FORMULAS)
def test_supports_are_the_prime_implicants(encoding: Encoding, f: Formula) -> None:
    annotation = annotation_of(encoding, f)
    supports = encoding.supports(annotation, 1_000)
    assert set(supports) == set(least_supports(f))
    assert [len(s) for s in supports] == sorted(len(s) for s in supports)
    assert set(encoding.tokens(annotation)) == set().union(*supports)
    first = encoding.supports(annotation, 2)
    assert [len(s) for s in first] == [len(s) for s in supports[:2]]
    assert set(first) <= set(supports)
    assert encoding.is_false(annotation) == (not f)
    if f:
        witness = encoding.witness(annotation)
        assert encoding.supports(witness, 5)[0] in supports
        assert len(encoding.supports(witness, 5)[0]) == len(supports[0])


@given(FORMULAS)
def test_wire_form_comes_back(encoding: Encoding, f: Formula) -> None:
    annotation = annotation_of(encoding, f)
    back = encoding.decode(encoding.encode(annotation))
    assert table_of(encoding, back) == table(f)


@given(st.binary(max_size=40))
def test_any_bytes_are_refused_or_decoded(encoding: Encoding, payload: bytes) -> None:
    try:
        annotation = encoding.decode(payload)
    except WireError:
        return
    assert frozenset() not in encoding.supports(annotation, 100)


@given(FORMULAS, st.data())
def test_damaged_bytes_do_no_harm(encoding: Encoding, f: Formula, data: st.DataObject) -> None:
    payload = bytearray(encoding.encode(annotation_of(encoding, f)))
    at = data.draw(st.integers(0, len(payload) - 1))
    payload[at] = data.draw(st.integers(0, 255))
    try:
        encoding.decode(bytes(payload))
    except FederationError as error:
        assert isinstance(error, WireError)  # noqa: PT017  (either outcome is allowed)


@pytest.mark.parametrize("narrow", [DnfEncoding(3), BddEncoding(max_nodes=4)], ids=["dnf", "bdd"])
@given(f=FORMULAS, g=FORMULAS)
def test_too_wide_results_carry_a_sound_substitute(
    narrow: Encoding, f: Formula, g: Formula
) -> None:
    try:
        left, right = annotation_of(narrow, f), annotation_of(narrow, g)
    except AnnotationTooWideError:
        return
    exact = [x or y for x, y in zip(table(f), table(g), strict=True)]
    try:
        result, is_exact = narrow.disjoin(left, right), True
    except AnnotationTooWideError as error:
        result, is_exact = error.narrower, False
    kept = table_of(narrow, result)
    assert narrow.implies(left, result)
    assert all(y or not x for x, y in zip(kept, exact, strict=True))
    assert (kept == exact) == is_exact


def test_both_encodings_refuse_unsupported_facts() -> None:
    always = DnfEncoding().encode(DnfEncoding.true)
    with pytest.raises(WireError):
        DnfEncoding().decode(always)
    with pytest.raises(WireError):
        BddEncoding().decode(bytes([1, 5, 1, 0, 1, 1]))


def test_bdd_variables_are_recycled() -> None:
    encoding = BddEncoding()
    for token in range(70_000):
        annotation = encoding.of_token(token)
        assert list(encoding.tokens(annotation)) == [token]
        encoding.release([token])


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "stream_engine.provenance.bdd", None)
    with pytest.raises(DeploymentError, match="biodivine-aeon"):
        encoding_named("bdd", width=8)


def test_unknown_encoding() -> None:
    with pytest.raises(QueryError, match="dnf or bdd"):
        encoding_named("zdd", width=1)


# p0 (p1 + p2 p3) + (p4 + p6 p7) p5; the first order is depth-first, the second breadth-first.
FIGURE = [{0, 1}, {0, 2, 3}, {4, 5}, {5, 6, 7}]


@pytest.mark.parametrize(
    ("order", "nodes"), [((0, 1, 2, 3, 4, 5, 6, 7), 9), ((0, 4, 6, 1, 2, 5, 7, 3), 18)]
)
def test_size_depends_on_the_order_of_variables(order: tuple[int, ...], nodes: int) -> None:
    encoding = BddEncoding()
    for token in order:
        encoding.of_token(token)
    assert encoding.size(annotation_of(encoding, [frozenset(term) for term in FIGURE])) == nodes
