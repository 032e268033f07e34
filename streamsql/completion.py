"""Completion of statements: words of the grammar, functions and names of the catalog.

The text may be unfinished and wrong, so it is looked at as words and not parsed: the last clause
before the place, the brackets open there, and the relations named anywhere. Where the grammar
leaves few words (after CREATE comes what is made, after GROUP comes BY) only those are offered.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from streamsql.algebra.operators import StreamKind
from streamsql.binder.expressions.scalar_functions import SIGNATURES
from streamsql.function_completion import function_body, function_words
from streamsql.source_completion import TYPES, source_words

_EXPLAIN = (
    "TYPE FEDERATED,TYPE ALTERNATIVES,TYPE LOGICAL,TYPE VALIDATE,FORMAT TEXT,FORMAT JSON,FORMAT DOT"
)
_GRANTEES = "USER,ROLE,EVERYBODY"
_ROLES = "viewer,analyst,operator,administrator"
_QUOTAS = "max_queries =,max_state_rows =,max_result_rows =,planning_seconds ="
_AFTER: dict[tuple[str, ...], str] = {
    (
        "CREATE",
    ): "SOURCE,LINK SOURCE,OR REPLACE SOURCE,TABLE,VIEW,RECURSIVE VIEW,MATERIALIZED VIEW,FUNCTION,"
    "AGGREGATE,DISPLAY,ALARM,SINK",
    ("CREATE", "LINK"): "SOURCE",
    ("CREATE", "OR"): "REPLACE SOURCE,REPLACE LINK SOURCE",
    ("OR", "REPLACE"): "SOURCE,LINK SOURCE",
    ("CREATE", "RECURSIVE"): "VIEW",
    ("CREATE", "MATERIALIZED"): "VIEW",
    ("ALTER",): "SITE,SOURCE,USER",
    ("GRANT",): "SELECT ON SOURCE,SELECT ON TABLE,SELECT ON VIEW",
    ("REVOKE",): "SELECT ON SOURCE,SELECT ON TABLE,SELECT ON VIEW",
    ("GRANT", "SELECT"): "ON SOURCE,ON TABLE,ON VIEW",
    ("REVOKE", "SELECT"): "ON SOURCE,ON TABLE,ON VIEW",
    ("SELECT", "ON"): "SOURCE,TABLE,VIEW",
    ("SHOW", "GRANTS"): "FOR USER,FOR ROLE,FOR EVERYBODY,ON SOURCE,ON TABLE,ON VIEW",
    ("GRANTS", "FOR"): _GRANTEES,
    ("GRANTS", "ON"): "SOURCE,TABLE,VIEW",
    ("INSERT",): "INTO",
    ("DELETE",): "FROM",
    ("MERGE",): "INTO",
    ("WHEN", "NOT"): "MATCHED THEN INSERT",
    ("WHEN", "MATCHED"): "AND,THEN UPDATE SET,THEN DELETE,THEN DO NOTHING",
    ("NOT", "MATCHED"): "AND,THEN INSERT,THEN DO NOTHING",
    ("SYSTEM_TIME",): "BETWEEN NOW - INTERVAL '1 day' AND NOW,AS OF,FROM,ALL",
    ("SYSTEM_TIME", "FROM"): "NOW - INTERVAL '1 day' TO NOW",
    ("AS", "OF"): "NOW,NOW - INTERVAL '1 day',TIMESTAMP",
    ("IF", "DELETE"): "GATEWAY,NODE",
    ("ADVANCE",): "TIME BY",
    ("ADVANCE", "TIME"): "BY",
    ("GROUP",): "BY",
    ("ORDER",): "BY",
    ("PARTITION",): "BY",
    ("IS",): "NULL,NOT NULL,DISTINCT FROM,NOT DISTINCT FROM,TRUE,FALSE,UNKNOWN",
    ("NULLS",): "FIRST,LAST",
    ("WITHIN",): "GROUP (ORDER BY",
    ("FILTER",): "(WHERE",
    ("FILTER", "("): "WHERE",
    ("OVER", "("): "PARTITION BY,ORDER BY,ROWS BETWEEN,RANGE BETWEEN",
    ("EMIT",): "ON WINDOW CLOSE",
    ("EMIT", "ON"): "WINDOW CLOSE",
    ("ON", "WINDOW"): "CLOSE",
    ("OUTPUT",): "TO DISPLAY",
    ("EXPLAIN", "("): _EXPLAIN,
    **{(kind, "("): "SELECT,WITH" for kind in StreamKind},
    ("WITH", "RECURSIVE"): "",
}
"""What follows the one or two words before the place."""
_DELIVERY = "WITH (SNAPSHOT = false),WITH (PROGRESS),ENVELOPE UPSERT (KEY ("
_SETTINGS = "scheduler =,slice_ms =,queue_rows =,share_synopses =,report_seconds ="
MAX_SHOWN = 400
_WORD = re.compile(r"'(?:[^']|'')*'?|--[^\n]*|\"[^\"]*\"?|\w+|[^\w\s]")
_STATEMENTS = (
    "SELECT,WITH,WITH RECURSIVE,CREATE SOURCE,CREATE LINK SOURCE,CREATE OR REPLACE SOURCE,"
    "CREATE TABLE,CREATE VIEW,"
    "CREATE RECURSIVE VIEW,CREATE MATERIALIZED VIEW,REFRESH MATERIALIZED VIEW,REFRESH TABLE,"
    "CREATE FUNCTION,CREATE AGGREGATE,CREATE DISPLAY,"
    "CREATE ALARM,CREATE SINK,DROP,EXPLAIN,EXPLAIN (TYPE FEDERATED),EXPLAIN (FORMAT DOT),"
    "EXPLAIN (TYPE LOGICAL),EXPLAIN (FORMAT JSON),"
    "EXPLAIN (TYPE VALIDATE),EXPLAIN ALTERNATIVES,EXPLAIN WHY,EXPLAIN WHAT IF DELETE,"
    "EXPLAIN CONFIDENCE,SHOW,DESCRIBE,"
    "ALTER SITE,ALTER SOURCE,ALTER USER,GRANT SELECT ON,REVOKE SELECT ON,SHOW GRANTS,"
    "SUBSCRIBE TO,ISTREAM(,DSTREAM(,RSTREAM(,INSERT INTO,DELETE FROM,UPDATE,MERGE INTO,RUN,"
    "ADVANCE TIME BY"
)
_JOINS = (
    "JOIN,INNER JOIN,NATURAL JOIN,LEFT JOIN,RIGHT JOIN,FULL JOIN,CROSS JOIN,SEMI JOIN,ANTI JOIN,"
    "ASOF JOIN,ASOF LEFT JOIN"
)
_AFTER_FROM = (
    f"{_JOINS},ON,USING,AS,FOR SYSTEM_TIME,WHERE,GROUP BY,HAVING,QUALIFY,WINDOW,UNION,UNION ALL,"
    "INTERSECT,EXCEPT,ORDER BY,LIMIT,EMIT ON WINDOW CLOSE,WITH,OUTPUT TO DISPLAY"
)
_VALUES = (
    "CASE WHEN,THEN,ELSE,END,CAST(,COALESCE(,CONCAT(,CONCAT_WS(,EPOCH(,"
    "DATE_PART(,PI(),NULLIF(,GREATEST(,LEAST(,EXTRACT(,DATE_TRUNC(,INTERVAL,TRUE,FALSE,"
    "NULL,NOT,EXISTS"
)
_SETS = "ROLLUP (,CUBE (,GROUPING SETS ("
_CONDITIONS = (
    "AND,OR,NOT,IN,LIKE,ILIKE,SIMILAR TO,ESCAPE,BETWEEN,IS NULL,IS NOT NULL,EXISTS,"
    "IS DISTINCT FROM,IS UNKNOWN"
)
_OVER = (
    "RANK() OVER (,DENSE_RANK() OVER (,PERCENT_RANK() OVER (,CUME_DIST() OVER (,NTILE(,LAG(,LEAD(,"
    "FIRST_VALUE(,LAST_VALUE(,NTH_VALUE(,OVER (PARTITION BY"
)
_FRAME = "ROWS BETWEEN,PRECEDING,FOLLOWING,CURRENT ROW,UNBOUNDED PRECEDING"
_ENDS = (
    "ORDER BY,LIMIT,UNION,EMIT ON WINDOW CLOSE,OUTPUT TO DISPLAY,SEVERITY,ON HISTORY BETWEEN,SPEED"
)
_KEYWORDS: dict[str, str] = {
    "": _STATEMENTS,
    "SELECT": f"DISTINCT,* EXCEPT (,{_VALUES},FROM,FILTER (WHERE,AS,ROW_NUMBER() OVER (,{_OVER}",
    "FROM": f"{_AFTER_FROM},(VALUES (",
    "JOIN": _AFTER_FROM,
    "ON": f"{_CONDITIONS},{_AFTER_FROM},WHEN MATCHED THEN,WHEN NOT MATCHED THEN",
    "WHERE": f"{_CONDITIONS},{_VALUES},GROUP BY,HAVING,{_ENDS}",
    "BY": f"ALL,{_SETS},HAVING,{_FRAME},ASC,DESC,NULLS FIRST,NULLS LAST,OFFSET,{_ENDS}",
    "HAVING": f"{_CONDITIONS},{_VALUES},{_ENDS}",
    "QUALIFY": f"ROW_NUMBER() OVER (PARTITION BY,{_OVER},{_CONDITIONS},{_ENDS}",
    "LIMIT": "OFFSET,EMIT ON WINDOW CLOSE",
    "SHOW": "SOURCES,TABLES,VIEWS,FUNCTIONS,QUERIES,GATEWAYS,ALARMS,DISPLAYS,SINKS,GRANTS,NETWORK",
    "REFRESH": "MATERIALIZED VIEW,TABLE,AT (,COST WEIGHTS (,AS",
    "DROP": "SOURCE,TABLE,VIEW,FUNCTION,AGGREGATE,QUERY,DISPLAY,ALARM,SINK",
    "SUBSCRIBE": "TO,WITH (SNAPSHOT,WITH (PROGRESS,ENVELOPE UPSERT (KEY (",
    "ALTER": "SITE,SOURCE,USER",
    "SITE": f"SET (,{_SETTINGS}",
    "SEVERITY": "'info','warning','critical',FOR",
    "DISPLAY": "floor =,x =,y =,title =,rows =",
    "CREATE": f"AS,{TYPES},KEY (,PRIMARY KEY,WATERMARK FOR,WITH (,REFRESH AT (",
}
_WINDOW = (
    "RANGE 10 MINUTES,RANGE 10 MINUTES SLIDE 1 MINUTE,ROWS 100,PARTITION BY,NOW,UNBOUNDED,SLIDE,"
    "SECONDS,MINUTES,HOURS,DAYS"
)
_AGGREGATES = (
    "COUNT(*)|COUNT(DISTINCT x)|COUNT_IF(condition)|SUM(x)|AVG(x)|MIN(x)|MAX(x)|ARG_MIN(x, by)|"
    "ARG_MAX(x, by)|STDDEV(x)|STDDEV_POP(x)|VARIANCE(x)|VAR_POP(x)|MEDIAN(x)|"
    "QUANTILE_CONT(x, 0.95)|"
    "PERCENTILE_CONT(0.95) WITHIN GROUP (ORDER BY x)|BOOL_AND(condition)|BOOL_OR(condition)|"
    "EVERY(condition)|STDDEV_SAMP(x)|VAR_SAMP(x)|QUANTILE_DISC(x, 0.95)|GROUPING(x)|"
    "PERCENTILE_DISC(0.95) WITHIN GROUP (ORDER BY x)|MODE(x)|ANY_VALUE(x)|"
    "ARRAY_AGG(x)|STRING_AGG(x, ',')"
)
_TABLE_FUNCTIONS = (
    "TUMBLE(relation, time, INTERVAL '1 minute')|HOP(relation, time, hop, size)|"
    "SESSION(relation, time, gap, key)|LATE(source)|ISTREAM(SELECT …)|DSTREAM(SELECT …)|"
    "RSTREAM(SELECT …)"
)
_RELATION_FOLLOWS = {
    "FROM", "JOIN", "INTO", "TO", "DESCRIBE", "TUMBLE", "HOP", "SESSION", "LATE", "SOURCE",
}  # fmt: skip
_WITHOUT_VALUES = (
    "FROM", "JOIN", "SHOW", "DROP", "REFRESH", "LIMIT", "CREATE", "SUBSCRIBE", "SEVERITY",
    "DISPLAY",
)  # fmt: skip
_NO_ALIAS = (
    "ON", "USING", "WHERE", "GROUP", "ORDER", "JOIN", "LEFT", "RIGHT", "FULL", "CROSS", "SEMI",
    "ANTI", "ASOF", "NATURAL", "INNER", "UNION", "LIMIT", "HAVING", "WITH", "EMIT",
)  # fmt: skip


def _following(before: Sequence[str]) -> str | None:
    """Return the words that may follow, with commas between; None where the grammar leaves more.

    Args:
        before: The words of the statement before the place.
    """
    words = [word.upper() for word in before]
    in_source = source_words(words)
    if in_source is not None:
        return in_source
    for length in (2, 1):
        found = _AFTER.get(tuple(words[-length:]))
        if found is not None:
            return found
    return _of_statement(words)


def _of_statement(words: list[str]) -> str | None:
    """Return what a statement without a query's clauses goes on with."""
    depth = words.count("(") - words.count(")")
    match words:
        case ["CREATE", "DISPLAY", _]:
            return "WITH ("
        case ["CREATE", "ALARM", _]:
            return "AS"
        case ["CREATE", "FUNCTION" | "AGGREGATE" as kind, _, "(", *rest] if depth == 0:
            return function_words(rest, kind)
        case ["CREATE", "SINK", _]:
            return "FROM"
        case ["GRANT" | "REVOKE", *_]:
            return _of_grant(words)
        case ["ALTER", "USER", _, *_] if depth > 0:
            return _QUOTAS if words[-1] in ("(", ",") else None
        case ["ALTER", "USER", _, *rest] if "SET" not in rest:
            return "SET ("
        case ["ALTER", "SITE", _, *_] if depth > 0:
            return _SETTINGS if words[-1] in ("(", ",") else None
        case ["ALTER", "SITE", _, *rest] if "SET" not in rest:
            return "SET ("
        case ["SUBSCRIBE", *_]:
            return _of_subscription(words, depth)
        case _:
            return None


