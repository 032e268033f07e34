"""Derivations of joined leaves are counted right, also when both sides change at once."""

from hypothesis import given
from hypothesis import strategies as st

from stream_engine.recursion.kernels.kernel_derivations import Derivations
from stream_engine.recursion.program.rules import Rule
from streamsql.algebra.expressions import Call, Column, Expression, Literal
from streamsql.algebra.scalar_functions.scalar import compile_predicate, compile_row
from streamsql.data.delta import Delta, accumulate
from streamsql.data.types import DataType, Row

INTEGER, DOUBLE, BOOLEAN = DataType.INTEGER, DataType.DOUBLE, DataType.BOOLEAN


def column(position: int) -> Column:
    return Column(position, f"c{position}", INTEGER)


def equal(left: int, right: int) -> Expression:
    return Call("=", (column(left), column(right)), BOOLEAN)


def near(places: tuple[int, ...], within: str = "<", radius: float = 10.0) -> Expression:
    distance = Call("DISTANCE", tuple(Column(p, "", DOUBLE) for p in places), DOUBLE)
    return Call(within, (distance, Literal(radius, DOUBLE)), BOOLEAN)


# Leaf 0 and 1: (id, key, x, y).
SELF = Rule((0, 0), (4, 4), (equal(1, 5), near((2, 3, 6, 7))), (column(0), column(4)))
SELF_BACK = Rule((0, 0), (4, 4), (near((6, 7, 2, 3), "<="),), (column(4), column(0), column(1)))
LOPSIDED = Rule((0, 0), (4, 4), (near((2, 3, 7, 6)), equal(0, 5)), (column(0), column(4)))
FILTERED = Rule(
    (0, 1),
    (4, 4),
    (near((2, 3, 6, 7)), Call("<", (column(0), column(4)), BOOLEAN)),
    (column(0), column(4)),
)
TRIPLE = Rule((0, 1, 0), (4, 4, 4), (equal(0, 5), equal(4, 9)), (column(0), column(8)))
SINGLE = Rule((1,), (4,), (Call(">", (column(1), Literal(0, INTEGER)), BOOLEAN),), (column(1),))
RULES = (SELF, SELF_BACK, LOPSIDED, FILTERED, TRIPLE, SINGLE)

PLACES = st.sampled_from([0.0, 6.0, 8.0, 10.0, -10.0, 20.02, None])
ROWS = st.tuples(st.integers(0, 2), st.sampled_from([0, 1, None]), PLACES, PLACES)
BATCHES = st.lists(st.lists(st.tuples(st.integers(0, 1), ROWS), max_size=8), max_size=6)


def derived(rule: Rule, leaves: list[set[Row]]) -> Delta:
    """Return the derivations of a rule by comparing everything with everything."""
    wide: list[Row] = [()]
    for atom in rule.atoms:
        wide = [left + right for left in wide for right in leaves[atom]]
    for predicate in rule.predicates:
        holds = compile_predicate(predicate)
        wide = [row for row in wide if holds(row)]
    make = compile_row(rule.head)
    found: Delta = {}
    for row in wide:
        found[make(row)] = found.get(make(row), 0) + 1
    return found


@given(batches=BATCHES)
def test_counts_follow_any_changes(batches: list[list[tuple[int, Row]]]) -> None:
    derivations = Derivations(RULES, 2)
    leaves: list[set[Row]] = [set(), set()]
    counts: list[Delta] = [{} for _ in RULES]
    for batch in batches:
        before = [set(leaf) for leaf in leaves]
        for leaf, row in batch:
            leaves[leaf] ^= {row}
        entered = [list(now - then) for now, then in zip(leaves, before, strict=True)]
        left = [list(then - now) for now, then in zip(leaves, before, strict=True)]
        changes = derivations.change(entered, left)
        for rule, total, change in zip(RULES, counts, changes, strict=True):
            accumulate(total, change)
            assert total == derived(rule, leaves)
