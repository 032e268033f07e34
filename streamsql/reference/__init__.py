"""The reference evaluator: what every statement means, evaluated from scratch.

It is the specification and the oracle of all engine tests; it also answers `--engine reference`.
"""

from streamsql.reference.evaluate import evaluate
from streamsql.reference.reference_database import Database

__all__ = ["Database", "evaluate"]
