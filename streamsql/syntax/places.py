"""Places in a script: from character offsets to line, column and offending text."""

from dataclasses import dataclass

from sqlglot import exp
from sqlglot.tokenizer_core import Token

from streamsql.errors import Span

_SHOWN = 80


@dataclass(frozen=True, slots=True)
class Script:
    """The whole text that was handed in; offsets of tokens and nodes refer to it."""

    text: str

    def span(self, start: int, end: int) -> Span:
        """Return the place of the characters from `start` up to and including `end`."""
        start = max(0, min(start, len(self.text)))
        line = self.text.count("\n", 0, start) + 1
        column = start - (self.text.rfind("\n", 0, start) + 1) + 1
        shown = " ".join(self.text[start : end + 1][: 4 * _SHOWN].split())
        if len(shown) > _SHOWN:
            shown = shown[: _SHOWN - 1] + "…"
        return Span(line, column, shown)

    def span_of(self, node: "exp.Expr | Token") -> Span | None:
        """Return the place of a token or a parsed node; None when it carries none."""
        if isinstance(node, Token):
            return self.span(node.start, node.end)
        found = extent(node)
        return None if found is None else self.span(*found)

    def end(self) -> Span:
        """Return the place behind the last character that is not blank."""
        return self.span(len(self.text.rstrip()), len(self.text.rstrip()))


def extent(node: exp.Expr) -> tuple[int, int] | None:
    """Return the first and last offset a node and everything below it came from."""
    starts: list[int] = []
    ends: list[int] = []
    for part in node.walk():
        meta = part.meta
        if "start" in meta and "end" in meta:
            starts.append(meta["start"])
            ends.append(meta["end"])
    return (min(starts), max(ends)) if starts else None
