"""Some hundred templates of queries that vary each other, in StreamSQL and for DuckDB.

Texts are the same for both but for windows: DuckDB reads a view of the rows that are in them.
"""

from collections.abc import Iterator

from benchmarks._sequences.aggregate_queries import (
    best_and_middle,
    functions,
    further_aggregates,
    several_groupings,
    times,
)
from benchmarks._sequences.templates import Template
from benchmarks._sequences.templates import same as _same
from benchmarks._sequences.windows_and_places import (
    places,
    sessions,
    sliding,
    subqueries,
)

SOURCES = """
CREATE SOURCE readings (sensor TEXT, room TEXT, celsius INTEGER, level INTEGER, KEY (sensor))
    WITH (ttl = '25 s');
CREATE SOURCE seats (mid TEXT, room TEXT, taken INTEGER, share DOUBLE, KEY (mid))
    WITH (ttl = '25 s');
CREATE SOURCE visits (who TEXT, room TEXT, minutes INTEGER, ts TIMESTAMP) WITH (ttl = '25 s');
CREATE LINK SOURCE paths (src TEXT, dst TEXT, cost INTEGER) WITH (ttl = '25 s');
"""
"""Sources: two with a key, one in which rows may be there twice and come late, and links."""

COLUMNS = {
    "readings": "sensor TEXT, room TEXT, celsius BIGINT, level BIGINT",
    "seats": "mid TEXT, room TEXT, taken BIGINT, share DOUBLE",
    "visits": "who TEXT, room TEXT, minutes BIGINT, ts BIGINT",
    "paths": "src TEXT, dst TEXT, cost BIGINT",
}
"""Tables of DuckDB, by source."""

ROOMED = ("readings", "seats", "visits")
"""Sources whose rows may be at one gateway by their rooms."""

WINDOWS = {"visits": (5, 10, 20), "readings": (10, 20)}
"""Lengths of windows, in seconds, over a source."""


def _selections() -> Iterator[Template]:
    for least in (1, 2, 3):
        yield from _same(f"SELECT sensor, room, celsius FROM readings WHERE celsius > {least}")
    yield from _same(
        "SELECT sensor, room, celsius FROM readings WHERE celsius >= 2",
        "SELECT room, celsius, level FROM readings WHERE celsius > 2 AND level < 3",
        "SELECT sensor FROM readings WHERE NOT celsius <= 2 AND level IN (1, 2)",
        "SELECT sensor FROM readings WHERE celsius > 1 AND (level = 1 OR level IS NULL)",
        "SELECT who, room FROM visits WHERE minutes BETWEEN 1 AND 3",
        "SELECT who, room, minutes FROM visits WHERE room LIKE 'r%'",
        "SELECT mid, share FROM seats WHERE share > 0.25",
        "SELECT mid FROM seats WHERE share >= 0.5 AND taken = 1",
        "SELECT sensor, celsius FROM readings WHERE celsius > 0 "
        "ORDER BY celsius DESC, sensor LIMIT 3",
        "SELECT sensor FROM readings WHERE celsius > 1 ORDER BY sensor LIMIT 2",
    )


def _signs_of_zero() -> Iterator[Template]:
    """Yield queries whose functions take 0.0 and -0.0 for the same, which DuckDB's do not."""
    one, other = "share", "share + 0.0"
    on = "FROM seats s, readings r WHERE r.room = s.room"
    for shown in (one, f"CAST({one} AS TEXT)"):
        plain = shown.replace(one, other)
        yield Template(
            f"SELECT room, {shown} AS k FROM seats", f"SELECT room, {plain} AS k FROM seats"
        )
        yield Template(f"SELECT {shown} AS k, sensor {on}", f"SELECT {plain} AS k, sensor {on}")
        yield Template(
            f"SELECT {shown} AS k, COUNT(*) AS n {on} GROUP BY {shown}",
            f"SELECT {plain} AS k, COUNT(*) AS n {on} GROUP BY {plain}",
        )
    for text in (
        "SELECT mid FROM seats WHERE ATAN2({}, -1.0) > 0",
        f"SELECT sensor, mid {on} AND ATAN2({{}}, -1.0) > 0",
    ):
        yield Template(text.format(one), text.format(other))


