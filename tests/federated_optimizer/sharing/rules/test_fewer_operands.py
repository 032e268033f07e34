"""Set operators over nodes of fewer operands: exactly the rows of evaluating from scratch."""

from itertools import product

import pytest

from federated_optimizer.sharing.rules import fewer_operands, same
from streamsql.algebra.operators import Distinct, Project, RemoteSource, SetKind, SetOperation
from tests.federated_optimizer.sharing.readings_shop import answered, checked, normalized

R1, R2, R3 = "SELECT a, b FROM r", "SELECT b, a FROM r WHERE x > 0", "SELECT a, b FROM q"
ANSWERED = (
    (f"{R1} UNION ALL {R2} UNION ALL {R3}", f"{R3} UNION ALL {R1}"),
    (f"{R1} UNION ALL {R1} UNION ALL {R3}", f"{R1} UNION ALL {R3}"),
    (
        "SELECT a FROM r WHERE b = 1 UNION ALL SELECT b FROM r "
        "UNION ALL SELECT a FROM q WHERE b = 1",
        f"{R3} UNION ALL {R1}",
    ),
    ("SELECT a + b FROM r UNION ALL SELECT a + b FROM q", f"{R3} UNION ALL {R1}"),
    (
        "SELECT 'r' AS name, a FROM r UNION ALL SELECT 'q', a FROM q "
        "UNION ALL SELECT 's', b FROM q",
        "SELECT a, b, 'r' FROM r UNION ALL SELECT a, b, 'q' FROM q",
    ),
    (f"{R1} UNION {R2} UNION {R3}", f"{R3} UNION {R1}"),
    (f"{R1} UNION {R2} UNION {R3}", f"{R3} UNION ALL {R1} UNION ALL {R3}"),
    (f"{R1} UNION {R3}", f"{R3} UNION ALL {R1}"),
    (f"{R1} EXCEPT {R2} EXCEPT {R3}", f"{R1} EXCEPT {R3}"),
    (f"{R1} EXCEPT ({R2} UNION ALL {R3})", f"{R1} EXCEPT {R3}"),
    (f"{R1} EXCEPT {R2} EXCEPT {R3}", f"{R3} UNION {R2}"),
    (f"{R1} EXCEPT {R2} EXCEPT {R3}", f"{R3} UNION ALL {R2}"),
    (f"{R1} EXCEPT ALL {R2} EXCEPT ALL {R3}", f"{R1} EXCEPT ALL {R3}"),
    (f"{R1} EXCEPT ALL {R2} EXCEPT ALL {R3}", f"{R3} UNION ALL {R2}"),
    (
        "SELECT b, a FROM r WHERE a > 0 EXCEPT SELECT b, a FROM q",
        "SELECT a, b FROM r EXCEPT SELECT a, b FROM q",
    ),
    (f"{R1} INTERSECT {R2} INTERSECT {R3}", f"{R3} INTERSECT {R1}"),
    (f"{R1} INTERSECT {R3}", f"{R3} INTERSECT ALL {R1}"),
    (f"{R1} INTERSECT ALL {R2} INTERSECT ALL {R3}", f"{R3} INTERSECT ALL {R1}"),
    (f"{R1} WHERE b = 2 INTERSECT {R3}", f"{R3} INTERSECT {R1}"),
    (
        "SELECT CAST(d AS TEXT) AS t FROM r UNION SELECT CAST(d AS TEXT) FROM q",
        "SELECT d FROM r UNION SELECT d FROM q",
    ),
)
REFUSED = (
    (f"{R1} UNION ALL {R3}", f"{R1} UNION {R3}", "copies are gone"),
    (f"{R1} UNION ALL {R3}", f"{R1} UNION ALL {R3} UNION ALL {R2}", "rows too many"),
    (f"{R1} UNION ALL {R3}", f"{R1} UNION ALL {R1}", "an operand used twice"),
    (f"{R1} UNION {R3}", f"{R1} UNION {R3} UNION {R2}", "rows too many"),
    (
        "SELECT a, b FROM r UNION ALL SELECT a, b FROM q",
        "SELECT a, b FROM r UNION ALL SELECT b, a FROM q",
        "other columns",
    ),
    (
        "SELECT a FROM r WHERE b = 1 UNION ALL SELECT a FROM q",
        f"{R1} UNION ALL {R3}",
        "a filter of one operand only",
    ),
    (f"{R1} EXCEPT {R3}", f"{R1} EXCEPT ALL {R3}", "a row twice at the left"),
    (f"{R1} EXCEPT ALL {R3}", f"{R1} EXCEPT {R3}", "copies are gone"),
    (f"{R1} EXCEPT {R3}", f"{R1} EXCEPT {R3} EXCEPT {R2}", "rows are missing"),
    (f"{R1} EXCEPT {R3}", f"{R3} EXCEPT {R1}", "the other way round"),
    (f"{R1} EXCEPT {R2} EXCEPT {R3}", f"{R1} UNION {R3}", "the first is no other"),
    (f"{R1} EXCEPT ALL {R2} EXCEPT ALL {R3}", f"{R3} UNION {R2}", "copies are gone"),
    (
        "SELECT a FROM r EXCEPT SELECT a FROM q",
        "SELECT a, b FROM r EXCEPT SELECT a, b FROM q",
        "whole rows are compared",
    ),
    (
        f"{R1} EXCEPT SELECT a, b FROM q WHERE a = 1",
        f"{R1} EXCEPT {R3}",
        "more is taken away",
    ),
    (f"{R1} INTERSECT ALL {R3}", f"{R1} INTERSECT {R3}", "copies are gone"),
    (f"{R1} INTERSECT {R3}", f"{R1} INTERSECT {R3} INTERSECT {R2}", "rows are missing"),
    ("SELECT a FROM r", f"{R1} UNION ALL {R3}", "no set operator"),
)


