"""Rows that one query of a site has received, read by others that have an equal fragment."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from stream_engine.exchange.channel_inbox import Inbox
from streamsql.data.delta import Delta, difference
from streamsql.wire.fragments import Feed, FragmentBundle


@dataclass(slots=True)
class OpenFeed:
    """The reading end of a feed.

    Attributes:
        kept: What was read of a feeder that is gone; the next one gives the difference.
        is_fed: Whether a feeder is there.
    """

    feed: Feed
    kept: Delta = field(default_factory=dict)
    is_fed: bool = False


class FedQuery(Protocol):
    """A query of a site as feeds need it."""

    @property
    def bundle(self) -> FragmentBundle:
        """Its plan."""

    @property
    def inbox(self) -> Inbox:
        """The rows it has received."""

    @property
    def feeds(self) -> Sequence[OpenFeed]:
        """Its readings of others."""


class LocalFeeds:
    """Connects the queries of a site that read what others receive with those others.

    A feeder hands each change on when it arrives, so both apply it in the same step. A reader whose
    feeder is gone, or is another version than the one that it was planned for, keeps the rows that
    it has, and counts as busy.

    Args:
        queries: Of the site.
        touched: Called with a query that was given rows.
    """

    def __init__(self, queries: Mapping[str, FedQuery], touched: Callable[[str], None]) -> None:
        self._queries = queries
        self._touched = touched
        self._readers: dict[str, dict[str, None]] = {}  # by the name of the feeder

    def installed(self, name: str, query: FedQuery) -> None:
        """Let a query read others, and others read it."""
        for opened in query.feeds:
            self._readers.setdefault(opened.feed.run, {})[name] = None
            self._begin(name, query, opened)
        for reader in self._readers.get(name, ()):
            other = self._queries[reader]
            for opened in other.feeds:
                if opened.feed.run == name:
                    self._begin(reader, other, opened)

    def discarded(self, name: str, query: FedQuery) -> None:
        """Let others keep what they have read of a query, which reads nothing more itself."""
        for opened in query.feeds:
            readers = self._readers.get(opened.feed.run, {})
            readers.pop(name, None)
            if not readers:
                self._readers.pop(opened.feed.run, None)
            feeder = self._queries.get(opened.feed.run)
            if feeder is not None and opened.is_fed:
                feeder.inbox.unread(opened.feed.source, name)
        for reader in self._readers.get(name, ()):
            for opened in self._queries[reader].feeds:
                if opened.feed.run == name and opened.is_fed:
                    opened.kept = query.inbox.total(opened.feed.source)
                    opened.is_fed = False
                    self._touched(reader)

    def _begin(self, name: str, reader: FedQuery, opened: OpenFeed) -> None:
        """Give a reader what the feeder has received so far, and from now on all that comes."""
        feed = opened.feed
        feeder = self._queries.get(feed.run)
        if feeder is None or feeder.bundle.version != feed.version or opened.is_fed:
            return
        if not _are_equal(reader.bundle, feed.fragment, feeder.bundle, feed.source):
            return  # another coordinator's: rows of another plan would be taken for its own
        missed = difference(feeder.inbox.total(feed.source), opened.kept)
        opened.kept, opened.is_fed = {}, True

        def give(delta: Delta, ts: int | None) -> None:
            reader.inbox.give(feed.fragment, delta, ts)
            self._touched(name)

        give(missed, None)
        feeder.inbox.read(feed.source, name, give)


def _are_equal(first: FragmentBundle, name: str, other: FragmentBundle, source: str) -> bool:
    """Whether two bundles have the same fragment under these names, and the other one runs it."""
    mine = [f for f in first.fragments if f.id == name]
    theirs = [f for f in other.own if f.id == source]
    return [(f.plan, f.sites, f.destinations, f.partition) for f in mine] == [
        (f.plan, f.sites, f.destinations, f.partition) for f in theirs
    ]
