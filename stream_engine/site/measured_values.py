"""Measured values of entities, and the properties that a report makes of them.

A *counter* only grows: its value and its growth per second are reported. A *gauge* is reported as
it is.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

SECOND = 1_000_000

Key = tuple[str, str, str, int]
"""Query, kind, entity and life of an entity."""


@dataclass(frozen=True, slots=True)
class Property:
    """A row of `sys_stream` without its time and site: one value of a property of an entity.

    Attributes:
        query: "" for entities of no query.
        entity: Unique among the entities of its kind at the site: "f1/3", the operator with the
            number 3 in the circuit of fragment f1.
        kind: "site", "operator", "queue", "synopsis", "store", "channel", "source", …
        property: "rows_in", "selectivity", …
    """

    query: str
    entity: str
    kind: str
    property: str
    value: float


@dataclass(frozen=True, slots=True)
class Measured:
    """The measured values of one entity; query, kind and entity as in `Property`.

    Attributes:
        life: Another incarnation counts from 0: the version of a query's plan, say.
        counters: Totals; each is reported with its rate, under the name with `_per_s`.
        totals: Totals reported without a rate; not at all if the name begins with "_".
        gauges: Current values.
        ratios: name to (numerator, denominator): the quotient of what both, which are counters or
            totals, have grown by since the last report, where the denominator has grown.
        later_ratios: Likewise, but not in the first report on the entity: they count only while
            reports are made.
    """

    query: str
    kind: str
    entity: str
    life: int = 0
    counters: Mapping[str, float] = field(default_factory=dict)
    totals: Mapping[str, float] = field(default_factory=dict)
    gauges: Mapping[str, float] = field(default_factory=dict)
    ratios: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    later_ratios: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    @property
    def key(self) -> Key:
        """Identifies the entity and its incarnation."""
        return (self.query, self.kind, self.entity, self.life)


class Report:
    """Turns measured values into properties. State: the totals of the last report."""

    def __init__(self) -> None:
        self._at: int | None = None
        self._before: dict[Key, dict[str, float]] = {}

    def properties(self, measured: Iterable[Measured], now: int) -> list[Property]:
        """Return the properties of entities at a time (microseconds); others are discarded.

        Entities that are new since the last report began with 0. In the first report there are no
        rates, and quotients are those of everything so far.
        """
        seconds = 0.0 if self._at is None else (now - self._at) / SECOND
        self._at = now
        before, self._before = self._before, {}
        found: list[Property] = []
        for entity in measured:
            query, kind, name, _life = entity.key
            old = before.get(entity.key, {})
            totals = {**entity.counters, **entity.totals}
            self._before[entity.key] = totals
            values = {**totals, **entity.gauges}
            if seconds > 0:
                for counter, value in entity.counters.items():
                    values[f"{counter}_per_s"] = (value - old.get(counter, 0)) / seconds
            ratios = {**entity.ratios, **entity.later_ratios} if old else entity.ratios
            for ratio, (above, below) in ratios.items():
                grown = totals[below] - old.get(below, 0)
                if grown > 0:
                    values[ratio] = (totals[above] - old.get(above, 0)) / grown
            found.extend(
                [
                    Property(query, name, kind, named, float(value))
                    for named, value in values.items()
                    if not named.startswith("_")
                ]
            )
        return found
