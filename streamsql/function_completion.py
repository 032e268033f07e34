"""Completion of CREATE FUNCTION and CREATE AGGREGATE: their clauses, and parameters in a body."""

from collections.abc import Sequence

from streamsql.source_completion import TYPES

_MERGES = "SUM,MIN,MAX,BOOL_AND,BOOL_OR"


def function_words(words: Sequence[str], kind: str) -> str | None:
    """Return what CREATE FUNCTION or AGGREGATE goes on with behind its parameters.

    Args:
        words: Behind the parenthesis of the parameters, in upper case.
        kind: FUNCTION or AGGREGATE.
    """
    if list(words[-2:]) == ["MERGED", "BY"]:
        return _MERGES
    if words[-1] == "MERGED":
        return "BY"
    if words[-1] == "RETURNS":
        return TYPES
    if "RETURNS" not in words:
        return "RETURNS"
    if "AS" in words:
        return "(" if words[-1] == "AS" else ""
    return "CALLED ON NULL INPUT,AS" if kind == "FUNCTION" else "MERGED BY,CALLED ON NULL INPUT,AS"


def function_body(before: Sequence[str]) -> tuple[str, list[str]] | None:
    """Return the kind and the parameters of the function whose body words end in, or None."""
    words = [word.upper() for word in before]
    if words[:1] != ["CREATE"] or words[1:2] not in (["FUNCTION"], ["AGGREGATE"]):
        return None
    if "AS" not in words or words[words.index("AS") + 1 :][:1] != ["("]:
        return None
    body = words[words.index("AS") :]
    if body.count("(") == body.count(")"):
        return None
    listed = before[4 : words.index("RETURNS")] if "RETURNS" in words else []
    starts = [0, *(n + 1 for n, word in enumerate(listed) if word == ",")]
    return words[1], [listed[n] for n in starts if n < len(listed) and listed[n] != ")"]
