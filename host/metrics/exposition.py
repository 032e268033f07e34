"""Samples as Prometheus' text exposition format, version 0.0.4."""

import math
from collections.abc import Iterable

from host.metrics.families import Family, Sample

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def exposition(samples: Iterable[Sample]) -> str:
    """Return the text of samples, each family once, in the order in which families first come.

    Examples:
        >>> from host.metrics.families import gauge
        >>> print(exposition([gauge("pando_queries", "Running queries.").at(2, status="running")]))
        # HELP pando_queries Running queries.
        # TYPE pando_queries gauge
        pando_queries{status="running"} 2
        <BLANKLINE>
    """
    families: dict[Family, list[Sample]] = {}
    for sample in samples:
        families.setdefault(sample.family, []).append(sample)
    lines = [line for family, values in families.items() for line in _lines(family, values)]
    return "".join(f"{line}\n" for line in lines)


def _lines(family: Family, samples: list[Sample]) -> Iterable[str]:
    yield f"# HELP {family.name} {_escaped(family.help)}"
    yield f"# TYPE {family.name} {family.kind}"
    for sample in samples:
        labels = ",".join(
            f'{name}="{_escaped(text).replace(chr(34), chr(92) + chr(34))}"'
            for name, text in sample.labels
        )
        yield f"{family.name}{f'{{{labels}}}' if labels else ''} {_number(sample.value)}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _number(value: float) -> str:
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if math.isnan(value):
        return "NaN"
    return str(int(value)) if value == int(value) and abs(value) < 2**53 else repr(float(value))
