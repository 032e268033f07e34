"""Relative provenance: derivation graphs hold exactly where brute force says so."""

from collections.abc import Sequence
from itertools import chain, combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_engine.provenance.annotation import AnnotationTooWideError, Support, least_supports
from stream_engine.provenance.relative import Derivations, RelativeEncoding, row_node
from stream_engine.provenance.tokens import TokenSource
from stream_engine.recursion.program.fixpoint_options import RecursionOptions
from stream_engine.testing.recursion_ensembles import Ensemble
from stream_engine.testing.recursion_programs import cheapest_path, reachable, region, two_ways
from stream_engine.testing.recursion_schedules import (
    FAMILY,
    LINKS,
    SENSORS,
    BaseRow,
    Schedule,
    run_schedule,
    same_generation,
)
from streamsql.algebra.choices import Shipping, Strategy
from streamsql.algebra.operators import Fixpoint
from streamsql.data.types import Row
from streamsql.errors import InternalError, WireError

HALF = settings(max_examples=max(settings().max_examples // 2, 1))
THIRD = settings(max_examples=max(settings().max_examples // 3, 1))
SOURCES = [TokenSource(0, 1), TokenSource(3, 900)]
TOKENS = [SOURCES[number % 2].fresh() for number in range(4)]
ROWS: list[Row] = [("a",), ("b",), ("c",), ("d",)]
SUBSETS = [frozenset(s) for s in chain.from_iterable(combinations(TOKENS, n) for n in range(5))]

Firing = tuple[Row, frozenset[Row], frozenset[int]]
"""A rule firing: head, rows of the body, tokens of the body."""

FIRINGS = st.lists(
    st.tuples(
        st.sampled_from(ROWS),
        st.frozensets(st.sampled_from(ROWS), max_size=2),
        st.frozensets(st.sampled_from(TOKENS), max_size=2),
    ).filter(lambda firing: bool(firing[1] or firing[2])),
    max_size=9,
)


def annotated(encoding: RelativeEncoding, firings: Sequence[Firing]) -> dict[Row, Derivations]:
    """Return what a fixpoint makes of firings: annotations grow until nothing is new."""
    known: dict[Row, Derivations] = {}
    changed = True
    while changed:
        changed = False
        for head, rows, tokens in firings:
            if not rows <= known.keys():
                continue
            body = encoding.true
            for row in rows:
                body = encoding.conjoin(body, known[row])
            for token in tokens:
                body = encoding.conjoin(body, encoding.of_token(token))
            made = encoding.derived(head, body)
            old = known.get(head, encoding.false)
            if not encoding.implies(made, old):
                known[head] = encoding.disjoin(old, made)
                changed = True
    return known


def derivable(firings: Sequence[Firing], alive: frozenset[int]) -> set[Row]:
    found: set[Row] = set()
    while True:
        more = {h for h, rows, tokens in firings if rows <= found and tokens <= alive} - found
        if not more:
            return found
        found |= more


@HALF
@given(firings=FIRINGS)
def test_exactly_what_is_derivable_survives(firings: list[Firing]) -> None:
    encoding = RelativeEncoding()
    known = annotated(encoding, firings)
    assert known.keys() == derivable(firings, frozenset(TOKENS))
    for alive in SUBSETS:
        dead = set(TOKENS) - alive
        left = {row: encoding.restrict(part, dead) for row, part in known.items()}
        assert {r for r, part in left.items() if not encoding.is_false(part)} == derivable(
            firings, alive
        )
        for row, part in left.items():
            assert not set(encoding.tokens(part)) & dead
            if not encoding.is_false(part):
                assert part is known[row] or encoding.size(part) < encoding.size(known[row])


@HALF
@given(firings=FIRINGS)
def test_supports_witness_and_wire_form(firings: list[Firing]) -> None:
    encoding, other = RelativeEncoding(), RelativeEncoding()
    for row, part in annotated(encoding, firings).items():
        holds = [alive for alive in SUBSETS if row in derivable(firings, alive)]
        supports = encoding.supports(part, 100)
        assert set(supports) == set(least_supports(holds))
        assert supports == sorted(supports, key=lambda s: (len(s), sorted(s)))
        assert encoding.supports(part, 1) == supports[:1]
        witness = encoding.witness(part)
        assert encoding.implies(witness, part)
        (support,) = encoding.supports(witness, 100)
        assert any(least <= support for least in supports)
        payload = encoding.encode(part)
        assert encoding.decode(payload) == part
        assert other.encode(other.decode(payload)) == payload


def cyclic(encoding: RelativeEncoding) -> Derivations:
    """Return the annotation of a row that rests on a token, or on itself through another row."""
    t0, t1, t2, _ = TOKENS
    firings = [
        (ROWS[0], frozenset[Row](), frozenset({t0})),
        (ROWS[1], frozenset({ROWS[0]}), frozenset({t1})),
        (ROWS[0], frozenset({ROWS[1]}), frozenset({t2})),
    ]
    return annotated(encoding, firings)[ROWS[0]]


def test_support_in_a_circle_is_no_support() -> None:
    encoding = RelativeEncoding()
    part = cyclic(encoding)
    assert encoding.size(part) == 3
    assert encoding.is_false(encoding.restrict(part, {TOKENS[0]}))
    left = encoding.restrict(part, {TOKENS[2]})
    assert encoding.supports(left, 5) == [frozenset({TOKENS[0]})]
    assert encoding.size(left) == 1  # what no longer leads to the row is gone, too


def test_nothing_is_absorbed() -> None:
    """A derivation that needs more than another is kept, which absorption would drop."""
    encoding = RelativeEncoding()
    part = cyclic(encoding)
    direct = encoding.derived(ROWS[0], encoding.of_token(TOKENS[0]))
    assert encoding.implies(direct, part)
    assert not encoding.implies(part, direct)
    assert encoding.difference(direct, part) == encoding.false
    assert encoding.difference(part, direct) == part
    assert encoding.supports(part, 5) == encoding.supports(direct, 5)
    assert encoding.rewritten(part) is part


def test_false_true_and_base_rows() -> None:
    encoding = RelativeEncoding()
    base = encoding.of_token(TOKENS[0])
    assert encoding.is_false(encoding.false)
    assert not encoding.is_false(encoding.true)
    assert encoding.conjoin(encoding.true, base) == base
    assert encoding.is_false(encoding.conjoin(encoding.false, base))
    assert encoding.disjoin(encoding.false, base) == base == encoding.disjoin(base, encoding.false)
    assert list(encoding.tokens(base)) == [TOKENS[0]]
    assert encoding.is_false(encoding.restrict(base, {TOKENS[0]}))
    assert encoding.restrict(base, {TOKENS[1]}) is base
    assert encoding.decode(encoding.encode(base)) == base
    assert encoding.supports(encoding.false, 3) == []
    assert encoding.implies(encoding.false, base)
    assert not encoding.implies(base, encoding.false)
    with pytest.raises(InternalError):
        encoding.disjoin(base, encoding.of_token(TOKENS[1]))


def test_width_is_bounded() -> None:
    encoding = RelativeEncoding(max_edges=2)
    parts = [encoding.derived(ROWS[0], encoding.of_token(token)) for token in TOKENS[:3]]
    both = encoding.disjoin(parts[0], parts[1])
    with pytest.raises(AnnotationTooWideError) as refused:
        encoding.disjoin(both, parts[2])
    assert refused.value.narrower == both


def test_rows_are_told_apart() -> None:
    rows: list[Row] = [
        ("a", "b"),
        ("a\x1fb",),
        ("a", "'b"),
        ("ab",),
        ("", "ab"),
        (1,),
        ("1",),
        (1.5,),
        (None,),
        ("None",),
        (),
        ("\ud800",),
        (float("inf"),),
        (2**53 + 1,),
        (2**53,),
    ]
    assert len({row_node(row) for row in rows}) == len(rows)
    assert row_node((1.0, -0.0, True)) == row_node((1, 0, 1))
    assert min(row_node(row) for row in rows) > max(TOKENS)


@given(payload=st.binary(max_size=40), cut=st.integers(0, 60), byte=st.integers(0, 255))
def test_malformed_bytes_are_refused(payload: bytes, cut: int, byte: int) -> None:
    encoding = RelativeEncoding()
    whole = encoding.encode(cyclic(encoding))
    for wrong in (payload, whole[:cut], whole[:cut] + bytes([byte]) + whole[cut + 1 :]):
        try:
            decoded = encoding.decode(wrong)
        except WireError:
            continue
        assert not encoding.is_false(decoded)
        assert decoded.tokens


SITES = ("s0", "s1", "s2", "s3")
VIEWS: list[tuple[Fixpoint, Sequence[BaseRow]]] = [
    (reachable(), LINKS),
    (cheapest_path(via=True), LINKS),
    (two_ways(), LINKS),
    (region(1.5), SENSORS),
    (same_generation(), FAMILY),
]


@pytest.mark.parametrize("shipping", [Shipping.LAZY, Shipping.EAGER])
@THIRD
@given(seed=st.integers(0, 10**6), view=st.sampled_from(VIEWS), sites=st.integers(1, 4))
def test_any_interleaving(
    shipping: Shipping, seed: int, view: tuple[Fixpoint, Sequence[BaseRow]], sites: int
) -> None:
    node, pool = view
    options = RecursionOptions(
        strategy=Strategy.RELATIVE, shipping=shipping, width=(1, 64)[seed % 2]
    )
    schedule = Schedule(pool, changes=12)
    ensemble, expected = run_schedule(node, SITES[:sites], options, schedule, seed)
    assert ensemble.rows() == expected
    for site, operator in ensemble.operators.items():
        assert ensemble.views[site] == dict.fromkeys(operator.state_rows(), 1)


def test_the_strategy_says_what_it_is() -> None:
    operator = Ensemble(reachable(), SITES, RecursionOptions(strategy=Strategy.RELATIVE)).operators[
        "s0"
    ]
    assert operator.description == "relative (lazy)"


def test_a_support_of_the_worked_example() -> None:
    encoding = RelativeEncoding()
    tokens = dict(zip(("p1", "p2", "p3", "p4"), TOKENS, strict=True))
    firings: list[Firing] = [
        (("BC",), frozenset(), frozenset({tokens["p2"]})),
        (("AC",), frozenset({("BC",)}), frozenset({tokens["p1"]})),
        (("CB",), frozenset(), frozenset({tokens["p4"]})),
        (("BB",), frozenset({("CB",)}), frozenset({tokens["p2"]})),
        (("AB",), frozenset({("BB",)}), frozenset({tokens["p1"]})),
        (("AB",), frozenset(), frozenset({tokens["p1"]})),
        (("CB",), frozenset({("AB",)}), frozenset({tokens["p3"]})),
    ]
    known = annotated(encoding, firings)
    p1, p2, p3, p4 = TOKENS
    found: dict[Row, list[Support]] = {r: encoding.supports(k, 9) for r, k in known.items()}
    assert found["BB",] == [frozenset({p2, p4}), frozenset({p1, p2, p3})]
    assert found["CB",] == [frozenset({p4}), frozenset({p1, p3})]
    assert found["AB",] == [frozenset({p1})]
    assert encoding.size(known["AB",]) > encoding.size(known["AC",])
