"""The base rows a question is about, read from the sites by queries of our own.

One helper query per leaf, all at once; when all of them are settled at the same moment their rows
are taken together, which is as consistent as independent sites can be. They are ordinary session
queries, so a coordinator that dies half way leaves nothing behind.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from federated_optimizer.coordinator.contract.coordinator_model import QueryStatus
from federated_optimizer.coordinator.queries.running_queries import RunningQuery
from federated_optimizer.coordinator.shared_parts import SharedParts
from federated_optimizer.coordinator.sites.federation_membership import Membership
from host.clocks import monotonic_clock
from streamsql.algebra.operators import SourceKind, Window, WindowKind
from streamsql.algebra.row_explanations import Contents, Leaf, scan_of
from streamsql.binder import BoundLoss, GatewayDeletion
from streamsql.data.delta import expand
from streamsql.data.types import Row
from streamsql.errors import BindingError, DeploymentError, UnsupportedError
from streamsql.syntax.cursor import did_you_mean
from streamsql.wire.site_messages import SiteRole

POLL_SECONDS = 0.02
QUIET_POLLS = 3
"""Looks in a row at which all helpers were settled and nothing had changed."""

Start = Callable[[str], Awaitable[RunningQuery]]
Stop = Callable[[RunningQuery], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class BaseRows:
    """Base rows as read.

    Attributes:
        contents: Rows by leaf.
        origins: Rows by the gateway that sent them, of leaves that gateways send as they are.
        notes: What is not known, in words.
    """

    contents: dict[Leaf, list[Row]]
    origins: dict[Leaf, dict[str, list[Row]]]
    notes: tuple[str, ...]


class BaseRowReader:
    """Reads the rows of leaves."""

    def __init__(self, shared: SharedParts, start: Start, stop: Stop) -> None:
        self._membership = shared.membership
        self._start = start
        self._stop = stop
        self._seconds = shared.settings.base_seconds
        self._max_rows = shared.settings.max_base_rows

    async def read(self, leaves: Sequence[Leaf]) -> BaseRows:
        """Return the rows of some leaves.

        Raises:
            DeploymentError: They do not come in time, or a helper query fails.
            UnsupportedError: There are too many.
        """
        helpers: list[RunningQuery] = []
        try:
            for leaf in leaves:  # each at once in the list: what was started is stopped
                helpers.append(await self._start(leaf_query(leaf)))  # noqa: PERF401
            restless = await self._settle(helpers)
            read = dict(zip(leaves, helpers, strict=True))
            contents = {leaf: list(expand(dict(h.result.view))) for leaf, h in read.items()}
            origins = {leaf: o for leaf, h in read.items() if (o := self._origins(h)) is not None}
        finally:
            for helper in helpers:
                await self._stop(helper)
        return BaseRows(contents, origins, tuple(restless) + tuple(forgetful(leaves)))

    def _origins(self, helper: RunningQuery) -> dict[str, list[Row]] | None:
        """Return rows by the gateway that sent them; None where another site has mixed them."""
        by_site = {s: list(expand(dict(d))) for s, d in helper.result.contents_by_site().items()}
        roles = {self._membership.role(site) for site, rows in by_site.items() if rows}
        return by_site if roles <= {SiteRole.GATEWAY} else None

    async def _settle(self, helpers: list[RunningQuery]) -> list[str]:
        """Wait until all helpers stand still at once; return a note when they never did."""
        deadline = monotonic_clock() + int(self._seconds * 1_000_000)
        quiet = 0
        last: object = None
        while quiet < QUIET_POLLS:
            for helper in helpers:
                self._check(helper)
            if sum(helper.result.size for helper in helpers) > self._max_rows:
                raise UnsupportedError(
                    f"the sources of this query have more than {self._max_rows} rows",
                    hint="ask about a query that reads fewer rows: a shorter window, a smaller "
                    "source",
                )
            settled = all(helper.is_settled() for helper in helpers)
            changes = [helper.result.changes for helper in helpers]
            quiet = quiet + 1 if settled and changes == last else 0
            last = changes
            if monotonic_clock() > deadline:
                return self._late(helpers)
            await asyncio.sleep(POLL_SECONDS)
        return []

    def _check(self, helper: RunningQuery) -> None:
        if helper.current_status() == QueryStatus.FAILED:
            raise DeploymentError(f"cannot read the base rows ({helper.text}): {helper.error}")

    def _late(self, helpers: list[RunningQuery]) -> list[str]:
        """Take what is there if every site has answered once.

        Raises:
            DeploymentError: One has not.
        """
        silent = {site for helper in helpers if not helper.started for site in helper.waiting_for()}
        if silent or not all(helper.started for helper in helpers):
            raise DeploymentError(
                f"the base rows did not arrive within {self._seconds:.0f} s; still waiting "
                f"for {', '.join(sorted(silent)) or 'sites'}",
                hint="retry when these sites are online (Spark needs a while to start)",
            )
        return ["the sources kept changing, so the rows may be of different times"]


def leaf_query(leaf: Leaf) -> str:
    """Return a query for the rows of a leaf, columns as in the source.

    Examples:
        >>> from streamsql.algebra.operators import Scan, SourceKind
        >>> from streamsql.data.schema import Schema
        >>> link = Scan("link", SourceKind.LINK, Schema.of())
        >>> leaf_query(Window(link, WindowKind.RANGE, 1_500_000))
        'SELECT * FROM "link" [RANGE 1500000 MICROSECONDS]'
    """
    scan = scan_of(leaf)
    name = _quoted(scan.source)
    if not isinstance(leaf, Window):
        return f"SELECT * FROM {name}"  # noqa: S608 - a quoted name of the catalog
    columns = ", ".join(_quoted(scan.columns.names[p]) for p in leaf.partition)
    by = f"PARTITION BY {columns} " if columns else ""
    match leaf.kind:
        case WindowKind.RANGE:
            slide = f" SLIDE {leaf.slide} MICROSECONDS" if leaf.slide else ""
            extent = f"RANGE {leaf.size} MICROSECONDS{slide}"
        case WindowKind.ROWS:
            extent = f"ROWS {leaf.size}"
        case _:
            extent = str(leaf.kind)
    return f"SELECT * FROM {name} [{by}{extent}]"  # noqa: S608 - likewise


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def forgetful(leaves: Sequence[Leaf]) -> list[str]:
    """Return a sentence per source of which only rows from now on can be known."""
    names = {
        scan.source
        for scan in map(scan_of, leaves)
        if scan.kind == SourceKind.STREAM and not scan.key and scan.ttl is None
    }
    return [
        f"source {name} has neither key nor ttl: rows from before this statement are unknown"
        for name in sorted(names)
    ]


def lost_by_values(contents: Contents, losses: Sequence[BoundLoss]) -> dict[Leaf, list[Row]]:
    """Return the rows of leaves that are meant by their values."""
    return {
        leaf: [row for row in rows if any(x.matches(scan_of(leaf).source, row) for x in losses)]
        for leaf, rows in contents.items()
    }


def lost_rows(base: BaseRows, losses: Sequence[BoundLoss]) -> dict[Leaf, list[Row]]:
    """Return the rows of leaves that are meant, each as often as it would go.

    A row that two gateways have stays while one of them is there.
    """
    lost = lost_by_values(base.contents, losses)
    gateways = {loss.gateway for loss in losses if isinstance(loss, GatewayDeletion)}
    for leaf, by_site in base.origins.items():
        meant = set(lost[leaf])
        for site in gateways & by_site.keys():
            lost[leaf].extend(row for row in by_site[site] if row not in meant)
    return lost


def unknown_owners(base: BaseRows, losses: Sequence[BoundLoss]) -> list[str]:
    """Return a sentence per source whose rows are mixed before anyone sees whose they are."""
    if not any(isinstance(loss, GatewayDeletion) for loss in losses):
        return []
    names = {
        scan_of(leaf).source
        for leaf in base.contents
        if leaf not in base.origins and scan_of(leaf).kind != SourceKind.TABLE
    }
    return [
        f"a base site merges the rows of {name}, so their gateways are unknown here and "
        "all of them stay"
        for name in sorted(names)
    ]


def check_gateways(losses: Sequence[BoundLoss], membership: Membership) -> None:
    """Check that every gateway that would die is one.

    Raises:
        BindingError: It is not known.
    """
    known = membership.with_role(SiteRole.GATEWAY)
    for loss in losses:
        if isinstance(loss, GatewayDeletion) and loss.gateway not in known:
            listed = f"known: {', '.join(known) or 'none'}"
            raise BindingError(
                f"there is no gateway {loss.gateway!r:.60}",
                hint=did_you_mean(loss.gateway, known, listed),
                code="unknown_relation",
            )
