"""Random queries, and variations of them that differ in a few choices."""

from collections.abc import Sequence
from random import Random

COLUMNS = {
    "t": ("x", "y", "d", "s", "p", "at", "ts"),
    "u": ("x", "y", "d", "s", "p", "at", "ts"),
    "v": ("k", "y"),
    "e": ("x", "y"),
}
VIEWS = """
CREATE VIEW busy AS SELECT x, y, d, s, at FROM t WHERE y > 0;
CREATE VIEW pairs AS SELECT a.x, a.y, b.y AS z, b.s FROM t a JOIN u b ON a.x = b.x;
CREATE VIEW totals AS SELECT x, s, COUNT(*) AS n, SUM(y) AS y, MAX(d) AS d FROM t GROUP BY x, s;
"""
VIEW_COLUMNS = {
    "busy": ("x", "y", "d", "s", "at"),
    "pairs": ("x", "y", "z", "s"),
    "totals": ("x", "s", "n", "y", "d"),
}
NUMBERS = ("0", "1", "2", "3", "-1", "9223372036854775807", "-9223372036854775807")
TIMES = ("at", "ts", "ws", "window_start", "window_end")
SMALL = ("0", "1", "2", "3")


class QueryAuthor:
    """Writes one query from choices that are made once each.

    Attributes:
        made: A number from 0 to 1 for each choice, by its name.
    """

    def __init__(self, random: Random, made: dict[str, float] | None = None) -> None:
        self._random = random
        self.made: dict[str, float] = dict(made or {})

    def varied(self, share: float) -> "QueryAuthor":
        """Return an author who makes a share of the choices again."""
        kept = {name: v for name, v in self.made.items() if self._random.random() >= share}
        return QueryAuthor(self._random, kept)

    def number(self, name: str) -> float:
        """Return the number of a choice."""
        return self.made.setdefault(name, self._random.random())

    def one(self, name: str, choices: Sequence[str]) -> str:
        """Return one of some choices."""
        return choices[int(self.number(name) * len(choices))]

    def count(self, name: str, least: int, most: int) -> int:
        """Return a number between two, both included."""
        return least + int(self.number(name) * (most - least + 1))

    def maybe(self, name: str, share: float) -> bool:
        """Return True with some probability."""
        return self.number(name) < share

    # --- queries -----------------------------------------------------------------------------

    def query(self) -> str:
        """Return a query without ORDER BY and LIMIT outside, but perhaps inside."""
        kind = self.number("kind")
        if kind < 0.12:
            return self._set_operation()
        if kind < 0.2:
            return self._recursion()
        if kind < 0.26:
            return self._nested_groups()
        if kind < 0.3:
            return self._first_rows()
        return self._select("q")

    def _select(self, at: str, columns: int = 0) -> str:
        """Return a selection, or groups; with a number of columns all are integers."""
        tables, body = self._block(at)
        if columns:
            shown = ", ".join(
                f"{self._integer(f'{at}.o{n}', tables)} AS c{n}" for n in range(columns)
            )
            return f"SELECT {shown} {body}"
        shape = self.number(f"{at}.shape")
        if shape < 0.45:
            count = self.count(f"{at}.columns", 1, 4)
            shown = ", ".join(f"{self._value(f'{at}.o{n}', tables)} AS c{n}" for n in range(count))
            distinct = "DISTINCT " if self.maybe(f"{at}.distinct", 0.2) else ""
            return f"SELECT {distinct}{shown} {body}"
        return self._groups(at, tables, body)

    def _groups(self, at: str, tables: list[tuple[str, str]], body: str) -> str:
        count = self.count(f"{at}.keys", 0, 2)
        keys = [self._key(f"{at}.k{n}", tables) for n in range(count)]
        calls = [self._call(f"{at}.f{n}", tables) for n in range(self.count(f"{at}.calls", 1, 3))]
        shown = ", ".join(f"{e} AS c{n}" for n, e in enumerate((*keys, *calls)))
        having = ""
        if self.maybe(f"{at}.having", 0.25):
            call = self._call(f"{at}.hf", tables, numeric=True)
            forms = [f"{call} > 1", f"{call} >= 2", "COUNT(*) > 1", f"{call} IS NOT NULL"]
            forms += [f"{key} IS NOT NULL" for key in keys]
            having = f" HAVING {self.one(f'{at}.having form', forms)}"
        if not keys:
            return f"SELECT {shown} {body}{having}"
        by = ", ".join(keys)
        if self.maybe(f"{at}.rollup", 0.08):
            by = f"ROLLUP ({by})"
        return f"SELECT {shown} {body} GROUP BY {by}{having}"

    def _set_operation(self) -> str:
        kind = self.one(
            "set kind",
            ("UNION ALL", "UNION", "EXCEPT", "EXCEPT ALL", "INTERSECT", "INTERSECT ALL"),
        )
        count = self.count("operands", 2, 3)
        width = self.count("width", 1, 2)
        if self.maybe("mixed", 0.25):
            parts = [f"SELECT {', '.join(('x', 'y', 'd', 's')[:width])} FROM {n}" for n in "tu"]
            return f" {kind} ".join(parts)
        return f" {kind} ".join(f"({self._select(f'part{n}', width)})" for n in range(count))

    def _recursion(self) -> str:
        where = self.one("start", ("", "", " WHERE x = 1", " WHERE x > 0", " WHERE y = 2"))
        step = self.one("step", ("", "", " AND l.y > 0"))
        kind = self.one("recursion", ("reach", "reach", "hops", "least"))
        above = self.one("above", ("", " WHERE a = 1", " WHERE b > 0", " WHERE a < b"))
        if kind == "reach":
            shown = self.one("shown", ("a, b", "a", "b, a", "a, COUNT(*) AS n"))
            group = " GROUP BY a" if "COUNT" in shown else ""
            return (
                f"WITH RECURSIVE r(a, b) AS (SELECT x, y FROM e{where} UNION SELECT r.a, l.y "
                f"FROM r JOIN e l ON l.x = r.b{step}) SELECT {shown} FROM r{above}{group}"
            )
        if kind == "hops":
            most = self.one("most", ("2", "3"))
            return (
                f"WITH RECURSIVE r(a, b, h) AS (SELECT x, y, 1 FROM e{where} UNION SELECT r.a, "
                f"l.y, r.h + 1 FROM r JOIN e l ON l.x = r.b{step} WHERE r.h < {most}) "
                f"SELECT a, b, MIN(h) AS h FROM r{above} GROUP BY a, b"
            )
        best = self.one("best", ("MIN", "MAX"))
        return (
            f"WITH RECURSIVE r(a, b, h) AS (SELECT x, y, 1 FROM e{where} UNION SELECT r.a, "
            f"l.y, r.h + 1 FROM r JOIN e l ON l.x = r.b{step} WHERE r.h < 4), "
            f"m AS (SELECT a, {best}(h) AS h FROM r GROUP BY a) "
            f"SELECT r.a, r.b, r.h FROM r JOIN m ON r.a = m.a AND r.h = m.h"
            f"{above.replace(' a ', ' r.a ').replace(' b ', ' r.b ').replace('< b', '< r.b')}"
        )

    def _nested_groups(self) -> str:
        inner = self._select("inner", 2)
        if self.maybe("groups of groups", 0.6):
            call = self.one("inner call", ("COUNT(*)", "SUM(c1)", "MAX(c1)"))
            inner = f"SELECT c0, {call} AS c1 FROM ({inner}) AS i GROUP BY c0"
        keys = self.one("outer key", ("c0", "c1", "c1", "c0, c1"))
        call = self.one("outer call", ("COUNT(*)", "SUM(c1)", "MAX(c0)", "COUNT(DISTINCT c1)"))
        where = self.one("outer where", ("", " WHERE c0 > 0", " WHERE c1 = 1"))
        shown = self.one("outer shown", (f"{keys}, {call} AS n", f"{call} AS n", keys))
        having = self.one("outer having", ("", "", " HAVING COUNT(*) > 1"))
        return f"SELECT {shown} FROM ({inner}) AS g{where} GROUP BY {keys}{having}"

    def _first_rows(self) -> str:
        inner = self._select("inner", 2)
        order = self.one("order", ("c0, c1", "c1 DESC, c0", "c0 DESC NULLS LAST"))
        limit = self.one("limit", ("1", "2", "3 OFFSET 1"))
        where = self.one("outer where", ("", " WHERE c0 > 0", " WHERE c1 = 1"))
        inside = f"SELECT * FROM ({inner}) AS g ORDER BY {order} LIMIT {limit}"
        return f"SELECT c0, c1 FROM ({inside}) AS h{where}"

    # --- FROM and WHERE -----------------------------------------------------------------------

    def _block(self, at: str) -> tuple[list[tuple[str, str]], str]:
        """Return relations with their aliases, and FROM and WHERE."""
        count = self.count(f"{at}.tables", 1, 3)
        tables: list[tuple[str, str]] = []
        listed: list[str] = []
        for n in range(count):
            name, text = self._relation(f"{at}.t{n}", "abc"[n])
            tables.append((name, "abc"[n]))
            listed.append(text)
        conditions = [self._join(f"{at}.j{n}", tables[n - 1], tables[n]) for n in range(1, count)]
        shown = list(tables)
        kind = self.number(f"{at}.outer")
        if count == 2 and kind < 0.35:
            word = ("LEFT JOIN", "LEFT JOIN", "FULL JOIN", "RIGHT JOIN")[int(kind / 0.35 * 4)]
            if self.maybe(f"{at}.on", 0.4):
                conditions += [self._condition(f"{at}.on0", [tables[1]])]
            text = f"FROM {listed[0]} {word} {listed[1]} ON {' AND '.join(conditions)}"
            conditions = []
        elif self.maybe(f"{at}.reversed", 0.3):
            text = f"FROM {', '.join(listed[::-1])}"
        elif self.maybe(f"{at}.explicit", 0.5) and count > 1:
            text = f"FROM {listed[0]}"
            for n in range(1, count):
                text += f" JOIN {listed[n]} ON {conditions[n - 1]}"
            conditions = []
        else:
            text = f"FROM {', '.join(listed)}"
        number = self.count(f"{at}.conditions", 0, 3)
        conditions += [self._condition(f"{at}.w{n}", shown) for n in range(number)]
        if self.maybe(f"{at}.exists", 0.12):
            word = self.one(f"{at}.not", ("EXISTS", "NOT EXISTS"))
            first = "k" if tables[0][0] == "v" else "x"
            more = self.one(f"{at}.more", ("", " AND z.y > 0", " AND z.y >= 1", " AND z.s = 'a'"))
            conditions.append(f"{word} (SELECT 1 FROM u z WHERE z.x = a.{first}{more})")
        if conditions:
            text += f" WHERE {' AND '.join(conditions)}"
        return shown, text

    def _relation(self, at: str, alias: str) -> tuple[str, str]:
        names = ("t", "t", "t", "u", "u", "v", "busy", "pairs", "totals")
        name = self.one(f"{at}.name", names)
        if name in ("t", "u"):
            form = self.number(f"{at}.window")
            if form < 0.08:
                size = self.one(f"{at}.size", ("1 MINUTE", "2 MINUTES"))
                return name, f"{name} [RANGE {size}] AS {alias}"
            if form < 0.11:
                return name, f"{name} [ROWS {self.one(f'{at}.rows', ('2', '4'))}] AS {alias}"
            if form < 0.14:
                return name, f"{name} [PARTITION BY x ROWS 1] AS {alias}"
            if form < 0.24:
                text = self._windows(at, name, alias)
                return ("deep" if " AS ws " in text else "wide"), text
        return name, f"{name} {alias}"

    def _windows(self, at: str, name: str, alias: str) -> str:
        column = self.one(f"{at}.time", ("ts", "at"))
        of = self.one(f"{at}.of", (name, name, "nested"))
        if of == "nested":
            size = self.one(f"{at}.inner size", ("1 minute", "2 minutes"))
            rows = f"TUMBLE({name}, {column}, INTERVAL '{size}')"
            inner = f"SELECT x, y, d, s, p, {column}, window_start AS ws FROM {rows}"
            of, column = f"({inner})", self.one(f"{at}.of time", (column, "ws"))
        size = self.one(f"{at}.tumble", ("1 minute", "2 minutes", "4 minutes"))
        text = f"TUMBLE({of}, {column}, INTERVAL '{size}')"
        if self.maybe(f"{at}.hop", 0.3):
            text = f"HOP({of}, {column}, INTERVAL '1 minute', INTERVAL '{size}')"
        return f"{text} AS {alias}"

    def columns(self, table: tuple[str, str]) -> tuple[str, ...]:
        """Return the columns of a relation."""
        name = table[0]
        if name in ("wide", "deep"):
            more = ("ws",) if name == "deep" else ()
            return ("x", "y", "d", "s", "p", "window_start", "window_end", *more)
        return COLUMNS.get(name) or VIEW_COLUMNS[name]

    def _join(self, at: str, left: tuple[str, str], right: tuple[str, str]) -> str:
        a, b = left[1], right[1]
        keys = ["k" if name == "v" else "x" for name, _ in (left, right)]
        text = f"{a}.{keys[0]} = {b}.{keys[1]}"
        form = self.number(at)
        if form < 0.1:
            return f"{a}.y = {b}.y"
        if form < 0.2:
            return f"{text} AND {a}.y < {b}.y"
        if form < 0.25:
            return f"{text} AND {b}.y >= {a}.y + 1"
        if form < 0.3 and {left[0], right[0]} <= {"t", "u", "wide", "busy"}:
            return f"{text} AND {a}.d = {b}.d"
        if form < 0.37 and {left[0], right[0]} <= {"t", "u"}:
            size = self.one(f"{at}.size", ("1 minute", "2 minutes"))
            return f"{text} AND {b}.ts <= {a}.ts + INTERVAL '{size}' AND {b}.ts >= {a}.ts"
        return text

    # --- values --------------------------------------------------------------------------------

    def _column(self, at: str, tables: list[tuple[str, str]], types: str = "ixydspt") -> str:
        """Return a column of some types: i for integers, d, s, p, t for times."""
        found = []
        for table in tables:
            for name in self.columns(table):
                kind = {"d": "d", "s": "s", "p": "p"}.get(name, "i")
                kind = "t" if name in TIMES else kind
                if kind in types:
                    found.append(f"{table[1]}.{name}")
        return self.one(f"{at}.column", found or [f"{tables[0][1]}.y"])

    def _integer(self, at: str, tables: list[tuple[str, str]]) -> str:
        column = self._column(at, tables, "i")
        form = self.number(f"{at}.form")
        if form < 0.7:
            return column
        other = self._column(f"{at}.other", tables, "i")
        return self.one(
            f"{at}.expression",
            (
                f"{column} + {other}",
                f"{other} * {column}",
                f"{column} / 2",
                f"{column} / 4",
                f"{column} % 2",
                f"COALESCE({column}, 0)",
                f"CASE WHEN {column} > 1 THEN {other} ELSE 0 END",
                f"ABS({column})",
                f"-{column}",
            ),
        )

    def _value(self, at: str, tables: list[tuple[str, str]]) -> str:
        form = self.number(f"{at}.value")
        if form < 0.5:
            return self._column(f"{at}.plain", tables)
        if form < 0.7:
            return self._integer(at, tables)
        double = self._column(f"{at}.double", tables, "d")
        text = self._column(f"{at}.text", tables, "s")
        time = self._column(f"{at}.time", tables, "t")
        forms = [f"{double} * 2", f"{double} + {double}", f"COALESCE({double}, {double})"]
        if double.endswith(".d"):
            forms += [
                f"CAST({double} > 0 AS TEXT)",
                f"-{double}",
                f"0.0 - {double}",
                f"ABS({double})",
            ]
        if text.endswith(".s"):
            forms += [f"UPPER({text})", f"{text} || 'x'", f"LEFT({text}, 1)", f"LEFT({text}, 2)"]
            forms += [f"LENGTH({text})"]
        if not time.endswith(".y"):
            forms += [f"DATE_TRUNC('minute', {time})", f"DATE_TRUNC('hour', {time})"]
            forms += [f"EXTRACT(MINUTE FROM {time})", f"{time} + INTERVAL '1 minute'"]
            forms += [f"EXTRACT(DAY FROM {time})", f"DATE_TRUNC('day', {time})"]
        return self.one(f"{at}.forms", forms)

    def _key(self, at: str, tables: list[tuple[str, str]]) -> str:
        return self._value(at, tables)

    def _call(self, at: str, tables: list[tuple[str, str]], *, numeric: bool = False) -> str:
        number = self._integer(f"{at}.i", tables)
        forms = ["COUNT(*)", f"COUNT({number})", f"SUM({number})", f"MIN({number})"]
        forms += [f"MAX({number})", f"AVG({number})", f"COUNT(DISTINCT {number})"]
        if not numeric:
            value = self._value(f"{at}.v", tables)
            forms += [f"MIN({value})", f"MAX({value})", f"COUNT({value})"]
            double = self._column(f"{at}.d", tables, "d")
            forms += [f"SUM({double})", f"AVG({double})", f"VAR_POP({double})"]
            forms += [f"SUM({number}) FILTER (WHERE {self._condition(f'{at}.filter', tables)})"]
            boolean = self._column(f"{at}.p", tables, "p")
            if boolean.endswith(".p"):
                forms += [f"BOOL_OR({boolean})", f"BOOL_AND({boolean})"]
        return self.one(f"{at}.call", forms)

    def _condition(self, at: str, tables: list[tuple[str, str]], depth: int = 0) -> str:
        form = self.number(f"{at}.form")
        if depth < 2 and form < 0.12:
            parts = [self._condition(f"{at}.{n}", tables, depth + 1) for n in range(2)]
            return f"({parts[0]} OR {parts[1]})"
        if depth < 2 and form < 0.17:
            return f"NOT ({self._condition(f'{at}.n', tables, depth + 1)})"
        i = self._column(f"{at}.i", tables, "i")
        j = self._column(f"{at}.j", tables, "i")
        n = self.one(f"{at}.number", SMALL if self.maybe(f"{at}.small", 0.93) else NUMBERS)
        forms = [f"{i} > {n}", f"{i} >= {n}", f"{n} < {i}", f"{i} = {n}", f"{i} <> {n}"]
        forms += [f"{i} < {n}", f"{i} <= {n}", f"{i} IN (1, {n})", f"{i} IN (0, 1, {n})"]
        forms += [f"{i} IS NULL", f"{i} IS NOT NULL", f"{i} BETWEEN 1 AND {n}", f"{i} < {j}"]
        forms += [f"{i} <= {j}", f"{i} = {j}", f"{i} + 1 > {j}", f"{i} - {j} <= {n}"]
        forms += [f"2 * {i} > {n}", f"{i} * {i} > {n}", f"{i} / 2 = {n}", f"{i} % 2 = 1"]
        forms += [f"CASE WHEN {i} > {n} THEN {j} > 0 ELSE {j} IS NULL END", f"{i} + {j} > {n}"]
        forms += [f"COALESCE({i}, 0) > {n}", f"{i} IS DISTINCT FROM {j}", f"ABS({i}) >= {n}"]
        d = self._column(f"{at}.d", tables, "d")
        if d.endswith(".d"):
            forms += [f"{d} > 0.0", f"{d} >= 0.0", f"{d} = 0.0", f"{d} <> 0.0", f"{d} > {n}"]
            forms += [f"{d} < 1.5", f"NOT ({d} > 0.5)", f"{d} IS NOT NULL", f"{d} = {d}"]
            forms += [f"{d} < 1e308", f"{d} * 2 > 1", f"{d} <= {i}", f"CAST({d} AS INTEGER) = {n}"]
        s = self._column(f"{at}.s", tables, "s")
        if s.endswith(".s"):
            forms += [f"{s} = 'a'", f"{s} LIKE 'a%'", f"{s} LIKE 'ab%'", f"{s} > 'a'"]
            forms += [f"{s} IN ('a', 'ab')", f"{s} LIKE '%b'", f"{s} NOT LIKE 'a%'", f"{s} < 'b'"]
            forms += [f"{s} >= 'ab'", f"{s} LIKE '_'", f"UPPER({s}) = 'A'", f"LEFT({s}, 1) = 'a'"]
        p = self._column(f"{at}.p", tables, "p")
        if p.endswith(".p"):
            forms += [p, f"NOT {p}", f"{p} IS NULL", f"{p} = TRUE", f"({p} OR {i} > {n})"]
        t = self._column(f"{at}.t", tables, "t")
        if not t.endswith(".y"):
            forms += [f"{t} > TIMESTAMP '2026-01-01T00:01:00Z'"]
            forms += [f"{t} + INTERVAL '1 minute' > TIMESTAMP '2026-01-01T00:02:00Z'"]
            forms += [f"{t} IS NOT NULL", f"EXTRACT(MINUTE FROM {t}) = {n}"]
            forms += [f"{t} < TIMESTAMP '2026-01-01T00:0{n[-1]}:00Z'"]
        return self.one(f"{at}.condition", forms)
