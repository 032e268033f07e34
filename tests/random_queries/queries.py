"""Random queries as text, and the case they belong to."""

from dataclasses import dataclass
from random import Random

from tests.random_queries.expressions import COMPARISONS, KINDS, Expressions
from tests.random_queries.first_rows import first_of_each, limit, ranked
from tests.random_queries.groups import call
from tests.random_queries.leaves import leaf
from tests.random_queries.over_windows import among_others, as_wanted, windowed
from tests.random_queries.pieces import (
    constants,
    natural,
    of_user,
    when_windows_close,
)
from tests.random_queries.recursions import recursion
from tests.random_queries.schemas import (
    SECOND,
    Batch,
    Columns,
    Relation,
    batches,
    filled_first,
    relations,
)
from tests.random_queries.scopes import Item, Workshop, columns_of, dual, items_of
from tests.random_queries.stars import all_columns, names_twice
from tests.random_queries.streams import read_in, stream_of, windowed_stream
from tests.random_queries.with_having import having

_ON = ("JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "SEMI JOIN", "ANTI JOIN")
_ON_OF_POSTGRES = tuple(word for word in _ON if not word.startswith(("SEMI", "ANTI")))
JOINS_OF_POSTGRES = (*_ON_OF_POSTGRES, "CROSS JOIN", ",", "USING", "NATURAL")
JOINS = (*_ON, "CROSS JOIN", ",", "ASOF", "USING", "NATURAL")


@dataclass(frozen=True)
class Case:
    """Relations, views, a query, and what happens.

    Attributes:
        views: Statements; they and the query may be dual texts.
        windows: Name and text of what DuckDB is given in place of windows.
        beyond: Why DuckDB is not asked; empty if it is.
    """

    relations: tuple[Relation, ...]
    views: tuple[str, ...]
    query: str
    windows: tuple[tuple[str, str], ...]
    beyond: tuple[str, ...]
    batches: tuple[Batch, ...]


def case_for_postgres(random: Random, found: list[Relation], happening: list[Batch]) -> Case:
    """Return a random query over tables that are there already, as PostgreSQL can be asked it."""
    shop = Workshop(random, found, for_postgres=True)
    maker = Queries(shop)
    if shop.chance(0.15):
        text, _ = random.choice((all_columns, names_twice))(maker)
    else:
        text, _ = maker.query(2, outermost=True)
    beyond = tuple(sorted(shop.beyond))
    return Case(tuple(found), (), text, tuple(shop.windows.items()), beyond, tuple(happening))


def case(random: Random) -> Case:
    """Return a random case."""
    shop = Workshop(random, relations(random))
    maker = Queries(shop)
    views = []
    for number in range(random.choice((0, 0, 0, 1, 2))):
        streamed = stream_of(maker, 1) if shop.chance(0.05) else None
        text, columns = streamed or maker.query(1)
        name = f"v{number}"
        views.append(f"CREATE VIEW {name} AS {text}")
        shop.views[name] = columns
        shop.reading[name] = read_in(shop, text)
    if shop.chance(0.05):
        views.append(of_user(shop))
    text = when_windows_close(shop) if shop.chance(0.08) else ""
    if not text and shop.chance(0.04):
        text, _ = stream_of(maker, 1) or ("", [])
    if not text:
        text, _ = maker.query(2, outermost=True)
    happening = batches(random, shop.relations, frozenset(shop.counted))
    if shop.still:
        happening = filled_first(happening, frozenset(shop.still))
    return Case(
        tuple(shop.relations),
        tuple(views),
        text,
        tuple(shop.windows.items()),
        tuple(sorted(shop.beyond)),
        tuple(happening),
    )


class Queries:
    """Makes queries of one case."""

    def __init__(self, shop: Workshop) -> None:
        self.shop = shop
        self._before_comma: set[str] = set()

    def query(
        self,
        depth: int,
        kinds: list[str] | None = None,
        *,
        outermost: bool = False,
        nested: bool = False,
    ) -> tuple[str, Columns]:
        """Return a query and its columns, which are called o0, o1 and so on.

        Args:
            depth: How many levels of queries may stand in it.
            kinds: Wanted types of its columns.
            outermost: Whether nothing is computed from its values.
            nested: Whether it is an operand of a set operator.
        """
        random = self.shop.random
        if depth > 0 and kinds is None and random.random() < 0.08:
            return self._with(depth)
        if depth > 0 and kinds is None and random.random() < 0.08:
            return recursion(self, depth)
        if depth > 0 and random.random() < (0.25 if nested else 0.12):
            return self._set_operation(depth, kinds)
        if depth > 0 and kinds is None and random.random() < 0.08:
            return random.choice((ranked, first_of_each))(self, depth)
        if depth > 0 and random.random() < 0.1:
            return self._windowed(depth, kinds)
        if depth > 0 and kinds is None and random.random() < 0.03:
            return self._all_but(depth)
        limited = random.random() < 0.12
        exact = limited or not outermost
        if random.random() < 0.35:
            text, columns = self._grouped(depth, kinds, exact=exact)
        else:
            text, columns = self._select(depth, kinds)
        return (text + limit(self.shop, columns), columns) if limited else (text, columns)

    def _windowed(self, depth: int, kinds: list[str] | None) -> tuple[str, Columns]:
        """Return a query with window functions."""
        if kinds is not None:
            return as_wanted(self, depth, kinds)
        random = self.shop.random
        text, columns = random.choice((windowed, windowed, among_others))(self, depth - 1)
        return (
            (text + limit(self.shop, columns), columns)
            if random.random() < 0.1
            else (text, columns)
        )

    def _all_but(self, depth: int) -> tuple[str, Columns]:
        """Return a query without one of its columns."""
        text, columns = self.query(depth - 1)
        if len(columns) < 2:
            return text, columns
        left_out = self.shop.random.choice(columns)
        kept = [column for column in columns if column != left_out]
        listed = ", ".join(name for name, _ in kept)
        star = dual(f"* EXCEPT ({left_out[0]})", f"* EXCLUDE ({left_out[0]})", listed)
        return f"SELECT {star} FROM ({text}) AS {self.shop.alias()}", kept

    def _with(self, depth: int) -> tuple[str, Columns]:
        inner, columns = self.query(depth - 1)
        name = self.shop.alias()
        before = dict(self.shop.views)
        self.shop.views[name] = columns
        kept = ""
        if self.shop.chance(0.4):
            kept = "MATERIALIZED "
            text, result = self._read_twice(name, columns)
        else:
            text, result = self._select(depth - 1, None)
        self.shop.views = before
        return f"WITH {name} AS {kept}({inner}) {text}", result

    def _read_twice(self, name: str, columns: Columns) -> tuple[str, Columns]:
        """Return two readings of a name of WITH together, each with a condition of its own."""
        shop = self.shop
        left, right = (Item(shop.alias(), tuple(columns)) for _ in range(2))
        own = [Expressions(shop, [item]).condition(1) for item in (left, right)]
        if shop.chance(0.5):
            sides = (f"SELECT {item.alias}.* FROM {name} AS {item.alias}" for item in (left, right))
            text = " UNION ALL ".join(f"{s} WHERE {w}" for s, w in zip(sides, own, strict=True))
            return text, columns
        values = Expressions(shop, [left, right])
        kinds = self._kinds()
        listed = ", ".join(f"{values.of(kind, 1)} AS o{n}" for n, kind in enumerate(kinds))
        same = " AND ".join(
            f"{left.alias}.{column} IS NOT DISTINCT FROM {right.alias}.{column}"
            for column, _ in columns[:2]
        )
        text = (
            f"SELECT {listed} FROM {name} AS {left.alias} JOIN {name} AS {right.alias} ON {same} "
            f"WHERE {' AND '.join(own)}"
        )
        return text, [(f"o{n}", kind) for n, kind in enumerate(kinds)]

    def over_view(self, name: str, columns: Columns) -> tuple[str, Columns]:
        """Return a SELECT over one name of WITH, perhaps joined with something else."""
        random = self.shop.random
        alias = self.shop.alias()
        text, items = f"{name} AS {alias}", [Item(alias, tuple(columns))]
        if random.random() < 0.4:
            added, item = self._item(0)
            text, items = self._joined(text, items, added, item)
        values = Expressions(self.shop, items)
        kinds = self._kinds()
        listed = ", ".join(f"{values.of(kind, 1)} AS o{n}" for n, kind in enumerate(kinds))
        where = f" WHERE {values.condition(1)}" if self.shop.chance(0.3) else ""
        result = [(f"o{n}", kind) for n, kind in enumerate(kinds)]
        return f"SELECT {listed} FROM {text}{where}", result

    def _set_operation(self, depth: int, kinds: list[str] | None) -> tuple[str, Columns]:
        random = self.shop.random
        kinds = kinds or self._kinds()
        words = ("UNION", "UNION ALL", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL")
        word = random.choice(words)
        left, columns = self.query(depth - 1, kinds, nested=True)
        right, _ = self.query(depth - 1, kinds, nested=True)
        return f"({left}) {word} ({right})", columns

    # --- one SELECT ---------------------------------------------------------------------------

    def _kinds(self) -> list[str]:
        random = self.shop.random
        return [random.choice(KINDS) for _ in range(random.randint(1, 3))]

    def _select(self, depth: int, kinds: list[str] | None) -> tuple[str, Columns]:
        text, items = self.from_clause(depth)
        subquery = self._subquery if depth > 0 else None
        values = Expressions(self.shop, items, subquery)
        kinds = kinds or self._kinds()
        listed = [f"{values.of(kind)} AS o{n}" for n, kind in enumerate(kinds)]
        distinct = "DISTINCT " if self.shop.chance(0.15) else ""
        where = f" WHERE {values.condition()}" if self.shop.chance(0.5) else ""
        columns = [(f"o{n}", kind) for n, kind in enumerate(kinds)]
        return f"SELECT {distinct}{', '.join(listed)} FROM {text}{where}", columns

    def _grouped(self, depth: int, kinds: list[str] | None, *, exact: bool) -> tuple[str, Columns]:
        shop, random = self.shop, self.shop.random
        text, items = self.from_clause(depth)
        subquery = self._subquery if depth > 0 else None
        inner = Expressions(shop, items)
        known: dict[str, list[str]] = {}
        listed: list[tuple[str, str]] = []
        groups = []
        for _ in range(random.randint(0, 2)):
            kind = random.choice(KINDS)
            found = columns_of(items, kind)
            if found:
                group = random.choice(found)
                groups.append(group)
                known.setdefault(kind, []).append(group)
                listed.append((group, kind))
        for _ in range(random.randint(1, 3)):
            made, kind = call(shop, inner, exact=exact or kinds is not None)
            known.setdefault(kind, []).append(made)
            listed.append((made, kind))
        over = Expressions(shop, [], None, known)
        asking = Expressions(shop, items_of(groups, known), subquery, known)
        having = f" HAVING {asking.condition(1)}" if random.random() < 0.25 else ""
        if kinds is not None:
            listed = [(over.of(kind, 1), kind) for kind in kinds]
        chosen = Expressions(shop, items, subquery)
        where = f" WHERE {chosen.condition(1)}" if random.random() < 0.3 else ""
        groups = list(dict.fromkeys(groups))
        by = self._by(groups)
        plain = " GROUP BY " + ", ".join(groups) == by
        if plain and kinds is None and random.random() < 0.15:
            by = dual(" GROUP BY ALL", " GROUP BY ALL", by)
        elif by and not plain and kinds is None:
            listed.append((f"GROUPING({', '.join(groups)})", "INTEGER"))
        values = ", ".join(f"{value} AS o{n}" for n, (value, _) in enumerate(listed))
        columns = [(f"o{n}", kind) for n, (_, kind) in enumerate(listed)]
        return f"SELECT {values} FROM {text}{where}{by}{having}", columns

    def _by(self, groups: list[str]) -> str:
        if not groups:
            return ""
        listed = ", ".join(groups)
        match self.shop.random.randrange(12):
            case 0:
                return f" GROUP BY ROLLUP ({listed})"
            case 1:
                return f" GROUP BY CUBE ({listed})"
            case 2:
                return f" GROUP BY GROUPING SETS (({listed}), {groups[-1]}, ())"
            case _:
                return f" GROUP BY {listed}"

    def _subquery(self, kind: str, around: list[Item]) -> str:
        """Return a subquery of one column: one value, or rows if the kind says so."""
        shop, random = self.shop, self.shop.random
        if random.random() < 0.25:
            text, mine = self.from_clause(0)
        else:
            source, columns = leaf(shop)
            alias = shop.alias()
            text, mine = f"{source} AS {alias}", [Item(alias, tuple(columns))]
        within = Expressions(shop, mine)
        conditions = []
        if random.random() < 0.5:
            conditions.append(self._between(mine, around))
        if random.random() < 0.3:
            conditions.append(within.condition(1))
        rest = f"FROM {text}{' WHERE ' + ' AND '.join(conditions) if conditions else ''}"
        if random.random() > 0.75:
            return having(self, mine, around, kind, rest)
        if kind.startswith("rows of "):
            value = within.of(kind.removeprefix("rows of "), 1)
            if random.random() < 0.15:
                value = f"{random.choice(('MIN', 'MAX'))}({value})"
                found = [name for k in KINDS for name in columns_of(mine, k)]
                rest += f" GROUP BY {random.choice(found)}"
            distinct = "DISTINCT " if random.random() < 0.1 else ""
            return f"(SELECT {distinct}{value} AS s {rest})"
        match kind:
            case _ if random.random() < 0.15:
                way = random.choice((" ASC", " DESC"))
                return f"(SELECT {within.of(kind, 1)} AS s {rest} ORDER BY s{way} LIMIT 1)"
            case "INTEGER":
                value = random.choice(("COUNT(*)", "SUM({})", "MAX({})")).format(within.of(kind, 1))
            case "BOOLEAN":
                value = f"BOOL_OR({within.of(kind, 1)})"
            case _:
                value = f"{random.choice(('MIN', 'MAX'))}({within.of(kind, 1)})"
        return f"(SELECT {value} AS s {rest})"

    def _near(self, items: list[Item]) -> list[Item]:
        """Return what an ON may read; in PostgreSQL that is nothing before a comma."""
        if not self.shop.for_postgres:
            return items
        return [item for item in items if item.alias not in self._before_comma]

    def _on(self, kind: str, one: list[Item], other: list[Item]) -> str:
        """Return a condition of a join; PostgreSQL has FULL JOIN by equal values alone."""
        if not self.shop.for_postgres or kind != "FULL JOIN":
            return self._between(one, other)
        pairs = [
            f"{a} = {b}"
            for kind in KINDS
            for a in columns_of(one, kind)
            for b in columns_of(other, kind)
        ]
        return self.shop.random.choice(pairs or ["TRUE"])

    def _between(self, one: list[Item], other: list[Item]) -> str:
        """Return a condition on columns of both sides."""
        random = self.shop.random
        pairs = [
            (a, b, kind)
            for kind in KINDS
            for a in columns_of(one, kind)
            for b in columns_of(other, kind)
        ]
        if not pairs:
            return "TRUE"
        a, b, kind = random.choice(pairs)
        if random.random() < 0.65:
            return f"{a} = {b}"
        if kind == "TIMESTAMP":
            span = dual("INTERVAL '2 s'", str(2 * SECOND))
            return f"{a} BETWEEN {b} - {span} AND {b} + {span}"
        if random.random() < 0.2:
            return f"{a} IS NOT DISTINCT FROM {b}"
        return f"{a} {random.choice(COMPARISONS)} {b}"

    # --- FROM ---------------------------------------------------------------------------------

    def source(self, depth: int) -> tuple[str, Columns]:
        """Return a relation, or a query in parentheses, and its columns."""
        if depth > 0 and self.shop.chance(0.015):
            streamed = windowed_stream(self, depth - 1)
            if streamed is not None:
                return streamed
        if depth > 0 and self.shop.chance(0.2):
            text, columns = self.query(depth - 1)
            return f"({text})", columns
        return leaf(self.shop)

    def _item(self, depth: int) -> tuple[str, Item]:
        if self.shop.chance(0.06):
            return constants(self.shop)
        text, columns = self.source(depth)
        alias = self.shop.alias()
        return f"{text} AS {alias}", Item(alias, tuple(columns))

    def from_clause(self, depth: int) -> tuple[str, list[Item]]:
        """Return what stands behind FROM, and what it has."""
        text, first = self._item(depth)
        items = [first]
        for _ in range(self.shop.random.choice((0, 0, 1, 1, 1, 2))):
            if self.shop.chance(0.08):
                text, items = self._with_joins(text, items, depth)
                continue
            added, item = self._item(depth)
            text, items = self._joined(text, items, added, item)
        return text, items

    def _with_joins(self, text: str, items: list[Item], depth: int) -> tuple[str, list[Item]]:
        """Join with joins in brackets."""
        random = self.shop.random
        first, one = self._item(depth)
        second, other = self._item(depth)
        kinds = [kind for kind in _ON if kind not in {"SEMI JOIN", "ANTI JOIN"}]
        if self.shop.for_postgres:
            kinds = list(_ON_OF_POSTGRES)
        within = random.choice(kinds)
        inside = f"{first} {within} {second} ON {self._on(within, [other], [one])}"
        kind = random.choice(_ON_OF_POSTGRES if self.shop.for_postgres else _ON)
        condition = self._on(kind, [one, other], self._near(items))
        kept = items if kind in {"SEMI JOIN", "ANTI JOIN"} else [*items, one, other]
        return f"{text} {kind} ({inside}) ON {condition}", kept

    def _joined(
        self, text: str, items: list[Item], added: str, item: Item
    ) -> tuple[str, list[Item]]:
        random = self.shop.random
        kind = random.choice(JOINS_OF_POSTGRES if self.shop.for_postgres else JOINS)
        both = [*items, item]
        if kind == "CROSS JOIN":
            return f"{text} CROSS JOIN {added}", both
        if kind == "," and len(items) == 1:
            self._before_comma.update(item.alias for item in items)
            return f"{text}, {added}", both
        if kind == "ASOF":
            return self._as_of(text, items, added, item)
        if kind == "USING" and len(items) == 1:
            shared = [c for c in items[0].columns if c in item.columns]
            if shared:
                return self._using(text, items[0], added, item, random.choice(shared))
        if kind == "NATURAL" and len(items) == 1:
            names = {name for name, _ in items[0].columns} & {name for name, _ in item.columns}
            common = [c for c in items[0].columns if c in item.columns]
            if common and len(common) == len(names):
                return natural(self.shop, text, items[0], added, item)
        if kind in {",", "USING", "NATURAL"}:
            kind = "LEFT JOIN"
        near = self._near(items)
        conditions = [self._on(kind, [item], near)]
        if random.random() < 0.3:
            conditions.append(self._between([item], near))
        if random.random() < 0.25:
            values = Expressions(self.shop, [*near, item], self._subquery)
            conditions.append(values.condition(1))
        kept = items if kind in {"SEMI JOIN", "ANTI JOIN"} else both
        return f"{text} {kind} {added} ON {' AND '.join(conditions)}", kept

    def _as_of(
        self, text: str, items: list[Item], added: str, item: Item
    ) -> tuple[str, list[Item]]:
        random = self.shop.random
        both = [*items, item]
        ours, other = columns_of(items, "TIMESTAMP"), columns_of([item], "TIMESTAMP")
        if not ours or not other:
            return f"{text} CROSS JOIN {added}", both
        self.shop.beyond.add("ties by whole row")
        kinds = [k for k in KINDS if columns_of(items, k) and columns_of([item], k)]
        kind = random.choice(kinds)
        key = f"{random.choice(columns_of(items, kind))} = "
        key += random.choice(columns_of([item], kind))
        word = random.choice(("", "LEFT "))
        order = f"{random.choice(ours)} {random.choice(('>=', '>'))} {random.choice(other)}"
        condition = f"{key} AND {order}" if random.random() < 0.7 else order
        return f"{text} ASOF {word}JOIN {added} ON {condition}", both

    def _using(
        self, text: str, left: Item, added: str, right: Item, shared: tuple[str, str]
    ) -> tuple[str, list[Item]]:
        kind = self.shop.random.choice(("", "LEFT ", "RIGHT ", "FULL "))

        def rest(item: Item) -> Item:
            return Item(item.alias, tuple(c for c in item.columns if c != shared))

        items = [Item("", (shared,)), rest(left), rest(right)]
        return f"{text} {kind}JOIN {added} USING ({shared[0]})", items
