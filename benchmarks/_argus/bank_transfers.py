"""Transfers of money: one stream of the shape of the thesis' FedWire data, with planted chains.

Known facts, which the statistics of this data keep: nearly all transfers are of type 1000; one in a
thousand is above 500,000; dates run through one month in the order of arrival. A beneficiary's
account belongs to a bank. Some transfers are hops of planted chains: a large sum comes in, a part
of it goes on within days, and from then on the same sum.
"""

import math
import random

from benchmarks._argus.arriving_rows import DAY, NOVEMBER_2002, Sizes, Stream
from streamsql.data.types import Row

NAME = "transfer"
DEFINITION = """
    CREATE SOURCE transfer (tranid INTEGER, type_code INTEGER, tran_date TIMESTAMP, amount INTEGER,
      sbank_aba TEXT, sbank_name TEXT, rbank_aba TEXT, rbank_name TEXT, orig_account TEXT,
      benef_account TEXT, KEY (tranid),
      WATERMARK FOR tran_date AS tran_date - INTERVAL '1 day');"""

DAYS = 30
USUAL_TYPE = 1000
_USUAL = 0.92
_RARE_TYPES = (1001, 1031, 1500, 1600)

_MEDIAN = 2_000.0
_ABOVE_HALF_A_MILLION = 3.0902
"""Standard deviations above the mean that one in a thousand exceeds."""
_SPREAD = math.log(500_000 / _MEDIAN) / _ABOVE_HALF_A_MILLION

_ROWS_PER_BANK = 55
"""500,000 transfers among the some 9,000 banks that took part in FedWire."""
_ROWS_PER_ACCOUNT = 10
_IN_CHAINS = 0.02
"""The share of transfers that are hops of planted chains."""
_HOPS = 3.5
"""Of a chain, on average."""

BANKS = ("Citibank", "Fleet Bank", "First Bank")
"""Names of the first banks; all others have a number."""

_Transfer = tuple[int, int, int, int, int]
"""(day, type, amount, account that pays, account that gets)."""


def transfers(sizes: Sizes, seed: int) -> Stream:
    """Return the stream; equal sizes and seeds give equal rows."""
    chance = random.Random(seed)
    accounts = max(4, sizes.all // _ROWS_PER_ACCOUNT)
    found: list[_Transfer] = []
    while len(found) < sizes.all:
        if chance.random() < _IN_CHAINS / _HOPS:
            found += _chain(chance, accounts)
        else:
            found.append(_usual(chance, accounts))
    del found[sizes.all :]
    found.sort(key=lambda each: each[0])
    banks = max(3, sizes.all // _ROWS_PER_BANK)
    rows = [_row(number, each, banks) for number, each in enumerate(found)]
    return sizes.split(DEFINITION, NAME, rows)


def _usual(chance: random.Random, accounts: int) -> _Transfer:
    kind = USUAL_TYPE if chance.random() < _USUAL else chance.choice(_RARE_TYPES)
    return (
        chance.randrange(DAYS),
        kind,
        _amount(chance),
        chance.randrange(accounts),
        chance.randrange(accounts),
    )


def _amount(chance: random.Random) -> int:
    return max(1, round(chance.lognormvariate(math.log(_MEDIAN), _SPREAD)))


def _chain(chance: random.Random, accounts: int) -> list[_Transfer]:
    """Return two to five hops; the first is large, the second at least a tenth of it."""
    day, amount = chance.randrange(DAYS), round(chance.uniform(40_000, 450_000))
    payer, receiver = chance.randrange(accounts), chance.randrange(accounts)
    hops = [(day, USUAL_TYPE, amount, payer, receiver)]
    amount = round(amount * chance.choice((0.15, 0.3, 0.7, 1.1)))
    for _ in range(chance.randint(1, 4)):
        day = min(DAYS - 1, day + chance.choice((0, 1, 2, 4, 8)))
        payer, receiver = receiver, chance.randrange(accounts)
        hops.append((day, USUAL_TYPE, amount, payer, receiver))
    return hops


def _row(number: int, transfer: _Transfer, banks: int) -> Row:
    day, kind, amount, payer, receiver = transfer
    sender, to = payer % banks, receiver % banks
    return (
        number,
        kind,
        NOVEMBER_2002 + day * DAY,
        amount,
        f"aba{sender}",
        _bank(sender),
        f"aba{to}",
        _bank(to),
        f"{'ABCDEFGHIJ'[payer % 10]}{payer}",
        f"{'ABCDEFGHIJ'[receiver % 10]}{receiver}",
    )


def _bank(number: int) -> str:
    return BANKS[number] if number < len(BANKS) else f"Bank {number}"
