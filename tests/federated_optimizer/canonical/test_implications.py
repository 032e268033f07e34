"""Implications of single predicates, by ranges and equal columns."""

import pytest

from federated_optimizer.canonical.implications import Implications
from streamsql.algebra.expressions import conjuncts
from tests.federated_optimizer.canonical.sets.test_predicate_sets import predicates


def implied(known: str, asked: str) -> bool:
    parts = [part for each in predicates(known) for part in conjuncts(each)]
    return predicates(asked)[0] in Implications(parts)


@pytest.mark.parametrize(
    ("known", "asked"),
    [
        ("a > 5", "a > 3"),
        ("a + 1 > 5", "a > 3"),
        ("a = b AND b > 5", "a > 3"),
        ("a = b AND a + c > 5", "b + c > 5"),
        ("a < b", "a <= b"),
    ],
)
def test_implied(known: str, asked: str) -> None:
    assert implied(known, asked)


@pytest.mark.parametrize(
    ("known", "asked"),
    [
        ("a > 5", "a * 2 > 5"),  # NULL for great ones
        ("a > 5", "a + 1 > 5"),
        ("a <= b", "a < b"),
    ],
)
def test_not_implied(known: str, asked: str) -> None:
    assert not implied(known, asked)
