"""Which other sites are online, and when one that is not counts as lost.

wire.md rules 3 and 4: a will with an older epoch than the site's current one is ignored; a site
that stays offline for the grace time is lost, once, until it comes back.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from streamsql.wire.messages import SiteState


@dataclass(slots=True)
class _Member:
    epoch: int
    offline_since: int | None = None
    lost: bool = False


@dataclass(slots=True)
class Membership:
    """The other sites, as last heard of.

    Attributes:
        grace: Microseconds an offline site is given to come back.
        on_lost: Called with the site's id when the grace time is over.
    """

    grace: int
    on_lost: Callable[[str], None]
    _members: dict[str, _Member] = field(default_factory=dict)

    def heard(self, site: str, state: SiteState, now: int) -> None:
        """Take in a site's state message; `now` in microseconds of the wall clock."""
        member = self._members.get(site)
        if member is not None and state.epoch < member.epoch:
            return
        if member is None or state.epoch > member.epoch:
            member = self._members[site] = _Member(state.epoch)
        if state.online:
            member.offline_since, member.lost = None, False
        elif member.offline_since is None:
            member.offline_since = now

    def check(self, now: int) -> None:
        """Report the sites whose grace time is over."""
        for site, member in self._members.items():
            since = member.offline_since
            if since is not None and not member.lost and now - since >= self.grace:
                member.lost = True
                self.on_lost(site)

    def next_deadline(self) -> int | None:
        """Return when the next grace time ends, or None."""
        deadlines = [
            member.offline_since + self.grace
            for member in self._members.values()
            if member.offline_since is not None and not member.lost
        ]
        return min(deadlines, default=None)

    def online(self) -> tuple[str, ...]:
        """Return the sites that are online."""
        return tuple(s for s, m in self._members.items() if m.offline_since is None)
