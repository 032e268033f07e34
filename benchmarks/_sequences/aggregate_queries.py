"""Templates of aggregates beyond COUNT and SUM, of groups by times, and of several groupings."""

from collections.abc import Iterator

from benchmarks._sequences.templates import Template, same

MODULES = ("benchmarks._sequences.sample_aggregates", "deploy.samples.readings")
"""Modules of the aggregates of users."""

DEFINITIONS = f"""
CREATE AGGREGATE counted(v INTEGER) RETURNS INTEGER AS '{MODULES[0]}:Counted';
CREATE AGGREGATE peak(v DOUBLE) RETURNS DOUBLE MERGED BY MAX AS '{MODULES[1]}:Peak';
CREATE AGGREGATE harmonic_mean(v DOUBLE) RETURNS DOUBLE AS '{MODULES[1]}:HarmonicMean';
CREATE AGGREGATE spread(v INTEGER) RETURNS INTEGER AS (MAX(v) - MIN(v));
CREATE AGGREGATE weighted(v INTEGER, w INTEGER) RETURNS DOUBLE AS
    (SUM(v * w) * 1.0 / NULLIF(SUM(w), 0));
"""
"""Aggregates of users: with a value for no rows, of parts, of neither kind, and of expressions."""

_SECOND = 1_000_000
_SPREAD = "MAX(celsius) - MIN(celsius)"
_WEIGHTED = "SUM(celsius * level) * 1.0 / NULLIF(SUM(level) FILTER (WHERE celsius IS NOT NULL), 0)"


def _start(seconds: int) -> str:
    """Return the begin of the window of a time, for DuckDB, whose rest of a negative is one."""
    size = seconds * _SECOND
    return f"ts - (ts % {size} + {size}) % {size}"


def times() -> Iterator[Template]:
    """Yield groups by windows, and by units of times."""
    for unit, seconds in (("second", 1), ("minute", 60)):
        at = f"DATE_TRUNC('{unit}', ts)"
        for shown, keys in ((f"{at} AS at, room", f"{at}, room"), (f"{at} AS at", at)):
            text = f"SELECT {shown}, COUNT(*) AS n, SUM(minutes) AS m FROM visits GROUP BY {keys}"
            for some in ("", " HAVING COUNT(*) > 1", " HAVING SUM(minutes) > 2"):
                yield Template(text + some, text.replace(at, f"({_start(seconds)})") + some)
    text = "SELECT {} AS at, who, MAX(minutes) AS most FROM visits WHERE minutes > 1 GROUP BY {}"
    at = "DATE_TRUNC('minute', ts)"
    yield Template(text.format(at, f"{at}, who"), text.format(_start(60), "ALL"))
    for seconds in (5, 10):
        windows = (
            (f"TUMBLE(visits, ts, INTERVAL '{seconds} s')", f"{_start(seconds)}", "visits"),
            (
                f"HOP(visits, ts, INTERVAL '5 s', INTERVAL '{2 * seconds} s')",
                f"{_start(5)} - hop * {5 * _SECOND}",
                f"visits, range({2 * seconds // 5}) hops(hop)",
            ),
        )
        for window, start, plain in windows:
            for column in ("", ", who"):
                value = "COUNT(*) AS n, MIN(minutes) AS low"
                yield Template(
                    f"SELECT window_start{column}, {value} FROM {window} "
                    f"GROUP BY window_start{column}",
                    f"SELECT {start} AS window_start{column}, {value} FROM {plain} GROUP BY ALL",
                )


def several_groupings() -> Iterator[Template]:
    """Yield ROLLUP and CUBE, and groups that have their rows."""
    value = "COUNT(*) AS n, MIN(share) AS low"
    yield from same(
        f"SELECT room, taken, {value} FROM seats GROUP BY room, taken",
        f"SELECT room, taken, {value} FROM seats GROUP BY ROLLUP (room, taken)",
        f"SELECT room, taken, {value} FROM seats GROUP BY CUBE (room, taken)",
        f"SELECT room, taken, {value} FROM seats WHERE taken > 0 GROUP BY CUBE (room, taken)",
        f"SELECT room, {value} FROM seats GROUP BY ROLLUP (room)",
        f"SELECT taken, {value} FROM seats GROUP BY taken",
        "SELECT r.room, r.level, COUNT(*) AS n FROM readings r, seats s WHERE r.room = s.room "
        "GROUP BY ROLLUP (r.room, r.level)",
        "SELECT r.room, COUNT(*) AS n FROM readings r, seats s WHERE r.room = s.room "
        "GROUP BY CUBE (r.room)",
    )


