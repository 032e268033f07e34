"""Families of figures by the conventions of Prometheus: names, kinds, labels."""

import re
from dataclasses import dataclass
from enum import StrEnum

MAX_LABEL = 200
"""Characters of a label's value; a longer one is cut."""

_NAME = re.compile(r"[a-z][a-z0-9_]*")


class Kind(StrEnum):
    """Behaviour of the values of a family. COUNTER only grows, from 0 at the start of a process."""

    COUNTER = "counter"
    GAUGE = "gauge"


@dataclass(frozen=True, slots=True)
class Sample:
    """One value of a family, with its labels."""

    family: "Family"
    value: float
    labels: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Family:
    """Name, kind and meaning of samples.

    Raises:
        ValueError: The name is against the conventions: lower case, and `_total` exactly at
            counters.
    """

    name: str
    kind: Kind
    help: str

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"{self.name!r} is no name of a metric")
        if self.name.endswith("_total") != (self.kind is Kind.COUNTER):
            raise ValueError(f"{self.name}: counters, and only they, end with _total")

    def at(self, value: float, **labels: str) -> Sample:
        """Return a sample."""
        return Sample(self, value, tuple((name, text[:MAX_LABEL]) for name, text in labels.items()))


def counter(name: str, help: str) -> Family:  # noqa: A002 - the format's word
    """Return a family of totals."""
    return Family(name, Kind.COUNTER, help)


def gauge(name: str, help: str) -> Family:  # noqa: A002 - the format's word
    """Return a family of current values."""
    return Family(name, Kind.GAUGE, help)
