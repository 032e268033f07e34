"""Rows of one query of a site, read by others: what it has received, and its result."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Protocol

from stream_engine.exchange.channel_inbox import Inbox, Reader
from stream_engine.exchange.channel_outbox import Outbox
from stream_engine.exchange.fed_port import FedPort
from stream_engine.exchange.open_feeds import OpenFeed
from streamsql.data.delta import Delta, difference
from streamsql.wire.bundles.closure_prints import closure_print, is_kept
from streamsql.wire.bundles.needed_rows import needed_rows
from streamsql.wire.fragments import Feed, Fragment, FragmentBundle


class FedQuery(Protocol):
    """A query of a site as feeds need it."""

    @property
    def bundle(self) -> FragmentBundle:
        """Its plan."""

    @property
    def inbox(self) -> Inbox:
        """The rows it has received."""

    @property
    def outbox(self) -> Outbox:
        """The rows it has sent, and its result."""

    @property
    def feeds(self) -> Sequence[OpenFeed]:
        """Its readings of others."""

    @property
    def rank(self) -> int:
        """Above those of the queries whose results it reads."""

    @property
    def is_busy(self) -> bool:
        """Whether it has work left."""

    @property
    def waits(self) -> bool:
        """Whether one of its feeds does."""


class LocalFeeds:
    """Connects the queries of a site that read others with those others.

    A feeder hands on what arrives for it when it arrives, and its result at the end of its step, so
    that readers, which run after it, apply the same change in the same step. A reader whose feeder
    is gone, or is another version than the one that it was planned for, keeps the rows that it has,
    and waits. So does, until then, a reader of the result of one that has work left.

    Work: of a step, that of the feeders and readers with changes.

    Args:
        site: Its id.
        queries: Of the site.
        touched: Called with a query that was given rows between two steps.
        changed: Called with a query that waits now, or waits no more.
    """

    def __init__(
        self,
        site: str,
        queries: Mapping[str, FedQuery],
        touched: Callable[[str], None],
        changed: Callable[[str], None],
    ) -> None:
        self._site = site
        self._queries = queries
        self._touched = touched
        self._changed = changed
        self._readers: dict[str, dict[str, None]] = {}  # by the name of the feeder
        self._ports: dict[str, dict[str, FedPort]] = {}  # that are read, by feeder and fragment
        self._prints: dict[tuple[str, str], str] = {}  # of fragments that were asked for
        self._has_pending: dict[str, bool] = {}  # as told to the readers of a result
        self._handed: dict[str, None] = {}
        self._newcomers: dict[str, None] = {}

    def installed(self, name: str, query: FedQuery) -> None:
        """Let a query read others, and others read it, from the next step on."""
        for opened in query.feeds:
            self._readers.setdefault(opened.feed.run, {})[name] = None
            self._newcomers[name] = None
        for reader, _opened in self._readings(name):
            self._newcomers[reader] = None

    def connect(self) -> None:
        """Give readers that have come, or whose feeder has, what there is; call it before a step.

        Those that lack the same rows get them together, so ten thousand filters over one relation
        begin with one pass over it.
        """
        newcomers, self._newcomers = self._newcomers, {}
        groups: dict[tuple[str, str, int], list[tuple[str, OpenFeed]]] = {}
        for name in newcomers:
            for opened in self._queries[name].feeds:
                if self._find(name, opened):
                    run, port = opened.feed.run, opened.port
                    key = (run, port, id(opened.kept) if opened.kept else 0)
                    groups.setdefault(key, []).append((name, opened))
        for group in groups.values():
            self._begin(group)

    def discarded(self, name: str, query: FedQuery) -> None:
        """Let others keep what they have read of a query, which reads nothing more itself."""
        for opened in query.feeds:
            self._end(name, opened)
        kept: dict[str, Delta] = {}
        for reader, opened in list(self._readings(name)):
            if opened.is_fed:
                if opened.port not in kept:
                    kept[opened.port] = _rows(query, opened)
                opened.kept, opened.is_fed = kept[opened.port], False
                self._touched(reader)
                self._tell(reader)
        self._ports.pop(name, None)
        self._has_pending.pop(name, None)
        self._handed.pop(name, None)
        self._newcomers.pop(name, None)
        for fragment in query.bundle.fragments:
            self._prints.pop((name, fragment.id), None)

    def trimmed(self, name: str, query: FedQuery) -> None:
        """Let a query that computes no more read nothing, and give only what it receives."""
        for opened in query.feeds:
            self._end(name, opened)
        for reader, opened in list(self._readings(name)):
            if opened.is_fed and opened.is_result:
                opened.kept, opened.is_fed = _rows(query, opened), False
                self._ports.get(name, {}).pop(opened.feed.source, None)
                self._touched(reader)
                self._tell(reader)
        self._has_pending.pop(name, None)
        for fragment in query.bundle.fragments:
            self._prints.pop((name, fragment.id), None)

    def stepped(self, name: str) -> Iterable[str]:
        """Tell the readers of a result whether its query has work left.

        Returns:
            Those that the query has given rows, and that have to run in this step.
        """
        if name in self._has_pending:
            self._tell(name)
        if not self._handed:
            return ()
        handed, self._handed = self._handed, {}
        return handed

    def _readings(self, feeder: str) -> Iterator[tuple[str, OpenFeed]]:
        """Yield the readers of a query, with their readings of it."""
        for reader in self._readers.get(feeder, ()):
            for opened in self._queries[reader].feeds:
                if opened.feed.run == feeder:
                    yield reader, opened

    def _find(self, name: str, opened: OpenFeed) -> bool:
        """Whether there is a feeder for a reader that has none."""
        feed = opened.feed
        feeder = self._queries.get(feed.run)
        if feeder is None or feeder.bundle.version != feed.version or opened.is_fed:
            return False
        source = next((f for f in feeder.bundle.own if f.id == feed.source), None)
        if source is None or not self._can_read(name, self._queries[name], feeder, source, feed):
            return False
        opened.is_result = not source.consumer
        return not (opened.is_result and opened.is_sited)

    def _begin(self, group: Sequence[tuple[str, OpenFeed]]) -> None:
        """Give readers of one fragment what they lack, and from now on all that comes.

        What they have kept of an earlier feeder is the same object.
        """
        _name, first = group[0]
        feeder = self._queries[first.feed.run]
        missed = difference(_rows(feeder, first), first.kept)
        fill, port = FedPort(), self._port(feeder, first)
        for name, opened in group:
            reader, feed = self._queries[name], opened.feed
            plans = [fragment.plan for fragment in reader.bundle.at(self._site)]
            columns = reader.bundle.fragment(feed.fragment).plan.schema
            needed = needed_rows(plans, feed.fragment, columns)
            now = _giver(reader, opened, partial(self._touched, name))
            at_its_step = _giver(reader, opened, partial(self._hand, name))
            fill.add(_key(name, feed), now, needed)
            port.add(_key(name, feed), at_its_step if opened.is_result else now, needed)
            opened.is_fed, opened.kept, opened.has_pending = True, {}, False
            if opened.is_result:
                busy = feeder.is_busy or feeder.waits
                opened.has_pending = self._has_pending.setdefault(feed.run, busy)
            self._touched(name)
            self._tell(name)
        fill(missed, None)

    def _port(self, feeder: FedQuery, opened: OpenFeed) -> FedPort:
        """Return the port of a fragment that is read."""
        ports = self._ports.setdefault(opened.feed.run, {})
        port = opened.port
        if port not in ports:
            ports[port] = FedPort()
            end = feeder.outbox if opened.is_result else feeder.inbox
            end.read(port, ports[port])
        return ports[port]

    def _hand(self, name: str) -> None:
        """Note that a query was given rows that it has to apply in this step."""
        self._handed[name] = None

    def _end(self, name: str, opened: OpenFeed) -> None:
        """Give a reader no more."""
        feed = opened.feed
        readers = self._readers.get(feed.run, {})
        readers.pop(name, None)
        if not readers:
            self._readers.pop(feed.run, None)
        feeder = self._queries.get(feed.run)
        if feeder is None or not opened.is_fed:
            return
        ports = self._ports[feed.run]
        ports[opened.port].remove(_key(name, feed))
        if not ports[opened.port].is_read:
            del ports[opened.port]
            end = feeder.outbox if opened.is_result else feeder.inbox
            end.unread(opened.port)
        if not ports:
            del self._ports[feed.run]
            self._has_pending.pop(feed.run, None)

    def _tell(self, name: str) -> None:
        """Tell the readers of a query's result, and theirs, whether more may come of it."""
        changed = [name]
        while changed:
            feeder = changed.pop()
            told, query = self._has_pending.get(feeder), self._queries.get(feeder)
            if told is None or query is None or told == (query.is_busy or query.waits):
                continue
            self._has_pending[feeder] = not told
            for reader, opened in self._readings(feeder):
                if opened.is_fed and opened.is_result:
                    opened.has_pending = not told
                    self._changed(reader)
                    changed.append(reader)

    def _can_read(
        self, name: str, reader: FedQuery, feeder: FedQuery, source: Fragment, feed: Feed
    ) -> bool:
        """Whether the rows of a feeder's fragment are here, and are those that a reader wants."""
        if source.id in feeder.bundle.streams:
            return False  # only its latest rows are kept: one that begins late would lack some
        # Their state is restored after a restart, and would count what others hand on twice.
        if any(query.bundle.has_history(self._site) for query in (reader, feeder)):
            return False
        if source.consumer:
            # What a fragment computes here for one that reads it here does not arrive.
            if is_kept(source) or self._site in source.sites:
                return False
        elif source.sites != (self._site,) or feeder.rank >= reader.rank:
            return False
        # Another coordinator's: rows of another plan would be taken for its own.
        return self._print(feed.run, feeder, source.id) == self._print(name, reader, feed.fragment)

    def _print(self, name: str, query: FedQuery, fragment: str) -> str:
        key = (name, fragment)
        if key not in self._prints:
            self._prints[key] = closure_print(query.bundle, fragment)
        return self._prints[key]


def _key(name: str, feed: Feed) -> str:
    """Return a name of a reading; a query may read the same rows as two of its fragments."""
    return f"{name}/{feed.fragment}"


def _giver(reader: FedQuery, opened: OpenFeed, noted: Callable[[], None]) -> Reader:
    """Return what puts changes before a reader, and notes it."""
    fragment = opened.feed.fragment
    put = reader.inbox.give_sited if opened.is_sited else reader.inbox.give

    def give(delta: Delta, ts: int | None) -> None:
        put(fragment, delta, ts)
        noted()

    return give


def _rows(feeder: FedQuery, opened: OpenFeed) -> Delta:
    """Return all that a feeder has of what is read; the caller must not change it."""
    return (feeder.outbox if opened.is_result else feeder.inbox).total(opened.port)
