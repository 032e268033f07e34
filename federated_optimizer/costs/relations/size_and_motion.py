"""A relation's size and motion, and by what its estimate may be wrong."""

import math
from dataclasses import dataclass, replace

UNKNOWN = 5.0
"""Factor by which a default may be wrong, either way."""

GUESSED = 2.0
"""Factor by which a guessed share or number may be wrong, either way."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A relation's size and motion.

    Attributes:
        rows: At any time.
        inserts: Rows a second that come.
        deletes: Rows a second that go.
        assumed: What was not known, in words.
        replaced: Share of the changes that put a row in the place of another one at once; above 1
            where several rows change at once.
        factor: By which it may be wrong, either way.
        bunched: Events that one reading causes: a row that comes brings all rows of a join that it
            is in, and these travel together.
    """

    rows: float
    inserts: float
    deletes: float
    assumed: tuple[str, ...] = ()
    replaced: float = 0.0
    factor: float = 1.0
    bunched: float = 1.0

    def scaled(self, by: float, factor: float = 1.0) -> "Estimate":
        """Return a share of it; `factor` is that by which the share may be wrong."""
        return replace(
            self,
            rows=self.rows * by,
            inserts=self.inserts * by,
            deletes=self.deletes * by,
            factor=wider(self.factor, factor),
        )

    @property
    def events(self) -> float:
        """Changes a second; a row in the place of another one is one."""
        return self.inserts + self.deletes - self.replaced * min(self.inserts, self.deletes)


def grouped_at_once(groups: Estimate, below: Estimate) -> Estimate:
    """Return groups of rows that change at once: no more of them change than there are.

    Args:
        groups: As if each row changed alone.
        below: The rows.

    Examples:
        >>> rows = Estimate(900.0, 500.0, 0.0, bunched=100.0)
        >>> found = grouped_at_once(Estimate(2.0, 500.0, 0.0), rows)
        >>> found.inserts, found.bunched
        (10.0, 2.0)
    """
    if below.bunched <= 1.0 or not groups.events:
        return groups
    bunches = below.events / below.bunched
    most = bunches * max(groups.rows, 1.0)
    found = groups.scaled(min(most / groups.events, 1.0))
    return replace(found, rows=groups.rows, bunched=max(found.events / bunches, 1.0))


def wider(*factors: float) -> float:
    """Return by what an estimate may be wrong that rests on several independent ones.

    Examples:
        >>> round(wider(2.0, 2.0), 2), round(wider(3.0, 1.0), 2)
        (2.67, 3.0)
    """
    return math.exp(math.sqrt(sum(math.log(factor) ** 2 for factor in factors)))
