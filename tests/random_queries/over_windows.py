"""Random window functions: partitions, orders, frames, and queries around them.

Rows that the keys do not tell apart stand in the order of all values the query computes, those of
the select list first. DuckDB is told that order where it matters; where it hangs on values that
are not selected, only our engines are compared.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.random_queries.expressions import KINDS, Expressions
from tests.random_queries.groups import call as aggregate
from tests.random_queries.schemas import Columns
from tests.random_queries.scopes import Item, Workshop, columns_of, dual, ours, postgres, theirs

if TYPE_CHECKING:
    from tests.random_queries.queries import Queries

WAYS = ("", " DESC", " ASC NULLS FIRST", " DESC NULLS LAST")
NUMBERS = ("INTEGER", "DOUBLE")
WHOLE = "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
RANGES = (
    "RANGE UNBOUNDED PRECEDING",
    "RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
    "RANGE CURRENT ROW",
)
"""Frames in which rows with equal keys stand together."""
BOUNDS = (-3, -2, -1, -1, 0, 0, 1, 2)


@dataclass(frozen=True)
class Order:
    """PARTITION BY and ORDER BY, which several functions may share.

    Attributes:
        ties: What DuckDB is told to order equal keys by; None: it cannot be told.
    """

    parts: str
    keys: str
    ties: str | None

    def text(self, frame: "Frame", *, told: bool) -> str:
        """Return it with a frame, as written for both; DuckDB told about ties or not."""
        by = f"ORDER BY {self.keys}" if self.keys else ""
        if told and self.ties:
            ties = f", {self.ties}" if by else f"ORDER BY {self.ties}"
            by += dual("", ties, ties)
        return f"({self.parts} {by} {frame.text})"


@dataclass(frozen=True)
class Frame:
    """A frame as both are told it.

    Attributes:
        ours: As written; nothing means RANGE UNBOUNDED PRECEDING, or the partition without keys.
        theirs: For DuckDB.
        peers: Whether rows with equal keys stand in it together.
        whole: Whether it is the partition.
    """

    ours: str
    theirs: str
    peers: bool = False
    whole: bool = False

    @property
    def text(self) -> str:
        """Return it for all."""
        if self.ours == self.theirs:
            return self.ours
        return dual(self.ours, self.theirs, self.theirs)


class Windows:
    """Makes the window functions of one query.

    Args:
        shop: The case.
        values: Makes arguments and keys.
        ties: All columns, which the select list begins with; None: it may begin otherwise.
    """

    def __init__(self, shop: Workshop, values: Expressions, ties: list[str] | None) -> None:
        self.shop = shop
        self.values = values
        self.ties = None if ties is None else ", ".join(f"{name} ASC NULLS FIRST" for name in ties)
        self.named: dict[str, str] = {}
        self._orders = [self._random_order() for _ in range(shop.random.choice((1, 1, 2)))]

    def clause(self) -> str:
        """Return the WINDOW clause, if a window has a name."""
        listed = ", ".join(f"{name} AS {text}" for name, text in self.named.items())
        return f" WINDOW {listed}" if listed else ""

    def of(self, kind: str) -> str:
        """Return a window function of a type, or an expression around one."""
        random = self.shop.random
        if kind == "INTEGER" and random.random() < 0.4:
            return self._numbering()
        if kind == "BOOLEAN" and random.random() < 0.5:
            return f"({self.condition()})"
        if kind == "DOUBLE" and random.random() < 0.15:
            function = random.choice(("PERCENT_RANK", "CUME_DIST"))
            return self._over(f"{function}()", self._order(), told=False)
        if kind in NUMBERS and random.random() < 0.35:
            made = self._aggregate(kind)
        else:
            made = self._value(kind)
        if random.random() < 0.15:
            other = self.values.of(kind, 1)
            made = f"({made} - {other})" if kind in NUMBERS else f"COALESCE({made}, {other})"
        return made

    def condition(self) -> str:
        """Return a condition, as QUALIFY takes them."""
        random = self.shop.random
        match random.randrange(5):
            case 0 | 1:
                return (
                    f"{self._numbering()} {random.choice(('<=', '=', '>'))} {random.choice('123')}"
                )
            case 2:
                kind = random.choice(NUMBERS)
                return (
                    f"{self.values.of(kind, 1)} {random.choice(('<', '>=', '<>'))} {self.of(kind)}"
                )
            case 3:
                kind = random.choice(KINDS)
                return f"{self._value(kind)} IS {random.choice(('', 'NOT '))}DISTINCT FROM " + (
                    self.values.leaf(kind)
                )
            case _:
                word = random.choice(("AND", "OR"))
                return f"({self._numbering()} <= 2 {word} {self.values.condition(1)})"

    # --- one function -------------------------------------------------------------------------

    def _numbering(self) -> str:
        random = self.shop.random
        function = random.choice(("ROW_NUMBER", "ROW_NUMBER", "RANK", "DENSE_RANK", "NTILE"))
        number = random.choice(("1", "2", "3", "5")) if function == "NTILE" else ""
        told = function in {"ROW_NUMBER", "NTILE"}
        return self._over(f"{function}({number})", self._order(), told=told)

    def _value(self, kind: str) -> str:
        """Return LAG, LEAD, FIRST_VALUE, LAST_VALUE, NTH_VALUE, MIN, MAX or ANY_VALUE."""
        random = self.shop.random
        value = self.values.of(kind, 1)
        match random.randrange(3):
            case 0:
                distance = random.choice(("", "", ", 2", ", 1", ", 0"))
                other = f", {self.values.of(kind, 1)}" if distance and random.random() < 0.6 else ""
                function = random.choice(("LAG", "LEAD"))
                return self._over(f"{function}({value}{distance}{other})", self._order(), told=True)
            case 1:
                if random.random() < 0.3:
                    return self._edge(f"NTH_VALUE({value}, {random.choice('1223')})")
                return self._edge(f"{random.choice(('FIRST_VALUE', 'LAST_VALUE'))}({value})")
            case _:
                extremum = random.choice(("MIN", "MAX", dual("ANY_VALUE", "MIN", "MIN")))
                return self._framed(f"{extremum}({value})")

    def _aggregate(self, kind: str) -> str:
        random = self.shop.random
        if kind == "DOUBLE":
            inner = self.values.of(random.choice(NUMBERS), 1)
            call = f"AVG({inner})" if random.random() < 0.5 else f"SUM({self.values.of(kind, 1)})"
        elif random.random() < 0.3:
            call = "COUNT(*)"
        elif random.random() < 0.4:
            call = f"COUNT({self.values.of(random.choice(KINDS), 1)})"
        else:
            call = f"SUM({self.values.of(kind, 1)})"
        return self._framed(call)

    def _edge(self, call: str) -> str:
        order, frame = self._order(), self._frame()
        if frame.peers and not order.keys:  # all rows are peers, until DuckDB is told an order
            return self._over(call, order, Frame(frame.ours, WHOLE), told=True)
        if frame.peers:
            self.shop.beyond.add("which of several rows with equal keys is at the edge of RANGE")
        return self._over(call, order, frame, told=not frame.peers)

    def _framed(self, call: str) -> str:
        if self.shop.chance(0.15):
            call += f" FILTER (WHERE {self.values.condition(1)})"
        frame = self._frame()
        return self._over(call, self._order(), frame, told=not frame.peers and not frame.whole)

    def _over(self, call: str, order: Order, frame: Frame | None = None, *, told: bool) -> str:
        shop = self.shop
        if told and order.ties is None:
            shop.beyond.add("ties by values that are not selected")
        text = order.text(frame or Frame("", ""), told=told)
        if shop.chance(0.12):
            name = next((n for n, known in self.named.items() if known == text), "")
            name = name or f"w{len(self.named) + 1}"
            self.named[name] = text
            return f"{call} OVER {name}"
        return f"{call} OVER {text}"

    def _order(self) -> Order:
        return self.shop.random.choice(self._orders)

    def _frame(self) -> Frame:
        random = self.shop.random
        match random.randrange(8):
            case 0 | 1:
                return Frame("", "", peers=True)
            case 2:
                written = random.choice(RANGES)
                return Frame(written, written, peers=True)
            case 3:
                kind = random.choice(("ROWS", "RANGE"))
                return Frame(WHOLE.replace("ROWS", kind), WHOLE, whole=True)
            case _:
                start, end = sorted((random.choice(BOUNDS), random.choice(BOUNDS)))
                first = "UNBOUNDED PRECEDING" if random.random() < 0.25 else _bound(start)
                last = "UNBOUNDED FOLLOWING" if random.random() < 0.2 else _bound(end)
                if last == "CURRENT ROW" and random.random() < 0.3:
                    written = f"ROWS {first}"
                else:
                    written = f"ROWS BETWEEN {first} AND {last}"
                return Frame(written, written)

    def _random_order(self) -> Order:
        random = self.shop.random
        parts = [self._key() for _ in range(random.choice((0, 1, 1, 2)))]
        keys = [self._key() + random.choice(WAYS) for _ in range(random.choice((0, 1, 1, 1, 2)))]
        by = f"PARTITION BY {', '.join(parts)}" if parts else ""
        return Order(by, ", ".join(keys), self.ties)

    def _key(self) -> str:
        kind = self.shop.random.choice(KINDS)
        values = self.values
        found = columns_of(values.items, kind) if values.only is None else values.only.get(kind, [])
        if found and self.shop.chance(0.9):
            return self.shop.random.choice(found)
        return self.values.of(kind, 1) if found else f"({self.values.condition(1)})"


def _bound(rows: int) -> str:
    if rows == 0:
        return "CURRENT ROW"
    return f"{-rows} PRECEDING" if rows < 0 else f"{rows} FOLLOWING"


# --- queries ------------------------------------------------------------------------------------


def windowed(maker: "Queries", depth: int) -> tuple[str, Columns]:
    """Return a query that shows all columns and window functions over them."""
    shop, random = maker.shop, maker.shop.random
    text, items = maker.from_clause(depth)
    values = Expressions(shop, items)
    names = [(n, kind) for kind in KINDS for n in columns_of(items, kind)]
    windows = Windows(shop, values, [name for name, _ in names])
    kinds = [random.choice(KINDS) for _ in range(random.randint(1, 3))]
    listed = [name for name, _ in names] + [windows.of(kind) for kind in kinds]
    where = f" WHERE {values.condition(1)}" if random.random() < 0.3 else ""
    qualify = windows.condition() if random.random() < 0.3 else ""
    columns = [(f"o{n}", kind) for n, kind in enumerate([*(k for _, k in names), *kinds])]
    shown = ", ".join(f"{value} AS o{n}" for n, value in enumerate(listed))
    head = f"SELECT {shown} FROM {text}{where}"
    return _qualified(head, qualify, windows.clause(), columns), columns


def among_others(maker: "Queries", depth: int) -> tuple[str, Columns]:
    """Return a query with window functions beside, and of, other values and groups."""
    shop, random = maker.shop, maker.shop.random
    text, items = maker.from_clause(depth)
    inner = Expressions(shop, items)
    by = ""
    if random.random() < 0.5:
        known: dict[str, list[str]] = {}
        found = [(n, kind) for kind in KINDS for n in columns_of(items, kind)]
        groups = random.sample(found, min(len(found), random.randint(0, 2)))
        for name, kind in groups:
            known.setdefault(kind, []).append(name)
        for _ in range(2):
            made, kind = aggregate(shop, inner, exact=True)
            known.setdefault(kind, []).append(made)
        by = f" GROUP BY {', '.join(name for name, _ in groups)}" if groups else ""
        values = Expressions(shop, [], None, known)
        having = f" HAVING {values.condition(1)}" if random.random() < 0.2 else ""
        if not groups:
            having = having or " HAVING COUNT(*) > 0"
        by += having
    else:
        values = inner
    windows = Windows(shop, values, None)
    kinds = [random.choice(KINDS) for _ in range(random.randint(1, 3))]
    listed = [
        windows.of(kind) if n == 0 or random.random() < 0.4 else values.of(kind, 1)
        for n, kind in enumerate(kinds)
    ]
    random.shuffle(order := list(range(len(kinds))))
    where = f" WHERE {inner.condition(1)}" if random.random() < 0.3 else ""
    qualify = windows.condition() if random.random() < 0.3 else ""
    distinct = "DISTINCT " if random.random() < 0.15 else ""
    shown = ", ".join(f"{listed[place]} AS o{n}" for n, place in enumerate(order))
    columns = [(f"o{n}", kinds[place]) for n, place in enumerate(order)]
    head = f"SELECT {distinct}{shown} FROM {text}{where}{by}"
    return _qualified(head, qualify, windows.clause(), columns), columns


def _qualified(head: str, condition: str, windows: str, columns: Columns) -> str:
    """Return a query with QUALIFY, in whose place PostgreSQL has WHERE of a query around."""
    if not condition:
        return head + windows
    names = ", ".join(name for name, _ in columns)
    distinct = "DISTINCT " if head.startswith("SELECT DISTINCT ") else ""
    inner = postgres(head).removeprefix(f"SELECT {distinct}")
    inner = f"SELECT {postgres(condition)} AS qualified, {inner}{postgres(windows)}"
    return dual(
        f"{ours(head)} QUALIFY {ours(condition)}{ours(windows)}",
        f"{theirs(head)} QUALIFY {theirs(condition)}{theirs(windows)}",
        f"SELECT {distinct}{names} FROM ({inner}) AS q WHERE qualified",
    )


def as_wanted(maker: "Queries", depth: int, kinds: list[str]) -> tuple[str, Columns]:
    """Return values of wanted types over a query with window functions."""
    shop = maker.shop
    text, columns = windowed(maker, depth - 1)
    alias = shop.alias()
    values = Expressions(shop, [Item(alias, tuple(columns))])
    listed = ", ".join(f"{values.of(kind, 1)} AS o{n}" for n, kind in enumerate(kinds))
    result = [(f"o{n}", kind) for n, kind in enumerate(kinds)]
    return f"SELECT {listed} FROM ({text}) AS {alias}", result
