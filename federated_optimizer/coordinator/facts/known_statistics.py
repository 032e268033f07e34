"""Statistics that plans are made with, put together when something of them has changed."""

from dataclasses import replace

from federated_optimizer.coordinator.facts.announced_devices import AnnouncedDevices
from federated_optimizer.coordinator.facts.planned_costs import speeds_of, wires_of
from federated_optimizer.coordinator.facts.planned_facts import (
    KnownColumns,
    PassingRows,
    RowBytes,
    TextBytes,
    looked_up,
    placed_in,
    recursion_facts,
    source_facts,
)
from federated_optimizer.coordinator.shared_parts import SharedParts
from federated_optimizer.statistics.planning_statistics import Statistics
from streamsql.data.types import MICROSECONDS
from streamsql.wire.fragments import FragmentBundle


class KnownStatistics:
    """What is known of sources, recursions, sites and links.

    Attributes:
        made: How often all of it was put together: tests count work by it.
    """

    def __init__(self, shared: SharedParts) -> None:
        self._shared = shared
        self._devices = AnnouncedDevices(shared)
        self._known = Statistics()
        self._made_of: object = None
        self.made = 0

    def of(self, current: FragmentBundle | None, *, is_outgrown: bool) -> Statistics:
        """Return the statistics for a query; see `Statistics`.

        Args:
            current: What it runs now; None: nothing.
            is_outgrown: Whether a recursion of it has outgrown its way.
        """
        if current is None:
            return self.all()
        return replace(
            self.all(),
            placed=placed_in(current),
            devices=self._devices.devices(current),
            looked_up=looked_up(current),
            outgrown=is_outgrown,
        )

    def all(self) -> Statistics:
        """Return the statistics for a new query: the same object while they stay the same.

        What fades with time is as of some moment of this second.
        """
        shared, now = self._shared, self._shared.clock()
        membership, links = shared.membership, shared.links
        compared, local_rows = membership.compared(), membership.local_rows()
        # A burst of queries asks for each of them, and a federation may have a hundred sources.
        made_of = (
            *(shared.facts.version, links.version, membership.births, now // MICROSECONDS),
            *(tuple(shared.catalog), compared, local_rows),
        )
        if made_of != self._made_of:
            self.made += 1
            self._known = Statistics(
                sources=source_facts(shared.catalog, shared.facts, compared),
                recursions=recursion_facts(shared.facts, now),
                passing=PassingRows(shared.facts, now),
                row_bytes=RowBytes(shared.facts),
                columns=KnownColumns(shared.facts, now),
                text_bytes=TextBytes(shared.facts),
                homes=links.homes(),
                devices=self._devices.devices(None),
                local_rows=local_rows,
                wires=wires_of(shared.facts, links.hops(shared.settings.beside), now),
                speeds=speeds_of(shared.facts),
            )
            self._made_of = made_of
        return self._known
