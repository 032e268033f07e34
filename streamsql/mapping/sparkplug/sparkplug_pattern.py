"""The option `topic` of a Sparkplug source: which nodes and devices are its."""

import re

from streamsql.data.types import Value
from streamsql.mapping.payloads.sparkplug_payload import SparkplugKind, SparkplugTopic
from streamsql.mapping.source_mapping import SPARKPLUG_IDENTITY
from streamsql.mapping.topic_pattern import TopicPattern

ROOT = "spBv1.0"
ALL_TOPICS = f"{ROOT}/#"
"""The topic of a source that names none."""

_NAMED = re.compile(r"\{[^{}]*\}")
_EXAMPLE = f"{ROOT}/plant/#"


class SparkplugPattern:
    """A pattern such as `spBv1.0/plant/#` or `spBv1.0/{plant}/DDATA/{line}/{machine}`.

    The type of message in it only says whose rows are meant: those of nodes (`N…`), of devices
    (`D…`), or both. A session needs births, data and deaths alike.

    Attributes:
        filter: What to subscribe to in MQTT.
        device_facts: Names of the facts that tell the devices of a node apart.
        row_facts: Those of which a column has to be made, so that a death finds its rows.
    """

    def __init__(self, text: str) -> None:
        """Parse a pattern.

        Raises:
            ValueError: It is none, or no Sparkplug topic matches it; the text says why.
        """
        TopicPattern(text)
        root, *levels = text.split("/")
        is_open = levels[-1:] == ["#"]
        levels = levels[:-1] if is_open else levels
        if root != ROOT or not (is_open or len(levels) in {3, 4}) or len(levels) > 4:
            raise ValueError(
                f"topic {text!r:.80}: Sparkplug's topics are {ROOT}/GROUP/TYPE/NODE or "
                f"{ROOT}/GROUP/TYPE/NODE/DEVICE, such as {_EXAMPLE!r}"
            )
        names_device = len(levels) == 4
        group, kind, node, device = (*levels, *("+",) * (4 - len(levels)))
        whose = _whose(kind, text)
        self._of_nodes = not names_device and whose != "D"
        self._of_devices = (names_device or is_open) and whose != "N"
        if not (self._of_nodes or self._of_devices):
            whom = (
                "node, whose topics have no fifth level" if whose == "N" else "device: add a level"
            )
            raise ValueError(f"topic {text!r:.80}: {kind} is a message of a {whom}")
        self._kind_name = kind[1:-1] if _NAMED.fullmatch(kind) else ""
        self._node = TopicPattern(f"{group}/{node}")
        self._device = TopicPattern(f"{group}/{node}/{device}")
        self.device_facts = frozenset({"device", *TopicPattern(device).names})
        node_facts = frozenset({"node", *TopicPattern(node).names})
        self.row_facts = self.device_facts if self._of_devices else node_facts
        wild = ["+" if "{" in level else level for level in (group, node)]
        self.filter = f"{ROOT}/{wild[0]}/+/{wild[1]}/#"

    def has_node(self, group: str, node: str) -> bool:
        """Whether messages of a node and its devices are to be followed."""
        return self._node.facts(f"{group}/{node}") is not None

    def facts(self, topic: SparkplugTopic) -> dict[str, Value] | None:
        """Return the facts of a message's rows, or None: no row is meant."""
        found = self.facts_of(topic.group, topic.node, topic.device)
        if found is None:
            return None
        if self._kind_name:
            found[self._kind_name] = topic.kind.value
        return {"birth": topic.kind.is_birth, **found}

    def facts_of(self, group: str, node: str, device: str) -> dict[str, Value] | None:
        """Return `group`, `node`, `device` and the pattern's names, or None: no row is meant.

        Args:
            group: Of the node.
            node: Its name.
            device: Its device, or empty: the node's own row.
        """
        if device:
            matched = self._device.facts(f"{group}/{node}/{device}") if self._of_devices else None
        else:
            matched = self._node.facts(f"{group}/{node}") if self._of_nodes else None
        if matched is None:
            return None
        return {**dict(zip(SPARKPLUG_IDENTITY, (group, node, device), strict=True)), **matched}


def _whose(kind: str, text: str) -> str:
    """Return N or D for nodes or devices, or empty for both."""
    if kind == "+" or _NAMED.fullmatch(kind):
        return ""
    if kind not in tuple(SparkplugKind):
        kinds = ", ".join(SparkplugKind)
        raise ValueError(f"topic {text!r:.80}: {kind!r:.40} is no type of message ({kinds}, or +)")
    return kind[0]
