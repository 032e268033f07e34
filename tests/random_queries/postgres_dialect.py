"""What PostgreSQL writes or means otherwise than StreamSQL.

Words are exchanged in the text (`translated`), which otherwise reaches PostgreSQL as the generator
wrote it: no tree of ours stands between. Operators and aggregates of another meaning are declared
in a schema that hides those of `pg_catalog` (`DECLARATIONS`), so that precedence is PostgreSQL's.
"""

import re

SCHEMA = "dialect"

_TOKEN = re.compile(
    r"(?P<kept>\b(?:INTERVAL|TIMESTAMP) '[^']*')|(?P<text>'(?:[^']|'')*')|(?P<double>\b\d+\.\d+\b)"
    r"|(?P<kind>\bAS (?:INTEGER|DOUBLE)(?=\)))"
)
_KINDS = {"INTEGER": "BIGINT", "DOUBLE": "DOUBLE PRECISION"}


def kind_of(kind: str) -> str:
    """Return the type of a column; integers have 64 bits."""
    return _KINDS.get(kind, kind)


def translated(text: str) -> str:
    """Return a query with PostgreSQL's types: 0.5 is a DOUBLE, a text no unknown."""
    return _TOKEN.sub(_token, text)


def _token(match: re.Match[str]) -> str:
    match match.lastgroup:
        case "text":
            return f"{match[0]}::text"
        case "double":
            return f"{match[0]}::float8"
        case "kind":
            return f"AS {kind_of(match[0].removeprefix('AS '))}"
        case _:
            return match[0]


def _null_at_zero(sign: str, left: str, right: str) -> str:
    """Return the operator that gives NULL where PostgreSQL's fails."""
    name = "divided" if sign == "/" else "remainder"
    widest = "float8" if "float8" in (left, right) else "int8"
    return f"""
        CREATE FUNCTION {name}(a {left}, b {right}) RETURNS {widest} LANGUAGE sql IMMUTABLE
        AS 'SELECT a::{widest} OPERATOR(pg_catalog.{sign}) NULLIF(b::{widest}, 0)';
        CREATE OPERATOR {sign} (FUNCTION = {name}, LEFTARG = {left}, RIGHTARG = {right})"""


def _mean(name: str, final: str, kind: str) -> str:
    """Return an aggregate of integers as of doubles; PostgreSQL's is exact."""
    return (
        f"CREATE AGGREGATE {name}({kind}) (SFUNC = counted, STYPE = float8[], "
        f"FINALFUNC = {final}, INITCOND = '{{0,0,0}}')"
    )


_INTEGERS = ("int4", "int8")
_NUMBERS = (*_INTEGERS, "float8")
_MEANS = {
    "avg": "float8_avg",
    "var_samp": "float8_var_samp",
    "var_pop": "float8_var_pop",
    "stddev_samp": "float8_stddev_samp",
    "stddev_pop": "float8_stddev_pop",
}
DECLARATIONS = (
    f"CREATE SCHEMA {SCHEMA}",
    f"SET search_path = {SCHEMA}, pg_catalog",
    *(_null_at_zero("/", left, right) for left in _NUMBERS for right in _NUMBERS),
    *(_null_at_zero("%", left, right) for left in _INTEGERS for right in _INTEGERS),
    *(
        f"CREATE FUNCTION counted(s float8[], v {kind}) RETURNS float8[] LANGUAGE sql STRICT "
        "IMMUTABLE AS 'SELECT float8_accum(s, v::float8)'"
        for kind in _INTEGERS
    ),
    *(_mean(name, final, kind) for name, final in _MEANS.items() for kind in _INTEGERS),
    "CREATE AGGREGATE sum(int8) (SFUNC = int8pl, STYPE = int8)",
    "CREATE AGGREGATE min(boolean) (SFUNC = booland_statefunc, STYPE = boolean)",
    "CREATE AGGREGATE max(boolean) (SFUNC = boolor_statefunc, STYPE = boolean)",
)
"""Division by zero is NULL, the sum of integers an integer, their mean a double; FALSE < TRUE."""
