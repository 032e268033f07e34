"""The options of EXPLAIN."""

from enum import StrEnum


class ExplainType(StrEnum):
    """TYPE of EXPLAIN: the plan, the fragments it is cut into, or a report of errors."""

    LOGICAL = "logical"
    FEDERATED = "federated"
    VALIDATE = "validate"


class ExplainFormat(StrEnum):
    """FORMAT of EXPLAIN. DOT is the language of Graphviz."""

    TEXT = "text"
    JSON = "json"
    DOT = "dot"
