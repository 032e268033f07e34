"""Sites of the federation, and how far their last reports are trusted.

By the rules of the wire: births and states are retained; a state with an epoch older than the
newest one received is ignored, above all a late will. Sites that are only away stay listed; an
emptied birth or state topic removes one permanently. How long a retained state is
trusted is said in `host.heartbeats`.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

import msgspec

from federated_optimizer.coordinator.contract.coordinator_model import Freshness, SiteInfo
from host.heartbeats import Trust
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.definitions import SourceDefinition
from streamsql.errors import BindingError, DeploymentError
from streamsql.wire.site_messages import LOCAL_ROWS, Birth, ConnectorState, SiteRole, SiteState
from streamsql.wire.site_settings import SiteSettings
from streamsql.wire.source_shapes import differences, shape_of

MAX_SITES = 1_000
UNHEARD = "not heard of since the console was started"


@dataclass(slots=True)
class _Site:
    """One site.

    Attributes:
        trust: How far its state is trusted, by `monotonic_clock`.
        figures: The last state of the site itself: a will has no figures.
        figures_at: When it was heard.
    """

    role: SiteRole
    trust: Trust = field(default_factory=Trust)
    since: int = 0
    state: SiteState | None = None
    birth: Birth | None = None
    figures: SiteState | None = None
    figures_at: int = 0

    @property
    def epoch(self) -> int:
        """The newest epoch heard, -1 before any."""
        return self.trust.epoch


class Membership:
    """All sites as last reported.

    Attributes:
        births: Grows with every change of which sites there are, of their roles, and of what they
            have.
        moves: Grows whenever a site comes, goes, begins anew, or has sent all that it had kept.
    """

    def __init__(self) -> None:
        self._sites: dict[str, _Site] = {}
        self.births = self.moves = 0

    def hear_state(
        self, site: str, state: SiteState, now: int, *, retained_at: int | None = None
    ) -> bool:
        """Ingest a state; return whether it changed what is known.

        Args:
            site: Its id.
            state: What it, or the broker in its place, says.
            now: Wall-clock microseconds.
            retained_at: The moment, by `monotonic_clock`, if the broker has only retained it.
        """
        known = self._known(site, state.role)
        if known is None:
            return False
        before, old, stood = known.state, known.epoch, self._standing(site)
        if not known.trust.hear(state.epoch, retained_at):
            return False
        if before is None or before.online != state.online or state.epoch > old:
            known.since = now
        is_other = known.role != state.role or _declared(before) != _declared(state)
        self.births += is_other
        known.state = state
        if state.online:
            known.figures, known.figures_at = state, now
        known.role = state.role
        self.moves += stood != self._standing(site)
        return before != state

    def _standing(self, site: str) -> tuple[object, ...]:
        """Return what statuses of queries rest on; all else that a site says changes no status."""
        reached = (self.is_offline(site), self.is_in_touch(site), self.owes_readings(site))
        return (self.epoch(site), *reached)

    def hear_live(self, site: str, epoch: int) -> None:
        """Note that a site's present incarnation has sent something else than a state."""
        known = self._sites.get(site)
        if known is not None and epoch >= known.epoch:
            known.trust.confirm()

    def lost_touch(self, moment: int, needed: Mapping[str, SiteRole] | None = None) -> None:
        """Doubt everybody: the broker was away, and who fell meanwhile has left no will.

        Args:
            moment: Now, by `monotonic_clock`.
            needed: Sites that run something. One that nothing was ever heard of, and of which a
                broker that has forgotten everything tells nothing, is given up like the others.
        """
        for name, role in (needed or {}).items():
            self._known(name, role)
        for site in self._sites.values():
            site.trust.lose_touch(moment)

    def give_up(self, moment: int, now: int) -> tuple[str, ...]:
        """Count as offline, and return, the sites that were not heard live for too long.

        Args:
            moment: Now, by `monotonic_clock`.
            now: Wall-clock microseconds.
        """
        given_up = []
        for name, site in self._sites.items():
            if not site.trust.has_ended(moment):
                continue
            if site.state is None:
                # Its epoch is unknown: whatever it says of itself later is newer.
                site.state = SiteState(
                    online=False, epoch=0, ts=now, role=site.role, reason="lost", detail=UNHEARD
                )
            elif site.state.online:
                site.state = msgspec.structs.replace(site.state, online=False, reason="lost")
            else:
                continue
            site.since = now
            self.moves += 1
            given_up.append(name)
        return tuple(given_up)

    def hear_birth(self, birth: Birth) -> bool:
        """Ingest a birth; return whether it changed what is known."""
        known = self._known(birth.gateway, birth.role)
        if known is None or birth.epoch < known.epoch:
            return False
        if known.birth is not None and birth.epoch < known.birth.epoch:
            return False
        before, known.birth, known.role = known.birth, birth, birth.role
        self.births += before != birth
        return before != birth

    def forget(self, site: str) -> bool:
        """Remove a site whose retained messages were emptied."""
        self.births += 1
        return self._sites.pop(site, None) is not None

    def role(self, site: str) -> SiteRole | None:
        """Return a site's role, None when it is unknown."""
        known = self._sites.get(site)
        return known.role if known is not None else None

    def state(self, site: str) -> SiteState | None:
        """Return the newest state of a site; None where it has said nothing."""
        known = self._sites.get(site)
        return None if known is None else known.state

    def settings(self, site: str) -> SiteSettings | None:
        """Return the settings that an engine site says it uses; None where it has said nothing."""
        state = self.state(site)
        return None if state is None else state.settings

    def is_online(self, site: str) -> bool:
        """Whether a site is known to be online."""
        known = self._sites.get(site)
        return known is not None and known.state is not None and known.state.online

    def check_reachable(self, site: str) -> None:
        """Check that a site hears what it is told now.

        Raises:
            DeploymentError: It is not online, or was has not reported since the broker was offline.
        """
        if not self.is_online(site):
            raise DeploymentError(f"site {site} is not online", hint="see the page Gateways")
        if not self.is_in_touch(site):
            raise DeploymentError(
                f"site {site} has not reported since the broker was offline",
                hint="wait a few seconds, then retry",
            )

    def check_removable(self, site: str) -> None:
        """Check that a gateway may be removed: nobody plans with it or waits for it any more.

        If it ever starts again it is a new gateway.

        Raises:
            KeyError: There is no such site.
            BindingError: It is no gateway, or it is online.
        """
        role = self.role(site)
        if role is None:
            raise KeyError(site)
        if role != SiteRole.GATEWAY:
            raise BindingError(
                f"{site} is a {role} site, not a gateway", hint="only gateways can be removed"
            )
        if self.is_online(site):
            raise BindingError(
                f"gateway {site} is online",
                hint="stop it first: a running gateway announces itself again",
            )

    def is_in_touch(self, site: str) -> bool:
        """Whether a site is online, and was heard live since the broker was away, if it was."""
        return self.is_online(site) and not self._sites[site].trust.out_of_touch

    def is_offline(self, site: str) -> bool:
        """Whether a site was heard of and is away."""
        known = self._sites.get(site)
        return known is not None and known.state is not None and not known.state.online

    def cut_off(self, site: str, reason: str, now: int) -> SiteState | None:
        """Return the state of a site that has just been cut off; None: it is not online."""
        if not self.is_online(site):
            return None
        known = self._sites[site].state
        if known is None:
            return None
        return msgspec.structs.replace(known, online=False, reason=reason, ts=now)

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

    def announced(self) -> list[Birth]:
        """Return the newest birth of every site that has announced something."""
        return [site.birth for site in self._sites.values() if site.birth is not None]

    def offering(self, sources: Collection[str]) -> frozenset[str]:
        """Return the sites that announced one of some sources, given in lower case."""
        return frozenset(
            name
            for name, site in self._sites.items()
            if site.birth is not None and any(s.lower() in sources for s in site.birth.sources)
        )

    def owes_readings(self, site: str) -> bool:
        """Whether a gateway may have readings that it could not send yet."""
        if not self.is_in_touch(site):
            return True
        state = self._sites[site].state
        return state is not None and state.buffer.waiting > 0

    def compared(self) -> dict[str, frozenset[str]]:
        """Return the columns that databases compare as we do, by table in lower case."""
        return {
            name.lower(): frozenset(columns)
            for site in self._sites.values()
            if site.state is not None and site.state.role == SiteRole.STATIC
            for name, columns in site.state.compared.items()
        }

    def local_rows(self) -> int | None:
        """Return up to how many rows the static engine does without Spark, if it has said."""
        states = [site.state for site in self._sites.values() if site.state is not None]
        told = [s.counters.get(LOCAL_ROWS) for s in states if s.role == SiteRole.STATIC]
        return next((rows for rows in told if rows is not None), None)

    def long_gone(self, now: int, microseconds: int) -> frozenset[str]:
        """Return the sites that have been away for at least so long."""
        return frozenset(
            name
            for name, site in self._sites.items()
            if self.is_offline(name) and now - site.since >= microseconds
        )

    def with_role(self, role: SiteRole) -> tuple[str, ...]:
        """Return the sites of a role, sorted."""
        return tuple(sorted(name for name, site in self._sites.items() if site.role == role))

    def differing(self, catalog: Catalog) -> dict[str, dict[str, str]]:
        """Return how gateways define sources otherwise than a catalog, by source and gateway."""
        found: dict[str, dict[str, str]] = {}
        for name, site in self._sites.items():
            for there in site.birth.shapes if site.birth is not None else ():
                known = catalog.find(there.source)
                if not isinstance(known, SourceDefinition):
                    continue
                difference = differences(shape_of(known.scan()), there)
                if difference:
                    found.setdefault(known.name.lower(), {})[name] = difference
        return found

    @property
    def fills_windows(self) -> bool:
        """Whether a static engine has, or had when it was last there, a lake to fill windows."""
        return any(site.figures is not None and site.figures.fills for site in self._sites.values())

    def infos(
        self,
        expected: Mapping[str, SiteRole] | None = None,
        differing: Mapping[str, Mapping[str, str]] | None = None,
        late: Mapping[str, frozenset[str]] | None = None,
    ) -> tuple[SiteInfo, ...]:
        """Return all sites, sorted by id.

        Args:
            expected: Sites with their roles that are listed before they are heard of.
            differing: How sites define sources otherwise than the catalog, by source and site.
            late: Declared sources that sites should have reported by now, by site.
        """
        said, late = differing or {}, late or {}
        known = {
            name: replace(
                _info(name, site, {s: by[name] for s, by in said.items() if name in by}),
                late_sources=late.get(name, frozenset()),
            )
            for name, site in self._sites.items()
        }
        for site, role in (expected or {}).items():
            unheard = SiteInfo(
                site, role, online=False, freshness=Freshness.UNKNOWN, epoch=0, since=0
            )
            known.setdefault(site, unheard)
        return tuple(known[site] for site in sorted(known))

    def present(self, now: int, grace: int) -> frozenset[str]:
        """Return the sites that are there, or away for less than `grace` microseconds."""
        since = {site: self.offline_since(site) for site in self._sites}
        return frozenset(s for s, at in since.items() if at is None or now - at < grace)

    def _known(self, site: str, role: SiteRole) -> _Site | None:
        if site not in self._sites and len(self._sites) >= MAX_SITES:
            return None
        if site not in self._sites:
            self.births += 1
        return self._sites.setdefault(site, _Site(role))


