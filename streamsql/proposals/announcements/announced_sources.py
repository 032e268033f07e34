"""From announcements, and payloads, to proposed sources."""

from collections.abc import Iterable

from streamsql.mapping.sparkplug.sparkplug_pattern import ROOT
from streamsql.proposals.announcements.announced import AnnouncedDevice, joined
from streamsql.proposals.announcements.home_assistant import announced_entities
from streamsql.proposals.announcements.merging import merged
from streamsql.proposals.announcements.sparkplug_births import announced_metrics
from streamsql.proposals.announcements.zigbee2mqtt import announced_devices
from streamsql.proposals.proposal import Proposal
from streamsql.proposals.proposing import Asked, propose
from streamsql.proposals.sample import Sample

TOPICS = (
    "+/bridge/devices",
    "+/+/+/config",
    "+/+/+/+/config",
)
"""Where announcements are retained; Home Assistant's prefix may be any word. Births of Sparkplug
come when their nodes are asked."""


def proposals_of(
    samples: Iterable[Sample], asked: Asked, taken: Iterable[str] = ()
) -> tuple[Proposal, ...]:
    """Return a proposed source for all devices of a kind that have announced themselves.

    Args:
        samples: Messages on `TOPICS`, and of Sparkplug; of two on one topic the last counts, and
            what is no announcement is left out.
        asked: The endpoint.
        taken: Names of sources that there are already.
    """
    newest = {sample.topic: sample for sample in samples}
    devices: list[AnnouncedDevice] = []
    entities: list[AnnouncedDevice] = []
    for sample in newest.values():
        devices += announced_devices(sample)
        entities += announced_entities(sample)
    devices += announced_metrics(newest.values())
    # A bridge may announce its devices to Home Assistant as well; its own list says more.
    bridges = {device.base for device in devices if device.base}
    own = [e for e in joined(entities) if not any(e.topic.startswith(f"{b}/") for b in bridges)]
    return merged([*devices, *own], asked, taken)


def proposals_of_payloads(
    samples: Iterable[Sample], asked: Asked, taken: Iterable[str] = ()
) -> tuple[Proposal, ...]:
    """Return proposed sources for what was heard on an endpoint; see `propose`.

    Payloads of Sparkplug say little without births, so they are read as announcements.
    """
    of_sparkplug: list[Sample] = []
    others: list[Sample] = []
    for sample in samples:
        levels = sample.topic.split("/")
        is_sparkplug = levels[0] == ROOT and levels[1:2] != ["STATE"]
        (of_sparkplug if is_sparkplug else others).append(sample)
    listened = dict(asked.options).get("topic", "")
    nodes = merged(announced_metrics(of_sparkplug, listened), asked, taken)
    return (*nodes, *propose(others, asked, (*taken, *(node.name for node in nodes))))
