"""Which sites exist, and how fresh what they say is.

By the rules of the wire: births and states are retained; a state with an epoch older than the
newest one heard is ignored, above all a late will. Sites are never forgotten while they are only
away; an emptied birth or state topic is how one is removed for good.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from federated_optimizer.coordinator.model import SiteInfo
from streamsql.wire.messages import Birth, SiteState, WrapperState

MAX_SITES = 1_000


@dataclass(slots=True)
class _Site:
    role: str
    epoch: int = -1
    since: int = 0
    state: SiteState | None = None
    birth: Birth | None = None


class Membership:
    """All sites as last heard of."""

    def __init__(self) -> None:
        self._sites: dict[str, _Site] = {}

    def hear_state(self, site: str, state: SiteState, now: int) -> bool:
        """Take in a state; return whether it changed what is known."""
        known = self._known(site, state.role)
        if known is None or state.epoch < known.epoch:
            return False
        before = known.state
        if before is None or before.online != state.online or state.epoch > known.epoch:
            known.since = now
        known.state, known.epoch = state, state.epoch
        known.role = state.role
        return before != state

    def hear_birth(self, birth: Birth) -> bool:
        """Take in a birth; return whether it changed what is known."""
        known = self._known(birth.gateway, birth.role)
        if known is None or birth.epoch < known.epoch:
            return False
        if known.birth is not None and birth.epoch < known.birth.epoch:
            return False
        before, known.birth, known.role = known.birth, birth, birth.role
        return before != birth

    def forget(self, site: str) -> bool:
        """Remove a site whose retained messages were emptied."""
        return self._sites.pop(site, None) is not None

    def role(self, site: str) -> str:
        """Return a site's role, "" when it is unknown."""
        known = self._sites.get(site)
        return known.role if known is not None else ""

    def is_online(self, site: str) -> bool:
        """Whether a site is known to be online."""
        known = self._sites.get(site)
        return known is not None and known.state is not None and known.state.online

    def is_offline(self, site: str) -> bool:
        """Whether a site was heard of and is away."""
        known = self._sites.get(site)
        return known is not None and known.state is not None and not known.state.online

    def offline_since(self, site: str) -> int | None:
        """Return when a site went away, None when it did not."""
        return self._sites[site].since if self.is_offline(site) else None

    def epoch(self, site: str) -> int:
        """Return a site's newest epoch, -1 when it is unknown."""
        known = self._sites.get(site)
        return known.epoch if known is not None else -1

    def sources(self) -> dict[str, frozenset[str]]:
        """Return the sources of every site that announced some, in lower case."""
        return {
            name: frozenset(source.lower() for source in site.birth.sources)
            for name, site in self._sites.items()
            if site.birth is not None and site.birth.sources
        }

    def sensors(self) -> dict[str, int]:
        """Return how many sensors were announced, by stream in lower case."""
        counts: dict[str, int] = {}
        for site in self._sites.values():
            for sensor in site.birth.sensors if site.birth is not None else ():
                counts[sensor.stream.lower()] = counts.get(sensor.stream.lower(), 0) + 1
        return counts

    def readings(self) -> dict[str, float]:
        """Return readings per second since the sites have started, by stream in lower case.

        A wrapper of several streams says only what they make together: equal shares are assumed.
        """
        rates: dict[str, float] = {}
        for site in self._sites.values():
            state = site.state
            if state is None or state.ts <= state.started or not state.started:
                continue
            seconds = (state.ts - state.started) / 1_000_000
            for wrapper in state.wrappers:
                for stream in wrapper.streams:
                    share = wrapper.readings / len(wrapper.streams) / seconds
                    rates[stream.lower()] = rates.get(stream.lower(), 0.0) + share
        return rates

    def long_gone(self, now: int, microseconds: int) -> frozenset[str]:
        """Return the sites that have been away for at least so long."""
        return frozenset(
            name
            for name, site in self._sites.items()
            if self.is_offline(name) and now - site.since >= microseconds
        )

    def with_role(self, role: str) -> tuple[str, ...]:
        """Return the sites of a role, sorted."""
        return tuple(sorted(name for name, site in self._sites.items() if site.role == role))

    def infos(self, expected: Mapping[str, str] | None = None) -> tuple[SiteInfo, ...]:
        """Return all sites, sorted by id.

        Args:
            expected: Roles of sites that are listed although not heard of yet.
        """
        known = {name: _info(name, site) for name, site in self._sites.items()}
        for site, role in (expected or {}).items():
            unheard = SiteInfo(site, role, online=False, freshness="unknown", epoch=0, since=0)
            known.setdefault(site, unheard)
        return tuple(known[site] for site in sorted(known))

    def present(self, now: int, grace: int) -> frozenset[str]:
        """Return the sites that are there, or away for less than `grace` microseconds."""
        since = {site: self.offline_since(site) for site in self._sites}
        return frozenset(s for s, at in since.items() if at is None or now - at < grace)

    def _known(self, site: str, role: str) -> _Site | None:
        if site not in self._sites and len(self._sites) >= MAX_SITES:
            return None
        return self._sites.setdefault(site, _Site(role))


def _info(name: str, site: _Site) -> SiteInfo:
    state, birth = site.state, site.birth
    online = state is not None and state.online
    freshness = "unknown" if state is None else ("live" if online else "stale")
    detail = state.detail if state is not None else ""
    if state is not None and not online and not detail:
        detail = "stopped" if state.reason == "stopped" else "connection lost"
    return SiteInfo(
        site=name,
        role=site.role,
        online=online,
        freshness=freshness,
        epoch=max(site.epoch, birth.epoch if birth is not None else 0, 0),
        since=site.since,
        detail=detail,
        rooms=birth.rooms if birth is not None else (),
        sources=birth.sources if birth is not None else (),
        sensors=len(birth.sensors) if birth is not None else 0,
        wrappers=_wrappers(site),
        state=state,
    )


def _wrappers(site: _Site) -> tuple[WrapperState, ...]:
    """Return how the wrappers are doing: the state's figures are fresher than the birth's."""
    if site.state is not None and site.state.wrappers:
        return site.state.wrappers
    return site.birth.wrappers if site.birth is not None else ()
