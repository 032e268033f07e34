"""Places in a script: from character offsets to line, column and offending text."""

import re
from bisect import bisect_right
from dataclasses import dataclass, field

from sqlglot import exp
from sqlglot.tokenizer_core import Token

from streamsql.errors import Span
from streamsql.syntax.tree_nodes import nodes_of

_SHOWN = 80
_CALL = re.compile(r"\b\w+\s*\(\s*$")
# Leading words that sqlglot makes no part of any node.
_OPENINGS: dict[type, re.Pattern[str]] = {
    exp.Query: re.compile(r"\bSELECT\s+(?:DISTINCT\s+)?$", re.IGNORECASE),
    exp.Cast: re.compile(r"\bCAST\s*\(\s*$", re.IGNORECASE),
    exp.Case: re.compile(r"\bCASE\s+(?:WHEN\s+)?$", re.IGNORECASE),
    exp.Exists: re.compile(r"\bEXISTS\s*\(\s*(?:SELECT\s+)?$", re.IGNORECASE),
    exp.If: re.compile(r"\bIF\s*\(\s*$", re.IGNORECASE),
}


@dataclass(frozen=True, slots=True)
class Script:
    """The whole text that was handed in; offsets of tokens and nodes refer to it."""

    text: str
    _starts: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Once: an INSERT of many rows asks for the place of each.
        starts = (0, *(found.end() for found in re.finditer("\n", self.text)))
        object.__setattr__(self, "_starts", starts)

    def span(self, start: int, end: int) -> Span:
        """Return the place of the characters from `start` up to and including `end`."""
        start = max(0, min(start, len(self.text)))
        line = bisect_right(self._starts, start)
        column = start - self._starts[line - 1] + 1
        shown = " ".join(self.text[start : end + 1][: 4 * _SHOWN].split())
        if len(shown) > _SHOWN:
            shown = shown[: _SHOWN - 1] + "…"
        return Span(line, column, shown)

    def span_of(self, node: "exp.Expr | Token") -> Span | None:
        """Return the place of a token or a parsed node; None when it carries none."""
        if isinstance(node, Token):
            return self.span(node.start, node.end)
        found = extent(node)
        if found is None:
            return None
        start, end = found
        opening = _opening(node)
        if opening is not None:
            word = opening.search(self.text[max(0, start - 40) : start])
            start -= len(word.group(0)) if word else 0
        return self.span(start, self._balanced(start, end))

    def _balanced(self, start: int, end: int) -> int:
        """Include the closing parentheses that belong to the part, and no others."""
        part = self.text[start : end + 1]
        depth = part.count("(") - part.count(")")
        while depth > 0:
            closing = self.text.find(")", end + 1)
            if closing < 0 or self.text[end + 1 : closing].strip():
                break
            end, depth = closing, depth - 1
        while depth < 0 and end > start and self.text[end] in ") \n\t":
            depth += self.text[end] == ")"
            end -= 1
        return end

    def end(self) -> Span:
        """Return the place behind the last character that is not blank."""
        return self.span(len(self.text.rstrip()), len(self.text.rstrip()))


def _opening(node: exp.Expr) -> re.Pattern[str] | None:
    for kind, pattern in _OPENINGS.items():
        if isinstance(node, kind):
            return pattern
    # Some functions are built without a place of their own; then it begins at their arguments.
    return _CALL if isinstance(node, exp.Func) and "start" not in node.meta else None


def extent(node: exp.Expr) -> tuple[int, int] | None:
    """Return the first and last offset a node and everything below it came from."""
    starts: list[int] = []
    ends: list[int] = []
    for part in nodes_of(node):
        meta = part.meta
        if "start" in meta and "end" in meta:
            starts.append(meta["start"])
            ends.append(meta["end"])
    return (min(starts), max(ends)) if starts else None
