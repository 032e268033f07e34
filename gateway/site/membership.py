"""Which other sites are online, and when one that is not counts as lost.

wire.md rules 3 and 4: a will with an older epoch than the site's current one is ignored; a site
that stays offline for the grace time is lost, once, until it comes back. How long a retained state
is trusted is said in `host.heartbeats`.

All times are microseconds of one clock that only goes forward.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from host.heartbeats import Trust
from streamsql.wire.site_messages import SiteRole, SiteState

MAX_SITES = 1_000


@dataclass(slots=True)
class _Member:
    trust: Trust = field(default_factory=Trust)
    role: SiteRole | None = None
    offline_since: int | None = None
    lost: bool = False
    removed: bool = False


def nobody(_site: str) -> None:
    """Tell nobody that a site was removed."""


@dataclass(slots=True)
class Membership:
    """The other sites, as last heard of.

    Attributes:
        grace: Microseconds an offline site is given to come back.
        on_lost: Called with the site's id and epoch when the grace time is over.
        on_removed: Called with the site's id, after that, if it was removed permanently.
    """

    grace: int
    on_lost: Callable[[str, int], None]
    on_removed: Callable[[str], None] = nobody
    _members: dict[str, _Member] = field(default_factory=dict)

    def heard(self, site: str, state: SiteState, now: int, *, retained: bool = False) -> bool:
        """Ingest a state of a site, or of the broker in its place; return False if it is ignored.

        A state of an earlier life is ignored. Nobody knows since when a retained one is true.
        """
        member = self._members.get(site)
        if member is None and len(self._members) >= MAX_SITES:
            return False
        if member is None or state.epoch > member.trust.epoch:
            member = self._members[site] = _Member()
        if not member.trust.hear(state.epoch, now if retained else None):
            return False
        member.removed = False
        member.role = state.role
        if state.online:
            member.offline_since, member.lost = None, False
        elif member.offline_since is None:
            member.offline_since = now
        return True

    def removed(self, site: str, now: int) -> None:
        """Note that a site's state was emptied: it is gone permanently."""
        member = self._members.get(site)
        if member is None:
            return
        member.removed = True
        if member.offline_since is None:
            member.offline_since = now

    def reconnected(self, now: int) -> None:
        """Doubt everybody: what happened while we were away is not known."""
        for member in self._members.values():
            member.trust.lose_touch(now)

    def check(self, now: int) -> None:
        """Report the sites whose grace time is over, and which of them are removed permanently."""
        for site, member in self._members.items():
            if member.trust.has_ended(now):
                member.offline_since = member.offline_since or now
            since = member.offline_since
            if since is not None and not member.lost and now - since >= self.grace:
                member.lost = True
                self.on_lost(site, member.trust.epoch)
            if member.removed and member.lost:
                member.removed = False
                self.on_removed(site)

    def next_deadline(self) -> int | None:
        """Return when `check` has something to do next, or None."""
        deadlines = [
            member.offline_since + self.grace
            for member in self._members.values()
            if member.offline_since is not None and (member.removed or not member.lost)
        ]
        deadlines += [
            member.trust.ends for member in self._members.values() if member.trust.ends is not None
        ]
        return min(deadlines, default=None)

    def lost(self) -> tuple[tuple[str, int], ...]:
        """Return the sites that are lost, with their epochs."""
        return tuple((site, m.trust.epoch) for site, m in self._members.items() if m.lost)

    def known(self) -> frozenset[str]:
        """Return all sites that were heard of."""
        return frozenset(self._members)

    def role(self, site: str) -> SiteRole | None:
        """Return what a site says it is for; None for one that was not heard of."""
        member = self._members.get(site)
        return None if member is None else member.role

    def online(self) -> tuple[str, ...]:
        """Return the sites that are online."""
        return tuple(s for s, m in self._members.items() if m.offline_since is None)