def _best(function: str, value: str, by: str) -> str:
    """Return ARG_MIN or ARG_MAX as documented: of rows with equal ones the least value."""
    order = "" if function == "ARG_MIN" else " DESC"
    pairs = f"list({{'y': {by}, 'x': {value}}} ORDER BY {by}{order}, {value} NULLS FIRST)"
    return f"({pairs} FILTER ({by} IS NOT NULL))[1].x"


def best_and_middle() -> Iterator[Template]:
    """Yield ARG_MIN, ARG_MAX and MEDIAN, of all groups and of some."""
    for keys in ("room, level, celsius", "room, level", "room"):
        some = ("", f" HAVING COUNT(*) > {len(keys.split()) % 3}", " HAVING MAX(level) > 1")
        for having in some:
            text = f"SELECT {keys}, {{}} AS v FROM readings GROUP BY {keys}{having}"
            yield from same(text.format("MEDIAN(celsius)"))
            for function in ("ARG_MIN", "ARG_MAX"):
                plain = text.format(_best(function, "level", "celsius"))
                yield Template(text.format(f"{function}(level, celsius)"), plain)
    yield from same("SELECT MEDIAN(celsius) AS m, COUNT(*) AS n FROM readings")


def further_aggregates() -> Iterator[Template]:
    """Yield FILTER, and aggregates of users."""
    for keys in ("room, level", "room", ""):
        shown, groups = (f"{keys}, ", f" GROUP BY {keys}") if keys else ("", "")
        text = f"SELECT {shown}{{}} FROM readings{groups}"
        some = "FILTER (WHERE celsius > {})"
        for least in (1, 2):
            values = f"COUNT(*) {some} AS n, MAX(level) {some} AS high"
            for having in ("", " HAVING COUNT(*) > 1"):
                yield from same(text.format(values.format(least, least)) + having)
        yield from same(text.format("COUNT(*) AS n, MAX(level) AS high"))
        for condition in ("", " WHERE level > 1", " WHERE room = 'r9'"):
            text = f"SELECT {shown}{{}}(celsius) AS n FROM readings{condition}{groups}"
            yield Template(text.format("counted"), text.format("COUNT"))
    for keys in ("room, level", "room"):
        for having in ("", " HAVING COUNT(*) > 1"):
            text = f"SELECT {keys}, {{}} AS v FROM readings GROUP BY {keys}{having}"
            yield Template(text.format("spread(celsius)"), text.format(_SPREAD))
            yield Template(text.format("weighted(celsius, level)"), text.format(_WEIGHTED))
            yield from same(text.format("MAX(celsius)"), text.format("SUM(level)"))
    for keys in ("room, taken", "room"):
        text = f"SELECT {keys}, {{}} AS p FROM seats GROUP BY {keys}"
        yield Template(text.format("peak(share)"), text.format("MAX(ABS(share))"))
        # Reciprocals of these are exact.
        text = f"SELECT {keys}, {{}} AS h FROM seats WHERE share < 1 AND share <> 0 GROUP BY {keys}"
        mean = "COUNT(share) / NULLIF(SUM(1 / share), 0)"
        yield Template(text.format("harmonic_mean(share)"), text.format(mean))


def functions() -> Iterator[Template]:
    """Yield groups of the same rows by the same keys, each with another function."""
    calls = ("COUNT(*)", "SUM(celsius)", "MIN(celsius)", "MAX(celsius)", "AVG(level)")
    for keys in ("room", "room, level"):
        for call in calls:
            yield from same(
                f"SELECT {keys}, {call} AS v FROM readings GROUP BY {keys}",
                f"SELECT {keys}, {call} AS v FROM readings WHERE room <> 'r1' GROUP BY {keys}",
                f"SELECT {keys}, {call} AS v FROM readings GROUP BY {keys} HAVING {call} > 1",
            )
    for seconds in (5, 10, 20):
        text = "SELECT room, {} AS v FROM visits{} GROUP BY room"
        for call in ("COUNT(*)", "SUM(minutes)", "MIN(minutes)", "MAX(minutes)", "MAX(who)"):
            window = f" [RANGE {seconds} SECONDS]"
            yield Template(text.format(call, window), text.format(call, f"_{seconds}"))
