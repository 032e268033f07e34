"""Observations that come by one lane do not judge those that come by the other."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from gateway.site.inbox import Host, SiteInbox
from host.mqtt import Message
from streamsql.data.events import SourceEvent
from streamsql.wire.messages import ObservationPack
from streamsql.wire.topics import Topics

TOPICS = Topics("demo")
EVENT = SourceEvent(("a",), 5)


@pytest.mark.parametrize(
    ("topic", "origin"),
    [
        (TOPICS.observation("gw-1", "seat"), "gw-1"),
        (TOPICS.history("gw-1", "seat"), "gw-1/hist"),
    ],
)
def test_each_lane_of_a_gateway_has_a_watermark_of_its_own(topic: str, origin: str) -> None:
    """What was kept while the broker was away is older than what is sent now, and not late."""
    taken: list[tuple[Any, ...]] = []
    pack = ObservationPack(3, 7, (), n=1, life=4)
    engine = SimpleNamespace(site="base", take_in=lambda *given: taken.append(given))
    host = SimpleNamespace(
        engine=engine,
        topics=TOPICS,
        clock=lambda: 0,
        lanes=object(),
        fills=SimpleNamespace(heard=lambda *_given: None),
        dead_letters=SimpleNamespace(guard=lambda handle, message: handle(message)),
    )
    inbox = SiteInbox(cast("Host", host), on_command=None, on_own_state=None, on_own_link=None)
    inbox._observations = cast(
        "Any",
        SimpleNamespace(
            pack=lambda *_given: pack,
            is_outdated=lambda *_given: False,
            events_of=lambda *_given: ([EVENT], ("gw-1", "seat", 3, 7)),
        ),
    )
    inbox.take(Message(topic, b""))
    assert taken == [({"seat": [EVENT]}, ("pack", ("gw-1", "seat", 3, 7, 4, 2)), origin)]
