"""Queries over admissions: eight families, three of them over contagious diseases.

Patients are compared by sex, postal code and year of birth, which may be missing. A longer window
asks for more, and comes first.
"""

from collections.abc import Iterator, Sequence
from itertools import product

from benchmarks._argus.asked import Asked, in_turns, select
from benchmarks._argus.hospital_admissions import (
    BYPASSES,
    COMPLICATIONS,
    CONTAGIOUS,
    LIVER,
    LIVER_CANCER,
    NAME,
    TRANSPLANT,
)

WINDOWS = (60, 40, 20)
"""Days between two cases of a contagious disease."""
MILES = 50
REPEATED = 36
"""Queries of the aggregates that are registered once more."""

_PAIR = (f"{NAME} a", f"{NAME} b")
_FAR = "distance(a.x, a.y, b.x, b.y)"
_SAME_PATIENT = (
    "a.sex = b.sex",
    "a.zip = b.zip",
    "(a.byear = b.byear OR a.byear IS NULL OR b.byear IS NULL)",
    "a.recid <> b.recid",
)


def contagious() -> list[Asked]:
    """Return 414 queries: three families, 46 diseases, three windows."""
    families = (("new cases", _unlinked), ("far cases", _far), ("near cases", _near))
    return list(
        in_turns(
            [Asked(name, write(code, days)) for code, days in product(CONTAGIOUS, WINDOWS)]
            for name, write in families
        )
    )


def _cases(code: str) -> tuple[str, ...]:
    return (
        f"a.dxs_01 = '{code}'",
        f"b.dxs_01 = '{code}'",
        "a.dxs_01 = b.dxs_01",
        "a.adate < b.adate",
    )


def _within(days: int, later: str = "b.adate", earlier: str = "a.adate") -> str:
    return f"{later} <= {earlier} + INTERVAL '{days} days'"


def _unlinked(code: str, days: int) -> str:
    """Return later cases of a town without an earlier one in the window."""
    values = ("b.recid AS recid", "b.hospid AS hospid")
    pairs = (*_cases(code), "a.townid = b.townid")
    return f"{select(values, _PAIR, pairs)} EXCEPT {select(values, _PAIR, (*pairs, _within(days)))}"


def _grouped(code: str, days: int, having: str) -> str:
    values = ("b.recid AS recid", "COUNT(*) AS earlier", f"MIN({_FAR}) AS miles")
    conditions = (*_cases(code), _within(days))
    return select(values, _PAIR, conditions, f" GROUP BY b.recid HAVING {having}")


def _far(code: str, days: int) -> str:
    """Return cases whose nearest earlier one in the window is far away."""
    return _grouped(code, days, f"MIN({_FAR}) > {MILES}")


def _near(code: str, days: int) -> str:
    """Return cases with an earlier one in the window nearby."""
    return _grouped(code, days, f"MIN({_FAR}) < {MILES}")


def aggregates() -> list[Asked]:
    """Return 450 queries: those over contagious diseases, and the first 36 once more."""
    first = contagious()
    return [*first, *first[:REPEATED]]


# --- other families ------------------------------------------------------------------------------


def selections_and_joins() -> list[Asked]:
    """Return 565 queries: those over contagious diseases, and 151 of five more families."""
    others = (_lungs(), _bypasses(), _transplants(), _livers(), _transfers())
    by_category: dict[str, list[Asked]] = {}
    for asked in (*contagious(), *(each for family in others for each in family)):
        by_category.setdefault(asked.category, []).append(asked)
    return list(in_turns(by_category.values()))


def _again(conditions: Sequence[str], days: int) -> str:
    values = ("a.recid AS earlier", "b.recid AS later", "b.hospid AS hospid")
    later = ("a.adate < b.adate", _within(days))
    return select(values, _PAIR, (*_SAME_PATIENT, *conditions, *later))


def _lungs() -> Iterator[Asked]:
    """Yield 36: children with a disease of the lung twice."""
    ranges = (("480", "486"), ("480", "484"), ("482", "486"))
    for age, (least, most), days in product((18, 10, 5), ranges, (90, 60, 40, 20)):
        conditions = [f"{one}.age < {age}" for one in "ab"]
        conditions += [f"{one}.dxs_01 BETWEEN '{least}' AND '{most}'" for one in "ab"]
        yield Asked("lungs", _again(conditions, days))


def _bypasses() -> Iterator[Asked]:
    """Yield 30: the same operation twice."""
    for code, days in product(BYPASSES, (365, 270, 180, 120, 60, 30)):
        conditions = [f"({one}.ops_01 = '{code}' OR {one}.ops_02 = '{code}')" for one in "ab"]
        yield Asked("bypasses", _again(conditions, days))


def _transplants() -> Iterator[Asked]:
    """Yield 25: a complication after a transplant."""
    for code, days in product(COMPLICATIONS, (90, 60, 40, 20, 10)):
        conditions = (
            f"(a.ops_01 = '{TRANSPLANT}' OR a.ops_02 = '{TRANSPLANT}')",
            f"(b.dxs_01 = '{code}' OR b.dxs_02 = '{code}')",
        )
        yield Asked("transplants", _again(conditions, days))


def _livers() -> Iterator[Asked]:
    """Yield 30: cancer of the liver after another disease of it."""
    for code, days in product(LIVER, (365, 180, 120, 90, 60, 30)):
        conditions = (f"a.dxs_01 = '{code}'", f"b.dxs_01 = '{LIVER_CANCER}'")
        yield Asked("livers", _again(conditions, days))


def _transfers() -> Iterator[Asked]:
    """Yield 30: discharged to another hospital, and admitted there within days."""
    values = ("a.recid AS earlier", "b.recid AS later", "a.hospid AS first", "b.hospid AS second")
    for disposition, days in product(("02", "03", "05"), (14, 10, 9, 8, 7, 5, 4, 3, 2, 1)):
        conditions = (
            *_SAME_PATIENT,
            f"a.disp = '{disposition}'",
            "a.hospid <> b.hospid",
            "a.ddate <= b.adate",
            _within(days, earlier="a.ddate"),
        )
        yield Asked("transfers", select(values, _PAIR, conditions))
