"""Queries for chains of transfers: a large sum comes in, a part goes on, then all of it.

Two to five transfers of usual type, each paid by the bank (or the account) that got the one before,
within some days of it. Forward: the first is large, and the second has at least a part of it.
Backward: the last is large, and at least a part of it came with the one before. All other hops have
equal amounts. A window of 60 days, a part of a tenth and the lower amount ask for most.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, product

from benchmarks._argus.asked import Asked, in_turns, select
from benchmarks._argus.bank_transfers import NAME, USUAL_TYPE

FORWARD, BACKWARD = "forward", "backward"
ACCOUNT, BANK = "account", "bank"
WAYS = (5, 4, 3, 2)
TRACKING = (FORWARD, BACKWARD)
CONFINEMENT = (ACCOUNT, BANK)
AMOUNTS = (50_000, 100_000)
DAYS = (60, 40, 30, 20, 10, 5)
RATIOS = (10, 5, 2, 1)
"""Values of the parameters, what asks for most first."""

_ALIASES = "abcde"


@dataclass(frozen=True, slots=True)
class Chain:
    """The parameters of a query.

    Attributes:
        ways: Transfers of a chain.
        tracking: Forward or backward.
        confinement: Hops meet at an account, or at a bank.
        amount: The large transfer has more.
        days: A hop follows within.
        ratio: The hop at the large transfer has at least this part of it: 1 / ratio.
    """

    ways: int
    tracking: str
    confinement: str
    amount: int
    days: int
    ratio: int

    @property
    def category(self) -> str:
        """One of 16: everything but amounts, days and ratios."""
        return f"{self.ways} {self.tracking} {self.confinement}"


def text_of(chain: Chain, spelling: random.Random | None = None) -> str:
    """Return a chain's text, as somebody else writes it if there is a spelling to draw from."""
    names = list(_ALIASES[: chain.ways])
    if spelling is not None and spelling.random() < 0.5:
        names = [f"t{number}" for number in range(1, chain.ways + 1)]
    conditions = [f"{name}.type_code = {USUAL_TYPE}" for name in names]
    for earlier, later in pairwise(names):
        conditions += _hop(chain, earlier, later, spelling)
    conditions += _amounts(chain, names, spelling)
    if spelling is not None:
        spelling.shuffle(conditions)
    values = [f"{name}.tranid AS id{at}" for at, name in enumerate(names, 1)]
    large = names[0] if chain.tracking == FORWARD else names[-1]
    values.append(f"{large}.amount AS amount")
    return select(values, [f"{NAME} {name}" for name in names], conditions)


def _hop(chain: Chain, a: str, b: str, spelling: random.Random | None) -> Iterator[str]:
    """Yield where and when a later transfer follows an earlier one."""
    yield f"{a}.rbank_aba = {b}.sbank_aba"
    if chain.confinement == ACCOUNT:
        yield f"{a}.benef_account = {b}.orig_account"
    days = f"INTERVAL '{chain.days} days'"
    yield _one_of(
        spelling,
        f"{a}.tran_date <= {b}.tran_date",
        f"{b}.tran_date >= {a}.tran_date",
    )
    yield _one_of(
        spelling,
        f"{b}.tran_date <= {a}.tran_date + {days}",
        f"{a}.tran_date + {days} >= {b}.tran_date",
        f"{b}.tran_date - {days} <= {a}.tran_date",
    )


def _amounts(chain: Chain, names: Sequence[str], spelling: random.Random | None) -> Iterator[str]:
    """Yield what the amounts have to be."""
    order = names if chain.tracking == FORWARD else names[::-1]
    large, part = order[0], order[1]
    yield f"{large}.amount > {chain.amount}"
    yield _one_of(
        spelling,
        f"{part}.amount >= {large}.amount / {chain.ratio}",
        f"{large}.amount / {chain.ratio} <= {part}.amount",
    )
    for one, other in pairwise(order[1:]):
        yield _one_of(spelling, f"{one}.amount = {other}.amount", f"{other}.amount = {one}.amount")


def _one_of(spelling: random.Random | None, *texts: str) -> str:
    return texts[0] if spelling is None else spelling.choice(texts)


def by_hand() -> list[Asked]:
    """Return the full cross product of the parameters: 768 queries, 48 of each category."""
    categories = [
        [Chain(*category, *values) for values in product(AMOUNTS, DAYS, RATIOS)]
        for category in product(WAYS, TRACKING, CONFINEMENT)
    ]
    return list(
        in_turns([Asked(chain.category, text_of(chain)) for chain in each] for each in categories)
    )


# --- random parameters ---------------------------------------------------------------------------

Draw = Callable[[random.Random, int, int], int]
"""Returns a whole number between two others, of a distribution."""


def uniform(chance: random.Random, least: int, most: int) -> int:
    """Return any of the numbers, all equally likely."""
    return chance.randint(least, most)


def normal(chance: random.Random, least: int, most: int) -> int:
    """Return a number around the middle; the deviation is a tenth of the range."""
    return _within(chance.gauss((least + most) / 2, 0.1 * (most - least)), least, most)


def mixture(chance: random.Random, least: int, most: int) -> int:
    """Return a number around a fifth or around four fifths of the range."""
    middle = least + chance.choice((0.2, 0.8)) * (most - least)
    return _within(chance.gauss(middle, 0.1 * (most - least)), least, most)


def _within(drawn: float, least: int, most: int) -> int:
    return min(most, max(least, round(drawn)))


def drawn(draw: Draw, count: int, seed: int) -> list[Asked]:
    """Return queries whose numbers are drawn, in many spellings; categories are equally likely."""
    chance = random.Random(seed)
    found = []
    for _ in range(count):
        chain = Chain(
            draw(chance, min(WAYS), max(WAYS)),
            chance.choice(TRACKING),
            chance.choice(CONFINEMENT),
            draw(chance, min(AMOUNTS), max(AMOUNTS)),
            draw(chance, min(DAYS), max(DAYS)),
            draw(chance, min(RATIOS), max(RATIOS)),
        )
        found.append(Asked(chain.category, text_of(chain, chance)))
    return found