def _of_grant(words: list[str]) -> str | None:
    """Return what GRANT or REVOKE goes on with; None where the name of a relation is next."""
    turn = "TO" if words[0] == "GRANT" else "FROM"
    if turn not in words:
        is_next = words[-1] in (",", "SOURCE", "TABLE", "VIEW")
        return None if is_next else turn
    match words[-1]:
        case "ROLE":
            return _ROLES
        case "TO" | "FROM" | ",":
            return _GRANTEES
        case _:
            return ""


def _of_subscription(words: list[str], depth: int) -> str | None:
    if words[-2:] == ["WITH", "("] and depth == 1:
        return "SNAPSHOT = false,PROGRESS"
    if depth or ("SELECT" in words and words[-1] != ")"):
        return None
    named = [word for word in words[1:] if word != "TO"]
    return _DELIVERY if named else None


@dataclass(frozen=True, slots=True)
class Completion:
    """Something that may stand at a place.

    Attributes:
        label: What is written.
        kind: "keyword", "function", "aggregate", "window", "relation", "column" or "display".
        detail: How it is called, or whose column it is.
    """

    label: str
    kind: str
    detail: str = ""


def complete(
    text: str,
    offset: int,
    relations: Mapping[str, Sequence[str]],
    functions: Iterable[str] = (),
    displays: Iterable[str] = (),
) -> tuple[Completion, ...]:
    """Return what may stand at a place, the likeliest kinds first.

    Args:
        text: The whole text; its columns come from relations named anywhere in it.
        offset: The place, in characters; a word begun just before it is completed.
        relations: Columns of every source, table and view, by name.
        functions: Functions of the user, as they are called.
        displays: Names of the displays.
    """
    begun = re.search(r"\w*\Z", text[:offset])
    prefix = begun[0] if begun is not None else ""
    before = _words(text[: offset - len(prefix)])
    if before and _is_open(before[-1], text[:offset]):
        return ()
    before = [word for word in before if not word.startswith("--")]
    if ";" in before:
        before = before[len(before) - before[::-1].index(";") :]
    if [word.upper() for word in before[-2:]] == ["OUTPUT", "TO"]:
        found = [Completion("DISPLAY", "keyword")]
    elif [word.upper() for word in before[-2:]] == ["TO", "DISPLAY"]:
        found = [Completion(name, "display") for name in displays]
    else:
        aliases = _aliases(_words(text), relations)
        found = list(_candidates(before, aliases, relations, functions))
    wanted = prefix.upper()
    fitting = dict.fromkeys(c for c in found if c.label.upper().startswith(wanted))
    return tuple(fitting)[:MAX_SHOWN]


