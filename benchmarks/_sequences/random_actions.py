"""Random actions for a sequence, drawn one after the other from what is there."""

import random

from benchmarks._sequences.actions import (
    Action,
    Crash,
    Delete,
    Deliver,
    Deregister,
    Insert,
    Kill,
    Register,
    Restart,
    Settle,
    Wait,
)
from benchmarks._sequences.network_sequence import GATEWAYS, Sequence
from benchmarks._sequences.overlapping_queries import COLUMNS, GROUPS, TEMPLATES
from benchmarks._sequences.rows_of_sites import new_row

MOST = 10
"""Queries at a time."""

STEP = 1_700_003
"""Microseconds that pass at once; no multiple of it is the length of a window."""

BUSY = 0.3
"""Of all actions so many come before the sites are at rest."""

ALL_GROUPS = 0.25
"""Of all sequences so many draw from all templates, the others from one group of them, or two."""

FEW = 16
"""Templates of a sequence at most: the fewer, the more of them are read by others."""

INCIDENTS = 0.2
"""After so many of the queries that begin a site dies before they are filled."""

KINDS = {
    "register": 30,
    "deregister": 14,
    "insert": 26,
    "delete": 10,
    "time": 10,
    "death": 4,
    "return": 6,
    "crash": 3,
}
"""Weights of what happens."""


class RandomActions:
    """Draws what happens next in a sequence.

    Args:
        sequence: For which.
    """

    def __init__(self, sequence: Sequence) -> None:
        self._sequence = sequence
        self._chance = random.Random(sequence.setting.seed)
        self._begun = 0
        templates = TEMPLATES
        if self._chance.random() >= ALL_GROUPS:
            # Windows are of many kinds: they come twice as often.
            some = self._chance.sample([*GROUPS, "windows"], self._chance.choice((1, 1, 2)))
            templates = tuple(each for name in some for each in GROUPS[name])
        self._templates = self._chance.sample(templates, min(FEW, len(templates)))

    def draw(self) -> list[Action]:
        """Return what happens next, and whether sites come to rest after it."""
        chance = self._chance
        happens = self._happens()
        if self._is_filled(happens) and chance.random() < INCIDENTS:
            return [*happens, *self._incident()]
        if chance.random() < BUSY:
            happens.append(Deliver(chance.randrange(12)))
        else:
            happens.append(Settle())
        return happens

    def _is_filled(self, happens: list[Action]) -> bool:
        return not self._sequence.down and any(isinstance(each, Register) for each in happens)

    def _incident(self) -> list[Action]:
        """Return the death or crash of a site while a query is filled."""
        chance = self._chance
        site = chance.choice((*GATEWAYS, *self._sequence.setting.bases))
        dies: list[Action] = [Deliver(chance.randrange(8))]
        if chance.random() < 0.3:
            return [*dies, Crash(site, chance.random() < 0.5, chance.random() < 0.5), Deliver(5)]
        dies.append(Kill(site, chance.random() < 0.5))
        if chance.random() < 0.7:
            dies += Deliver(chance.randrange(12)), Restart(site), Deliver(5)
        return dies

    def _happens(self) -> list[Action]:
        chance, now = self._chance, self._sequence
        (kind,) = chance.choices(list(KINDS), list(KINDS.values()))
        match kind:
            case "register" if len(now.live) < MOST:
                self._begun += 1
                return [Register(self._begun, chance.choice(self._templates).text)]
            case "deregister" if now.live:
                return [Deregister(chance.choice(list(now.live)))]
            case "delete":
                return self._delete()
            case "time":
                return [Wait(STEP * chance.choice((1, 2, 5, 12)))]
            case "death" if not now.down:
                sites = (*GATEWAYS, *now.setting.bases)
                return [Kill(chance.choice(sites), chance.random() < 0.5)]
            case "crash":
                site = chance.choice((*GATEWAYS, *now.setting.bases))
                return [Crash(site, chance.random() < 0.5, chance.random() < 0.5)]
            case "return" if now.down:
                return [Restart(chance.choice(sorted(now.down)))]
            case _:
                some = chance.choice((1, 1, 3, 8)) if now.up else 0
                return [*(self._insert() for _ in range(some))]

    def _insert(self) -> Insert:
        gateway = self._chance.choice(self._sequence.up)
        source = self._chance.choice(list(COLUMNS))
        colocated = self._sequence.setting.colocated
        row = new_row(source, gateway, self._chance, self._sequence.now, colocated=colocated)
        return Insert(gateway, source, row)

    def _delete(self) -> list[Action]:
        if not self._sequence.up:
            return []
        gateway = self._chance.choice(self._sequence.up)
        source = self._chance.choice(list(COLUMNS))
        rows = self._sequence.expected.rows[gateway]
        found = rows.any_of(source, self._sequence.now, self._chance)
        return [Delete(gateway, source, found[0], self._chance.randrange(3))] if found else []
