"""The rows of a fragment that its reader looks at, at the site that has them.

A site looks up who needs a row by one comparison with a constant, of those right above the fragment
(`streamsql/wire/bundles/needed_rows.py`). So a reader with such a comparison is not asked for the
rows that fail it; any other reader is asked for each row, whatever it drops then.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from streamsql.algebra.expressions import conjunction
from streamsql.algebra.operators import Filter, Plan
from streamsql.wire.bundles.needed_rows import Reading, looked_up, readings


@dataclass(frozen=True, slots=True)
class HandedRows:
    """A reading of a fragment.

    Attributes:
        above: The filters and projections right above it, lowest first.
        asked: The plan of the rows for which the reader is asked.
    """

    above: tuple[Plan, ...]
    asked: Plan


def handed_rows(plan: Plan, fragments: Sequence[Plan]) -> Iterator[HandedRows]:
    """Yield what a plan reads of fragments that are parts of it, as they are.

    A fragment that is read twice is handed on whole, once.
    """
    known = {id(fragment): fragment for fragment in fragments}
    found: dict[int, list[Reading]] = {name: [] for name in known}
    for reading in readings(plan, lambda node: id(node) in known):
        found[id(reading.leaf)].append(reading)
    for name, leaf in known.items():
        match found[name]:
            case [reading]:
                condition = conjunction(looked_up(reading.predicates, leaf.schema).by)
                asked = leaf if condition is None else Filter(leaf, condition)
                yield HandedRows(reading.above, asked)
            case _:
                yield HandedRows((), leaf)


def operators_above(plan: Plan, fragments: Sequence[Plan]) -> Iterator[Plan]:
    """Yield the operators of a plan that are no part of fragments in it."""
    known = {id(fragment) for fragment in fragments}
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        if id(node) not in known:
            yield node
            waiting.extend(node.inputs)
