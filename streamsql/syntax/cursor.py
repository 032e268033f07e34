"""A cursor over the tokens of one statement, with errors that say what was expected where."""

import difflib
import re
from collections.abc import Callable, Iterable, Sequence
from typing import NoReturn, TypeVar

from sqlglot.tokenizer_core import Token, TokenType

from streamsql.data.durations import parse_duration
from streamsql.errors import QuerySyntaxError, Span, UnsupportedError
from streamsql.syntax.script_places import Script
from streamsql.syntax.statements import Name

T = TypeVar("T")

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_$]*")
_TEXT = (TokenType.STRING, TokenType.IDENTIFIER)
_RESERVED = """
    select from where group having order union on using join left right inner cross as with values
    and or not null case when then else end distinct in is between like
"""
_NOT_NAMES = frozenset(_RESERVED.split())


def is_reserved(word: str) -> bool:
    """Whether a word is a name only in double quotes."""
    return word.lower() in _NOT_NAMES


def nearest(word: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """Return the most similar known word, or an empty string.

    Examples:
        >>> nearest("tempo", ("temp", "room")), nearest("x", ("temp",))
        ('temp', '')
    """
    found = difflib.get_close_matches(word[:200], list(known), n=1, cutoff=cutoff)
    return found[0] if found else ""


def did_you_mean(word: str, known: Iterable[str], otherwise: str) -> str:
    """Return a hint that names the most similar known word; `otherwise` if none is similar."""
    close = nearest(word, known)
    return f"did you mean {close}?" if close else otherwise


def shown(token: Token) -> str:
    """Return a token as a message quotes it."""
    return token.text if len(token.text) <= 40 else token.text[:39] + "…"


class Cursor:
    """Reads the tokens of a statement from left to right.

    Words are compared in upper case; quoted names and strings never match a word.
    """

    def __init__(self, script: Script, tokens: Sequence[Token]) -> None:
        self.script = script
        self._tokens = tokens
        self._position = 0

    @property
    def token(self) -> Token | None:
        """The token in front, or None at the end."""
        return self.ahead(0)

    def ahead(self, distance: int) -> Token | None:
        """Return the token so many places ahead."""
        index = self._position + distance
        return self._tokens[index] if index < len(self._tokens) else None

    def word(self, distance: int = 0) -> str:
        """Return the token ahead in upper case; empty for strings, quoted names and the end."""
        token = self.ahead(distance)
        if token is None or token.token_type in _TEXT:
            return ""
        return " ".join(token.text.upper().split())

    def at(self, *words: str) -> bool:
        """Whether the next tokens are these words or symbols."""
        return all(self.word(number) == word for number, word in enumerate(words))

    def accept(self, *words: str) -> bool:
        """Step over these words if they are next."""
        if not self.at(*words):
            return False
        self._position += len(words)
        return True

    def expect(self, *words: str, hint: str = "") -> None:
        """Step over these words.

        Raises:
            QuerySyntaxError: Something else is there.
        """
        for word in words:
            if not self.accept(word):
                self.fail(f"expected {word}", hint=hint)

    def advance(self) -> Token:
        """Step over one token and return it."""
        token = self.token
        if token is None:
            self.fail("the statement ends too early")
        self._position += 1
        return token

    def choice(self, words: Iterable[str], what: str) -> str:
        """Step over one of several words and return it in upper case."""
        known = tuple(words)
        word = self.word()
        if word not in known:
            hint = did_you_mean(word, known, f"one of {', '.join(known)}")
            self.fail(f"expected {what}", hint=hint)
        self._position += 1
        return word

    def name(self, what: str) -> Name:
        """Step over a name and return it."""
        token = self.token
        if token is None or token.token_type == TokenType.STRING:
            self.fail(f"expected {what}")
        quoted = token.token_type == TokenType.IDENTIFIER
        legal = quoted or (
            _WORD.fullmatch(token.text) is not None and token.text.lower() not in _NOT_NAMES
        )
        if not legal or not token.text.strip() or len(token.text) > 128:
            self.fail(f"expected {what}")
        self._position += 1
        span = self.script.span_of(token)
        if span is None:
            self.fail(f"expected {what}")
        return Name(token.text if quoted else token.text.lower(), span)

    def word_name(self, what: str) -> Name:
        """Step over a bare word and return it in lower case; words of the language are allowed."""
        token = self.token
        if token is None or token.token_type in _TEXT or not _WORD.fullmatch(token.text):
            self.fail(f"expected {what}")
        self._position += 1
        return Name(token.text.lower(), self.script.span(token.start, token.end))

    def names(self, what: str) -> tuple[Name, ...]:
        """Step over `(name, …)`."""
        self.expect("(")
        found = self.listed(lambda: self.name(what))
        self.expect(")")
        return tuple(found)

    def listed(self, element: Callable[[], T]) -> list[T]:
        """Step over elements with commas between; at least one."""
        found = [element()]
        while self.accept(","):
            found.append(element())
        return found

    def at_string(self) -> bool:
        """Return True before text in single quotes; names in double quotes are none."""
        return self.token is not None and self.token.token_type == TokenType.STRING

    def string(self, what: str) -> tuple[str, Span]:
        """Step over a text in single quotes."""
        token = self.token
        if token is None or token.token_type != TokenType.STRING:
            self.fail(f"expected {what} in single quotes")
        self._position += 1
        return token.text, self.script.span(token.start, token.end)

    def duration(self, what: str, *, hint: str, code: str = "bad_duration") -> tuple[int, Span]:
        """Step over a duration in single quotes; return its microseconds.

        Raises:
            QuerySyntaxError: It is none.
        """
        text, span = self.string(what)
        try:
            return parse_duration(text), span
        except ValueError as error:
            raise QuerySyntaxError(str(error), span=span, hint=hint, code=code) from None

    def rest(self) -> Sequence[Token]:
        """Step over and return all remaining tokens."""
        remaining = self._tokens[self._position :]
        self._position = len(self._tokens)
        return remaining

    def until(self, *runs: tuple[str, ...]) -> Sequence[Token]:
        """Step over everything up to one of these runs of words outside parentheses, or the end.

        Returns:
            What was stepped over.
        """
        begin, depth = self._position, 0
        while self.token is not None and (depth > 0 or not any(self.at(*run) for run in runs)):
            kind = self.advance().token_type
            depth += (kind == TokenType.L_PAREN) - (kind == TokenType.R_PAREN)
        return self._tokens[begin : self._position]

    def until_closing(self) -> list[Sequence[Token]]:
        """Step over `… , … )` and return the token runs between the commas at this level."""
        runs: list[Sequence[Token]] = []
        begin, depth = self._position, 0
        while True:
            token = self.token
            if token is None:
                self.fail("expected )")
            if depth == 0 and token.token_type in (TokenType.COMMA, TokenType.R_PAREN):
                runs.append(self._tokens[begin : self._position])
                begin = self._position + 1
            if token.token_type == TokenType.L_PAREN:
                depth += 1
            elif token.token_type == TokenType.R_PAREN:
                depth -= 1
            self._position += 1
            if depth < 0:
                return runs

    def inside(self) -> Sequence[Token]:
        """Step over `( … )` and return what is between."""
        self.expect("(")
        begin = self._position
        self.until_closing()
        return self._tokens[begin : self._position - 1]

    def end(self, hint: str = "") -> None:
        """Check that the statement ends here."""
        if self.token is not None:
            self.fail("the statement should end here", hint=hint)

    def here(self) -> Span:
        """Return the place of the next token, or behind the last one."""
        token = self.token
        if token is not None:
            return self.script.span(token.start, token.end)
        last = self._tokens[-1]
        return self.script.span(last.end + 1, last.end)

    def fail(self, message: str, *, hint: str = "", code: str = "") -> NoReturn:
        """Refuse what is next."""
        token = self.token
        found = f"but found {shown(token)!r}" if token is not None else "but the statement ends"
        code = code or ("unexpected_end" if token is None else "unexpected_token")
        raise QuerySyntaxError(f"{message}, {found}", span=self.here(), hint=hint, code=code)

    def refuse(self, message: str, *, hint: str = "", code: str = "") -> NoReturn:
        """Refuse what is next although it is understood."""
        raise UnsupportedError(message, span=self.here(), hint=hint, code=code)