def _joins() -> Iterator[Template]:
    on = "FROM readings r, seats s WHERE r.room = s.room"
    for least in (1, 2, 3):
        yield from _same(f"SELECT r.sensor, s.mid {on} AND r.celsius > {least}")
    yield from _same(
        f"SELECT s.mid, r.sensor, r.level {on} AND r.celsius > 1 AND s.taken = 0",
        "SELECT x.mid, y.sensor FROM seats x, readings y WHERE y.room = x.room AND 2 < y.celsius",
        "SELECT r.sensor, s.mid FROM readings r JOIN seats s ON s.room = r.room "
        "WHERE s.taken = 0 OR r.celsius > 3",
    )
    for gap in (1, 2):
        yield from _same(
            "SELECT a.who, b.who AS other FROM visits a, visits b "
            f"WHERE a.room = b.room AND b.minutes <= a.minutes + {gap}",
            "SELECT a.who, b.minutes FROM visits a, visits b WHERE a.room = b.room "
            f"AND a.minutes >= b.minutes - {gap} AND a.minutes > 1",
        )
    for part in (1, 2, 3):
        # Minutes are not negative, so cutting off is rounding down.
        text = (
            "SELECT a.who, b.who AS other FROM visits a, visits b "
            f"WHERE a.room = b.room AND a.minutes > 1 AND b.minutes >= a.minutes / {part}"
        )
        yield Template(text, text.replace("/", "//"))
        yield from _same(
            "SELECT s.mid, t.mid AS other FROM seats s, seats t "
            f"WHERE s.room = t.room AND t.share <= s.share / {part}.0 AND s.share > 0.25",
            "SELECT r.sensor, v.who FROM readings r, visits v "
            f"WHERE r.room = v.room AND {part} * v.minutes > r.celsius AND r.celsius > 2",
        )
    yield from _same(
        f"SELECT DISTINCT r.sensor {on}",
        f"SELECT DISTINCT r.sensor {on} AND r.celsius > 2",
        f"SELECT DISTINCT s.mid {on} AND r.celsius > 1",
        f"SELECT DISTINCT r.room {on}",
        f"SELECT DISTINCT r.level {on} AND r.celsius > 3",
    )
    three = "FROM readings r, seats s, visits v WHERE r.room = s.room AND s.room = v.room"
    yield from _same(
        f"SELECT r.sensor, s.mid, v.who {three}",
        f"SELECT r.sensor, v.who {three} AND r.celsius > 1",
        f"SELECT r.sensor, v.who {three} AND r.celsius > 2 AND v.minutes < 3",
        f"SELECT v.who, s.mid {three} AND r.celsius > 1 AND s.taken = 1",
        "SELECT s.mid, v.who FROM seats s, visits v WHERE s.room = v.room",
        "SELECT s.mid, v.minutes FROM visits v, seats s WHERE s.room = v.room AND v.minutes > 1",
    )


