"""Several sites: once all is quiet, the union of the partitions is the least fixpoint.

Channels are FIFO but interleave at random, and changes arrive while messages are under way.
"""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_engine.provenance.tokens import TokenSource
from stream_engine.provenance.tombstones import Tombstones
from stream_engine.recursion.absorption.fixpoint_operator import FixpointOperator
from stream_engine.recursion.program.fixpoint_options import RecursionOptions
from stream_engine.testing.recursion_ensembles import Ensemble
from stream_engine.testing.recursion_programs import (
    bridged,
    cheapest_path,
    doubling,
    doubling_cheapest,
    odd_and_even,
    reachable,
    region,
    two_ways,
)
from stream_engine.testing.recursion_schedules import database
from streamsql.algebra.choices import Shipping, Strategy
from streamsql.algebra.operators import Fixpoint
from streamsql.data.delta import difference
from streamsql.data.types import Row
from streamsql.errors import InternalError, WireError
from streamsql.reference import evaluate
from streamsql.wire.messages import AnnotatedRow
from tests.stream_engine.recursion.several_sites import OPTIONS, SITES, describe, run_schedule

LINEAR = [reachable(), cheapest_path(via=True), two_ways()]
BEYOND_LINEAR = [doubling(), doubling_cheapest(), bridged(), odd_and_even()]


@pytest.mark.parametrize("options", OPTIONS, ids=describe)
@pytest.mark.parametrize(
    ("node", "seeds", "changes"),
    [*((node, 3, 30) for node in LINEAR), *((node, 2, 12) for node in BEYOND_LINEAR)],
    ids=describe,
)
def test_links_change_during_delivery(
    node: Fixpoint, seeds: int, changes: int, options: RecursionOptions
) -> None:
    for seed in range(seeds):
        ensemble, expected = run_schedule(node, options, seed, changes)
        assert ensemble.rows() == expected
        for site, operator in ensemble.operators.items():
            assert ensemble.views[site] == dict.fromkeys(operator.state_rows(), 1)


@pytest.mark.parametrize(
    ("nodes", "changes"), [(LINEAR[:1], 15), (BEYOND_LINEAR, 10)], ids=["linear", "beyond linear"]
)
@given(data=st.data(), seed=st.integers(0, 10**6), options=st.sampled_from(OPTIONS))
def test_any_interleaving(
    nodes: list[Fixpoint], changes: int, data: st.DataObject, seed: int, options: RecursionOptions
) -> None:
    node = data.draw(st.sampled_from(nodes))
    ensemble, expected = run_schedule(node, options, seed, changes)
    assert ensemble.rows() == expected


class Forgetful(Tombstones):
    """Remembers nothing."""

    def __contains__(self, token: int) -> bool:
        return False


@pytest.mark.parametrize("shipping", [Shipping.WITNESS, Shipping.LAZY, Shipping.EAGER])
def test_tombstones_are_needed(monkeypatch: pytest.MonkeyPatch, shipping: Shipping) -> None:
    """Without tombstones a derivation under way revives what was killed, in many schedules."""
    options = RecursionOptions(strategy=Strategy.ABSORPTION, shipping=shipping)
    runs = 20

    def wrong() -> int:
        results = (run_schedule(reachable(), options, seed, changes=25) for seed in range(runs))
        return sum(ensemble.rows() != expected for ensemble, expected in results)

    assert wrong() == 0
    monkeypatch.setattr("stream_engine.recursion.absorption.deaths.Tombstones", Forgetful)
    assert wrong() > runs // 12


