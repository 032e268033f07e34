"""Published sqllogictest files (SQLite's and DuckDB's families) on our engines.

The files are not part of this repository: `published_files.py` fetches some, and
`PANDO_SQLLOGICTEST` names a folder with others. A table loses its constraints and the lengths of
its types; statements and queries are run as they stand. What the language does not cover is counted
by the reason it is refused with, and so is what reads a table whose rows came by a refused
statement; what a family means differently is skipped by name.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from deploy.session import LocalSession
from streamsql.data.types import Value
from streamsql.errors import FederationError

_TYPES = {
    "BIGINT": "INTEGER", "INT": "INTEGER", "SMALLINT": "INTEGER", "TINYINT": "INTEGER",
    "HUGEINT": "INTEGER", "UTINYINT": "INTEGER", "USMALLINT": "INTEGER", "UINT": "INTEGER",
    "DOUBLE": "DOUBLE", "FLOAT": "DOUBLE", "DECIMAL": "DOUBLE", "TEXT": "TEXT", "VARCHAR": "TEXT",
    "CHAR": "TEXT", "BOOLEAN": "BOOLEAN", "TIMESTAMP": "TIMESTAMP",
}  # fmt: skip
_CONTROL = ("loop", "foreach", "concurrentloop", "require", "load", "mode", "restart", "unzip")
_HASHED = re.compile(r"(\d+) values hashing to ([0-9a-f]{32})")
_CHANGES = re.compile(
    r"\s*(?:INSERT|REPLACE|UPDATE|DELETE)\s+(?:OR\s+\w+\s+)?(?:INTO\s+|FROM\s+)?(\w+)",
    re.IGNORECASE,
)
_COPIES = re.compile(r"\s*INSERT\s+INTO\s+(\w+)\s+(SELECT\b.*)", re.IGNORECASE | re.DOTALL)
_INDEX = re.compile(r"\s*(?:CREATE\s+(?:UNIQUE\s+)?|DROP\s+|RE)INDEX\b", re.IGNORECASE)
_DUCKDB_DIVIDES = ("division of integers", re.compile(r"/"))
_MEANT_DIFFERENTLY = {
    "system tables": re.compile(r"sqlite_|information_schema|duckdb_|pragma", re.IGNORECASE),
    "random": re.compile(r"\brandom\s*\(", re.IGNORECASE),
}


@dataclass(frozen=True, slots=True)
class Record:
    """One record of a file.

    Attributes:
        kind: "ok", "error" or "query".
        sort: "nosort", "rowsort" or "valuesort".
        engines: Which engine a `skipif` or `onlyif` names, with that word.
    """

    kind: str
    text: str
    line: int
    types: str = ""
    sort: str = "nosort"
    expected: tuple[str, ...] = ()
    engines: tuple[tuple[str, str], ...] = ()


@dataclass(slots=True)
class Report:
    """What became of the queries and statements of files."""

    queries: int = 0
    statements: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    differing: list[str] = field(default_factory=list)
    spoilt: set[str] = field(default_factory=set)
    """Tables of the file at hand that lack what a refused statement would have done to them."""

    def __str__(self) -> str:
        told = f"{self.queries} queries and {self.statements} statements as published"
        reasons = "".join(f"\n  skipped {n}: {why}" for why, n in self.skipped.most_common(30))
        return told + reasons + "".join(f"\n  DIFFERS {where}" for where in self.differing)


def records(path: Path) -> Iterator[Record]:
    """Yield the records of a file up to `halt`.

    Raises:
        ValueError: It uses loops or extensions.
    """
    lines = path.read_text(encoding="utf-8").splitlines()
    start = 0
    while start < len(lines):
        end = start
        while end < len(lines) and lines[end].strip():
            end += 1
        block = [line for line in lines[start:end] if not line.lstrip().startswith("#")]
        if block and block[0].split()[0] == "halt":
            return
        found = _record(block, start + 1)
        if found is not None:
            yield found
        start = end + 1


def _record(block: list[str], line: int) -> Record | None:
    engines = []
    while block and block[0].split()[0] in ("skipif", "onlyif"):
        word, name = block[0].split()[:2]
        engines.append((word, name.lower()))
        block = block[1:]
    if not block:
        return None
    head = block[0].split()
    if head[0] in _CONTROL:
        raise ValueError(f"{head[0]} is not understood")
    if head[0] == "statement":
        cut = block.index("----") if "----" in block else len(block)
        return Record(head[1], "\n".join(block[1:cut]), line, engines=tuple(engines))
    if head[0] != "query":
        return None
    cut = block.index("----") if "----" in block else len(block)
    sort = next((word for word in head[2:] if word.endswith("sort")), "nosort")
    types = head[1] if len(head) > 1 else ""
    text, expected = "\n".join(block[1:cut]), tuple(block[cut + 1 :])
    return Record("query", text, line, types, sort, expected, tuple(engines))


def run(  # noqa: PLR0913 - which of the records, and how they are read
    path: Path,
    session: LocalSession,
    report: Report,
    *,
    family: str = "duckdb",
    most: int | None = None,
    every: int = 1,
) -> None:
    """Run a file.

    Args:
        path: The file.
        session: Where it runs.
        report: Told what became of each record.
        family: As which engine `skipif` and `onlyif` are read.
        most: Stop after so many queries; None: never.
        every: Of the queries only each so-manieth one is run.
    """
    report.spoilt.clear()
    differently = dict(_MEANT_DIFFERENTLY)
    if family == "duckdb":
        differently.update([_DUCKDB_DIVIDES])
    asked = 0
    try:
        found = list(records(path))
    except (ValueError, UnicodeDecodeError) as error:
        report.skipped[f"file: {error}"] += 1
        return
    for record in found:
        if any((word == "onlyif") != (name == family) for word, name in record.engines):
            report.skipped["for another engine"] += 1
            continue
        if record.kind == "query":
            asked += 1
            if most is not None and asked > most * every:
                return
            if asked % every:
                continue
        reason = next((w for w, form in differently.items() if form.search(record.text)), "")
        if reason and record.kind == "query":
            report.skipped[reason] += 1
        elif record.kind == "query":
            if _is_spoilt(record, report):
                report.skipped["a statement before it was refused"] += 1
            else:
                _query(record, session, report, f"{path.name} line {record.line}", family)
        elif record.kind == "ok":
            _statement(record, session, report)
        else:
            report.skipped["statements that must fail: other rules, other errors"] += 1


def _statement(record: Record, session: LocalSession, report: Report) -> None:
    if _INDEX.match(record.text):
        report.skipped["indexes: there are none, and no answer depends on them"] += 1
        return
    try:
        copied = _COPIES.match(record.text)
        text = _rows_of(copied[1], copied[2], session) if copied else translated(record.text)
        session.run(text)
    except (FederationError, SqlglotError) as error:
        report.skipped[_reason(error)] += 1
        if changed := _CHANGES.match(record.text):
            report.spoilt.add(changed[1].lower())
    else:
        report.statements += 1


def _rows_of(table: str, query: str, session: LocalSession) -> str:
    """Return the statement that gives a table the rows that a query has now."""
    (result,) = session.run(query.rstrip().rstrip(";"))
    rows = [", ".join(map(_literal, row)) for row in result.rows]
    return f"INSERT INTO {table} VALUES {', '.join(f'({row})' for row in rows)}" if rows else ""


def _literal(value: Value) -> str:
    if value is None:
        return "NULL"
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)


def _is_spoilt(record: Record, report: Report) -> bool:
    return not report.spoilt.isdisjoint(re.findall(r"\w+", record.text.lower()))


def _query(record: Record, session: LocalSession, report: Report, where: str, family: str) -> None:
    text = record.text.rstrip().rstrip(";")
    hashed = record.sort == "nosort" and _hashed(record) is not None
    try:
        (result,) = session.run(nulls_first(text) if hashed else unordered(text))
    except FederationError as error:
        report.skipped[_reason(error)] += 1
        return
    if not same(list(result.rows), record, family):
        report.differing.append(f"{where}: {' '.join(record.text.split())[:150]}")
    else:
        report.queries += 1


def _reason(error: Exception) -> str:
    first = str(error).split("\n", maxsplit=1)[0]
    return re.sub(r"'[^']*'", "'…'", first)[:80]


_ORDER = re.compile(r"\s+ORDER\s+BY\s+([^()']*)$", re.IGNORECASE)


def nulls_first(text: str) -> str:
    """Return a query whose ORDER BY at its end takes NULL for the least value, as SQLite does.

    Examples:
        >>> nulls_first("SELECT a FROM t ORDER BY b, 1 DESC")
        'SELECT a FROM t ORDER BY b NULLS FIRST, 1 DESC NULLS LAST'
    """
    found = _ORDER.search(text)
    if found is None or re.search(r"\b(LIMIT|OFFSET|FETCH|NULLS)\b", found[1], re.IGNORECASE):
        return text
    terms = [term.strip() for term in found[1].split(",")]
    ends = ["LAST" if term.upper().endswith("DESC") else "FIRST" for term in terms]
    told = ", ".join(f"{term} NULLS {end}" for term, end in zip(terms, ends, strict=True))
    return f"{text[: found.start()]} ORDER BY {told}"


def unordered(text: str) -> str:
    """Return a query without the ORDER BY at its end: bags are compared.

    Examples:
        >>> (
        ...     unordered("SELECT a FROM t ORDER BY b, 1 DESC"),
        ...     unordered("SELECT 1 ORDER BY 1 LIMIT 2"),
        ... )
        ('SELECT a FROM t', 'SELECT 1 ORDER BY 1 LIMIT 2')
    """
    found = _ORDER.search(text)
    if found is None or re.search(r"\b(LIMIT|OFFSET|FETCH)\b", found[0], re.IGNORECASE):
        return text
    return text[: found.start()]


def translated(text: str) -> str:
    """Return a statement as StreamSQL has it.

    Examples:
        >>> translated("CREATE TABLE t(a VARCHAR(30) NOT NULL, PRIMARY KEY (a))")
        'CREATE TABLE t (a TEXT)'
    """
    if not re.match(r"\s*CREATE\s+TABLE\b", text, re.IGNORECASE):
        return text.rstrip().rstrip(";")
    tree = parse_one(text, dialect="duckdb")
    schema = tree.this
    if not isinstance(schema, exp.Schema):
        return text
    columns = []
    for column in schema.find_all(exp.ColumnDef):
        kind = column.args["kind"].this.name
        columns.append(f"{column.name} {_TYPES.get(kind, kind)}")
    return f"CREATE TABLE {schema.this.name} ({', '.join(columns)})"


# --- comparison ---------------------------------------------------------------------------------


def same(rows: list[tuple[Value, ...]], record: Record, family: str = "duckdb") -> bool:
    """Whether rows are those of a record, as its types and its sorting say.

    SQLite's runner prints every value as the type that the record names; DuckDB's does not.
    """
    hashed = _hashed(record)
    if hashed is not None:
        return _hash_of(rows, record) == (int(hashed[1]), hashed[2])
    width = max(len(record.types), 1)
    lines = record.expected
    tabbed = width == 1 or any("\t" in line for line in lines)
    values = [value for line in lines for value in (line.split("\t") if tabbed else [line])]
    if family == "sqlite":
        rows = [tuple(map(_shown, row, record.types)) for row in rows]
    if record.sort == "valuesort":
        found = Counter((_plain(value),) for row in rows for value in row)
        return found == Counter((_normal(value),) for value in values)
    groups = zip(*[iter(values)] * width, strict=False)
    mine = Counter(tuple(map(_plain, row)) for row in rows)
    return mine == Counter(tuple(map(_normal, group)) for group in groups)


def _hashed(record: Record) -> re.Match[str] | None:
    return _HASHED.fullmatch(record.expected[0]) if record.expected else None


def _hash_of(rows: list[tuple[Value, ...]], record: Record) -> tuple[int, str]:
    shown = [tuple(map(_shown, row, record.types)) for row in rows]
    if record.sort == "rowsort":
        shown.sort()
    values = [value for row in shown for value in row]
    if record.sort == "valuesort":
        values.sort()
    digest = hashlib.md5("".join(f"{value}\n" for value in values).encode(), usedforsecurity=False)
    return len(values), digest.hexdigest()


def _shown(value: Value, kind: str) -> str:
    """Return a value as SQLite's runner prints it."""
    if value is None:
        return "NULL"
    if kind == "I":
        number = re.match(r"[+-]?\d+", value) if isinstance(value, str) else None
        if isinstance(value, str):
            return number[0] if number else "0"
        return str(int(value))
    if kind == "R" and not isinstance(value, str):
        return f"{float(value):.3f}"
    text = "".join(c if " " <= c <= "~" else "@" for c in str(value))
    return text or "(empty)"


def _plain(value: Value) -> str:
    if value is None:
        return "NULL"
    if value == "":
        return "(empty)"
    return _normal(str(value))


def _normal(text: str) -> str:
    """Return a printed value so that equal ones are equal: `1`, `1.000`, `true`."""
    words = {"true": "1.000", "false": "0.000"}
    if text.lower() in words:
        return words[text.lower()]
    try:
        return f"{float(text) + 0.0:.3f}"
    except ValueError:
        return text
