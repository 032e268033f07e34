"""What is installed on the machines of a site: common packages on many, special ones on few."""

from typing import Final

from building.model.site_model import Software

WORD: Final = Software("Word", "16.0")
OFFICE: Final = Software("Office", "16.0")
LATEX: Final = Software("LaTeX", "2024")
PYTHON: Final = Software("Python", "3.12")
MATLAB: Final = Software("MATLAB", "R2024a")
VIDEO: Final = Software("Video editor", "24.02")
CAD: Final = Software("CAD", "2024")
GIS: Final = Software("GIS", "3.34")
STATISTICS: Final = Software("Statistics", "4.3")

PROFILES: Final[dict[str, tuple[Software, ...]]] = {
    "drop-in": (OFFICE, PYTHON, WORD),
    "teaching": (LATEX, OFFICE, PYTHON, WORD),
    "science": (LATEX, PYTHON, STATISTICS),
    "design": (CAD, OFFICE),
    "office": (OFFICE, WORD),
    "research": (LATEX, PYTHON),
}
"""What every machine of a room with this use has."""

SPECIAL: Final[dict[str, tuple[tuple[int, Software], ...]]] = {
    "drop-in": ((5, LATEX),),
    "teaching": ((6, MATLAB),),
    "science": ((4, MATLAB),),
    "design": ((3, VIDEO), (5, GIS)),
    "office": ((5, LATEX),),
    "research": ((4, STATISTICS),),
}
"""Licences for few seats: every n-th machine of such a room has the package, too."""

PROCESSORS: Final[dict[str, tuple[str, int]]] = {
    "drop-in": ("Intel Core i3-10100", 4),
    "teaching": ("Intel Core i5-12400", 6),
    "science": ("AMD Ryzen 7 5700G", 8),
    "design": ("AMD Ryzen 9 7900", 12),
    "office": ("Intel Core i5-10500T", 6),
    "research": ("AMD Ryzen 5 5600G", 6),
}
"""Processor and number of cores by use."""


def software_of(use: str, number: int) -> tuple[Software, ...]:
    """Return what the machine with this number (from 1) in a room of this use has, by name."""
    special = {package for every, package in SPECIAL[use] if number % every == 0}
    return tuple(sorted({*PROFILES[use], *special}, key=lambda package: package.name))
