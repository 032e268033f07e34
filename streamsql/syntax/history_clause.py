"""The clause FOR SYSTEM_TIME behind the name of a relation.

    FROM s FOR SYSTEM_TIME BETWEEN a AND b | FROM a TO b | ALL | AS OF t [RANGE 10 MINUTES]

A window may follow AS OF, as it follows the name of a stream.
"""

from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from streamsql.syntax.precedence import PrecedenceParser


class SystemTime(exp.Expression):
    """FOR SYSTEM_TIME: `kind` is BETWEEN, FROM, AS OF or ALL.

    `this` is the first time, or the only one, and `expression` the last. `stream_window` is the
    window behind it.
    """

    arg_types: ClassVar[dict[str, bool]] = {
        "kind": True,
        "this": False,
        "expression": False,
        "stream_window": False,
    }


class HistoryParser(PrecedenceParser):
    """Reads FOR SYSTEM_TIME where sqlglot looks for the version of a table."""

    def _parse_version(self) -> Any:
        opening = self._curr
        if not self._match_text_seq("FOR", "SYSTEM_TIME"):
            return None
        # A bracket behind AS OF opens a window, and INTERVAL '1 day' TO … is no span.
        vars(self).update(BRACKETS=frozenset(), INTERVAL_SPANS=False)
        try:
            node = self._system_time()
        finally:
            del vars(self)["BRACKETS"], vars(self)["INTERVAL_SPANS"]
        if self._curr and self._curr.token_type == TokenType.L_BRACKET:
            node.set("stream_window", self._parse_stream_window())
        node.meta["start"], node.meta["end"] = opening.start, self._prev.end
        return node

    def _parse_stream_window(self) -> Any:
        raise NotImplementedError

    def _system_time(self) -> SystemTime:
        if self._match(TokenType.ALL):
            return SystemTime(kind="ALL")
        if self._match_text_seq("AS", "OF"):
            return SystemTime(kind="AS OF", this=self._time())
        for kind, second in (("BETWEEN", "AND"), ("FROM", "TO")):
            if self._match_text_seq(kind):
                first = self._time()
                if not self._match_text_seq(second):
                    self.raise_error(f"Expected {second} and a time")
                return SystemTime(kind=kind, this=first, expression=self._time())
        self.raise_error("Expected BETWEEN, FROM, AS OF or ALL after FOR SYSTEM_TIME")
        raise AssertionError

    def _time(self) -> Any:
        found = self._parse_term()
        if found is None:
            self.raise_error("Expected a time such as NOW - INTERVAL '1 day'")
        return found