def _groups() -> Iterator[Template]:
    yield from _same(
        "SELECT room, level, COUNT(*) AS n, SUM(celsius) AS c FROM readings GROUP BY room, level",
        "SELECT room, COUNT(*) AS n FROM readings GROUP BY room",
        "SELECT room, SUM(celsius) AS c, COUNT(*) AS n FROM readings GROUP BY room",
        "SELECT level, SUM(celsius) AS c FROM readings GROUP BY level",
        "SELECT COUNT(*) AS n, SUM(celsius) AS c FROM readings",
        "SELECT room, MIN(celsius) AS low, MAX(celsius) AS high FROM readings GROUP BY room",
        "SELECT room, MAX(celsius) AS high FROM readings GROUP BY room HAVING COUNT(*) > 1",
        "SELECT room, COUNT(*) AS n FROM readings WHERE room = 'r1' GROUP BY room",
        "SELECT room, COUNT(minutes) AS n FROM visits GROUP BY room",
        "SELECT room, who, COUNT(*) AS n FROM visits GROUP BY room, who",
        "SELECT room, COUNT(*) AS n FROM visits GROUP BY room HAVING COUNT(*) >= 2",
        "SELECT room, COUNT(*) AS n FROM visits GROUP BY room HAVING COUNT(*) >= 3",
        "SELECT room, COUNT(*) AS n FROM visits GROUP BY room "
        "HAVING COUNT(*) >= 2 AND MAX(minutes) > 2",
        "SELECT room, SUM(celsius) AS c FROM readings GROUP BY room HAVING SUM(celsius) > 3",
        "SELECT room, SUM(celsius) AS c FROM readings GROUP BY room HAVING SUM(celsius) > 5",
        "SELECT s.room, COUNT(*) AS n FROM readings r, seats s WHERE r.room = s.room "
        "GROUP BY s.room",
        "SELECT s.room, s.taken, COUNT(*) AS n FROM readings r, seats s WHERE r.room = s.room "
        "GROUP BY s.room, s.taken",
        "SELECT room FROM visits GROUP BY room HAVING COUNT(*) >= 2",
        "SELECT room, AVG(share) AS a FROM seats GROUP BY room HAVING COUNT(share) > 1",
        "SELECT s.room, COUNT(*) AS n FROM readings r, seats s WHERE r.room = s.room "
        "GROUP BY s.room HAVING COUNT(*) > 1",
        "SELECT s.room, MAX(r.celsius) AS high FROM readings r, seats s WHERE r.room = s.room "
        "GROUP BY s.room HAVING MAX(r.celsius) > 2 AND COUNT(*) > 1",
        "SELECT room, taken, SUM(share) AS s, AVG(share) AS a FROM seats GROUP BY room, taken",
        "SELECT room, AVG(share) AS a FROM seats GROUP BY room",
        "SELECT taken, SUM(share) AS s, COUNT(share) AS n FROM seats GROUP BY taken",
        "SELECT room, COUNT(DISTINCT taken) AS n FROM seats GROUP BY room",
        "SELECT room, AVG(celsius) AS a, MIN(level) AS low FROM readings GROUP BY room",
        "SELECT r.sensor, g.n FROM readings r, "
        "(SELECT room, COUNT(*) AS n FROM visits GROUP BY room) g WHERE g.room = r.room",
    )


def _sets() -> Iterator[Template]:
    rooms = "SELECT room FROM readings", "SELECT room FROM seats", "SELECT room FROM visits"
    yield from _same(
        f"{rooms[0]} UNION ALL {rooms[1]}",
        f"{rooms[0]} UNION {rooms[1]}",
        f"{rooms[0]} UNION ALL {rooms[1]} UNION ALL {rooms[2]}",
        f"{rooms[0]} EXCEPT {rooms[2]}",
        f"{rooms[0]} INTERSECT {rooms[2]}",
        "SELECT DISTINCT room FROM visits",
        "SELECT DISTINCT room, who FROM visits",
        f"{rooms[0]} WHERE celsius > 1 UNION {rooms[1]} WHERE taken = 0",
        f"{rooms[2]} EXCEPT ALL {rooms[1]}",
        f"{rooms[2]} INTERSECT ALL {rooms[0]}",
        f"{rooms[0]} EXCEPT ({rooms[1]} UNION {rooms[2]})",
    )


def _outer() -> Iterator[Template]:
    left = "FROM readings r LEFT JOIN seats s ON r.room = s.room"
    yield from _same(
        f"SELECT r.sensor, s.mid {left}",
        f"SELECT r.sensor, s.mid {left} WHERE r.celsius > 1",
        f"SELECT r.sensor, s.mid, s.taken {left} WHERE s.taken IS NULL",
        f"SELECT r.sensor, s.mid {left} WHERE r.celsius > 2 AND r.level < 4",
        "SELECT r.sensor, s.mid FROM readings r FULL JOIN seats s ON r.room = s.room",
        f"SELECT r.room, COUNT(s.mid) AS n {left} GROUP BY r.room",
        "SELECT sensor FROM readings WHERE room IN (SELECT room FROM seats WHERE taken = 0)",
        "SELECT sensor, room FROM readings r WHERE NOT EXISTS "
        "(SELECT 1 FROM visits v WHERE v.room = r.room)",
    )


