"""The StreamSQL dialect of sqlglot: queries and expressions, with windows and recursion limits.

Adds to the PostgreSQL-flavoured base:

    FROM s [RANGE 10 MINUTES SLIDE 1 MINUTE] | [PARTITION BY k ROWS 5] | [NOW] | [UNBOUNDED]
    FROM s FOR SYSTEM_TIME BETWEEN a AND b | AS OF t (`streamsql.syntax.history_clause`)
    FROM TUMBLE(s, ts, INTERVAL '1 minute') | HOP(s, ts, hop, size) | SESSION(s, ts, gap, key, ...)
    WITH RECURSIVE (LIMIT 1000) r(a, b) AS (...)

A window stands before or after the alias. Every node carries the offsets of the text it came from
(`meta["start"]`, `meta["end"]`), so that the binder can point at it. Other statements than queries
have parsers of their own over the same tokens, in `streamsql.syntax.statement_parsers`.

Private parser hooks are used, so sqlglot is pinned to one major release; `tests/streamsql/syntax`
fails when a hook moves.
"""

from typing import Any, ClassVar

from sqlglot import exp, parser, tokens
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError
from sqlglot.tokenizer_core import Token, TokenType

from streamsql.algebra.choices import OnMoreRounds, RoundLimit
from streamsql.algebra.operators import StreamKind
from streamsql.data.durations import unit_size
from streamsql.syntax.accidents import NO_ALIASES
from streamsql.syntax.history_clause import HistoryParser
from streamsql.syntax.tree_nodes import children_of

MAX_NODES = 200_000
MAX_ROUNDS = 100_000
"""Max rounds that a query may allow a recursion."""


class StreamWindow(exp.Expression):
    """A CQL window: kind RANGE, ROWS, NOW or UNBOUNDED.

    `size` and `slide` are literals in microseconds (RANGE) or rows (ROWS); `range` behind ROWS is
    in microseconds.
    """

    arg_types: ClassVar[dict[str, bool]] = {
        "kind": True,
        "size": False,
        "slide": False,
        "range": False,
        "partition_by": False,
    }


class TimeWindow(exp.Expression):
    """TUMBLE, HOP or SESSION in FROM: `kind`, the relation as `this`, and further arguments."""

    arg_types: ClassVar[dict[str, bool]] = {"kind": True, "this": True, "expressions": True}


_TIME_WINDOWS = ("TUMBLE", "HOP", "SESSION")


class PlacedParseError(ParseError):
    """A complaint of the parser, with its token.

    Attributes:
        at_end: Whether the text ended where more was expected; then `token` is the last one.
    """

    def __init__(self, description: str, token: Token, *, at_end: bool) -> None:
        super().__init__(description)
        self.description = description
        self.token = token
        self.at_end = at_end


