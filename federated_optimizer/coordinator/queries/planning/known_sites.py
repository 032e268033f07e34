"""Sites that queries are placed on, with those that are away or have not said what they have."""

from federated_optimizer.coordinator.shared_parts import SharedParts
from federated_optimizer.network.topology import Topology, colocation_of, is_of_devices
from streamsql.algebra.operators import walk_plan
from streamsql.wire.fragments import Engine, FragmentBundle
from streamsql.wire.site_messages import SiteRole


class KnownSites:
    """Which gateway has which source, from births and from bundles of before a restart.

    A gateway that is away, or whose birth has not arrived yet, keeps its part of a plan. Only a
    recursion or join that gateways compute together does without one that has been away for the
    setting `patience`: what it should compute of others' rows would be missing.

    Attributes:
        made: How often a topology was put together: tests count work by it.
    """

    def __init__(self, shared: SharedParts) -> None:
        self._shared = shared
        self._sources: dict[str, set[str]] = {}
        self._topology: Topology | None = None
        self._made_of: object = None
        self.made = 0

    def remember(self, bundle: FragmentBundle) -> None:
        """Take the gateways of a bundle as owners of the streams it reads there."""
        self._topology = None
        for fragment in bundle.fragments:
            if fragment.engine == Engine.GATEWAY:
                for node in walk_plan(fragment.plan):
                    if is_of_devices(node):
                        for site in fragment.sites:
                            self._sources.setdefault(site, set()).add(node.source.lower())

    def forget(self, site: str) -> None:
        """Discard a site that was removed permanently."""
        self._topology = None
        self._sources.pop(site, None)

    def topology(self) -> Topology:
        """Return the sites as known now; the same object until something of them changes."""
        membership, catalog = self._shared.membership, self._shared.catalog
        patience = int(self._shared.settings.patience * 1_000_000)
        absent = membership.long_gone(self._shared.clock(), patience)
        # A registration asks six times, and a federation may have a thousand sites.
        made_of = (membership.births, tuple(catalog), absent)
        if self._topology is None or made_of != self._made_of:
            self._topology, self._made_of = self._put_together(absent), made_of
        return self._topology

    def _put_together(self, absent: frozenset[str]) -> Topology:
        self.made += 1
        settings, membership = self._shared.settings, self._shared.membership
        for site, sources in membership.sources().items():
            self._sources.setdefault(site, set()).update(sources)
        for site in membership.with_role(SiteRole.GATEWAY):
            self._sources.setdefault(site, set())  # an engine site, even if it has no source
        bases = dict.fromkeys((*settings.bases, *membership.with_role(SiteRole.BASE)))
        return Topology(
            gateways={site: frozenset(names) for site, names in self._sources.items()},
            bases=tuple(bases),
            static=settings.static,
            coordinator=settings.host,
            colocation=colocation_of(self._shared.catalog),
            absent=absent,
        )
