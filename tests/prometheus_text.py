"""A strict parser of Prometheus' text exposition format 0.0.4, written from its specification.

https://prometheus.io/docs/instrumenting/exposition_formats/ — it shares nothing with what writes
the text.
"""

import re
from dataclasses import dataclass, field

_METRIC = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_HELP = re.compile(rf"# HELP ({_METRIC}) (.*)")
_TYPE = re.compile(rf"# TYPE ({_METRIC}) (counter|gauge|histogram|summary|untyped)")
_SAMPLE = re.compile(rf"({_METRIC})(?:\{{(.*)\}})? ([^ ]+)")
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\\\|\\"|\\n)*)"(,|$)')
_VALUE = re.compile(r"[+-]?(Inf|NaN|\d+(\.\d+)?([eE][+-]?\d+)?)")

Labels = tuple[tuple[str, str], ...]


@dataclass
class ParsedFamily:
    """A family: its type, its help, its values by labels."""

    kind: str
    help: str
    values: dict[Labels, float] = field(default_factory=dict)


def parse(text: str) -> dict[str, ParsedFamily]:
    """Return the families of a text by name.

    Raises:
        ValueError: It is against the format: a line that is none, a family whose lines do not
            stand together, a sample without its type, a label or a sample twice.
    """
    if text and not text.endswith("\n"):
        raise ValueError("the last line does not end")
    families: dict[str, ParsedFamily] = {}
    helps: dict[str, str] = {}
    current = ""
    for number, line in enumerate(text.split("\n")[:-1], start=1):
        where = f"line {number}: {line!r}"
        if found := _HELP.fullmatch(line):
            if found[1] in helps:
                raise ValueError(f"{where}: HELP twice")
            helps[found[1]] = found[2]
        elif found := _TYPE.fullmatch(line):
            if found[1] in families:
                raise ValueError(f"{where}: TYPE twice")
            current = found[1]
            families[current] = ParsedFamily(found[2], helps[current])
        elif found := _SAMPLE.fullmatch(line):
            if found[1] != current:
                raise ValueError(f"{where}: a sample apart from its family")
            labels = _labels(found[2] or "", where)
            if not _VALUE.fullmatch(found[3]):
                raise ValueError(f"{where}: no number")
            if labels in families[current].values:
                raise ValueError(f"{where}: a sample twice")
            families[current].values[labels] = float(found[3])
        else:
            raise ValueError(f"{where}: no line of the format")
    return families


def _labels(text: str, where: str) -> Labels:
    labels: dict[str, str] = {}
    place = 0
    while place < len(text):
        found = _LABEL.match(text, place)
        if found is None or found[1] in labels:
            raise ValueError(f"{where}: labels at {text[place:]!r}")
        unescaped = re.sub(r"\\(.)", lambda each: {"n": "\n"}.get(each[1], each[1]), found[2])
        labels[found[1]] = unescaped
        place = found.end()
    return tuple(labels.items())
