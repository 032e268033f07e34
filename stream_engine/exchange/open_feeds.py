"""The reading ends of a query's feeds at one site."""

from dataclasses import dataclass, field

from stream_engine.state.sited_ports import sited, sited_fragments
from streamsql.data.delta import Delta
from streamsql.wire.fragments import Feed, FragmentBundle


@dataclass(slots=True)
class OpenFeed:
    """The reading end of a feed.

    Attributes:
        kept: What was read of a feeder that is gone; the next one gives the difference.
        is_fed: Whether a feeder is there.
        is_result: Whether it reads the feeder's result, not what the feeder receives.
        has_pending: Whether the feeder, whose result it reads, has work left.
        is_sited: Whether it reads rows with the sites that have sent them; then so is what is kept.
    """

    feed: Feed
    kept: Delta = field(default_factory=dict)
    is_fed: bool = False
    is_result: bool = False
    has_pending: bool = False
    is_sited: bool = False

    @property
    def port(self) -> str:
        """The name by which the feeder gives the rows."""
        return sited(self.feed.source) if self.is_sited else self.feed.source

    @property
    def waits(self) -> bool:
        """Whether more may come without any input from outside."""
        return not self.is_fed or self.has_pending


def open_feeds(bundle: FragmentBundle, site: str) -> list[OpenFeed]:
    """Return the feeds that fragments here read, not connected."""
    destinations = {f.id: f.destinations for f in bundle.fragments}
    here = bundle.at(site)
    read = {name for fragment in here for name in fragment.inputs}
    sited = sited_fragments(fragment.plan for fragment in here)
    return [
        OpenFeed(feed, is_sited=feed.fragment in sited)
        for feed in bundle.feeds
        if feed.fragment in read and site in destinations.get(feed.fragment, ())
    ]
