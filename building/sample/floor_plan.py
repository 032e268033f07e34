"""The rooms and doors of the sample building, as drawn: three levels of 60 m by 32 m.

On every level four corridors run round a core with stairs, a lift and two blocks; rooms lie
along the outer walls. Room letters: L lab, O office, M meeting, T lecture room, K kitchen,
S store or plant, E entrance, C corridor, W toilets; the digit after it is the level.
"""

from dataclasses import dataclass
from typing import Final

from shapely import Polygon, box

from building.model.site_model import SpaceKind

Box = tuple[float, float, float, float]

NAMES: Final = ("Ground floor", "First floor", "Second floor")


@dataclass(frozen=True, slots=True)
class Room:
    """One drawn room.

    Attributes:
        doors_to: Ids of the neighbours it has a door to.
        desks: Number of desks.
        use: What the machines there are used for; a key of `furnishing.PROFILES`.
        open_lab: Whether anybody may sit down there.
    """

    id: str
    name: str
    kind: SpaceKind
    floor: Polygon
    doors_to: tuple[str, ...]
    desks: int = 0
    use: str = ""
    open_lab: bool = False


def rooms_of_level(level: int) -> list[Room]:
    """Return the rooms of level 0, 1 or 2, corridors first."""
    return [*_circulation(level), *_core(level), *(_GROUND, _FIRST, _SECOND)[level]]


OPEN_USES: Final = frozenset({"drop-in", "teaching", "design"})
"""Labs of these uses are open to everybody."""

OUTSIDE_DOORS: Final = (("E000", 30.0, 0.0), ("E001", 60.0, 16.0))
"""Entrance space and the place of its outside door in metres, both on level 0."""


def _circulation(level: int) -> list[Room]:
    def corridor(side: str, name: str, area: Box, *to: str) -> Room:
        kind = SpaceKind.CORRIDOR
        return Room(f"C{level}{side}", f"{name} corridor", kind, box(*area), to)

    south, north = f"C{level}S", f"C{level}N"
    return [
        corridor("S", "South", (8, 8, 52, 10.4)),
        corridor("N", "North", (8, 21.6, 52, 24)),
        corridor("W", "West", (8, 10.4, 10.4, 21.6), south, north),
        corridor("E", "East", (49.6, 10.4, 52, 21.6), south, north),
    ]


def _core(level: int) -> list[Room]:
    south, north, west = f"C{level}S", f"C{level}N", f"C{level}W"
    lounge = f"K{level}40"

    def room(rid: str, name: str, kind: SpaceKind, area: Box, *to: str) -> Room:
        return Room(rid, name, kind, box(*area), to)

    return [
        room(f"ST{level}1", "Main stairs", SpaceKind.STAIRS, (23.6, 10.4, 27.6, 16), south),
        room(f"LF{level}1", "Lift", SpaceKind.LIFT, (27.6, 10.4, 30.4, 13.4), south),
        room(f"S{level}41", "Copy room", SpaceKind.SERVICE, (27.6, 13.4, 30.4, 16), lounge),
        room(f"W{level}42", "Toilets", SpaceKind.TOILETS, (30.4, 10.4, 36.4, 16), south),
        room(lounge, "Tea kitchen", SpaceKind.SERVICE, (23.6, 16, 36.4, 21.6), north),
        room(f"ST{level}2", "West stairs", SpaceKind.STAIRS, (0, 14.2, 8, 17.8), west),
    ]


def _lab(rid: str, name: str, area: Box, to: tuple[str, ...], desks: tuple[int, str]) -> Room:
    """Return a lab; `desks` is their number and use."""
    is_open = desks[1] in OPEN_USES
    return Room(rid, name, SpaceKind.LAB, box(*area), to, *desks, is_open)


def _office(rid: str, area: Box, to: str, desks: int = 0, name: str = "Office") -> Room:
    return Room(rid, f"{name} {rid}", SpaceKind.OFFICE, box(*area), (to,), desks, "office")


def _plain(rid: str, name: str, kind: SpaceKind, area: Box, *to: str) -> Room:
    return Room(rid, name, kind, box(*area), to)


