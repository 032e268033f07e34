"""The product as shipped, in one process: StreamSQL in, deltas out, the view kept and readable."""

from collections.abc import Iterable
from itertools import groupby
from operator import itemgetter

from federated_optimizer import Topology, plan
from stream_engine.site.site_engine import SiteEngine
from streamsql.binder import bind_query, define
from streamsql.catalog.catalog import Catalog
from streamsql.data.delta import Delta, accumulate
from streamsql.data.events import SourceEvent
from streamsql.data.types import Row
from streamsql.syntax import parse_script
from streamsql.syntax.statements import CreateSource, CreateView, Query

SITE = "site"
SECOND = 1_000_000

Change = tuple[str, Row, int]
"""Source, row, and +1 (it arrives) or -1 (it is withdrawn)."""


class Product:
    """One site that owns every source and runs one query.

    Args:
        script: CREATE statements, then one query.

    Attributes:
        view: The query's rows with their numbers, kept up to date by `update`.
    """

    def __init__(self, script: str) -> None:
        catalog = Catalog()
        bound = None
        for statement in parse_script(script):
            if isinstance(statement, CreateSource | CreateView):
                catalog.define(define(statement, catalog))
            elif isinstance(statement, Query):
                bound = bind_query(statement, catalog)
        if bound is None:
            raise ValueError("the script has no query")
        owned = frozenset(d.name.lower() for d in (*catalog.sources, *catalog.tables))
        topology = Topology({SITE: owned}, bases=(SITE,), static=SITE)
        bundle = plan(bound, topology, query="q")
        self.view: Delta = {}
        self._now = 0
        self._site = SiteEngine(SITE, 1)
        for definition in (*catalog.sources, *catalog.tables):
            self._site.declare(definition.scan())
        self._site.install(bundle)
        self.update([])

    def update(self, changes: Iterable[Change], *, at: int | None = None) -> int:
        """Apply changes as one; return how many rows of the view changed.

        Args:
            changes: Of the sources.
            at: Time in microseconds; by default one second after the last.

        Raises:
            FederationError: The query failed.
        """
        self._now = self._now + SECOND if at is None else at
        for source, of_source in groupby(changes, key=itemgetter(0)):
            events = [SourceEvent(row, self._now, weight < 0) for _, row, weight in of_source]
            self._site.ingest(source, events)
        step = self._site.step(self._now)
        for _query, failure in step.failures:
            raise failure
        changed = 0
        for sent in step.outgoing:
            change = {change.row: change.weight for change in sent.batch.deltas}
            changed += len(change)
            accumulate(self.view, change)
        return changed
