"""Fragments: the pieces of a plan that one engine runs at its sites."""

import enum
from functools import cached_property

import msgspec
from msgspec.structs import replace

from streamsql.algebra.choices import Way
from streamsql.algebra.operators import (
    Filter,
    Plan,
    RemoteSource,
    Scan,
    SourceKind,
    Window,
    walk_plan,
)
from streamsql.algebra.streams import Emit, is_final, is_stream, keeps_history
from streamsql.data.schema import Schema


class Engine(enum.StrEnum):
    """Engines that run fragments."""

    GATEWAY = "gateway"
    BASE = "base"
    STATIC = "static"


GATEWAY_TABLE_ROWS = 10_000
"""Rows of a stored table for which a plan is made that sends them to gateways."""

GATEWAY_ROW_BYTES = 100
"""Of such a row, on average; wider ones count as several."""

TABLE_OUTGROWN = "table_outgrown"
"""The code of the problem of a query whose gateways would have to keep too many rows."""


class Fragment(msgspec.Struct, frozen=True):
    """A plan instantiated on each of its sites.

    Its output goes to `consumer` (another fragment) at `destinations`, or, when `consumer` is
    empty, to the console as the query's result. Any number of fragments may read it there
    (`FragmentBundle.readers`): its rows are sent once, and `consumer` is the first of them. With
    several destinations rows go to the one that `bundles.partitioning.site_of` chooses by
    the columns of `partition`; an empty `partition` with several destinations sends every row to
    all of them.

    Attributes:
        id: Unique in the query, e.g. "f1".
        plan: `RemoteSource` leaves name the fragments it reads.
        sites: Site ids that run it.
        reasons: Why each part that was not pushed further stayed here, one sentence each; sites do
            not read them.
        notes: What else people should know, one sentence each; sites do not read them.
        grouped: Tables whose database can compute groups, with the columns, by position, that it
            compares as we do; for people, sites find out themselves.
        homes: Values with the index of a site; rows about any other value are spread by hash. In a
            recursion of several sites: the one where rows about the value are kept. Else, with a
            `partition`: the destination of its rows about the value.
    """

    id: str
    engine: Engine
    plan: Plan
    sites: tuple[str, ...]
    consumer: str = ""
    destinations: tuple[str, ...] = ()
    partition: tuple[int, ...] = ()
    reasons: tuple[str, ...] = ()
    homes: tuple[tuple[str, int], ...] = ()
    notes: tuple[str, ...] = ()
    grouped: tuple[tuple[str, tuple[int, ...]], ...] = ()

    @property
    def computed(self) -> "Fragment":
        """The fragment without what is told to people alone."""
        return replace(self, reasons=(), notes=(), grouped=())

    @property
    def inputs(self) -> tuple[str, ...]:
        """The fragments that it reads, in the order of its plan."""
        nodes = walk_plan(self.plan)
        return tuple(dict.fromkeys(n.fragment for n in nodes if isinstance(n, RemoteSource)))


def source_filters(plan: Plan) -> tuple[Filter, ...]:
    """Return the filters right over a source of devices, or its window, in the order of the plan.

    Reports on filters give their places in it.
    """
    nodes = (node for node in walk_plan(plan) if isinstance(node, Filter))
    return tuple(dict.fromkeys(node for node in nodes if filtered_scan(node) is not None))


def filtered_scan(plan: Filter) -> Scan | None:
    """Return the scan of devices that a filter reads directly, or through a window; else None."""
    below = plan.input.input if isinstance(plan.input, Window) else plan.input
    if isinstance(below, Scan) and below.kind != SourceKind.TABLE and below.history is None:
        return below
    return None


class WayPrice(msgspec.Struct, frozen=True):
    """The expected cost of one way of computing a recursion.

    Attributes:
        bytes_per_second: Between sites, with what goes to the base site.
        milliseconds: From a change of a base row to the last row it changes at the base site.
        where: The site or the number of sites that would compute it.
    """

    way: Way
    bytes_per_second: float
    milliseconds: float
    where: str = ""


class RecursionPlan(msgspec.Struct, frozen=True):
    """The way in which a recursion is computed, and why: for people, and for planning it again.

    Attributes:
        name: Of the relation.
        key: The same for the same recursion in any query.
        way: The way taken.
        sites: Where it is computed.
        forced: Whether the query asked for the way.
        why: In words.
        prices: Of all ways.
        assumed: What the prices rest on that nobody has counted, in words.
        measured: Whether they rest on what a running query has counted.
        without: Gateways that own some of what it reads and have been away for too long.
        kept: How the sites will maintain it, in words; empty where no site has reported it.
    """

    name: str
    key: str
    way: Way
    sites: tuple[str, ...]
    forced: bool = False
    why: str = ""
    prices: tuple[WayPrice, ...] = ()
    assumed: tuple[str, ...] = ()
    measured: bool = False
    without: tuple[str, ...] = ()
    kept: str = ""


class Feed(msgspec.Struct, frozen=True):
    """A fragment whose rows are at its destinations for another bundle already.

    The other bundle's sites send them there, or they are its result, and the destination is the
    site that has it.

    Attributes:
        fragment: Its id here; nobody runs it for this bundle, nor what only it reads.
        run: The name of the other bundle.
        version: Of the other bundle.
        source: The equal fragment's id there; that of the result, too.
    """

    fragment: str
    run: str
    version: int
    source: str