REGION_POOL: list[tuple[str, Row]] = [
    *[("sensor", (i, float(i % 4), float(i // 4))) for i in range(8)],
    *[("triggered", (i,)) for i in range(8)],
    *[("seed", row) for row in ((0, 0), (1, 7), (1, 3))],
]


@pytest.mark.parametrize("options", OPTIONS, ids=describe)
def test_theta_join_with_replicated_leaves(options: RecursionOptions) -> None:
    node = region(1.5)
    for seed in range(3):
        choice = random.Random(seed)
        ensemble = Ensemble(node, SITES, options, seed=seed)
        leaves = ensemble.operators[SITES[0]].leaves
        live: dict[str, set[Row]] = {"sensor": set(), "triggered": set(), "seed": set()}
        for _ in range(40):
            name, row = choice.choice(REGION_POOL)
            before = database(live)
            live[name] ^= {row}
            for port, leaf in enumerate(leaves):
                change = difference(evaluate(leaf, database(live), 0), evaluate(leaf, before, 0))
                for changed, weight in change.items():
                    home = SITES[int(float(str(changed[0]))) % len(SITES)]
                    ensemble.apply(home, port, {changed: weight})
            for site in SITES:
                ensemble.step(site)
            for _ in range(choice.randrange(6)):
                ensemble.act()
        ensemble.run()
        assert ensemble.rows() == set(evaluate(node, database(live), 0))


@pytest.mark.parametrize("strategy", ["auto", "dred"])
def test_the_same_row_from_two_sites_stays_until_both_withdraw(strategy: str) -> None:
    ensemble = Ensemble(reachable(), SITES, RecursionOptions(strategy=Strategy(strategy)))
    row = ("a", "b", 1)
    for site in ("s0", "s3"):
        ensemble.apply(site, 0, {row: 1})
        ensemble.step(site)
    ensemble.run()
    for site, expected in (("s0", {("a", "b")}), ("s3", set())):
        ensemble.apply(site, 0, {row: -1})
        ensemble.step(site)
        ensemble.run()
        assert ensemble.rows() == expected


@pytest.mark.parametrize("shipping", list(Shipping))
@pytest.mark.parametrize("node", [reachable(), doubling()], ids=describe)
def test_death_of_a_site_takes_exactly_its_rows(node: Fixpoint, shipping: Shipping) -> None:
    """Copies lose them, too, and what comes late from it brings nothing back."""
    options = RecursionOptions(strategy=Strategy.ABSORPTION, shipping=shipping)
    ensemble = Ensemble(node, SITES, options, seed=3)
    ensemble.apply("s0", 0, {("a", "b", 1): 1, ("b", "c", 1): 1})
    ensemble.apply("s1", 0, {("c", "d", 1): 1, ("a", "b", 2): 1})
    for site in SITES:
        ensemble.step(site)
    ensemble.run()
    assert ("a", "d") in ensemble.rows()
    for site in SITES:
        ensemble.operators[site].kill_site("s0", 1)
        ensemble.step(site)
    ensemble.run()
    assert ensemble.rows() == {("c", "d"), ("a", "b")}
    for operator in ensemble.operators.values():
        assert isinstance(operator, FixpointOperator)
        for copy in operator._partition.copies:
            assert set(copy.entries) <= {("c", "d"), ("a", "b")}
    late = ensemble.operators["s2"]
    assert isinstance(late, FixpointOperator)
    late_token = TokenSource(site_index=0, epoch=1, used=99).fresh()
    encoded = late.encoding.encode(late.encoding.of_token(late_token))
    late.receive("s0", "rows", [AnnotatedRow(("x", "y"), encoded)], [])
    ensemble.step("s2")
    assert ("x", "y") not in ensemble.rows()


@pytest.mark.parametrize(
    ("port", "row", "annotation"),
    [
        ("nowhere", ("a", "b"), b"\1\x80\2\1\1\0"),
        ("leaf:9", ("a", "b"), b"\1\x80\2\1\1\0"),
        ("rows", ("a",), b"\1\x80\2\1\1\0"),
        ("rows", ("a", "b"), b"\1"),
        ("leaf:0", ("a", "b"), b"\1\x80\2\0"),
    ],
)
def test_malformed_messages_are_refused(port: str, row: Row, annotation: bytes) -> None:
    operator = FixpointOperator(reachable(), site="s0", sites=SITES, epoch=1)
    with pytest.raises(WireError):
        operator.receive("s1", port, [AnnotatedRow(row, annotation)], [])
    with pytest.raises(WireError):
        operator.receive("s1", "rows", [], [-1])
    assert operator.settle() == {}


def test_a_site_must_belong() -> None:
    with pytest.raises(InternalError):
        FixpointOperator(reachable(), site="elsewhere", sites=SITES, epoch=1)
