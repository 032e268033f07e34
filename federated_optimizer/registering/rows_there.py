"""Rows of sources that are at the base already: groups, distinct or first rows of them, and joins.

A search knows nothing of what other runs receive. So it lets gateways group, or join, what they
have, and send that as well. Where the rows themselves are delivered for another run, the base
computes the same of them, and the network sends nothing more. Both ways are priced, and the one is
taken that adds less by the metric. Where they add the same, the rows are read, as that sends no
message, unless it takes much more effort of the base.
"""

from collections.abc import Callable, Iterator

from federated_optimizer.costs.cost import Cost
from federated_optimizer.costs.effort import ALIKE, BYTES_SENT, effort_of
from federated_optimizer.costs.weighing import Weighing
from federated_optimizer.network.shareable import delivered_fragments, why_alone
from federated_optimizer.registering.computed_anew import Choosing, PlannedWay, Prices
from federated_optimizer.sharing.run_offers import is_selection_of_sources
from federated_optimizer.statistics.speeds import Speeds
from streamsql.algebra.operators import Scan, WindowBounds, walk_plan
from streamsql.wire.fragments import Engine, Fragment

MUCH_MORE = 2.0
"""Milliseconds of effort a second of the base. What gateways do for their part is not in it."""


def over_rows_there(
    way: PlannedWay,
    choosing: Choosing,
    over: Callable[[], PlannedWay | None],
) -> PlannedWay:
    """Return the way over rows of sources that are at the base if it adds less than another one.

    Args:
        way: As the search has it.
        choosing: The basis of the choice.
        over: Returns the way over rows that are there; None: there are none.
    """
    if why_alone(way.bundle) or next(computed_there(way, choosing), None) is None:
        return way
    other = over()
    if other is None or why_alone(other.bundle):
        return way
    prices = Prices(choosing)
    speeds = choosing.planning.statistics.speeds
    costs = prices.added(other), prices.added(way)
    return other if reads_for_less(choosing.weighing, speeds, *costs) else way


def reads_for_less(weighing: Weighing, speeds: Speeds, reading: Cost, sending: Cost) -> bool:
    """Return whether to read rows that are there adds less than to have others sent.

    Examples:
        >>> by_bytes, speeds = Weighing(), Speeds()
        >>> reads_for_less(by_bytes, speeds, Cost(cpu=90.0), Cost(bytes=500.0))
        True
        >>> reads_for_less(by_bytes, speeds, Cost(cpu=2.0), Cost(bytes=5.0, cpu=1.0))
        True
        >>> reads_for_less(by_bytes, speeds, Cost(cpu=90.0), Cost(bytes=5.0, cpu=1.0))
        False
        >>> reads_for_less(by_bytes, speeds, Cost(bytes=900.0), Cost(bytes=500.0))
        False
    """
    much = weighing.value(Cost(bytes=BYTES_SENT))
    read, sent = weighing.value(reading), weighing.value(sending)
    if ALIKE * read + much < sent:
        return True
    more = effort_of(reading, speeds).value - effort_of(sending, speeds).value
    return read <= ALIKE * sent + much and more < MUCH_MORE


def computed_there(way: PlannedWay, choosing: Choosing) -> Iterator[Fragment]:
    """Yield the fragments that gateways compute for a way from rows that others receive."""
    rows_of = choosing.index.rows_of
    delivered = {
        fragment.id
        for fragment in delivered_fragments(way.bundle)
        if is_selection_of_sources(fragment.plan) or choosing.is_delivered(way.bundle, fragment.id)
    }
    for fragment in way.bundle.own:
        if fragment.engine != Engine.GATEWAY or fragment.id in delivered:
            continue
        nodes = list(walk_plan(fragment.plan))
        is_bounds = any(isinstance(node, WindowBounds) for node in nodes)
        if not is_bounds and any(isinstance(n, Scan) and rows_of(n) for n in nodes):
            yield fragment