class FragmentBundle(msgspec.Struct, frozen=True, dict=True):
    """All fragments of a query; every site gets the whole and runs what names it.

    Attributes:
        version: Grows with every redeployment; a site drops batches of older versions.
        schema: Columns of the query's result.
        recursions: How each recursion is computed; sites do not read it.
        units: Of the result's columns, "" where none is known; sites do not read them.
        fills: Sources of which the lake has earlier rows, with which windows over them begin.
        started: When the query started, microseconds since 1970 UTC, where its scans of the past
            count from then; else 0.
        alternative: Number of the plan among those of the query; 0: nobody has chosen. Sites do
            not read it.
        choices: Digest of what was chosen: with other sites the number may mean another plan.
        feeds: Fragments that are read where other bundles receive them, and run for those alone.
        outgrown: Whether a table had too many rows for the gateways of the query, which is planned
            since so that they keep none; sites do not read it.
        silent: Whether its result is only read by other bundles at the site that has it, and not
            published.
    """

    query: str
    version: int
    fragments: tuple[Fragment, ...]
    schema: Schema
    text: str = ""
    emit: Emit = Emit.RELATION
    recursions: tuple[RecursionPlan, ...] = ()
    units: tuple[str, ...] = ()
    fills: tuple[str, ...] = ()
    started: int = 0
    alternative: int = 0
    choices: str = ""
    feeds: tuple[Feed, ...] = ()
    outgrown: bool = False
    silent: bool = False

    @cached_property
    def own(self) -> tuple[Fragment, ...]:
        """The fragments that sites run for this bundle.

        These are the ones that its result needs, without those that are fed and what only they
        need.
        """
        if not self.feeds:
            return self.fragments
        by_id = {fragment.id: fragment for fragment in self.fragments}
        for feed in self.feeds:
            by_id.pop(feed.fragment, None)
        needed = [fragment.id for fragment in self.fragments if not fragment.consumer]
        found: set[str] = set()
        while needed:
            fragment = by_id.get(needed.pop())
            if fragment is not None and fragment.id not in found:
                found.add(fragment.id)
                needed.extend(fragment.inputs)
        return tuple(f for f in self.fragments if f.id in found)

    @cached_property
    def fed(self) -> tuple[Fragment, ...]:
        """The fragments that sites run for other bundles, and whose rows this one reads."""
        read = {feed.fragment for feed in self.feeds}
        needed = {name for fragment in self.own for name in fragment.inputs}
        return tuple(f for f in self.fragments if f.id in read & needed)

    @property
    def results_read(self) -> frozenset[str]:
        """The bundles whose results this one reads."""
        fed = ((feed.run, self.fragment(feed.fragment)) for feed in self.feeds)
        return frozenset(run for run, fragment in fed if fragment.engine == Engine.BASE)

    @cached_property
    def streams(self) -> frozenset[str]:
        """The fragments that emit streams: rows are only added, and channels discard old ones.

        So are results whose rows are final, as those of windows that have closed.
        """
        return frozenset(
            f.id
            for f in self.fragments
            if is_stream(f.plan) or (not f.consumer and is_final(f.plan))
        )

    @cached_property
    def is_final(self) -> bool:
        """Whether the result is a relation to which rows are only added."""
        results = [f for f in self.fragments if not f.consumer]
        return self.emit == Emit.RELATION and all(is_final(f.plan) for f in results)

    def fragment(self, fragment_id: str) -> Fragment:
        """Return a fragment by id.

        Raises:
            KeyError: There is none.
        """
        for fragment in self.fragments:
            if fragment.id == fragment_id:
                return fragment
        raise KeyError(fragment_id)

    @property
    def computed(self) -> list[Fragment]:
        """The fragments without what is told to people alone."""
        return [fragment.computed for fragment in self.fragments]

    def runs_as(self, other: "FragmentBundle") -> bool:
        """Whether sites would run the same of another bundle, whatever is told to people."""
        return self.computed == other.computed

    @cached_property
    def sites(self) -> frozenset[str]:
        """The sites that run something of the query."""
        return frozenset(site for fragment in self.own for site in fragment.sites)

    @property
    def at_gateways(self) -> frozenset[str]:
        """The fragments of stored tables whose rows gateways keep."""
        gateways = (f for f in self.fragments if f.engine == Engine.GATEWAY)
        nodes = (node for f in gateways for node in walk_plan(f.plan))
        read = {node.fragment for node in nodes if isinstance(node, RemoteSource)}
        return frozenset(f.id for f in self.fragments if f.engine == Engine.STATIC and f.id in read)

    def at(self, site: str) -> tuple[Fragment, ...]:
        """Return the fragments a site runs."""
        return tuple(f for f in self.own if site in f.sites)

    def has_history(self, site: str) -> bool:
        """Return whether its state at a site cannot be computed again from its sources.

        It concerns the whole bundle: a fragment that restarts sends all its rows to the next one,
        which would count twice what it was restored with.
        """
        plans = [fragment.plan for fragment in self.at(site)]
        return any(keeps_history(node) for plan in plans for node in walk_plan(plan))

    def readers(self, fragment_id: str) -> tuple[str, ...]:
        """Return the fragments that read a fragment, one that reads it twice as two."""
        return tuple(
            f.id
            for f in self.fragments
            for node in walk_plan(f.plan)
            if isinstance(node, RemoteSource) and node.fragment == fragment_id
        )

    def readers_of_all(self) -> dict[str, list[str]]:
        """Return the fragments that read each fragment; see `readers`."""
        found: dict[str, list[str]] = {fragment.id: [] for fragment in self.fragments}
        for fragment in self.fragments:
            for node in walk_plan(fragment.plan):
                if isinstance(node, RemoteSource) and node.fragment in found:
                    found[node.fragment].append(fragment.id)
        return found

    @cached_property
    def result_sites(self) -> tuple[str, ...]:
        """Sites that publish the query's result; none of a silent bundle."""
        if self.silent:
            return ()
        return tuple(s for f in self.fragments if not f.consumer for s in f.sites)