@pytest.mark.parametrize(("wanted", "offered"), ANSWERED)
def test_fewer_operands_come_from_those_of_fewer_operands(wanted: str, offered: str) -> None:
    assert answered(fewer_operands.answer, wanted, offered) is not None


@pytest.mark.parametrize(("wanted", "offered", "why"), REFUSED)
def test_others_are_refused(wanted: str, offered: str, why: str) -> None:
    assert answered(fewer_operands.answer, wanted, offered) is None, why


def test_distinct_rows_are_not_made_distinct_again() -> None:
    found = answered(
        fewer_operands.answer,
        "SELECT b, a FROM r WHERE a > 1 UNION SELECT b, a FROM q WHERE a > 1",
        f"{R3} UNION {R1}",
    )
    assert isinstance(found, Project)
    assert not isinstance(found.input, Distinct)


def test_the_rest_is_taken_away() -> None:
    found = answered(fewer_operands.answer, f"{R1} EXCEPT {R2} EXCEPT {R3}", f"{R1} EXCEPT {R3}")
    assert isinstance(found, SetOperation)
    assert found.kind == SetKind.EXCEPT
    assert isinstance(found.left, RemoteSource)


OPERANDS = (
    "SELECT a, b FROM r",
    "SELECT a, b FROM r WHERE a > 1",
    "SELECT b, a FROM r",
    "SELECT a, b FROM q",
    "SELECT a, b FROM q WHERE a > 1",
)
OPERATORS = ("UNION ALL", "UNION", "EXCEPT", "EXCEPT ALL", "INTERSECT", "INTERSECT ALL")


def test_no_answer_among_all_small_pairs_is_wrong() -> None:
    offered = [normalized(f"{a} {o} {b}") for o, a, b in product(OPERATORS, OPERANDS, OPERANDS)]
    texts = [
        *(
            f"({a} {o} {b}) {p} {c}"
            for o, p, a, b, c in product(
                OPERATORS, OPERATORS, OPERANDS[:4:3], OPERANDS[1:3], OPERANDS[::4]
            )
        ),
        *(
            f"{a} {o} ({b} {p} {c})"
            for o, p, a, b, c in product(
                OPERATORS, OPERATORS, OPERANDS[::3], OPERANDS[2:4], OPERANDS[:2]
            )
        ),
        *(f"{a} {o} {b}" for o, a, b in product(OPERATORS, OPERANDS, OPERANDS)),
    ]
    found = 0
    for text in texts[::3]:
        ours = normalized(text)
        for theirs in offered[::2]:
            if same.answer(ours, theirs, theirs) is None:
                found += checked(fewer_operands.answer, ours, theirs, text) is not None
    assert found > 300
