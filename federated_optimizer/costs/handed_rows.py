"""The rows of a fragment that its reader gets, at the site that has them, and their price.

A site looks at each row for a reader that drops some at once, and the reader takes no step for a
change of which it needs nothing (`stream_engine/exchange/fed_port.py`). To look a reader up by a
constant takes as long as to evaluate its predicate: 0.02 µs a row each, of a hundred at once. Only
one of the readers that are looked up by one value, of a column or another expression, pays for
that: a row is looked up for all of them at once.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from federated_optimizer.costs.relations.estimates import Estimating
from federated_optimizer.costs.work import at_once
from federated_optimizer.statistics.speeds import Micros
from streamsql.algebra.operators import Filter, Plan
from streamsql.wire.bundles.needed_rows import Reading, looked_up, readings
from streamsql.wire.bundles.reader_conditions import RowCondition


@dataclass(frozen=True, slots=True)
class HandedRows:
    """A reading of a fragment.

    Attributes:
        leaf: The fragment.
        above: The filters and projections right above it, lowest first.
        drops: Whether the site tells rows that the reader drops at once.
        condition: By which these are found, without looking at each; or None.
    """

    leaf: Plan
    above: tuple[Plan, ...] = ()
    drops: bool = False
    condition: RowCondition | None = None

    @property
    def given(self) -> Plan:
        """The plan of the rows that the reader gets."""
        filters = (node for node in reversed(self.above) if isinstance(node, Filter))
        return next(filters, self.leaf) if self.drops else self.leaf


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
                needed = looked_up(reading.predicates, leaf.schema)
                yield HandedRows(
                    leaf, reading.above, bool(needed.by or needed.rest), needed.condition
                )
            case _:
                yield HandedRows(leaf)


def reading_price(
    handed: HandedRows, estimating: Estimating, micros: Micros, *, paid: float = 1.0
) -> float:
    """Return the microseconds a second of handing a fragment's rows on to a reader of its site.

    A step for each change of which it needs something, each row that is looked at, and each that it
    gets, as long as in a filter. `paid` is the share of looking at rows that it pays.
    """
    read, given = estimating.of(handed.leaf), estimating.of(handed.given)
    steps = min(read.events / read.bunched, given.events / given.bunched)
    looked_at = at_once(read, micros.filter, micros.lookup) if handed.drops else 0.0
    return steps * micros.step + paid * looked_at + at_once(given, micros.filter, micros.filter_row)


def operators_above(plan: Plan, fragments: Sequence[Plan]) -> Iterator[Plan]:
    """Yield the operators of a plan that are no part of fragments in it."""
    known = {id(fragment) for fragment in fragments}
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        if id(node) not in known:
            yield node
            waiting.extend(node.inputs)
