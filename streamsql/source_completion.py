"""Completion inside CREATE SOURCE and ALTER SOURCE: types, clauses of columns, options, values.

Like all completion it looks at words: the text may be unfinished and wrong.
"""

from collections.abc import Iterable, Mapping, Sequence

from streamsql.catalog.connectors import ConnectorKind
from streamsql.mapping.number_formats import NumberFormat
from streamsql.mapping.source_mapping import PayloadFormat
from streamsql.mapping.time_formats import TimeFormat
from streamsql.mapping.topic_pattern import FACTS

TYPES = "TEXT,INTEGER,DOUBLE,BOOLEAN,TIMESTAMP,INTERVAL"
_ELEMENTS = "KEY (,PRIMARY KEY (,WATERMARK FOR"
_OPTIONS = (
    "connector", "endpoint", "gateways", "topic", "format", "rows", "only", "delimiter", "header",
    "ttl", "sample", "idle", "colocate",
)  # fmt: skip


def _quoted(texts: Iterable[str]) -> str:
    return ",".join(f"'{text}'" for text in texts)


_CLAUSES: Mapping[str, str] = {
    "FROM": _quoted(f"@{fact}" for fact in sorted(FACTS)),
    "FORMAT": _quoted([*NumberFormat, *TimeFormat, "%Y-%m-%d %H:%M:%S"]),
    "ZONE": "'UTC','Europe/Berlin'",
    "IN": _quoted(["Wh", "degF", "mbar", "W"]),
    "UNIT": _quoted(["Cel", "%RH", "W", "kWh", "hPa", "lx", "V", "A", "ppm"]),
    "SCALE": "0.1",
    "OFFSET": "-40",
    "VALUES": "('ON' = TRUE",
}
"""Clauses of a column, each with what may stand behind it."""

_VALUES: Mapping[str, str] = {
    "CONNECTOR": _quoted(ConnectorKind),
    "FORMAT": _quoted(PayloadFormat),
    "HEADER": "'true','false'",
    "DELIMITER": "';','tab'",
}
"""What may stand behind an option."""


def source_words(words: Sequence[str]) -> str | None:
    """Return the words that may follow inside such a statement, with commas between.

    Args:
        words: Of the statement before the place, in upper case.

    Returns:
        None: it is another statement, or a name comes next. Empty: nothing can be offered.
    """
    rest = _behind_kind(words)
    if rest is None:
        return None
    if not rest:  # the name of a new source, or of one that there is
        return None if words[0] == "ALTER" or "REPLACE" in words else ""
    if words[0] == "ALTER":
        return _of_alter(rest)
    if "(" not in rest:
        return "("
    depth = rest.count("(") - rest.count(")")
    if "WITH" in rest and rest.index("WITH") > rest.index("("):
        return _of_options(rest[rest.index("WITH") + 1 :])
    return _of_element(_element(rest), top=depth == 1) if depth else "WITH ("


def _behind_kind(words: Sequence[str]) -> list[str] | None:
    """Return what stands behind CREATE [OR REPLACE] [LINK] SOURCE, or ALTER SOURCE."""
    for begin in (
        ["CREATE", "SOURCE"],
        ["CREATE", "STREAM"],
        ["CREATE", "LINK", "SOURCE"],
        ["CREATE", "OR", "REPLACE", "SOURCE"],
        ["CREATE", "OR", "REPLACE", "STREAM"],
        ["CREATE", "OR", "REPLACE", "LINK", "SOURCE"],
        ["ALTER", "SOURCE"],
    ):
        if list(words[: len(begin)]) == begin:
            return list(words[len(begin) :])
    return None


def _of_alter(rest: list[str]) -> str | None:
    match rest:
        case [_]:
            return "ADD COLUMN,DROP COLUMN"
        case [_, "ADD" | "DROP"]:
            return "COLUMN"
        case [_, "ADD", "COLUMN", *element] | [_, "ADD", *element]:
            return _of_element(element, top=True)
        case _:
            return ""


def _element(rest: list[str]) -> list[str]:
    """Return the words of the element of the column list that is being written."""
    depth, begin = 0, 0
    for number, word in enumerate(rest):
        depth += (word == "(") - (word == ")")
        if (word == "(" and depth == 1) or (word == "," and depth == 1):
            begin = number + 1
    return rest[begin:]


def _of_element(element: list[str], *, top: bool) -> str:
    if not element:
        return _ELEMENTS if top else ""
    if element[0] in ("KEY", "PRIMARY", "WATERMARK") and len(element) > 1:
        return {"WATERMARK": "FOR,AS,INTERVAL '5 s'", "PRIMARY": "KEY ("}.get(element[0], "")
    if not top:
        return "TRUE,FALSE,NULL" if element[-1] == "=" else ""
    if len(element) == 1:
        return TYPES
    if element[-1] in _CLAUSES:
        return _CLAUSES[element[-1]]
    given = set(element)
    return ",".join([*(clause for clause in _CLAUSES if clause not in given), "PRIMARY KEY"])


def _of_options(rest: list[str]) -> str | None:
    if not rest:
        return "("
    if rest[-1] in ("(", ","):
        given = {word.lower() for word in rest}
        return ",".join(f"{name} =" for name in _OPTIONS if name not in given)
    if rest[-1] == "=" and len(rest) > 1:
        return _VALUES.get(rest[-2], "")
    return ""