def _recursions() -> Iterator[Template]:
    reach = (
        "WITH RECURSIVE reach(src, dst) AS (SELECT src, dst FROM paths UNION "
        "SELECT reach.src, paths.dst FROM reach, paths WHERE paths.src = reach.dst) "
    )
    yield from _same(
        f"{reach}SELECT src, dst FROM reach",
        f"{reach}SELECT dst FROM reach WHERE src = 'r1'",
        f"{reach}SELECT src, dst FROM reach WHERE src IN ('r1', 'r2')",
        f"{reach}SELECT DISTINCT reach.src, s.mid FROM reach, seats s WHERE s.room = reach.dst",
        f"{reach}SELECT src, COUNT(*) AS n FROM reach GROUP BY src",
    )
    hops = (
        "WITH RECURSIVE hops(src, dst, far) AS (SELECT src, dst, 1 FROM paths UNION SELECT "
        "hops.src, paths.dst, far + 1 FROM hops, paths WHERE paths.src = hops.dst AND far < 3) "
    )
    yield from _same(
        f"{hops}SELECT src, dst, far FROM hops",
        f"{hops}SELECT dst, far FROM hops WHERE src = 'r2'",
        f"{hops}SELECT src, dst, MIN(far) AS far FROM hops GROUP BY src, dst",
    )


def _windows() -> Iterator[Template]:
    for text in (
        "SELECT who, room FROM visits [] WHERE minutes > 1",
        "SELECT who, minutes FROM visits [] WHERE minutes > 1 AND room IS NOT NULL",
        "SELECT who, room, minutes, ts FROM visits []",
        "SELECT room, ts FROM visits [] WHERE minutes > 0",
        "SELECT room, COUNT(*) AS n FROM visits [] GROUP BY room",
        "SELECT room, MAX(minutes) AS most FROM visits [] WHERE minutes > 0 GROUP BY room",
        "SELECT DISTINCT room FROM visits []",
        "SELECT v.who, s.mid FROM visits [] v, seats s WHERE v.room = s.room",
        "SELECT sensor, celsius FROM readings [] WHERE celsius > 1",
        "SELECT room, SUM(celsius) AS c FROM readings [] GROUP BY room",
        "SELECT r.sensor, v.who FROM readings [] r, visits [] v WHERE r.room = v.room",
        "SELECT a.who, b.who AS other FROM visits [] a, visits b WHERE a.room = b.room",
    ):
        lengths = [WINDOWS[source] for source in WINDOWS if f"{source} []" in text]
        for seconds in sorted(set.intersection(*map(set, lengths))):
            plain = text
            for source in WINDOWS:
                plain = plain.replace(f"{source} []", f"{source}_{seconds}")
            yield Template(text.replace("[]", f"[RANGE {seconds} SECONDS]"), plain)

    for seconds in (5, 10):
        for text in (
            "SELECT a.who, b.who AS other FROM visits [] a, visits [RANGE 20 SECONDS] b "
            "WHERE a.room = b.room",
            "SELECT b.who, b.ts FROM visits [RANGE 20 SECONDS] b WHERE NOT EXISTS "
            "(SELECT 1 FROM visits [] a WHERE a.room = b.room AND a.minutes > 1)",
            "SELECT room FROM visits [RANGE 20 SECONDS] EXCEPT SELECT room FROM visits []",
        ):
            plain = text.replace("visits []", f"visits_{seconds}")
            yield Template(
                text.replace("[]", f"[RANGE {seconds} SECONDS]"),
                plain.replace("visits [RANGE 20 SECONDS]", "visits_20"),
            )


def _of_one_source() -> Iterator[Template]:
    """Yield the same with another bound, column or function, as one analyst asks it."""
    for least in (1, 2):
        yield from _same(
            f"SELECT sensor FROM readings WHERE celsius > {least}",
            f"SELECT sensor, level FROM readings WHERE celsius > {least}",
            f"SELECT room, COUNT(*) AS n FROM readings WHERE celsius > {least} GROUP BY room",
            f"SELECT room, SUM(level) AS s FROM readings WHERE celsius > {least} GROUP BY room",
            f"SELECT who FROM visits WHERE minutes > {least}",
            f"SELECT room, ts FROM visits WHERE minutes > {least}",
        )
    yield from _same(
        "SELECT sensor, room, celsius, level FROM readings",
        "SELECT room, celsius FROM readings",
        "SELECT room, level FROM readings",
        "SELECT who, minutes FROM visits",
        "SELECT DISTINCT room FROM readings WHERE celsius > 1",
        "SELECT level, MAX(celsius) AS high FROM readings GROUP BY level",
        "SELECT sensor, level FROM readings WHERE level > 0 ORDER BY level DESC, sensor LIMIT 2",
        "SELECT COUNT(*) AS n FROM visits WHERE minutes > 1",
    )


