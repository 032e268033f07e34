"""How long does it take to find the predicate sets that a further one implies, or is implied by?

    python -m benchmarks.predicate_index [--quick] [--json] [--seed N] [--kinds usual joins]

Indexes of 10 to 10,000 sets over the columns of transfers (bank, kind, amount, day, and a second
transfer's), of three kinds:

    usual      equalities, limits, BETWEEN, IN, LIKE, differences of days: constants all differ
    joins      two transfers of the same account within some days, and limits of amounts
    one of     disjunctions over two columns

Looked up are further sets of the kind, and some that are stored. Times are microseconds of CPU a
look-up, median and 95th percentile, of these contestants:

    index      `PredicateIndex`, both directions
    pairs      `PredicateSet.implies` with every stored set
    SQL        the thesis' way: literals and sets are tables with indexes in SQLite, and a query
               joins literals of the same left side whose constants are beyond. It knows nothing of
               strict ends, of what follows from several literals, and of half of a disjunction

"found" is the mean of sets found by the contestant. `made` is the time to read the predicates of
one set and to add it. Pairs and index are compared for every look-up: the share of what pairs find
and the index does not is `missed`, and must be none for weaker sets.

How to read it: ratios within one run.
"""

import argparse
import json
import sqlite3
import time
from collections.abc import Callable, Sequence
from random import Random
from statistics import mean, median, quantiles
from typing import Any

from benchmarks._figures import print_tables
from federated_optimizer.canonical.regions.regions import BOTTOM, TOP
from federated_optimizer.canonical.sets.predicate_index import PredicateIndex
from federated_optimizer.canonical.sets.predicate_sets import PredicateSet
from streamsql.algebra.expressions import Call, Column, Expression, Literal
from streamsql.data.types import DataType

N, D, T, B = DataType.INTEGER, DataType.DOUBLE, DataType.TEXT, DataType.BOOLEAN
BANK, KIND, AMOUNT, DAY, ACCOUNT = (
    Column(0, "bank", T), Column(1, "kind", N), Column(2, "amount", D), Column(3, "day", N),
    Column(4, "account", T),
)  # fmt: skip
BANK_2, AMOUNT_2, DAY_2, ACCOUNT_2 = (
    Column(5, "bank2", T), Column(6, "amount2", D), Column(7, "day2", N), Column(8, "account2", T),
)  # fmt: skip
SIZES = (10, 100, 1_000, 10_000)
Figures = dict[str, float | None]
Sets = list[PredicateSet]


def compared(name: str, left: Expression, right: Expression) -> Expression:
    """Return a comparison."""
    return Call(name, (left, right), B)


def usual(random: Random) -> list[Expression]:
    """Return the predicates of a query over one table."""
    parts = [compared("=", KIND, Literal(random.randrange(1_000, 1_020), N))]
    amount = Literal(float(random.randrange(1, 2_000) * 1_000), D)
    if random.random() < 0.6:
        parts.append(compared(random.choice((">", ">=", "<")), AMOUNT, amount))
    start = random.randrange(3_000)
    match random.randrange(4):
        case 0:
            end = Literal(start + random.randrange(1, 40), N)
            parts += [compared(">=", DAY, Literal(start, N)), compared("<=", DAY, end)]
        case 1:
            days = [Literal(start + n, N) for n in random.sample(range(30), 3)]
            parts.append(Call("IN", (DAY, *days), B))
        case 2:
            parts.append(compared(">", DAY, Literal(start, N)))
        case _:
            pass
    bank = f"B{random.randrange(400):03}"
    if random.random() < 0.5:
        parts.append(compared("=", BANK, Literal(bank, T)))
    elif random.random() < 0.5:
        prefix = Literal(bank[: random.randrange(2, 5)] + "%", T)
        parts.append(Call("LIKE", (BANK, prefix), B))
    return parts


def joins(random: Random) -> list[Expression]:
    """Return the predicates of two transfers that belong together."""
    apart = Call("-", (DAY_2, DAY), N)
    return [
        compared("=", BANK, BANK_2),
        compared("=", ACCOUNT, ACCOUNT_2),
        compared("=", KIND, Literal(random.randrange(1_000, 1_020), N)),
        compared(">", AMOUNT, Literal(float(random.randrange(1, 2_000) * 1_000), D)),
        compared(">", AMOUNT_2, Call("*", (Literal(0.5, D), AMOUNT), D)),
        compared("<=", DAY, DAY_2),
        compared("<=", apart, Literal(random.randrange(1, 400), N)),
    ]


def one_of(random: Random) -> list[Expression]:
    """Return the predicates of a query with a disjunction over two columns."""
    amount = Literal(float(random.randrange(1, 2_000) * 1_000), D)
    day = Literal(random.randrange(3_000), N)
    either = (compared(">", AMOUNT, amount), compared("<", DAY, day))
    kind = compared("=", KIND, Literal(random.randrange(1_000, 1_020), N))
    return [kind, Call("OR", either, B)]


KINDS: dict[str, Callable[[Random], list[Expression]]] = {
    "usual": usual,
    "joins": joins,
    "one of": one_of,
}