def _info(name: str, site: _Site, differing: Mapping[str, str]) -> SiteInfo:
    state, birth = site.state, site.birth
    online = state is not None and state.online
    live = online and not site.trust.out_of_touch
    freshness = Freshness.LIVE if live else Freshness.STALE
    detail = state.detail if state is not None else ""
    if online and site.trust.out_of_touch and not detail:
        detail = "has not reported since the broker was offline"
    if state is not None and not online and not detail:
        detail = "stopped" if state.reason == "stopped" else "connection lost"
    told = tuple(
        f"source {source} is defined differently here than in the catalog: {difference}"
        for source, difference in sorted(differing.items())
    )
    detail = "; ".join(part for part in (detail, *told) if part)
    is_known = site.figures is not None and not online
    return SiteInfo(
        site=name,
        role=site.role,
        online=online,
        freshness=Freshness.UNKNOWN if state is None else freshness,
        epoch=max(site.epoch, birth.epoch if birth is not None else 0, 0),
        since=site.since,
        detail=detail,
        rooms=birth.rooms if birth is not None else (),
        sources=birth.sources if birth is not None else (),
        sensors=len(birth.sensors) if birth is not None else 0,
        connectors=_connectors(site),
        state=state,
        figures=site.figures,
        figures_since=site.figures_at if is_known else None,
        differences=told,
    )


def _declared(state: SiteState | None) -> object:
    """Return what a state says of declared sources that is no figure."""
    if state is None or not state.declared:
        return ()
    return (state.online, [(each.name, each.version, each.problem) for each in state.declared])


def _connectors(site: _Site) -> tuple[ConnectorState, ...]:
    """Return how the connectors are doing: a state's figures are fresher than the birth's."""
    if site.figures is not None and site.figures.connectors:
        return site.figures.connectors
    return site.birth.connectors if site.birth is not None else ()