_GROUND: Final = (
    _plain("E000", "Main entrance", SpaceKind.ENTRANCE, (26, 0, 34, 8), "C0S"),
    _plain("E001", "East entrance", SpaceKind.ENTRANCE, (52, 14.2, 60, 17.8), "C0E"),
    _office("O001", (0, 0, 12, 8), "C0S", 1, "Administration"),
    _office("O002", (12, 0, 19, 8), "C0S", 1),
    _plain("M003", "Meeting room 003", SpaceKind.MEETING, (19, 0, 26, 8), "C0S"),
    _office("O004", (34, 0, 41, 8), "C0S", 1, "Reception"),
    _plain("S005", "Post and store", SpaceKind.SERVICE, (41, 0, 48, 8), "C0S"),
    _plain("S006", "Server room", SpaceKind.SERVICE, (48, 0, 60, 8), "C0S"),
    _office("O011", (0, 24, 12, 32), "C0N", 1),
    _lab("L012", "Drop-in lab", (12, 24, 25, 32), ("C0N",), (8, "drop-in")),
    _plain("T013", "Lecture room 013", SpaceKind.LECTURE, (25, 24, 39, 32), "C0N"),
    _lab("L014", "Design lab", (39, 24, 50, 32), ("C0N",), (5, "design")),
    _office("O015", (50, 24, 60, 32), "C0N", 1),
    _office("O021", (0, 8, 8, 14.2), "C0W", 1),
    _office("O022", (0, 17.8, 8, 24), "C0W", 1),
    _plain("M023", "Meeting room 023", SpaceKind.MEETING, (52, 8, 60, 14.2), "C0E"),
    _office("O024", (52, 17.8, 60, 24), "C0E", 1),
    _plain("T031", "Lecture room 031", SpaceKind.LECTURE, (10.4, 10.4, 23.6, 21.6), "C0W", "C0S"),
    _lab("L032", "Open lab 032", (36.4, 10.4, 49.6, 21.6), ("C0S", "C0N"), (7, "drop-in")),
)

_FIRST: Final = (
    _office("O101", (0, 0, 12, 8), "C1S", 1),
    _lab("L102", "Language lab", (12, 0, 26, 8), ("C1S",), (5, "drop-in")),
    _plain("M103", "Meeting room 103", SpaceKind.MEETING, (26, 0, 34, 8), "C1S"),
    _plain("T104", "Seminar room 104", SpaceKind.LECTURE, (34, 0, 48, 8), "C1S"),
    _office("O105", (48, 0, 60, 8), "C1S", 1),
    _office("O111", (0, 24, 12, 32), "C1N", 1),
    _plain("M112", "Meeting room 112", SpaceKind.MEETING, (12, 24, 22, 32), "C1N"),
    _lab("L113", "Teaching lab 113", (22, 24, 38, 32), ("C1N",), (8, "teaching")),
    _plain("T114", "Seminar room 114", SpaceKind.LECTURE, (38, 24, 50, 32), "C1N"),
    _office("O115", (50, 24, 60, 32), "C1N", 1),
    _office("O121", (0, 8, 8, 14.2), "C1W", 1),
    _office("O122", (0, 17.8, 8, 24), "C1W", 1),
    _office("O123", (52, 8, 60, 16), "C1E", 1),
    _office("O124", (52, 16, 60, 24), "C1E", 1),
    _lab(
        "L101", "Teaching lab 101", (10.4, 10.4, 23.6, 21.6), ("C1W", "C1N"), (8, "teaching"),
    ),
    _plain("T132", "Lecture room 132", SpaceKind.LECTURE, (36.4, 10.4, 49.6, 21.6), "C1S", "C1N"),
)  # fmt: skip

_ROBOTICS_FLOOR: Final = Polygon(
    [(36.4, 10.4), (43.4, 10.4), (43.4, 15.4), (49.6, 15.4), (49.6, 21.6), (36.4, 21.6)]
)

_SECOND: Final = (
    _office("O201", (0, 0, 12, 8), "C2S", 1),
    _lab("L202", "Systems lab", (12, 0, 26, 8), ("C2S",), (4, "research")),
    _plain("M203", "Meeting room 203", SpaceKind.MEETING, (26, 0, 34, 8), "C2S"),
    _office("O204", (34, 0, 50, 8), "C2S", 2, "Shared office"),
    _office("O206", (50, 0, 60, 8), "C2S", 1),
    _office("O211", (0, 24, 12, 32), "C2N", 1),
    _lab("L212", "Physics lab", (12, 24, 28, 32), ("C2N",), (4, "science")),
    _plain("T213", "Seminar room 213", SpaceKind.LECTURE, (28, 24, 40, 32), "C2N"),
    _office("O214", (40, 24, 50, 32), "C2N", 1),
    _office("O215", (50, 24, 60, 32), "C2N", 1),
    _office("O221", (0, 8, 8, 14.2), "C2W", 1),
    _office("O222", (0, 17.8, 8, 24), "C2W", 1),
    _plain("M223", "Common room", SpaceKind.MEETING, (52, 8, 60, 24), "C2E"),
    _plain("M231", "Library", SpaceKind.MEETING, (10.4, 10.4, 23.6, 21.6), "C2W", "C2N"),
    Room(
        "L232", "Robotics lab", SpaceKind.LAB, _ROBOTICS_FLOOR, ("C2S", "C2N"), 5, "science", True
    ),
    _plain("S233", "Robot store", SpaceKind.SERVICE, (43.4, 10.4, 49.6, 15.4), "C2S"),
)