class Tables:
    """Literals and sets in SQLite, searched by one statement."""

    def __init__(self, sets: Sequence[PredicateSet]) -> None:
        self._base = sqlite3.connect(":memory:")
        self._base.executescript(
            "CREATE TABLE literal (set_id INTEGER, clause INTEGER, term TEXT, low, high);"
            "CREATE TABLE sets (set_id INTEGER PRIMARY KEY, clauses INTEGER)"
        )
        for number, each in enumerate(sets):
            self._base.execute("INSERT INTO sets VALUES (?, ?)", (number, len(each.clauses)))
            rows = [(number, *row) for row in literals_of(each)]
            self._base.executemany("INSERT INTO literal VALUES (?, ?, ?, ?, ?)", rows)
        self._base.executescript(
            "CREATE INDEX by_low ON literal (term, low);"
            "CREATE INDEX by_high ON literal (term, high); ANALYZE"
        )
        self._base.execute("CREATE TEMP TABLE mine (clause INTEGER, term TEXT, low, high)")

    def weaker(self, wanted: PredicateSet) -> set[int]:
        """Return the sets each clause of which has a literal that one of a set implies."""
        self._base.execute("DELETE FROM mine")
        self._base.executemany("INSERT INTO mine VALUES (?, ?, ?, ?)", literals_of(wanted))
        found = self._base.execute(
            "SELECT s.set_id FROM sets s JOIN (SELECT l.set_id, COUNT(DISTINCT l.clause) AS hit"
            " FROM mine m JOIN literal l ON l.term = m.term"
            " AND (l.low IS NULL OR l.low <= m.low) AND (l.high IS NULL OR l.high >= m.high)"
            " GROUP BY l.set_id) h ON h.set_id = s.set_id WHERE h.hit = s.clauses"
        )
        return {number for (number,) in found}


def literals_of(wanted: PredicateSet) -> list[tuple[int, str, Any, Any]]:
    """Return the literals of one interval; strict ends of DOUBLE count as their values."""
    rows: list[tuple[int, str, Any, Any]] = []
    for number, clause in enumerate(wanted.clauses):
        for each in clause:
            hull = each.region.hull
            if len(each.region.spans) == 1 and hull is not None and not each.region.null:
                low, high = hull
                start = None if low == BOTTOM else _plain(low[1])
                end = None if high == TOP else _plain(high[1])
                rows.append((number, each.term.text, start, end))
    return rows


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | int) else float(value)


def summary(label: str, times: Sequence[float]) -> Figures:
    """Return the median and the 95th percentile of times."""
    return {f"{label}, median": median(times), f"{label}, p95": quantiles(times, n=20)[-1]}


def measured(kind: str, size: int, asked: int, seed: int) -> Figures:
    """Return the figures of one kind and number of sets.

    Raises:
        AssertionError: A look-up finds what pairs do not find, or weaker sets are missed.
    """
    random = Random(f"{kind} {seed}")
    author = KINDS[kind]
    written = [author(random) for _ in range(size)]
    index: PredicateIndex[int] = PredicateIndex()
    sets: Sets = []

    begin = time.process_time_ns()
    for number, parts in enumerate(written):
        sets.append(PredicateSet.of(parts))
        index.add(number, sets[-1])
    figures: Figures = {"made, us a set": (time.process_time_ns() - begin) / 1e3 / size}
    tables = Tables(sets)
    wanted = [
        PredicateSet.of(author(random) if n % 2 else random.choice(written)) for n in range(asked)
    ]
    times: dict[str, list[float]] = {}
    counts: dict[str, list[int]] = {}
    missed = expected = 0
    for each in wanted:
        _ = each.clauses, each.cases  # read once, whoever asks first
        answers: dict[str, set[int]] = {}
        contestants: dict[str, Callable[[], set[int]]] = {
            "index, weaker": lambda each=each: index.weaker_or_equal(each),  # type: ignore[misc]
            "index, stronger": lambda each=each: index.stronger_or_equal(each),  # type: ignore[misc]
            "pairs, weaker": lambda each=each: {n for n, s in enumerate(sets) if each.implies(s)},  # type: ignore[misc]
            "pairs, stronger": lambda each=each: {n for n, s in enumerate(sets) if s.implies(each)},  # type: ignore[misc]
            "SQL, weaker": lambda each=each: tables.weaker(each),  # type: ignore[misc]
        }
        for name, work in contestants.items():
            begin = time.process_time_ns()
            answers[name] = work()
            times.setdefault(name, []).append((time.process_time_ns() - begin) / 1e3)
            counts.setdefault(name, []).append(len(answers[name]))
        if answers["index, weaker"] != answers["pairs, weaker"]:
            raise AssertionError(f"weaker sets of {each}: {answers}")
        if not answers["index, stronger"] <= answers["pairs, stronger"]:
            raise AssertionError(f"stronger sets of {each}: {answers}")
        expected += len(answers["pairs, stronger"])
        missed += len(answers["pairs, stronger"] - answers["index, stronger"])
    for name, taken in times.items():
        figures |= summary(f"{name}, us", taken)
        figures[f"{name}, found"] = mean(counts[name])
    figures["missed"] = missed / expected if expected else 0.0
    return figures


def main(argv: list[str] | None = None) -> int:
    """Run the benchmark; return the exit status."""
    parser = argparse.ArgumentParser(description="Look-ups of predicate sets.")
    parser.add_argument("--quick", action="store_true", help="up to 1,000 sets, fewer look-ups")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--seed", type=int, default=1, help="of the predicates")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=[*KINDS], help="of sets")
    options = parser.parse_args(argv)
    sizes = SIZES[:3] if options.quick else SIZES
    asked = 10 if options.quick else 30
    tables = {
        kind: {f"{size} sets": measured(kind, size, asked, options.seed) for size in sizes}
        for kind in options.kinds
    }
    if options.json:
        settings = {"quick": options.quick, "seed": options.seed, "look_ups": asked}
        print(json.dumps({"benchmark": "predicate_index", "settings": settings, "kinds": tables}))
        return 0
    print_tables(tables, digits=1)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
