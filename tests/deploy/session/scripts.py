"""Random StreamSQL scripts for the law that all engines give the same answer."""

from hypothesis import strategies as st

SCHEMA = """
CREATE SOURCE keyed (k TEXT, v INTEGER, ts TIMESTAMP, KEY (k),
  WATERMARK FOR ts AS ts - INTERVAL '5 s');
CREATE SOURCE fading (k TEXT, v INTEGER, ts TIMESTAMP, KEY (k),
  WATERMARK FOR ts AS ts - INTERVAL '5 s') WITH (ttl = '20 s');
CREATE SOURCE bag (k TEXT, v INTEGER, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '5 s');
CREATE SOURCE untimed (k TEXT, v INTEGER) WITH (ttl = '15 s');
CREATE LINK SOURCE link (src TEXT, dst TEXT, cost DOUBLE, ts TIMESTAMP) WITH (ttl = '30 s');
CREATE TABLE stored (k TEXT PRIMARY KEY, label TEXT);
CREATE VIEW warm (k, total) AS SELECT k, SUM(v) FROM untimed GROUP BY k HAVING COUNT(*) > 1;
ADVANCE TIME TO '2026-01-01T00:00:00Z';
"""

NAMES = ("a", "b", "c", "d")
_name = st.sampled_from(NAMES)
_maybe_name = st.sampled_from((*NAMES, None))
_number = st.one_of(st.none(), st.integers(-2, 3))
_second = st.integers(0, 45)


def _literal(value: object) -> str:
    if value is None:
        return "NULL"
    return f"'{value}'" if isinstance(value, str) else str(value)


def _time(second: int) -> str:
    return f"2026-01-01T00:00:{second:02d}Z"


def _insert(source: str, *columns: st.SearchStrategy[object]) -> st.SearchStrategy[str]:
    rows = st.lists(st.tuples(*columns), min_size=1, max_size=4)

    def text(values: list[tuple[object, ...]]) -> str:
        shown = ", ".join("(" + ", ".join(map(_literal, row)) + ")" for row in values)
        return f"INSERT INTO {source} VALUES {shown};"

    return rows.map(text)


_timed = _second.map(_time)
_cost = st.integers(1, 4).map(float)

changes = st.one_of(
    _insert("keyed", _maybe_name, _number, _timed),
    _insert("fading", _name, _number, _timed),
    _insert("bag", _maybe_name, _number, _timed),
    _insert("untimed", _maybe_name, _number),
    _insert("link", _name, _name, _cost, _timed),
    _insert("link", _name, _name, _cost, _timed),
    _insert("stored", _name, st.sampled_from(("red", "blue", None))),
    _name.map(lambda k: f"DELETE FROM keyed WHERE k = '{k}';"),
    _name.map(lambda k: f"DELETE FROM fading WHERE k = '{k}';"),
    _number.map(lambda v: f"DELETE FROM bag WHERE v = {_literal(v)};"),
    st.just("DELETE FROM untimed WHERE v > 0;"),
    _name.map(lambda k: f"DELETE FROM link WHERE src = '{k}';"),
    st.tuples(_name, _name).map(lambda e: f"DELETE FROM link WHERE src='{e[0]}' AND dst='{e[1]}';"),
    _name.map(lambda k: f"DELETE FROM stored WHERE k = '{k}';"),
    st.sampled_from((1, 4, 9, 16)).map(lambda seconds: f"ADVANCE TIME BY '{seconds} s';"),
)
scripts = st.lists(changes, min_size=1, max_size=12)

_relation = st.sampled_from(
    (
        "keyed",
        "fading",
        "bag",
        "untimed",
        "bag [RANGE 10 SECONDS]",
        "bag [RANGE 10 SECONDS SLIDE 4 SECONDS]",
        "bag [ROWS 3]",
        "bag [PARTITION BY k ROWS 2]",
        "bag [NOW]",
        "keyed [RANGE 20 SECONDS]",
        "(SELECT k, v + 1 AS v FROM fading WHERE v <> 0)",
        "(SELECT k, MAX(v) AS v FROM bag GROUP BY k)",
    )
)
_aggregate = st.sampled_from(
    (
        "COUNT(*)",
        "COUNT(x.v)",
        "SUM(x.v)",
        "AVG(x.v)",
        "MIN(x.v)",
        "MAX(x.v)",
        "COUNT(DISTINCT x.v)",
        "ARG_MIN(x.k, x.v)",
    )
)
_condition = st.sampled_from(
    ("x.v > 0", "x.v IS NULL", "x.k <> 'a'", "x.v < 2 OR x.k = 'b'", "true")
)
_recursions = st.sampled_from(
    (
        "SELECT src, dst FROM reachable",
        "SELECT src, dst, hops FROM shortest_path",
        "SELECT src, dst, cost, path FROM cheapest_path",
        "SELECT node FROM cycles",
        "SELECT src, dst, hops FROM within_radius",
        "SELECT node, nodes FROM horizon",
        "SELECT src, COUNT(*) AS n FROM reachable GROUP BY src",
        "SELECT r.src, x.v FROM reachable r JOIN keyed x ON x.k = r.dst",
        "SELECT r.dst, s.label FROM reachable r JOIN stored s ON s.k = r.src",
    )
)
_joins = st.sampled_from(("JOIN", "LEFT JOIN"))

queries = st.one_of(
    st.builds("SELECT x.k, x.v FROM {} x WHERE {}".format, _relation, _condition),
    st.builds("SELECT DISTINCT x.v FROM {} x WHERE {}".format, _relation, _condition),
    st.builds(
        "SELECT x.k, {} AS r FROM {} x WHERE {} GROUP BY x.k".format,
        _aggregate,
        _relation,
        _condition,
    ),
    st.builds("SELECT {} AS r, COUNT(*) AS n FROM {} x".format, _aggregate, _relation),
    st.builds(
        "SELECT x.k, x.v, y.v FROM {} x {} {} y ON x.k = y.k".format, _relation, _joins, _relation
    ),
    st.builds(
        "SELECT x.v, y.k, y.v FROM {} x {} {} y ON x.v < y.v AND x.k = y.k".format,
        _relation,
        _joins,
        _relation,
    ),
    st.builds(
        "SELECT x.k, s.label, {} AS r FROM {} x {} stored s ON s.k = x.k "
        "GROUP BY x.k, s.label".format,
        _aggregate,
        _relation,
        _joins,
    ),
    st.builds("SELECT k FROM {} x UNION SELECT src FROM link".format, _relation),
    st.builds("SELECT k FROM {} x UNION ALL SELECT label FROM stored".format, _relation),
    st.just("SELECT w.k, w.total, s.label FROM warm w LEFT JOIN stored s ON s.k = w.k"),
    st.just("SELECT k, v, ts FROM bag [ROWS 4] UNION SELECT k, v, ts FROM fading"),
    st.builds(
        "SELECT x.k, CASE WHEN {} THEN COALESCE(x.v, 7) ELSE -x.v END AS c FROM {} x".format,
        _condition,
        _relation,
    ),
    _recursions,
    _recursions,
)
