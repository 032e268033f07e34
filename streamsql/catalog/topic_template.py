"""Topics that are made of a row's values: `building/free/{desk}`.

A `{name}` stands for the value of the column of that name, as a level or a part of one. Each level
has at most one, so no two keys have the same topic.
"""

import re
from collections.abc import Sequence
from urllib.parse import quote

from streamsql.data.types import DataType, Value, display, text_of

MAX_TOPIC = 1_000
"""Characters of a topic, written or made."""
RESERVED = "pando"
"""First level of the federation's own topics."""

_NAME = re.compile(r"\{([^{}]*)\}")
_SAFE = ":@,;=()!"
_EMPTY = "%"
_NULL = "%null"


class TopicTemplate:
    """A template, parsed once.

    Attributes:
        text: As it was written.
        names: Of the columns in it, in order.
    """

    def __init__(self, text: str) -> None:
        """Parse a template.

        Raises:
            ValueError: It is none, or its topics are not for sinks; the text says why.
        """
        if not 0 < len(text) <= MAX_TOPIC or not text.isprintable():
            raise ValueError(f"a topic has 1 to {MAX_TOPIC} printable characters")
        levels = text.split("/")
        for level in levels:
            _check_level(level)
        if levels[0] == RESERVED or levels[0].startswith(("$", "{")):
            raise ValueError(
                f"the first level of a sink's topics is a text of its own, not {levels[0]!r:.40}"
            )
        self.text = text
        self.names: tuple[str, ...] = tuple(_NAME.findall(text))
        if len(set(self.names)) < len(self.names):
            raise ValueError(f"{text!r:.80} names a column twice")
        self._pieces = _NAME.split(text)

    @property
    def filter(self) -> str:
        """What matches its topics in MQTT, and perhaps more."""
        return "/".join("+" if "{" in level else level for level in self.text.split("/"))

    def overlaps(self, other: "TopicTemplate") -> bool:
        """Whether both can make the same topic, whatever the columns' values.

        Examples:
            >>> seats = TopicTemplate("b/{room}/seats")
            >>> seats.overlaps(TopicTemplate("b/r1/{what}")), seats.overlaps(TopicTemplate("b/{x}"))
            (True, False)
        """
        mine, others = self.text.split("/"), other.text.split("/")
        return len(mine) == len(others) and all(map(_level_overlaps, mine, others))

    def topic(self, texts: Sequence[str]) -> str:
        """Return the topic for texts of the names, each as `level_text` writes it.

        Raises:
            ValueError: It is longer than a topic may be.

        Examples:
            >>> TopicTemplate("building/free/{desk}").topic([level_text("a/1", DataType.TEXT)])
            'building/free/a%2F1'
        """
        made = "".join(
            texts[number // 2] if number % 2 else piece for number, piece in enumerate(self._pieces)
        )
        if len(made) > MAX_TOPIC:
            raise ValueError(f"the topic {made[:60]!r}… has {len(made)} characters")
        return made


def _level_overlaps(one: str, other: str) -> bool:
    (head, *tail), (head_2, *tail_2) = (_NAME.sub("{", level).split("{") for level in (one, other))
    if tail and tail_2:
        ends = (tail[0][::-1], tail_2[0][::-1])
        return _begins(head, head_2) and _begins(*ends)
    if not tail and not tail_2:
        return one == other
    fixed, head, end = (other, head, tail[0]) if tail else (one, head_2, tail_2[0])
    # A value is at least one character.
    whole = len(fixed) > len(head) + len(end)
    return whole and fixed.startswith(head) and fixed.endswith(end)


def _begins(one: str, other: str) -> bool:
    """Whether one of two texts begins with the other."""
    return one.startswith(other) or other.startswith(one)


def level_text(value: Value, dtype: DataType) -> str:
    """Return a value as a level of a topic, or a part of one; different values differ.

    Everything but letters, digits, `-._~` and a few others is percent-encoded as in addresses; an
    empty text is `%`, NULL is `%null`.

    Examples:
        >>> level_text("room 3/+", DataType.TEXT), level_text(None, DataType.TEXT)
        ('room%203%2F%2B', '%null')
        >>> level_text(0, DataType.TIMESTAMP), level_text(True, DataType.BOOLEAN)
        ('1970-01-01T00:00:00Z', 'true')
    """
    if value is None:
        return _NULL
    return quote(text_of(display(value, dtype)), safe=_SAFE) or _EMPTY


def _check_level(level: str) -> None:
    names = _NAME.findall(level)
    if len(names) > 1:
        raise ValueError(f"level {level!r:.80} names {len(names)} columns; put / between them")
    if any(not name for name in names):
        raise ValueError("{} names no column; write {column}")
    rest = _NAME.sub("", level)
    if "{" in rest or "}" in rest:
        raise ValueError(f"level {level!r:.80} has an open brace; write {{column}}")
    if "+" in rest or "#" in rest:
        raise ValueError("+ and # are wildcards; a sink writes to topics")
