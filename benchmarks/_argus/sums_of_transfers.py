"""Queries for sums of transfers: 21 families, 350 queries.

Sixteen group selected transfers of one side (received or sent) by some of bank, first letter of the
account and day; four join the sums of both sides of a bank and day; one asks for sums of one side
that the other side does not have. What a family varies is the bound that a sum exceeds, and which
functions are asked for.
"""

from collections.abc import Iterator
from itertools import product

from benchmarks._argus.asked import Asked, in_turns, select
from benchmarks._argus.bank_transfers import NAME, USUAL_TYPE

RECEIVED, SENT = "received", "sent"
_SIDES = {RECEIVED: ("rbank_aba", "benef_account"), SENT: ("sbank_aba", "orig_account")}
_DIMENSIONS = (("bank", "letter", "day"), ("bank", "day"), ("letter", "day"), ("bank",))
_BOUNDS = (100_000, 1_000_000, 2_000_000, 5_000_000, 10_000_000)
_FUNCTIONS = (
    ("SUM(amount)",),
    ("SUM(amount)", "COUNT(*)"),
    ("SUM(amount)", "AVG(amount)"),
    ("COUNT(*)", "MAX(amount)"),
)


def aggregates() -> list[Asked]:
    """Return 350 queries, of 21 categories in turns."""
    return list(in_turns([*_groups(), *_joined(), _only_received()]))


def _groups() -> Iterator[list[Asked]]:
    """Yield 16 families of 20 queries."""
    for side, dimensions, usual in product(_SIDES, _DIMENSIONS, (False, True)):
        category = f"{side} by {', '.join(dimensions)}{', usual' if usual else ''}"
        yield [
            Asked(category, _sums(side, dimensions, functions, bound, usual=usual))
            for bound, functions in product(_BOUNDS, _FUNCTIONS)
        ]


def _sums(
    side: str,
    dimensions: tuple[str, ...],
    functions: tuple[str, ...],
    bound: int | None,
    *,
    usual: bool,
) -> str:
    bank, account = _SIDES[side]
    expressions = {"bank": bank, "letter": f"substr({account}, 1, 1)", "day": "tran_date"}
    keys = [expressions[each] for each in dimensions]
    values = [f"{key} AS {name}" for key, name in zip(keys, dimensions, strict=True)]
    values += [f"{function} AS f{at}" for at, function in enumerate(functions, 1)]
    having = "" if bound is None else f" HAVING SUM(amount) > {bound}"
    conditions = [f"type_code = {USUAL_TYPE}"] if usual else []
    return select(values, [NAME], conditions, f" GROUP BY {', '.join(keys)}{having}")


def _joined() -> Iterator[list[Asked]]:
    """Yield 4 families of 6 queries: what banks got and sent on a day."""
    for functions in _FUNCTIONS[:2]:
        for usual in (False, True):
            category = f"received and sent, {len(functions)} functions{', usual' if usual else ''}"
            got = _sums(RECEIVED, ("bank", "day"), functions, None, usual=usual)
            gone = _sums(SENT, ("bank", "day"), functions, None, usual=usual)
            yield [
                Asked(
                    category,
                    f"SELECT g.bank AS bank, g.day AS day, g.f1 AS got, s.f1 AS gone "
                    f"FROM ({got}) g, ({gone}) s "
                    f"WHERE g.bank = s.bank AND g.day = s.day "
                    f"AND g.f1 > {bound} AND s.f1 > {bound // 2}",
                )
                for bound in (100_000, 500_000, *_BOUNDS[1:])
            ]


def _only_received() -> list[Asked]:
    """Return 6 queries: banks and days with a large sum that came in, and none that went out."""
    found = []
    for bound in (100_000, 500_000, *_BOUNDS[1:]):
        sides = []
        for side in (RECEIVED, SENT):
            sums = _sums(side, ("bank", "day"), _FUNCTIONS[0], None, usual=True)
            sides.append(f"SELECT bank, day FROM ({sums}) {side} WHERE f1 > {bound}")
        found.append(Asked("received, not sent", " EXCEPT ".join(sides)))
    return found
