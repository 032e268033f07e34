"""Positive formulas as annotations."""

from collections.abc import Iterable
from typing import Any

from stream_engine.provenance.annotation import AnnotationEncoding


def annotation_of(encoding: AnnotationEncoding[Any], supports: Iterable[Iterable[int]]) -> Any:
    """Return the annotation of a disjunction of conjunctions of tokens."""
    result = encoding.false
    for support in supports:
        product = encoding.true
        for token in support:
            product = encoding.conjoin(product, encoding.of_token(token))
        result = encoding.disjoin(result, product)
    return result
