"""MQTT topic names and filters: validity and matching.

Rules of MQTT 3.1.1 and 5 (section 4.7 of both): levels are separated by `/` and may be empty;
`+` stands for one whole level, `#` for the rest (and for the level above); a topic that starts
with `$` is not matched by a filter that starts with a wildcard. `$share/{group}/{filter}` is a
shared subscription.
"""

from typing import Final

MAX_BYTES: Final = 65_535
MAX_LEVELS: Final = 200
_SHARE: Final = "$share/"


def check_topic(topic: str) -> None:
    """Check the name of a topic to publish on.

    Raises:
        ValueError: It is empty, too long or deep, or has a wildcard or NUL.
    """
    _check_text(topic, "topic")
    if "+" in topic or "#" in topic:
        raise ValueError(f"topic {topic!r} has a wildcard; publish on a plain topic")


def check_filter(topic_filter: str) -> None:
    """Check a subscription's filter, shared ones included.

    Raises:
        ValueError: It is empty, too long or deep, has NUL, or a misplaced wildcard.
    """
    _check_text(topic_filter, "filter")
    if topic_filter.startswith(_SHARE):
        _, group, rest = (*topic_filter.split("/", 2), "", "")[:3]
        if not group or not rest or "+" in group or "#" in group:
            raise ValueError(f"shared filter {topic_filter!r} is not $share/GROUP/FILTER")
        topic_filter = rest
    levels = topic_filter.split("/")
    for index, level in enumerate(levels):
        if "#" in level and (level != "#" or index != len(levels) - 1):
            raise ValueError(f"filter {topic_filter!r}: '#' must be the whole last level")
        if "+" in level and level != "+":
            raise ValueError(f"filter {topic_filter!r}: '+' must be a whole level")


def split_shared(topic_filter: str) -> tuple[str | None, str]:
    """Split a checked filter into its sharing group (None when not shared) and plain filter.

    Examples:
        >>> split_shared("$share/loaders/site/+/obs")
        ('loaders', 'site/+/obs')
        >>> split_shared("site/#")
        (None, 'site/#')
    """
    if not topic_filter.startswith(_SHARE):
        return None, topic_filter
    _, group, rest = topic_filter.split("/", 2)
    return group, rest


def matches(topic_filter: str, topic: str) -> bool:
    """Say whether a checked plain filter matches a topic name.

    Examples:
        >>> matches("site/+/state", "site/gw1/state"), matches("site/#", "site")
        (True, True)
        >>> matches("+/broker", "$SYS/broker")
        False
    """
    if topic.startswith("$") and topic_filter[0] in "+#":
        return False
    wanted = topic_filter.split("/")
    levels = topic.split("/")
    for index, level in enumerate(wanted):
        if level == "#":
            return True
        if index >= len(levels) or level not in ("+", levels[index]):
            return False
    return len(wanted) == len(levels)


def _check_text(text: str, kind: str) -> None:
    if not text:
        raise ValueError(f"an empty {kind} is not allowed")
    if "\0" in text:
        raise ValueError(f"{kind} {text!r} contains NUL")
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise ValueError(f"{kind} {text[:40]!r} cannot be written as UTF-8") from error
    if size > MAX_BYTES:
        raise ValueError(f"{kind} {text[:40]!r}… is longer than {MAX_BYTES} bytes")
    if text.count("/") >= MAX_LEVELS:
        raise ValueError(f"{kind} {text[:40]!r}… has more than {MAX_LEVELS} levels")
