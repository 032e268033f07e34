"""Templates of window functions, of sessions, of windows that slide, and of subqueries.

For DuckDB these are written out over rows with their times: `visits_timed` and `readings_timed`
have a column `happened` besides.
"""

from collections.abc import Iterator

from benchmarks._sequences.templates import Template, same

SECOND = 1_000_000
_NOW = "getvariable('now')"
_COLUMNS = {
    "visits": ("who", "room", "minutes", "ts"),
    "readings": ("sensor", "room", "celsius", "level"),
}


def places() -> Iterator[Template]:
    """Yield window functions over readings, joins and groups, each in a few variations."""
    by_time = "ORDER BY minutes DESC NULLS LAST, who, ts"
    for where in ("", " WHERE minutes > 1"):
        yield from same(
            f"SELECT who, room, ROW_NUMBER() OVER (PARTITION BY room {by_time}) AS n "
            f"FROM visits{where}",
            f"SELECT who, RANK() OVER (PARTITION BY room ORDER BY minutes NULLS FIRST) AS n "
            f"FROM visits{where}",
            f"SELECT who, minutes, SUM(minutes) OVER (PARTITION BY room) AS s FROM visits{where}",
            "SELECT who, SUM(minutes) OVER (PARTITION BY room ORDER BY ts) AS s "
            f"FROM visits{where}",
            f"SELECT who, room, minutes FROM visits{where} "
            f"QUALIFY ROW_NUMBER() OVER (PARTITION BY room {by_time}) = 1",
            f"SELECT who, room, minutes FROM visits{where} "
            f"QUALIFY ROW_NUMBER() OVER (PARTITION BY room {by_time}) <= 2",
        )
    for least in (0, 1):
        yield from same(
            "SELECT sensor, celsius - LAG(celsius) OVER (PARTITION BY room ORDER BY sensor) AS d "
            f"FROM readings WHERE celsius > {least}",
            "SELECT sensor, MAX(celsius) OVER (PARTITION BY level) AS high "
            f"FROM readings WHERE celsius > {least}",
            f"SELECT sensor, COUNT(*) OVER () AS n FROM readings WHERE celsius > {least}",
        )
    on = "FROM readings r, seats s WHERE r.room = s.room"
    yield from same(
        "SELECT r.sensor, s.mid, RANK() OVER (PARTITION BY s.room "
        f"ORDER BY r.celsius NULLS FIRST) AS k {on}",
        f"SELECT r.sensor, s.mid, COUNT(*) OVER (PARTITION BY s.room) AS k {on} AND r.celsius > 1",
        "SELECT room, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*)) AS k "
        "FROM visits GROUP BY room",
        "SELECT room, COUNT(*) AS n FROM visits GROUP BY room "
        "QUALIFY RANK() OVER (ORDER BY COUNT(*) DESC) = 1",
    )


def sessions() -> Iterator[Template]:
    """Yield groups by sessions, of each room and of all."""
    for seconds in (2, 4):
        gap = seconds * SECOND
        for where in ("", " WHERE minutes > 0"):
            for key in ("room", "who", ""):
                part = f"PARTITION BY {key} " if key else ""
                begins = f"ts - LAG(ts) OVER ({part}ORDER BY ts) < {gap}"
                plain = (
                    "(SELECT *, MIN(ts) OVER s AS window_start, MAX(ts) OVER s + "
                    f"{gap} AS window_end FROM (SELECT *, SUM(CASE WHEN near THEN 0 ELSE 1 END) "
                    f"OVER ({part}ORDER BY ts ROWS UNBOUNDED PRECEDING) AS session FROM "
                    f"(SELECT *, {begins} AS near FROM visits{where})) "
                    f"WINDOW s AS (PARTITION BY {key + ', ' if key else ''}session))"
                )
                over = f"(SELECT who, room, minutes, ts FROM visits{where})" if where else "visits"
                keys = f", {key}" if key else ""
                window = f"SESSION({over}, ts, INTERVAL '{seconds} s'{keys})"
                for text in (
                    f"SELECT {key + ', ' if key else ''}window_start, window_end, COUNT(*) AS n "
                    f"FROM {{}} v GROUP BY {key + ', ' if key else ''}window_start, window_end",
                    "SELECT who, window_start, window_end FROM {} v WHERE minutes > 1",
                ):
                    yield Template(text.format(window), text.format(plain))


def _sliding(source: str, seconds: int, slide: int) -> str:
    """Return the rows of a window that slides, for DuckDB."""
    bound = f"({_NOW} - {_NOW} % {slide * SECOND})"
    return _chosen(source, f"happened > {bound} - {seconds * SECOND} AND happened <= {bound}")


def _chosen(source: str, condition: str) -> str:
    return f"(SELECT {', '.join(_COLUMNS[source])} FROM {source}_timed WHERE {condition})"


def _of_this_second(source: str) -> str:
    return _chosen(source, f"happened // {SECOND} = {_NOW} // {SECOND}")


def sliding() -> Iterator[Template]:
    """Yield queries over windows that slide, and over those of this second."""
    # Rows of a longer window that show their times are those of a sliding one, too.
    for seconds in (10, 20):
        text = "SELECT who, room, minutes, ts FROM {} w"
        window = f"visits [RANGE {seconds} SECONDS]"
        yield Template(text.format(window), text.format(f"visits_{seconds}"))
    windows = [
        *(
            (source, f"RANGE {seconds} SECONDS SLIDE 5 SECONDS", _sliding(source, seconds, 5))
            for source in _COLUMNS
            for seconds in (10, 15)
        ),
        *((source, "NOW", _of_this_second(source)) for source in _COLUMNS),
    ]
    for source, window, plain in windows:
        name, value = ("who", "minutes") if source == "visits" else ("sensor", "celsius")
        for text in (
            f"SELECT {name}, room, {value} FROM {{}} w",
            f"SELECT {name}, room FROM {{}} w WHERE {value} > 1",
            f"SELECT room, COUNT(*) AS n, MAX({value}) AS high FROM {{}} w GROUP BY room",
            f"SELECT w.{name}, s.mid FROM {{}} w, seats s WHERE s.room = w.room",
        ):
            yield Template(text.format(f"{source} [{window}]"), text.format(plain))


def subqueries() -> Iterator[Template]:
    """Yield comparisons with values of subqueries, and texts of groups."""
    for least in (0, 1):
        yield from same(
            "SELECT sensor FROM readings r WHERE celsius > "
            f"(SELECT COUNT(*) FROM seats s WHERE s.room = r.room AND s.taken > {least})",
            f"SELECT sensor FROM readings WHERE celsius >= (SELECT MAX(level) - {least} "
            "FROM readings)",
            "SELECT who FROM visits v WHERE minutes > ALL "
            f"(SELECT taken FROM seats s WHERE s.room = v.room AND taken > {least})",
            f"SELECT sensor FROM readings WHERE room NOT IN (SELECT room FROM seats "
            f"WHERE taken > {least} AND room IS NOT NULL)",
            "SELECT sensor, (SELECT MAX(minutes) FROM visits v WHERE v.room = r.room) AS most "
            f"FROM readings r WHERE celsius > {least}",
        )
        text = "SELECT room, {} AS names FROM visits WHERE minutes > {} GROUP BY room"
        yield Template(
            text.format("STRING_AGG(who, ',')", least),
            text.format("STRING_AGG(who, ',' ORDER BY who)", least),
        )