def _candidates(
    before: list[str],
    aliases: Mapping[str, str],
    relations: Mapping[str, Sequence[str]],
    functions: Iterable[str],
) -> Iterator[Completion]:
    if len(before) > 1 and before[-1] == ".":
        name = aliases.get(before[-2].lower(), before[-2].lower())
        yield from (Completion(c, "column", name) for c in relations.get(name, ()))
        return
    if before.count("[") > before.count("]"):
        yield from (Completion(word, "window") for word in _WINDOW.split(","))
        yield from _columns(aliases, relations)
        return
    body = function_body(before)
    if body is not None:
        yield from (Completion(name, "column", "parameter") for name in body[1])
        yield from _calls(functions, with_aggregates=body[0] == "AGGREGATE")
        return
    alone = _following(before)
    if alone is not None:
        yield from (Completion(word, "keyword") for word in alone.split(",") if word)
        if [word.upper() for word in before[-2:]] == ["IF", "DELETE"]:
            yield from (Completion(name, "relation") for name in relations)
        return
    if before and before[0].upper() in ("GRANT", "REVOKE"):
        yield from (Completion(name, "relation") for name in relations)
        return
    clause = next((w.upper() for w in reversed(before) if w.upper() in _KEYWORDS), "")
    last = before[-1].upper() if before else ""
    opened = before[-2].upper() if last == "(" and len(before) > 1 else last
    in_list = clause in ("FROM", "JOIN") and last == ","
    if opened in _RELATION_FOLLOWS or in_list:
        yield from (Completion(name, "relation") for name in relations)
        if opened in ("FROM", "JOIN") or in_list:
            yield from _called(_TABLE_FUNCTIONS.split("|"), "function")
        return
    if clause and clause not in _WITHOUT_VALUES:
        yield from _columns(aliases, relations)
        yield from _calls(functions, with_aggregates=clause in ("SELECT", "HAVING", "BY"))
    elif clause in ("DROP", "REFRESH"):
        yield from (Completion(name, "relation") for name in relations)
    yield from (Completion(word, "keyword") for word in _KEYWORDS[clause].split(","))


