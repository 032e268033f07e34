"""Sequences of queries as one analyst varies one: narrower, larger, further, grouped.

Each analyst starts with pairs of transfers and changes one thing at a time, in a spelling of their
own. Equal starts are rare, answers that follow from earlier ones are frequent.
"""

import random
from dataclasses import replace

from benchmarks._argus.asked import Asked, select
from benchmarks._argus.bank_transfers import NAME, USUAL_TYPE
from benchmarks._argus.chains_of_transfers import (
    AMOUNTS,
    CONFINEMENT,
    DAYS,
    RATIOS,
    TRACKING,
    Chain,
    text_of,
)

STEPS = 8
"""Queries of an analyst."""


def sequences(analysts: int, seed: int) -> list[Asked]:
    """Return the queries of analysts who work at the same time."""
    chance = random.Random(seed)
    by_analyst = [_sequence(chance) for _ in range(analysts)]
    return [sequence[step] for step in range(STEPS) for sequence in by_analyst]


def _sequence(chance: random.Random) -> list[Asked]:
    amount, days = chance.choice(AMOUNTS), chance.choice(DAYS[:4])
    start = Chain(
        2, chance.choice(TRACKING), chance.choice(CONFINEMENT), amount, days, chance.choice(RATIOS)
    )
    narrower = replace(start, days=max(1, days // 2))
    larger = replace(narrower, amount=2 * amount)
    further = replace(larger, ways=3)
    variations = (start, narrower, larger, further, replace(further, days=max(1, days // 4)))
    found = [Asked("chains", text_of(chain, chance)) for chain in variations]
    bank = chance.randrange(20)
    found += [
        Asked("one bank", _of_bank(bank, amount)),
        Asked("days of a bank", _days_of(bank, amount, 1)),
        Asked("days of a bank", _days_of(bank, amount, 3)),
    ]
    return found


def _large(bank: int, amount: int) -> tuple[str, ...]:
    return (f"type_code = {USUAL_TYPE}", f"amount > {amount}", f"sbank_aba = 'aba{bank}'")


def _of_bank(bank: int, amount: int) -> str:
    values = ("tranid", "tran_date", "amount", "rbank_aba")
    return select(values, [NAME], _large(bank, amount))


def _days_of(bank: int, amount: int, least: int) -> str:
    values = ("tran_date AS day", "COUNT(*) AS n", "SUM(amount) AS total")
    rest = f" GROUP BY tran_date HAVING COUNT(*) >= {least}"
    return select(values, [NAME], _large(bank, amount), rest)
