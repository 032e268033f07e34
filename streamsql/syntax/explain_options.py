"""The options of EXPLAIN."""

from enum import StrEnum


class ExplainType(StrEnum):
    """TYPE of EXPLAIN: plan, fragments it is cut into, plans to choose from, report of errors."""

    LOGICAL = "logical"
    FEDERATED = "federated"
    ALTERNATIVES = "alternatives"
    VALIDATE = "validate"


class ExplainFormat(StrEnum):
    """FORMAT of EXPLAIN. DOT is the language of Graphviz."""

    TEXT = "text"
    JSON = "json"
    DOT = "dot"
