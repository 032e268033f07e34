"""Normal forms of predicates have the truth of what was written, for every row."""

import math
from fractions import Fraction
from random import Random
from typing import Any

import pytest

from federated_optimizer.canonical.canonical_expressions import canonical
from federated_optimizer.canonical.conditions.normal_forms import NormalForm, TooManyClausesError
from federated_optimizer.canonical.conditions.terms import Condition
from federated_optimizer.canonical.conditions.truth_conditions import (
    where,
    where_null,
    where_present,
)
from federated_optimizer.canonical.regions.regions import Domain, Region, behind
from streamsql.algebra.scalar_functions.scalar import compile_expression
from streamsql.data.types import Row
from tests.federated_optimizer.canonical.random_predicates import RandomPredicates, random_row


def has(region: Region, value: Any) -> bool:
    """Return whether a value is in a region."""
    if value is None:
        return region.null
    if isinstance(value, float):
        if math.isnan(value):
            return region.nan
        if math.isinf(value):
            return bool(region.spans) and (
                region.spans[-1][1][0] == 1 if value > 0 else region.spans[0][0][0] == -1
            )
        value = Fraction(value)
    return any(low < behind(value) <= high for low, high in region.spans)


def holds(condition: Condition, row: Row) -> bool:
    """Return whether a condition holds for a row, by arithmetic without bounds."""
    values = [compile_expression(part)(row) for part, _ in condition.term.parts]
    if None in values:
        return condition.region.null
    if condition.term.domain == Domain.ORDER:
        left, right = values
        if "nan" in map(str, values):
            return condition.region.nan
        return has(condition.region, (left > right) - (left < right))
    if len(values) == 1 and condition.term.parts[0][1] == 1:
        return has(condition.region, values[0])
    factors = [factor for _, factor in condition.term.parts]
    return has(condition.region, sum(f * v for f, v in zip(factors, values, strict=True)))


def passes(form: NormalForm, row: Row) -> bool:
    return all(any(holds(each, row) for each in clause) for clause in form)


@pytest.mark.parametrize("seed", range(4))
def test_forms_are_exact(seed: int) -> None:
    random = Random(seed)
    author, read, opaque = RandomPredicates(random), 0, 0
    for _ in range(500):
        made = canonical(author.predicate(2))
        try:
            forms = {
                True: where(made, truth=True),
                False: where(made, truth=False),
                None: where_null(made),
                "present": where_present(made),
            }
        except TooManyClausesError:
            opaque += 1
            continue
        read += 1
        value = compile_expression(made)
        for _ in range(12):
            row = random_row(random)
            found = value(row)
            for asked, form in forms.items():
                expected = found is not None if asked == "present" else found is asked
                assert passes(form, row) == expected, (made, asked, form, row)
    assert read > 400
    assert opaque < 50
