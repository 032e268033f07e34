"""Metrics of plans: terms of what they cost, with weights."""

from dataclasses import dataclass
from enum import StrEnum
from math import isfinite

MOST = 1e9
"""Of a weight."""
LONGEST = 200
"""Characters of a metric."""


class Term(StrEnum):
    """Terms of the cost of a plan.

    BYTES, MESSAGES: a second between sites. LATENCY: milliseconds until a change shows. ENERGY:
    microjoules a second of what travels, hop by hop. CPU: milliseconds of processor a second at
    gateways and base sites. STATE: bytes of memory that they keep. ENGINE: milliseconds a second of
    Spark, or of the local executor of stored tables.
    """

    BYTES = "bytes"
    MESSAGES = "messages"
    LATENCY = "latency"
    ENERGY = "energy"
    CPU = "cpu"
    STATE = "state"
    ENGINE = "engine"


@dataclass(frozen=True, slots=True)
class Metric:
    """Weights of what plans cost; the cheapest plan has the smallest weighted sum.

    Attributes:
        weights: At least one; each term once, each weight above 0.
    """

    weights: tuple[tuple[Term, float], ...]

    @property
    def only(self) -> Term | None:
        """The term, if there is one only."""
        return self.weights[0][0] if len(self.weights) == 1 else None

    def __str__(self) -> str:
        """Return it as it is written.

        Examples:
            >>> str(Metric(((Term.BYTES, 1.0), (Term.MESSAGES, 0.5))))
            'bytes 1, messages 0.5'
            >>> str(Metric(((Term.LATENCY, 3.0),)))
            'latency'
        """
        if self.only is not None:
            return self.only.value
        return ", ".join(f"{term} {weight:g}" for term, weight in self.weights)


BY_BYTES = Metric(((Term.BYTES, 1.0),))
"""The metric of queries and systems that say nothing."""

METRIC_HINT = (
    f"write one of {', '.join(Term)}, or several with weights: 'bytes 1, messages 50, latency 2'"
)


def metric_of(text: str) -> Metric:
    """Return the metric that a text says.

    Raises:
        ValueError: It says none; in words.

    Examples:
        >>> metric_of("Bytes 1, latency 2.5").weights
        ((<Term.BYTES: 'bytes'>, 1.0), (<Term.LATENCY: 'latency'>, 2.5))
    """
    if len(text) > LONGEST:
        raise ValueError(f"a metric has at most {LONGEST} characters, not {len(text):,}")
    weights: dict[Term, float] = {}
    for part in text.split(","):
        name, *rest = part.lower().split() or [""]
        if name not in set(Term):
            raise ValueError(
                f"{name!r:.40} is no term of a metric" if name else "a term is missing"
            )
        term = Term(name)
        if term in weights:
            raise ValueError(f"{name} is there twice")
        weights[term] = _weight(name, rest)
    return Metric(tuple(weights.items()))


def _weight(name: str, rest: list[str]) -> float:
    if not rest:
        return 1.0
    try:
        (number,) = map(float, rest)
    except ValueError:
        raise ValueError(f"{' '.join(rest)!r:.40} is no weight of {name}") from None
    if not isfinite(number) or not 0 < number <= MOST:
        raise ValueError(f"the weight of {name} is above 0 and at most {MOST:,.0f}")
    return number
