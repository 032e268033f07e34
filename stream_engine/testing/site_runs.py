"""One site that runs one query, with the clock that streams of changes need."""

from collections.abc import Iterable

from stream_engine.site.site_engine import SiteEngine
from streamsql.algebra.operators import Plan, Scan, walk_plan, walk_relation
from streamsql.data.delta import Delta
from streamsql.data.events import SourceEvent
from streamsql.wire.channel_protocol import ReceivingChannel
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle

_FRAGMENT = "f0"


class SiteRun:
    """A plan at one site: what its reader has after each step."""

    def __init__(self, plan: Plan) -> None:
        self._site = SiteEngine("here", 1)
        fragment = Fragment(_FRAGMENT, Engine.BASE, plan, ("here",))
        self._site.install(FragmentBundle("q", 1, (fragment,), plan.schema))
        self._result = ReceivingChannel(version=1)
        nodes = (*walk_relation(plan), *walk_plan(plan))
        self._read = {node.source for node in nodes if isinstance(node, Scan)}

    def step(self, now: int, events: Iterable[tuple[str, SourceEvent]] = ()) -> None:
        """Ingest events and step at a time in microseconds; the instants before it are over.

        Events of sources that the plan does not read are left out.
        """
        for source, event in events:
            if source in self._read:
                self._site.ingest(source, [event])
        self._site.tell_time()
        for sent in self._site.step(now).outgoing:
            self._result.accept(sent.batch)

    @property
    def shown(self) -> Delta:
        """The rows of the result now."""
        return dict(self._result.contents.get(_FRAGMENT, {}))
