"""What a rewrite rule is."""

from collections.abc import Callable
from dataclasses import dataclass

from streamsql.algebra.operators import Plan


@dataclass(frozen=True, slots=True)
class Rule:
    """A named rewrite of whole plans.

    `apply` must keep the bag of rows the plan denotes and its schema, and must be idempotent:
    `apply(apply(p)) == apply(p)`. The driver checks the schema after every application.
    """

    name: str
    apply: Callable[[Plan], Plan]
