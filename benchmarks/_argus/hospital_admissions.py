"""Admissions to hospitals: one stream of the shape of the thesis' Massachusetts records.

Some patients come again, with what followed from their first stay. A patient is known only by sex,
year of birth (sometimes missing) and postal code, as in the anonymous records.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks._argus.arriving_rows import DAY, NOVEMBER_2002, Sizes, Stream
from streamsql.data.types import Value

NAME = "admission"
DEFINITION = """
    CREATE SOURCE admission (recid INTEGER, hospid TEXT, sex TEXT, age INTEGER, payor TEXT,
      adate TIMESTAMP, ddate TIMESTAMP, zip TEXT, x DOUBLE, y DOUBLE, los INTEGER, disp TEXT,
      race TEXT, dxs_01 TEXT, dxs_02 TEXT, ops_01 TEXT, ops_02 TEXT, townid TEXT, byear INTEGER,
      fee INTEGER, KEY (recid), WATERMARK FOR adate AS adate - INTERVAL '1 day');"""

CONTAGIOUS = tuple(f"{number:03}" for number in range(1, 47))
"""Codes of the contagious diseases that queries name."""
LUNG = tuple(f"{number}" for number in range(480, 487))
LIVER = ("070", "570", "571", "572", "573")
LIVER_CANCER = "155"
BYPASSES = ("361", "362", "363", "364", "369")
TRANSPLANT = "556"
COMPLICATIONS = ("99681", "5845", "4010", "0389", "5990")

_DAYS = 365
_HOSPITALS, _TOWNS, _ZIPS = 80, 350, 700
_CONTAGIOUS_SHARE, _LUNG_SHARE, _LIVER_SHARE = 0.04, 0.05, 0.03
_BYPASS_SHARE, _TRANSPLANT_SHARE = 0.03, 0.005
_AGAIN = 0.12
"""The share of admissions that are followed by another one of the same patient."""
_FIRST_YEAR = 1912
_DISPOSITIONS = ("01", "01", "01", "02", "03", "05", "06", "20")


def admissions(sizes: Sizes, seed: int) -> Stream:
    """Return the stream; equal sizes and seeds give equal rows."""
    chance = random.Random(seed)
    places = [
        (round(chance.uniform(0, 190), 2), round(chance.uniform(0, 110), 2)) for _ in range(_ZIPS)
    ]
    found: list[tuple[int, tuple[Value, ...]]] = []
    while len(found) < sizes.all:
        patient = _patient(chance, places)
        day, (dxs, ops) = chance.randrange(_DAYS), _reason(chance)
        found.append((day, _stay(chance, patient, day, (dxs, ops))))
        if chance.random() < _AGAIN and day + 1 < _DAYS:
            later = min(_DAYS - 1, day + chance.randint(1, 90))
            found.append((later, _stay(chance, patient, later, _afterwards(chance, dxs, ops))))
    del found[sizes.all :]
    found.sort(key=lambda each: each[0])
    return sizes.split(DEFINITION, NAME, [(n, *row) for n, (_, row) in enumerate(found)])


@dataclass(frozen=True, slots=True)
class _Patient:
    sex: str
    byear: int
    race: str
    zip: int
    place: tuple[float, float]


def _patient(chance: random.Random, places: Sequence[tuple[float, float]]) -> _Patient:
    number = chance.randrange(len(places))
    year = _FIRST_YEAR + chance.randrange(90)
    return _Patient(chance.choice("FM"), year, chance.choice("12349"), number, places[number])


def _reason(chance: random.Random) -> tuple[str, str | None]:
    """Return the diagnosis, and the operation if there is one."""
    drawn = chance.random()
    for share, codes in (
        (_CONTAGIOUS_SHARE, CONTAGIOUS),
        (_LUNG_SHARE, LUNG),
        (_LIVER_SHARE, LIVER),
    ):
        if drawn < share:
            return chance.choice(codes), None
        drawn -= share
    if drawn < _BYPASS_SHARE:
        return f"{chance.randrange(410, 415)}", chance.choice(BYPASSES)
    if drawn < _BYPASS_SHARE + _TRANSPLANT_SHARE:
        return "585", TRANSPLANT
    return f"{chance.randrange(200, 400)}", chance.choice((None, f"{chance.randrange(400, 550)}"))


def _afterwards(chance: random.Random, dxs: str, ops: str | None) -> tuple[str, str | None]:
    """Return why a patient comes again."""
    if ops == TRANSPLANT:
        return chance.choice(COMPLICATIONS), None
    if dxs in LIVER and chance.random() < 0.3:
        return LIVER_CANCER, None
    return (dxs, ops) if chance.random() < 0.5 else _reason(chance)


def _stay(
    chance: random.Random, patient: _Patient, day: int, reason: tuple[str, str | None]
) -> tuple[Value, ...]:
    dxs, ops = reason
    stays = 1 + int(chance.expovariate(0.25))
    hidden = chance.random() < 0.05
    more = chance.choice((None, None, chance.choice(COMPLICATIONS)))
    return (
        f"h{patient.zip % _HOSPITALS if chance.random() < 0.8 else chance.randrange(_HOSPITALS)}",
        patient.sex,
        2002 - patient.byear,
        chance.choice("ABCDE"),
        NOVEMBER_2002 + day * DAY,
        NOVEMBER_2002 + (day + stays) * DAY,
        f"{patient.zip:05}",
        *patient.place,
        stays,
        chance.choice(_DISPOSITIONS),
        patient.race,
        dxs,
        more,
        ops,
        None,
        f"t{patient.zip % _TOWNS}",
        None if hidden else patient.byear,
        500 * stays + chance.randrange(5_000),
    )
