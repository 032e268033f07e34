"""Random expressions of a wanted type, with subqueries where they are allowed."""

from collections.abc import Callable

from tests.random_queries.schemas import SECOND, START
from tests.random_queries.scopes import Item, Workshop, columns_of, dual, ours, postgres, theirs
from tests.random_queries.unbracketed import Unbracketed

Subquery = Callable[[str, list[Item]], str]
"""Makes `(SELECT …)` with one column of a type, which may read the items around it."""

LITERALS = {
    "INTEGER": ("0", "1", "2", "-1"),
    "DOUBLE": ("0.5", "1.0", "-1.5", "2.25"),
    "TEXT": ("'a'", "'b'", "'ab'", "''"),
    "BOOLEAN": ("TRUE", "FALSE"),
    "TIMESTAMP": tuple(
        dual(f"TIMESTAMP '2026-01-01T00:00:0{n}Z'", str(START + n * SECOND)) for n in (0, 1, 2, 5)
    ),
}
COMPARISONS = ("=", "=", "<>", "<", "<=", ">", ">=")
KINDS = ("INTEGER", "DOUBLE", "TEXT", "BOOLEAN", "TIMESTAMP")


class Expressions:
    """Expressions over the items of one FROM clause.

    Args:
        shop: The case.
        items: What can be read.
        subquery: None where none is allowed.
        only: If given, the only leaves there are, by type (expressions over groups).
    """

    def __init__(
        self,
        shop: Workshop,
        items: list[Item],
        subquery: Subquery | None = None,
        only: dict[str, list[str]] | None = None,
    ) -> None:
        self.shop = shop
        self.items = items
        self.subquery = subquery
        self.only = only

    def of(self, kind: str, depth: int = 2) -> str:
        """Return an expression of a type."""
        random = self.shop.random
        if depth <= 0 or random.random() < 0.4:
            return self.leaf(kind)
        if random.random() < 0.2:
            return self._choice(kind, depth)
        if self.subquery is not None and random.random() < 0.1:
            return self.subquery(kind, self.items)
        if kind != "TIMESTAMP" and random.random() > 0.9:
            return f"({Unbracketed(self).of(kind)})"
        match kind:
            case "INTEGER":
                return self._integer(depth)
            case "DOUBLE":
                return self._double(depth)
            case "TEXT":
                return self._text(depth)
            case "BOOLEAN":
                return f"({self.condition(depth)})"
            case _:
                span = dual("INTERVAL '2 s'", str(2 * SECOND))
                return f"({self.of(kind, depth - 1)} {random.choice('+-')} {span})"

    def leaf(self, kind: str) -> str:
        """Return a column or a constant."""
        found = columns_of(self.items, kind) if self.only is None else self.only.get(kind, [])
        if found and self.shop.chance(0.85):
            return self.shop.random.choice(found)
        if kind != "BOOLEAN" and self.shop.chance(0.1):
            sql = {"TIMESTAMP": dual("TIMESTAMP", "BIGINT"), "INTEGER": dual("INTEGER", "BIGINT")}
            return f"CAST(NULL AS {sql.get(kind, kind)})"
        return self.shop.random.choice(LITERALS[kind])

    def condition(self, depth: int = 2) -> str:
        """Return a condition, as they stand in WHERE and ON."""
        random = self.shop.random
        if depth > 0 and random.random() < 0.3:
            word = random.choice(("AND", "OR"))
            return f"({self.condition(depth - 1)} {word} {self.condition(depth - 1)})"
        if depth > 0 and random.random() < 0.12:
            return f"NOT ({self.condition(depth - 1)})"
        if depth > 0 and random.random() > 0.88:
            return f"({Unbracketed(self).condition()})"
        if self.subquery is not None and random.random() < 0.25:
            return self._by_subquery()
        return self._simple(depth - 1)

    def _simple(self, depth: int) -> str:
        random = self.shop.random
        kind = random.choice(KINDS)
        value = self.of(kind, depth)
        match random.randrange(8):
            case 0:
                return f"{value} IS {random.choice(('', 'NOT '))}NULL"
            case 1:
                listed = ", ".join(random.choices(LITERALS[kind], k=random.randint(1, 3)))
                return f"{value} {random.choice(('', 'NOT '))}IN ({listed})"
            case 2 if kind != "BOOLEAN":
                return f"{value} BETWEEN {self.of(kind, depth)} AND {self.of(kind, depth)}"
            case 3 if kind == "TEXT" and random.random() < 0.4:
                pattern = random.choice(("'^a'", "'b$'", "'^[ab]{2}$'", "'a|^$'", "'(?:ab?)+'"))
                return dual(
                    f"REGEXP_MATCHES({ours(value)}, {pattern})",
                    f"REGEXP_MATCHES({theirs(value)}, {pattern})",
                    f"{postgres(value)} ~ {pattern}",
                )
            case 3 if kind == "TEXT":
                pattern = random.choice(("'a%'", "'%b'", "'_'", "'%'"))
                return f"{value} {random.choice(('', 'NOT '))}LIKE {pattern}"
            case 3:
                word = random.choice(("", "NOT "))
                return f"{value} IS {word}DISTINCT FROM {self.of(kind, depth)}"
            case 4:
                boolean = self.of("BOOLEAN", depth)
                return f"({boolean}) IS {random.choice(('TRUE', 'FALSE', 'NOT TRUE', 'NOT FALSE'))}"
            case 5 if kind in {"INTEGER", "DOUBLE"}:
                other = self.of(random.choice(("INTEGER", "DOUBLE")), depth)
                return f"{value} {random.choice(COMPARISONS)} {other}"
            case _:
                return f"{value} {random.choice(COMPARISONS)} {self.of(kind, depth)}"

    def _by_subquery(self) -> str:
        assert self.subquery is not None
        random = self.shop.random
        kind = random.choice(("INTEGER", "INTEGER", "DOUBLE", "TEXT", "TIMESTAMP"))
        chosen = self.subquery(f"rows of {kind}", self.items)
        match random.randrange(6):
            case 0 | 1:
                return f"{random.choice(('', 'NOT '))}EXISTS {chosen}"
            case 2:
                return f"{self.of(kind, 1)} IN {chosen}"
            case 3:
                return f"{self.of(kind, 1)} NOT IN {chosen}"
            case 4:
                word = random.choice(("ANY", "ALL"))
                return f"{self.of(kind, 1)} {random.choice(COMPARISONS)} {word} {chosen}"
            case _:
                value = self.subquery(kind, self.items)
                return f"{self.of(kind, 1)} {random.choice(COMPARISONS)} {value}"

    def _choice(self, kind: str, depth: int) -> str:
        first, second = self.of(kind, depth - 1), self.of(kind, depth - 1)
        match self.shop.random.randrange(4):
            case 0:
                return f"COALESCE({first}, {second})"
            case 1:
                return f"NULLIF({first}, {second})"
            case 2:
                return f"CASE WHEN {self.condition(depth - 1)} THEN {first} END"
            case _:
                return f"CASE WHEN {self.condition(depth - 1)} THEN {first} ELSE {second} END"

    def _integer(self, depth: int) -> str:
        first = self.of("INTEGER", depth - 1)
        match self.shop.random.randrange(11):
            case 8:
                return f"POSITION({self.of('TEXT', 0)} IN {self.of('TEXT', depth - 1)})"
            case 9:
                pair = (self.of("TIMESTAMP", 0), self.of("TIMESTAMP", depth - 1))
                apart = dual("EXTRACT(EPOCH FROM ", "(") + f"{pair[0]} - {pair[1]}"
                whole = f"{apart}{dual(')', f') / {SECOND}.0')}"
                return f"CAST(({whole}) AS {dual('INTEGER', 'BIGINT')})"
            case 10:
                compared = self.of("TEXT", depth - 1)
                return f"CASE {compared} WHEN 'a' THEN 1 WHEN 'b' THEN {first} ELSE 3 END"
            case 0:
                return f"ABS({first})"
            case 1:
                return f"LENGTH({self.of('TEXT', depth - 1)})"
            case 2:
                return f"({first} % {self.of('INTEGER', depth - 1)})"
            case 3:
                return f"(-({first}))"
            case 4:
                opened = dual("(", "CAST(TRUNC(CAST(") + first + dual(" / ", " AS DOUBLE) / ")
                return opened + self.of("INTEGER", depth - 1) + dual(")", ") AS BIGINT)")
            case _:
                return f"({first} {self.shop.random.choice('+-*')} {self.of('INTEGER', depth - 1)})"

    def _double(self, depth: int) -> str:
        first = self.of("DOUBLE", depth - 1)
        if self.shop.user_function and self.shop.chance(0.5):
            return f"{self.shop.user_function}({first}, {self.of('DOUBLE', depth - 1)})"
        match self.shop.random.randrange(8):
            case 6:
                return f"{self.shop.random.choice(('FLOOR', 'CEIL', 'SIGN'))}({first})"
            case 7:
                return f"SQRT(ABS(FLOOR({first})) * ABS(FLOOR({first})))"
            case 0:
                return f"ABS({first})"
            case 1:
                return f"CAST({self.of('INTEGER', depth - 1)} AS DOUBLE)"
            case 2:
                return f"({first} / 2.0)"
            case 3:
                return f"({first} + {self.of('INTEGER', depth - 1)})"
            case _:
                return f"({first} {self.shop.random.choice('+-*')} {self.of('DOUBLE', depth - 1)})"

    def _text(self, depth: int) -> str:
        first = self.of("TEXT", depth - 1)
        match self.shop.random.randrange(9):
            case 4:
                return f"REPLACE({first}, 'a', {self.leaf('TEXT')})"
            case 5:
                return f"{self.shop.random.choice(('REVERSE', 'LOWER', 'TRIM'))}({first})"
            case 6:
                return f"LPAD({first}, 3, '.')"
            case 7:
                return f"{self.shop.random.choice(('LEFT', 'RIGHT'))}({first}, 1)"
            case 8:
                return f"SPLIT_PART({first}, 'a', 1)"
            case 0:
                return f"UPPER({first})"
            case 1:
                return f"SUBSTRING({first}, 1, 1)"
            case 2:
                return f"CAST({self.of('INTEGER', depth - 1)} AS TEXT)"
            case _:
                return f"({first} || {self.of('TEXT', depth - 1)})"
