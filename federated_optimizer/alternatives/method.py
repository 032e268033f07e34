"""Names of methods, and refusals of them."""

import enum
from dataclasses import dataclass


class Method(enum.StrEnum):
    """A way of computing one operator.

    SHIP: where its inputs are, and its rows travel to the base. BASE: at the base, over inputs
    that are there. PARTS: every gateway computes a part of it, and the base puts them together.
    SITES: where its inputs are, and nothing travels.
    """

    SHIP = "ship"
    BASE = "base"
    PARTS = "parts"
    SITES = "sites"


@dataclass(frozen=True, slots=True)
class Refused:
    """Why a method does not compute an operator, in words."""

    reason: str
