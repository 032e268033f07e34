"""Numbers of entities, and what they have become since the last report.

A *counter* only grows: it is told as it is, and as its growth per second. A *gauge* is told as it
is.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from stream_engine.site.measured_properties import Property

SECOND = 1_000_000

Key = tuple[str, str, str, int]
"""Query, kind, entity and life of an entity."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What one entity has counted.

    Attributes:
        query: "" for what belongs to no query.
        kind: As in `Property`.
        entity: As in `Property`.
        life: Another one counts from 0: the version of a query's plan, say.
        counters: Totals; each is told with its rate, under the name with `_per_s`.
        totals: Totals that are told without a rate; not at all if the name begins with "_".
        gauges: What holds now.
        ratios: name to (numerator, denominator): the quotient of what both, which are counters or
            totals, have grown by since the last report, where the denominator has grown.
        later_ratios: Likewise, but not in the first report on the entity: what is counted only
            while reports are made has nothing to do with what there was before.
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
        """What tells it from other entities, and from former lives of this one."""
        return (self.query, self.kind, self.entity, self.life)


class Report:
    """Turns numbers into properties; remembers those of the last report.

    State: the totals of the entities of the last report.
    """

    def __init__(self) -> None:
        self._at: int | None = None
        self._before: dict[Key, dict[str, float]] = {}

    def properties(self, measured: Iterable[Measured], now: int) -> list[Property]:
        """Return the properties of entities; those that are left out are forgotten.

        What is new since the last report has begun with 0. In the first report there are no rates,
        and quotients are those of everything so far.

        Args:
            measured: The entities.
            now: Microseconds since 1970 UTC.
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
