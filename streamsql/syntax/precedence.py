"""Operators of expressions bind as in PostgreSQL 15, section 4.1.6 of its manual.

From what binds least: OR, AND, NOT, IS, comparisons, BETWEEN IN LIKE SIMILAR, all other operators
(`||`, `~`), then `+ -`, `* / %` and signs, which sqlglot reads alike. Comparisons do not chain.
An operand that binds less than its operator is put in parentheses, so that the tree can be
written again as text.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Any, ClassVar

from sqlglot import exp, parser
from sqlglot.tokenizer_core import TokenType

CHAINED = "Comparisons cannot be chained"


class Level(IntEnum):
    """How closely an operator binds."""

    IS = 1
    COMPARISON = 2
    MATCHING = 3
    OPERATOR = 4
    ARITHMETIC = 5


_COMPARISONS: dict[TokenType, type[exp.Binary]] = {
    TokenType.EQ: exp.EQ,
    TokenType.NEQ: exp.NEQ,
    TokenType.LT: exp.LT,
    TokenType.LTE: exp.LTE,
    TokenType.GT: exp.GT,
    TokenType.GTE: exp.GTE,
    TokenType.NULLSAFE_EQ: exp.NullSafeEQ,
}
_PATTERNS: dict[TokenType, type[exp.Binary]] = {
    TokenType.LIKE: exp.Like,
    TokenType.ILIKE: exp.ILike,
    TokenType.SIMILAR_TO: exp.SimilarTo,
    TokenType.GLOB: exp.Glob,
}
_OPERATORS: dict[TokenType, type[exp.Binary]] = {
    TokenType.DPIPE: exp.DPipe,
    TokenType.RLIKE: exp.RegexpLike,
    TokenType.IRLIKE: exp.RegexpILike,
    # Refused by the binder, each with what to write instead.
    TokenType.AMP: exp.BitwiseAnd,
    TokenType.PIPE: exp.BitwiseOr,
    TokenType.CARET: exp.BitwiseXor,
}
_POSTFIX = (TokenType.IS, TokenType.ISNULL, TokenType.NOTNULL)
_MATCHING = (TokenType.BETWEEN, TokenType.IN, *_PATTERNS)
_LOOSE: tuple[type[exp.Expr], ...] = (
    exp.Connector,
    exp.Not,
    exp.Is,
    exp.NullSafeNEQ,
    *_COMPARISONS.values(),
    *_PATTERNS.values(),
    exp.Between,
    exp.In,
    exp.Escape,
    exp.RegexpLike,
    exp.RegexpILike,
)


@dataclass(frozen=True, slots=True)
class _Ahead:
    """The operator that comes next.

    Attributes:
        token: Its type, without a NOT before it.
        negated: Whether NOT or `!` stands before it.
    """

    token: TokenType
    level: Level
    negated: bool = False


class PrecedenceParser(parser.Parser):
    """sqlglot's parser that reads the operators between NOT and `+` itself."""

    UNARY_PARSERS: ClassVar[dict[TokenType, Any]] = {
        token: parser.Parser.UNARY_PARSERS[token] for token in (TokenType.DASH, TokenType.NOT)
    }
    # The base drops the sign, also of a text.
    UNARY_PARSERS[TokenType.PLUS] = lambda self: self.expression(
        exp.Neg(this=self.expression(exp.Neg(this=self._parse_unary())))
    )

    def _parse_equality(self, parse_is: bool = True) -> Any:
        """Parse what stands behind AND, OR and NOT."""
        return self._climb(Level.IS if parse_is else Level.COMPARISON)

    def _climb(self, least: Level, *, bound: bool = False) -> Any:
        """Parse an expression of operators that bind at least so closely.

        Args:
            least: The level.
            bound: Whether it is the lower bound of a BETWEEN, whose AND must not be taken.
        """
        left = self._parse_term()
        chained: Level | None = None
        while left is not None and (ahead := self._ahead()) is not None:
            if ahead.level < least or (bound and ahead.level == Level.MATCHING):
                break
            if ahead.level == chained:
                self.raise_error(CHAINED)
            # `x IN (…)`, `x IS NULL` and `x = ALL (…)` end by themselves: another one may follow.
            ends = ahead.token == TokenType.IN
            self._advance(1 + ahead.negated)
            match ahead.level:
                case Level.IS:
                    left, ends = self._parse_is_test(left, ahead.token)
                case Level.COMPARISON:
                    left = self._operation(_COMPARISONS[ahead.token], left, Level.MATCHING)
                    ends = isinstance(left.expression, exp.Any | exp.All)
                case Level.MATCHING:
                    left = self._matching(left, ahead)
                case _:
                    left = self._operation(_OPERATORS[ahead.token], left, Level.ARITHMETIC)
                    left = self._negated(left) if ahead.negated else left
                    ends = True
            chained = None if ends else ahead.level
        return left

    def _ahead(self) -> _Ahead | None:
        if not self._curr:
            return None
        token, following = self._curr.token_type, self._next and self._next.token_type
        if token == TokenType.NOT and following in _MATCHING:
            return _Ahead(following, Level.MATCHING, negated=True)
        if token == TokenType.NOT and following in (TokenType.RLIKE, TokenType.IRLIKE):
            return _Ahead(following, Level.OPERATOR, negated=True)
        if token in _POSTFIX:
            return _Ahead(token, Level.IS)
        if token in _COMPARISONS:
            return _Ahead(token, Level.COMPARISON)
        if token in _MATCHING:
            return _Ahead(token, Level.MATCHING)
        return _Ahead(token, Level.OPERATOR) if token in _OPERATORS else None

    def _operation(self, kind: type[exp.Binary], left: Any, least: Level) -> Any:
        right = self._climb(least) if least < Level.ARITHMETIC else self._parse_term()
        return self.expression(kind(this=_enclosed(left), expression=_enclosed(right)))

    def _matching(self, left: Any, ahead: _Ahead) -> Any:
        if ahead.token == TokenType.IN:
            if not self._curr or self._curr.token_type != TokenType.L_PAREN:
                self.raise_error("Expected ( after IN")
            found: Any = self._parse_in(_enclosed(left))
        elif ahead.token == TokenType.BETWEEN:
            found = self._parse_between(left)
        else:
            found = self._parse_escape(
                self._operation(_PATTERNS[ahead.token], left, Level.OPERATOR)
            )
        return self._negated(found) if ahead.negated else found

    def _negated(self, found: Any) -> Any:
        pattern = found.this if isinstance(found, exp.Escape) else found
        if isinstance(pattern, exp.Like | exp.ILike):
            pattern.set("negate", True)
            return found
        return self.expression(exp.Not(this=found))

    def _parse_between(self, this: Any) -> Any:
        symmetric = True if self._match_text_seq("SYMMETRIC") else None
        if symmetric is None:
            self._match_text_seq("ASYMMETRIC")
        if self._match(TokenType.NOT, advance=False):
            self.raise_error("Expected a value, or a condition in parentheses, after BETWEEN")
        low = self._climb(Level.COMPARISON, bound=True)
        if not self._match(TokenType.AND):
            self.raise_error("Expected AND between the bounds of BETWEEN")
        high = self._climb(Level.OPERATOR)
        return self.expression(
            exp.Between(
                this=_enclosed(this),
                low=_enclosed(low),
                high=_enclosed(high),
                symmetric=symmetric,
            )
        )

    def _parse_is_test(self, left: Any, token: TokenType) -> tuple[Any, bool]:
        """Parse what follows IS.

        Returns:
            The test, and whether it ends by itself: only IS DISTINCT FROM has a right side.
        """
        if token != TokenType.IS:
            test = self.expression(exp.Is(this=_enclosed(left), expression=exp.Null()))
            return (self._negated(test) if token == TokenType.NOTNULL else test), True
        negated = bool(self._match(TokenType.NOT))
        if self._match_text_seq("DISTINCT", "FROM"):
            kind = exp.NullSafeEQ if negated else exp.NullSafeNEQ
            return self._operation(kind, left, Level.COMPARISON), False
        value = exp.Var(this="UNKNOWN") if self._match_text_seq("UNKNOWN") else self._parse_term()
        test = self.expression(exp.Is(this=_enclosed(left), expression=value))
        return (self._negated(test) if negated else test), True


def _enclosed(node: Any) -> Any:
    """Return an operand; in parentheses where it binds less than any operator."""
    if not isinstance(node, _LOOSE):
        return node
    result = exp.Paren(this=node)
    result.meta.update({key: node.meta[key] for key in ("start", "end") if key in node.meta})
    return result
