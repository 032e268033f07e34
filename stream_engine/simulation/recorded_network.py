"""A network of sites with disks: they crash, and come back from a snapshot and a journal."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from stream_engine.simulation.network import Faults, Network
from stream_engine.site.step_result import Forget
from stream_engine.snapshot.recorded_site import RecordedSite
from stream_engine.snapshot.restored import Restored


@dataclass(slots=True)
class Disk:
    """What is left of a site that crashes: the last snapshot, if any, and the journal since."""

    snapshot: bytes | None = None
    records: list[bytes] = field(default_factory=list)


class RecordedNetwork(Network):
    """Sites that record what happens to them, and are told again what the broker has retained.

    Attributes:
        disks: By site, whether it is up or not.
    """

    def __init__(
        self, sites: Sequence[str], *, seed: int = 0, faults: Faults | None = None
    ) -> None:
        self.disks = {site: Disk() for site in sites}
        super().__init__(sites, seed=seed, faults=faults)

    def new_site(self, site: str, epoch: int) -> RecordedSite:
        """Return a site whose journal goes to its disk."""
        return RecordedSite(site, epoch, self.disks[site].records.append)

    def recorded(self, site: str) -> RecordedSite:
        """Return a site that is up."""
        engine = self.sites[site]
        assert isinstance(engine, RecordedSite)  # noqa: S101  (`new_site` makes no others)
        return engine

    def save(self, site: str) -> bool:
        """Take a snapshot, unless something is under way; return whether there is a new one."""
        engine, disk = self.recorded(site), self.disks[site]
        if not engine.is_at_rest:
            return False
        known: list[Forget] = engine.forgettable()
        disk.snapshot = engine.snapshot()
        disk.records.clear()
        engine.kept(known)
        self._to_step[site] = None
        return True

    def crash(self, site: str, *, in_flight_survives: bool = True) -> Restored:
        """Let a site die and come back before anybody notices."""
        del self.sites[site]
        for sender, receiver in list(self._channels):
            if receiver == site or (sender == site and not in_flight_survives):
                del self._channels[(sender, receiver)]
        return self.come_back(site)

    def come_back(self, site: str) -> Restored:
        """Start a dead site where its disk says, then with the queries that should run now."""
        self._epochs[site] += 1
        engine = self.new_site(site, self._epochs[site])
        self.sites[site] = engine
        for scan in self._scans[site].values():
            engine.declare(scan)
        disk = self.disks[site]
        restored = engine.restore(disk.snapshot, list(disk.records), self.now)
        for query in set(engine.queries) - set(self._bundles):
            engine.uninstall(query)
        for bundle in self._bundles.values():
            engine.install(bundle)
        self._to_step[site] = None
        return restored