class StreamSqlParser(HistoryParser):
    """sqlglot's parser with the hooks for windows, recursion limits and positions."""

    # Statements other than queries are ours; sqlglot would read some of them as opaque commands.
    STATEMENT_PARSERS: ClassVar[dict[TokenType, Any]] = {}
    # `a > ALL (VALUES …)` would become the call of a function ALL.
    SUBQUERY_TOKENS: ClassVar[set[TokenType]] = {*parser.Parser.SUBQUERY_TOKENS, TokenType.VALUES}
    # `IF a < 5` without parentheses would become an opaque command as well.
    NO_PAREN_IF_COMMANDS = False
    # Columns hold single values: `a.b` and `a::type` remain of the operators that reach into one.
    COLUMN_OPERATORS: ClassVar[dict[TokenType, Any]] = {
        token: parser.Parser.COLUMN_OPERATORS[token] for token in (TokenType.DOT, TokenType.DCOLON)
    }

    def raise_error(self, message: str, token: Token | None = None) -> None:
        """Stop at the first error; `_try_parse` of the base catches it where it looks ahead."""
        found = token or self._curr
        raise PlacedParseError(message, found or self._prev, at_end=not found)

    def parse_expressions(self, raw_tokens: list[Token], sql: str) -> list[exp.Expr | None]:
        """Parse the tokens of one scalar expression."""
        return self._parse(
            parse_method=StreamSqlParser._parse_disjunction, raw_tokens=raw_tokens, sql=sql
        )

    def expression(
        self, instance: Any, token: Token | None = None, comments: list[str] | None = None
    ) -> Any:
        """Finish a node and note which part of the text it covers."""
        result = super().expression(instance, token, comments)
        meta = result.meta
        if "start" in meta:
            return result
        below = [child.meta for child in children_of(result)]
        starts = [told["start"] for told in below if "start" in told]
        if starts or self._prev:
            ends = [told["end"] for told in below if "end" in told]
            meta["start"] = min(starts, default=self._prev.start)
            meta["end"] = max([*ends, self._prev.end])
        return result

    def _parse_star_op(self, *keywords: str) -> Any:
        found = super()._parse_star_op(*keywords)
        # The base also takes one name without parentheses, and none within them.
        if found is not None and (not found or self._prev.token_type != TokenType.R_PAREN):
            self.raise_error("Expected names of columns in parentheses, as in * EXCEPT (a, b)")
        return found

    def _parse_table_parts(self, *args: Any, **kwargs: Any) -> Any:
        if self._at_time_window():
            # The fast path is for plain names; it comes back here without `fast`.
            return None if kwargs.get("fast") else self._parse_time_window()
        table = super()._parse_table_parts(*args, **kwargs)
        # The fast path gives up before a bracket and comes back here without `fast`.
        if isinstance(table, exp.Table) and not kwargs.get("fast"):
            self._attach_window(table)
        return table

    def _parse_table_alias(self, alias_tokens: Any = None) -> Any:
        token = self._curr
        if self._can_parse_limit_or_offset():
            return None
        if token and token.token_type == TokenType.OFFSET:
            self.raise_error("Expected a number after OFFSET", token)
        if token and token.token_type != TokenType.IDENTIFIER and token.text.upper() in NO_ALIASES:
            self.raise_error(f"{token.text.upper()} is a keyword of other SQL dialects", token)
        alias = super()._parse_table_alias(alias_tokens)
        if alias is not None:
            if alias.this is not None and not isinstance(alias.this, exp.Identifier):
                self.raise_error("Expected a name", self._prev)
            self._attach_window(alias)
        return alias

    def _parse_function_parameter(self) -> Any:
        # Of t(a, b): names alone, to which the base adds types and constraints.
        return self._parse_id_var()

    def _parse_subquery(self, this: Any, parse_alias: bool = True) -> Any:
        window = None
        if parse_alias and self._curr and self._curr.token_type == TokenType.L_BRACKET:
            window = self._parse_stream_window()
        if isinstance(this, exp.Table) and not this.args.get("joins"):
            call = this.this
            if isinstance(call, exp.Anonymous) and call.name.upper() in tuple(StreamKind):
                this = call  # (ISTREAM(SELECT …)) is a query, not a relation in parentheses
        subquery = super()._parse_subquery(this, parse_alias)
        if subquery is not None and window is not None:
            subquery.set("stream_window", window)
        return subquery

    def reset(self) -> None:
        """Discard the state of the text before."""
        super().reset()
        self._joins: dict[tuple[Any, ...], tuple[Any, int]] = {}

    def _parse_join(self, *args: Any, **kwargs: Any) -> Any:
        # The base reads all joins behind one without ON twice: perhaps they are inside of it.
        key = (self._index, *args, *(kwargs[name] for name in sorted(kwargs)))
        if key in self._joins:
            join, end = self._joins[key]
            self._advance(end - self._index)
            return join
        join = self._read_join(*args, **kwargs)
        self._joins[key] = (join, self._index)
        return join

    def _read_join(self, *args: Any, **kwargs: Any) -> Any:
        comma = bool(self._curr) and self._curr.token_type == TokenType.COMMA
        join = super()._parse_join(*args, **kwargs)
        if join is not None and comma:
            # Afterwards `FROM a, b` and `FROM a JOIN b` without a condition look the same.
            join.meta["comma"] = True
        return join

    def _attach_window(self, node: exp.Expr) -> None:
        if self._curr and self._curr.token_type == TokenType.L_BRACKET:
            node.set("stream_window", self._parse_stream_window())

    def _at_time_window(self) -> bool:
        token, following = self._curr, self._next
        return (
            bool(token and following)
            and token.token_type != TokenType.IDENTIFIER
            and token.text.upper() in _TIME_WINDOWS
            and following.token_type == TokenType.L_PAREN
        )

    def _parse_time_window(self) -> exp.Table:
        """Parse `TUMBLE(relation, argument, …)`; the relation is anything that stands in FROM."""
        opening = self._curr
        self._advance(2)
        relation = self._parse_table()
        arguments = []
        while self._match(TokenType.COMMA):
            arguments.append(self._parse_disjunction())
        if not self._match(TokenType.R_PAREN):
            self.raise_error(f"Expected ) to close {opening.text.upper()}")
        window = TimeWindow(kind=opening.text.upper(), this=relation, expressions=arguments)
        table = exp.Table(this=window)
        for node in (window, table):
            node.meta["start"], node.meta["end"] = opening.start, self._prev.end
        self._attach_window(table)  # the binder says where it belongs
        return table

    def _parse_stream_window(self) -> StreamWindow:
        opening = self._curr
        self._advance()
        partition: list[exp.Expr] = []
        if self._match(TokenType.PARTITION_BY) or self._match_text_seq("PARTITION", "BY"):
            partition = self._parse_csv(self._parse_column)
        kind, size, slide = self._window_extent()
        within = None
        if kind == "ROWS" and self._match_text_seq("RANGE"):
            within = self._window_duration()
        if not self._match(TokenType.R_BRACKET):
            self.raise_error("Expected ] to close the window")
        window = StreamWindow(
            kind=kind, size=size, slide=slide, range=within, partition_by=partition or None
        )
        window.meta["start"], window.meta["end"] = opening.start, self._prev.end
        return window

    def _window_extent(self) -> tuple[str, int | None, int | None]:
        if self._match_text_seq("RANGE"):
            if self._match_text_seq("UNBOUNDED"):
                return "UNBOUNDED", None, None
            size = self._window_duration()
            return "RANGE", size, self._window_duration() if self._match_text_seq("SLIDE") else None
        if self._match_text_seq("ROWS"):
            if self._curr and self._curr.text.upper() == "UNBOUNDED":
                self._advance()
                return "UNBOUNDED", None, None
            return "ROWS", self._window_count(), None
        for kind in ("NOW", "UNBOUNDED"):
            if self._match_text_seq(kind):
                return kind, None, None
        self.raise_error("Expected RANGE, ROWS, NOW or UNBOUNDED in the window")
        return "NOW", None, None

    def _window_number(self) -> float:
        token = self._curr
        if not self._match_set((TokenType.NUMBER, TokenType.STRING)):
            self.raise_error("Expected a number in the window")
        try:
            value = float(token.text)
        except ValueError:
            self.raise_error("Expected a number in the window", token)
            return 1
        if not 0 < value < 1e12:
            self.raise_error("A window size must be greater than 0", token)
        return value

    def _window_count(self) -> int:
        token = self._curr
        value = self._window_number()
        if value != int(value):
            self.raise_error("ROWS takes a whole number", token)
        return int(value)

    def _window_duration(self) -> int:
        number = self._window_number()
        token = self._curr
        size = unit_size(token.text) if token else None
        if size is None:
            self.raise_error("Expected a time unit such as SECONDS or MINUTES in the window")
            return 1
        self._advance()
        micros = round(number * size)
        if micros <= 0:
            self.raise_error("A window size must be greater than 0", token)
        return micros

    def _parse_with(self, skip_with_token: bool = False) -> Any:
        if not skip_with_token and self._match(TokenType.WITH, advance=False):
            index = self._index
            self._advance()
            recursive = self._match(TokenType.RECURSIVE)
            if recursive and self._match(TokenType.L_PAREN):
                limits = self._recursion_limits()
                # The standard parser must see `WITH RECURSIVE name ...`, without the parentheses.
                return self._limited_with(limits)
            self._retreat(index)
        return super()._parse_with(skip_with_token)

    def _recursion_limits(self) -> dict[str, Any]:
        """Parse `LIMIT 1000` (rows) and `LIMIT 8 [ROUNDS] RETURN | ERROR`, in any order."""
        limits: dict[str, Any] = {}
        while True:
            token = self._curr
            name, value = self._recursion_limit()
            if name in limits:
                self.raise_error("This limit appears twice", token)
            limits[name] = value
            if not self._match(TokenType.COMMA):
                break
        if not self._match(TokenType.R_PAREN):
            self.raise_error("Expected ) after the recursion limit, or RETURN or ERROR")
        return limits

    def _recursion_limit(self) -> tuple[str, Any]:
        if not self._match_text_seq("LIMIT"):
            self.raise_error("Expected LIMIT and a number of rows after WITH RECURSIVE (")
        token = self._curr
        if not self._match(TokenType.NUMBER):
            self.raise_error("Expected a number of rows after LIMIT")
        limit = int(token.text) if token.text.isdigit() and len(token.text) < 12 else 0
        counts_rounds = self._match_text_seq("ROUNDS")
        for word in OnMoreRounds:
            if self._match_text_seq(word.upper()):
                if not 1 <= limit <= MAX_ROUNDS:
                    self.raise_error(f"A bound on rounds ranges from 1 to {MAX_ROUNDS}", token)
                return "recursion_rounds", RoundLimit(limit, word)
        if counts_rounds:
            self.raise_error("Expected RETURN or ERROR after the number of rounds")
        if limit < 1:
            self.raise_error("A recursion limit is a whole number of rows from 1", token)
        return "recursion_limit", limit

    def _limited_with(self, limits: dict[str, Any]) -> Any:
        node = super()._parse_with(skip_with_token=True)
        if node is not None:
            node.set("recursive", True)
            for name, value in limits.items():
                node.set(name, value)
        return node


class StreamSql(Dialect):
    """StreamSQL for sqlglot."""

    # As in PostgreSQL: NULLS LAST, and first when descending, unless it is written.
    NULL_ORDERING = "nulls_are_large"

    class Tokenizer(tokens.Tokenizer):
        """Only double quotes quote names, so brackets stay free for windows."""

        IDENTIFIERS: ClassVar[list[str | tuple[str, str]]] = ['"']
        # Statements such as SHOW are parsed by us; sqlglot would swallow their text unread.
        COMMANDS: ClassVar[set[TokenType]] = set()
        # As in PostgreSQL; `!~` is NOT before it.
        KEYWORDS: ClassVar[dict[str, TokenType]] = {
            **tokens.Tokenizer.KEYWORDS,
            "~": TokenType.RLIKE,
            "~*": TokenType.IRLIKE,
        }
        # Only behind IS; elsewhere it would be another NULL.
        KEYWORDS.pop("UNKNOWN")

    Parser = StreamSqlParser
