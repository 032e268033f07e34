"""StreamSQL text to statements: a sqlglot dialect for queries, our own grammar for the rest."""

from streamsql.syntax.parse import parse_script, parse_statement
from streamsql.syntax.statements import (
    AdvanceTime,
    CreateFunction,
    CreateSource,
    CreateView,
    Delete,
    Describe,
    Drop,
    Explain,
    ExplainConfidence,
    ExplainWhatIf,
    ExplainWhy,
    Insert,
    Query,
    Show,
    Statement,
    Subscribe,
)

__all__ = [
    "AdvanceTime",
    "CreateFunction",
    "CreateSource",
    "CreateView",
    "Delete",
    "Describe",
    "Drop",
    "Explain",
    "ExplainConfidence",
    "ExplainWhatIf",
    "ExplainWhy",
    "Insert",
    "Query",
    "Show",
    "Statement",
    "Subscribe",
    "parse_script",
    "parse_statement",
]
