"""Topic patterns: `tele/{device}/SENSOR`, `shellies/shelly-{id}/+`, `zigbee2mqtt/#`.

A `{name}` stands for exactly one level or a part of one and becomes a fact of that name; `+` and
`#` mean what they mean in MQTT.
"""

import re

MAX_TOPIC = 1_000
"""Characters. A level with two names is searched in the square of its length."""

MAX_NAMES = 2
"""Of one level."""

FACTS = frozenset({"topic", "arrival", "retained", "endpoint", "gateway", "key", "index", "time"})
"""What connectors and formats say of a message: no level can have these names."""

_LEVEL = re.compile(r"\{([^{}]*)\}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")


class TopicPattern:
    """A pattern, parsed once.

    Attributes:
        text: As it was written.
        filter: What to subscribe to in MQTT; it may match more topics than the pattern does, where
            a `{name}` is a part of a level.
        names: Of the facts that it gives, in order.
    """

    def __init__(self, text: str) -> None:
        """Parse a pattern.

        Raises:
            ValueError: It is no topic pattern; the text says why.
        """
        if not 0 < len(text) <= MAX_TOPIC or "\0" in text:
            raise ValueError(f"a topic has 1 to {MAX_TOPIC} characters and no NUL")
        levels = text.split("/")
        self.text = text
        self.names = tuple(name for level in levels for name in _names_in(level, text))
        if len(set(self.names)) < len(self.names):
            raise ValueError(f"topic {text!r:.80} has a {{name}} twice")
        if "#" in levels[:-1]:
            raise ValueError(f"topic {text!r:.80}: # is allowed only at the end")
        self.filter = "/".join("+" if "{" in level else level for level in levels)
        self._pattern = re.compile(_expression(levels), re.DOTALL)

    def facts(self, topic: str) -> dict[str, str] | None:
        """Return the texts of the `{name}`s in a topic, or None if the pattern does not match.

        Topics of more than `MAX_TOPIC` characters match no pattern.

        Examples:
            >>> TopicPattern("tele/{device}/SENSOR").facts("tele/th16/SENSOR")
            {'device': 'th16'}
            >>> TopicPattern("shelly-{id}/#").facts("other-7/status") is None
            True
        """
        found = self._pattern.fullmatch(topic) if len(topic) <= MAX_TOPIC else None
        return None if found is None else found.groupdict()


def _names_in(level: str, text: str) -> list[str]:
    names: list[str] = _LEVEL.findall(level)
    if len(names) > MAX_NAMES:
        raise ValueError(f"topic {text!r:.80}: a level has more than {MAX_NAMES} {{name}}s")
    for name in names:
        if not _NAME.fullmatch(name):
            raise ValueError(f"topic {text!r:.80}: {{{name:.40}}} is no name: letters, digits, _")
        if name in FACTS:
            raise ValueError(
                f"topic {text!r:.80}: {{{name}}} would hide the fact @{name}; rename it"
            )
    rest = _LEVEL.sub("", level)
    if "{" in rest or "}" in rest:
        raise ValueError(f"topic {text!r:.80}: a brace is open; write {{name}}")
    if ("+" in rest or "#" in rest) and level not in {"+", "#"}:
        raise ValueError(f"topic {text!r:.80}: + and # must be alone between slashes")
    if re.search(r"\}\{", level):
        raise ValueError(f"topic {text!r:.80}: two {{name}}s need a text between them")
    return names


def _expression(levels: list[str]) -> str:
    parts: list[str] = []
    for level in levels:
        if level == "#":
            # In MQTT a/# matches a as well.
            before = "/".join(parts)
            return f"{before}(?:/.*)?" if parts else r"(?!\$).*"
        if level == "+":
            parts.append("[^/]*" if parts else r"(?!\$)[^/]*")
        else:
            parts.append(_level_expression(level, first=not parts))
    return "/".join(parts)


def _level_expression(level: str, *, first: bool) -> str:
    pieces = _LEVEL.split(level)
    # A name takes at least one character, and as few as it can: shelly-{id}-{channel} is read
    # from the left.
    body = "".join(
        f"(?P<{piece}>[^/]+?)" if odd % 2 else re.escape(piece) for odd, piece in enumerate(pieces)
    )
    return rf"(?!\$){body}" if first and pieces[0] == "" and len(pieces) > 1 else body