def _columns(
    aliases: Mapping[str, str], relations: Mapping[str, Sequence[str]]
) -> Iterator[Completion]:
    for alias in aliases:
        yield Completion(alias, "relation", aliases[alias])
    for name in dict.fromkeys(aliases.values()):
        yield from (Completion(column, "column", name) for column in relations.get(name, ()))


def _calls(functions: Iterable[str], *, with_aggregates: bool) -> Iterator[Completion]:
    if with_aggregates:
        yield from _called(_AGGREGATES.split("|"), "aggregate")
    usages = [signature.usage for known in SIGNATURES.values() for signature in known]
    yield from _called([*functions, *usages], "function")


def _called(usages: Iterable[str], kind: str) -> Iterator[Completion]:
    for usage in usages:
        yield Completion(usage.partition("(")[0], kind, usage)


def _aliases(words: list[str], relations: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return the relations that a text names, by the names they are called there."""
    found: dict[str, str] = {}
    for number, word in enumerate(words):
        name = word.lower()
        if name not in relations:
            continue
        rest = words[number + 1 :]
        if rest[:1] == ["["] and "]" in rest:
            rest = rest[rest.index("]") + 1 :]
        rest = rest[1:] if rest and rest[0].upper() == "AS" else rest
        follows = rest and re.fullmatch(r"\w+", rest[0]) and rest[0].upper() not in _NO_ALIAS
        found[rest[0].lower() if follows else name] = name
    return found


def _words(text: str) -> list[str]:
    return _WORD.findall(text)


def _is_open(word: str, text: str) -> bool:
    """Whether a text ends within its last word, a comment or a quoted text."""
    if word.startswith("--"):
        return text.endswith(word) or "\n" not in text[text.rindex(word) :]
    return word.startswith("'") and re.fullmatch(r"'(?:[^']|'')*'", word) is None