def _further_groups() -> Iterator[Template]:
    over = "FROM readings r, seats s WHERE r.room = s.room"
    yield from _same(
        "SELECT room, level, COUNT(*) AS n FROM readings GROUP BY ROLLUP (room, level)",
        "SELECT room, SUM(celsius) AS s FROM readings GROUP BY ROLLUP (room)",
        "SELECT room, level, MAX(celsius) AS m FROM readings GROUP BY CUBE (room, level)",
        f"SELECT s.room, s.taken, COUNT(*) AS n {over} GROUP BY ROLLUP (s.room, s.taken)",
        "SELECT room, COUNT(*) FILTER (WHERE celsius > 1) AS n FROM readings GROUP BY room",
        "SELECT room, level, SUM(celsius) FILTER (WHERE level > 1) AS s FROM readings "
        "GROUP BY room, level",
        "SELECT room, COUNT(*) FILTER (WHERE celsius > 1) AS n, COUNT(*) AS c FROM readings "
        "WHERE level > 0 GROUP BY room",
        f"SELECT s.room, COUNT(*) FILTER (WHERE r.celsius > 2) AS n {over} GROUP BY s.room",
        # By a value that tells which one it is: DuckDB takes any of those that are equal.
        "SELECT room, ARG_MIN(level, celsius * 100 + level) AS low FROM readings GROUP BY room",
        "SELECT room, ARG_MAX(level, celsius * 100 + level) AS high FROM readings GROUP BY room",
        "SELECT room, celsius, level, ARG_MAX(level, celsius * 100 + level) AS high "
        "FROM readings GROUP BY room, celsius, level",
        "SELECT ARG_MAX(celsius, celsius) AS high, ARG_MIN(celsius, celsius) AS low FROM readings",
        f"SELECT s.room, ARG_MIN(r.level, r.celsius * 100 + r.level) AS low {over} GROUP BY s.room",
    )
    for seconds in (5, 10):
        size = seconds * 1_000_000
        start = f"ts - (ts % {size} + {size}) % {size}"  # DuckDB's rest of a negative is one
        of_each = f"FROM TUMBLE(visits, ts, INTERVAL '{seconds} seconds')"
        yield Template(
            f"SELECT room, window_start, COUNT(*) AS n {of_each} GROUP BY room, window_start",
            f"SELECT room, {start} AS window_start, COUNT(*) AS n FROM visits GROUP BY ALL",
        )
        yield Template(
            f"SELECT window_start, MAX(minutes) AS m {of_each} GROUP BY window_start",
            f"SELECT {start} AS window_start, MAX(minutes) AS m FROM visits GROUP BY ALL",
        )
        hops = (
            f"FROM HOP(visits, ts, INTERVAL '{seconds} seconds', INTERVAL '{2 * seconds} seconds')"
        )
        yield Template(
            f"SELECT room, window_start, COUNT(*) AS n {hops} GROUP BY room, window_start",
            f"SELECT room, {start} - hop * {size} AS window_start, COUNT(*) AS n "
            "FROM visits, (VALUES (0), (1)) hops(hop) GROUP BY ALL",
        )


GROUPS = {
    "one source": (*_of_one_source(),),
    "further groups": (*_further_groups(),),
    "times": (*times(),),
    "several groupings": (*several_groupings(),),
    "best and middle": (*best_and_middle(),),
    "further aggregates": (*further_aggregates(),),
    "selections": (*_selections(),),
    "signs of zero": (*_signs_of_zero(),),
    "joins": (*_joins(),),
    "groups": (*_groups(),),
    "functions": (*functions(),),
    "set operators": (*_sets(),),
    "outer joins": (*_outer(),),
    "recursions": (*_recursions(),),
    "windows": (*_windows(),),
    "places": (*places(),),
    "sessions": (*sessions(),),
    "sliding": (*sliding(),),
    "subqueries": (*subqueries(),),
}
"""Templates that overlap, by what they have in common."""

TEMPLATES = tuple(template for group in GROUPS.values() for template in group)
"""All of them."""
