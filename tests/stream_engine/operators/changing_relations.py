"""Relations that change in steps, for operators that are compared with the reference."""

from hypothesis import strategies as st

from streamsql.data.delta import Delta, accumulate, negated
from streamsql.data.types import Row


@st.composite
def relations_in_steps(
    draw: st.DrawFn, rows: st.SearchStrategy[Row], *, vanish: bool = False
) -> list[Delta]:
    """Return batches; what was there often goes again, and comes back.

    Args:
        draw: Of Hypothesis.
        rows: What the relation may hold.
        vanish: Whether all of it goes at times.
    """
    relation: Delta = {}
    steps = []
    for _ in range(draw(st.integers(1, 6))):
        delta: Delta = {}
        known = list(relation)
        for _row in range(draw(st.integers(0, 5))):
            old = bool(known) and draw(st.booleans())
            row = draw(st.sampled_from(known)) if old else draw(rows)
            weight = max(draw(st.sampled_from((-3, -1, 1, 2))), -relation.get(row, 0))
            if row not in delta and weight:
                delta[row] = weight
        accumulate(relation, delta)
        steps.append(delta)
        if vanish and draw(st.integers(0, 5)) == 0:
            steps.append(negated(relation))
            relation = {}
    return steps
