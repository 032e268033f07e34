"""A pushed MIN follows rows with a value, whatever strategy keeps it.

Its answer is that of a MIN above all rows, but for groups without any value, which are not there.
"""

from collections.abc import Iterable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_engine.recursion.strategies import recursive_operator
from streamsql.algebra.choices import Strategy
from streamsql.algebra.operators import Fixpoint, RecursionChoice, walk_plan
from streamsql.data.delta import Delta, accumulate
from tests.streamsql.from_text import bound_query, catalog_of

Link = tuple[str, str, int | None]
CHEAPEST = """WITH RECURSIVE p (src, dst, cost) AS (SELECT src, dst, cost FROM link
  UNION SELECT l.src, p.dst, l.cost + p.cost FROM link l JOIN p ON l.dst = p.src)
SELECT src, dst, MIN(cost) AS cost FROM p GROUP BY src, dst"""


def fixpoint(strategy: str) -> Fixpoint:
    catalog = catalog_of("CREATE LINK SOURCE link (src TEXT, dst TEXT, cost INTEGER)")
    plan = bound_query(CHEAPEST, catalog).plan
    (node,) = (n for n in walk_plan(plan) if isinstance(n, Fixpoint))
    assert node.selection is not None
    return msgspec.structs.replace(node, choice=RecursionChoice(strategy=Strategy(strategy)))


def least(links: Iterable[Link]) -> Delta:
    """Return the least costs that paths have, by relaxing links until nothing changes."""
    best: dict[tuple[str, str], int] = {}
    known = [link for link in links if link[2] is not None]
    while True:
        found = dict(best)
        for src, dst, cost in known:
            onward = [(end, more) for (start, end), more in best.items() if start == dst]
            for end, more in [(dst, 0), *onward]:
                total = (cost or 0) + more
                found[src, end] = min(found.get((src, end), total), total)
        if found == best:
            return {(*pair, cost): 1 for pair, cost in best.items()}
        best = found


links = st.lists(
    st.tuples(st.sampled_from("abcd"), st.sampled_from("abcd"), st.none() | st.integers(0, 3)),
    max_size=8,
    unique=True,
)


@pytest.mark.parametrize(
    "strategy", ["kernel", "ranked", "absorption", "relative", "dred", "recompute"]
)
@given(before=links, after=links)
def test_null_costs_lead_nowhere(strategy: str, before: list[Link], after: list[Link]) -> None:
    operator = recursive_operator(fixpoint(strategy), site="s", sites=("s",), epoch=1)
    view: Delta = {}
    operator.apply(0, dict.fromkeys(before, 1))
    accumulate(view, operator.settle())
    assert view == least(before)
    change: Delta = dict.fromkeys(before, -1)
    accumulate(change, dict.fromkeys(after, 1))
    operator.apply(0, change)
    accumulate(view, operator.settle())
    assert view == least(after)
