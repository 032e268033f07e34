"""What a table of derivations sends on: of every row a true part, never one that has died."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_engine.provenance.annotation import AnnotationEncoding
from stream_engine.provenance.bdd import BddEncoding
from stream_engine.provenance.dnf import DnfEncoding
from stream_engine.provenance.tokens import TokenSource
from stream_engine.recursion.absorption.recursion_outbox import Outbox
from streamsql.algebra.choices import Shipping
from streamsql.data.types import Row

SOURCE = TokenSource(0, 1)
TOKENS = [SOURCE.fresh() for _ in range(6)]
SUPPORTS = st.sets(st.sampled_from(TOKENS), min_size=1, max_size=3)
ROWS = st.sampled_from([("a",), ("b",)])
STEPS = st.lists(
    st.tuples(st.just("derive"), ROWS, SUPPORTS)
    | st.tuples(st.just("receive"), ROWS, SUPPORTS)
    | st.tuples(st.just("kill"), ROWS, SUPPORTS)
    | st.tuples(st.sampled_from(["take", "flush", "sweep"]), ROWS, SUPPORTS),
    max_size=20,
)


def conjunction(encoding: AnnotationEncoding[Any], tokens: set[int]) -> Any:
    annotation = encoding.true
    for token in sorted(tokens):
        annotation = encoding.conjoin(annotation, encoding.of_token(token))
    return annotation


@pytest.mark.parametrize("encoding_of", [DnfEncoding, BddEncoding], ids=["dnf", "bdd"])
@pytest.mark.parametrize("shipping", Shipping)
@given(steps=STEPS)
def test_nothing_is_sent_that_has_died(
    shipping: Shipping,
    encoding_of: type[DnfEncoding] | type[BddEncoding],
    steps: list[tuple[str, Row, set[int]]],
) -> None:
    encoding: AnnotationEncoding[Any] = encoding_of(1_000)
    table, dead = Outbox(encoding, shipping), set[int]()
    for what, row, tokens in [*steps, ("take", (), set())]:
        alive = tokens - dead
        if what == "derive" and alive:
            table.merge([(row, conjunction(encoding, alive))])
        elif what == "receive" and alive:
            table.merge_received([(row, conjunction(encoding, alive))])
        elif what == "kill":
            dead |= tokens
            table.restrict_released(tokens)
            table.kill(tokens)
        elif what == "flush":
            table.flush()
        elif what == "sweep":
            table.sweep()
        elif what == "take":
            for _row, annotation in table.take():
                assert not encoding.is_false(annotation)
                assert dead.isdisjoint(encoding.tokens(annotation))
