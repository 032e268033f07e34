"""What is saved of the ends of a query's channels, field by field."""

from stream_engine.scheduling.site_work import SiteWork
from stream_engine.site.installed_query import InstalledQuery
from stream_engine.snapshot.query_state import QueryLayout
from stream_engine.testing.histories import SOURCES
from streamsql.algebra.operators import Distinct, RemoteSource
from streamsql.data.delta import Delta
from streamsql.wire.channel_protocol import Forgotten, ReceivingChannel, SendingChannel
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle


def query(epoch: int) -> InstalledQuery:
    """Return a query between one that sends to it and one that it sends to."""
    plan = Distinct(RemoteSource("f0", SOURCES[2].columns))
    fragments = (
        Fragment("f0", Engine.GATEWAY, SOURCES[2], ("there",), "f1", ("here",)),
        Fragment("f1", Engine.GATEWAY, plan, ("here",), "f2", ("base",)),
        Fragment("f2", Engine.BASE, RemoteSource("f1", plan.schema), ("base",)),
    )
    bundle = FragmentBundle("q", 1, fragments, plan.schema)
    return InstalledQuery(bundle, site="here", epoch=epoch, first=0, interrupted=lambda: False)


def ends(query: InstalledQuery) -> tuple[ReceivingChannel, SendingChannel]:
    _circuits, inbox, outbox = query.parts
    return inbox.channels["there"], outbox.channels["base"]


def test_both_ends_of_channels_come_back_out_of_step() -> None:
    before, after = query(1), query(2)
    rows: Delta = {("a", 1, 0.5): 1, ("b", 2, 0.5): 2}
    receiving, sending = ends(before)
    sender = SendingChannel(version=1, epoch=7, ports=["f0"])
    for batches in (sender.snapshot(now=0), sender.push("f0", rows, now=0)):
        for batch in batches:
            receiving.accept(batch)
    sending.note("f1", rows)
    receiving.forgotten = Forgotten(9, {"f0": (1, 1)})
    sending.forgotten = Forgotten(8, {"f1": (1, 0)})
    state = QueryLayout(before).save(before, 0)
    QueryLayout(after).restore(after, state, SiteWork())
    received, sent = ends(after)
    assert (received.epoch, received.expected) == (7, 2)
    assert not received.synchronised
    assert received.contents == {"f0": rows}
    assert received.forgotten == Forgotten(9, {"f0": (1, 1)})
    assert (sent.epoch, sent.contents) == (2, {"f1": rows})
    assert sent.forgotten == Forgotten(8, {"f1": (1, 0)})
