"""From announcements to proposed sources."""

from collections.abc import Iterable

from streamsql.proposals.announcements.announced import AnnouncedDevice, joined
from streamsql.proposals.announcements.home_assistant import announced_entity
from streamsql.proposals.announcements.merging import merged
from streamsql.proposals.announcements.sparkplug_births import announced_metrics
from streamsql.proposals.announcements.zigbee2mqtt import announced_devices
from streamsql.proposals.proposal import Proposal
from streamsql.proposals.proposing import Asked
from streamsql.proposals.sample import Sample

TOPICS = (
    "+/bridge/devices",
    "+/+/+/config",
    "+/+/+/+/config",
    "spBv1.0/+/NBIRTH/+",
    "spBv1.0/+/DBIRTH/+/+",
)
"""Where announcements are published; Home Assistant's prefix may be any word."""


def proposals_of(
    samples: Iterable[Sample], asked: Asked, taken: Iterable[str] = ()
) -> tuple[Proposal, ...]:
    """Return a proposed source for all devices of a kind that have announced themselves.

    Args:
        samples: Messages on `TOPICS`; of two on one topic the last counts, and what is no
            announcement is left out.
        asked: The endpoint.
        taken: Names of sources that there are already.
    """
    newest = {sample.topic: sample for sample in samples}
    devices: list[AnnouncedDevice] = []
    entities: list[AnnouncedDevice] = []
    for sample in newest.values():
        devices += announced_devices(sample)
        entities += announced_entity(sample)
        devices += announced_metrics(sample)
    # A bridge may announce its devices to Home Assistant as well; its own list says more.
    bridges = {device.base for device in devices if device.base}
    own = [e for e in joined(entities) if not any(e.topic.startswith(f"{b}/") for b in bridges)]
    return merged([*devices, *own], asked, taken)
