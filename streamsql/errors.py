"""The platform's exceptions.

FederationError
├── QueryError                the author of the statement can fix it; carries a place in the text
│   ├── QuerySyntaxError      the text is not StreamSQL
│   ├── BindingError          a name, a type or a shape is wrong
│   └── UnsupportedError      valid, but this engine or release refuses it, with the reason
├── DeploymentError           the operator can fix it: files, ports, brokers, databases
│   └── WireError             a payload does not follow the wire format
├── RecursionLimitError       a running recursion grew past its bound
├── StepBudgetError           a query took more of a site than one step may
└── InternalError             a defect of ours
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """A place in a statement: 1-based line and column, and the offending text."""

    line: int
    column: int
    text: str


class FederationError(Exception):
    """Base of everything Pando raises on purpose.

    Attributes:
        message: What is wrong, in plain words.
        code: Stable identifier, also sent over the wire; one of `docs/errors.md`. The class's
            own, which names a family, unless the place that raised it gave a finer one.
        hint: What to do about it, or an empty string.
        carried_out: What statements of the same script had changed before, and how to undo it.
    """

    code: str = "error"
    carried_out: tuple[str, ...] = ()

    def __init__(self, message: str, *, hint: str = "", code: str = "") -> None:
        super().__init__(message)
        if code:
            self.code = code
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        """Return the message followed by the hint."""
        return f"{self.message}\nhint: {self.hint}" if self.hint else self.message

    @property
    def report(self) -> str:
        """What a terminal shows: the text and, in the last line, the code to look up."""
        done = [f"already done: {deed}" for deed in self.carried_out]
        return "\n".join([str(self), *done, f"code: {self.code}"])


class QueryError(FederationError):
    """The statement is wrong; its author can fix it.

    Attributes:
        span: Where in the text, when known.
    """

    code = "query_error"

    def __init__(
        self, message: str, *, span: Span | None = None, hint: str = "", code: str = ""
    ) -> None:
        super().__init__(message, hint=hint, code=code)
        self.span = span

    def __str__(self) -> str:
        """Return message, place and hint, one a line."""
        lines = [self.message]
        if self.span is not None:
            place = f"line {self.span.line}, column {self.span.column}"
            lines.append(f"at {place}: {self.span.text}" if self.span.text else f"at {place}")
        if self.hint:
            lines.append(f"hint: {self.hint}")
        return "\n".join(lines)


class QuerySyntaxError(QueryError):
    """The text is not StreamSQL."""

    code = "syntax_error"


class BindingError(QueryError):
    """A name, a type or the shape of the statement is wrong."""

    code = "binding_error"


class UnsupportedError(QueryError):
    """The statement is understood but refused, with the reason."""

    code = "unsupported"


class DeploymentError(FederationError):
    """Something outside the statement is wrong: a file, a port, a broker, a database."""

    code = "deployment_error"


class WireError(DeploymentError):
    """A payload received from another service does not follow the wire format."""

    code = "wire_error"


class RecursionLimitError(FederationError):
    """A running recursion grew past its limit and was stopped."""

    code = "recursion_limit"


class RecursionRoundsError(RecursionLimitError):
    """A running recursion needs more rounds than its query allows."""

    code = "recursion_rounds"

    @classmethod
    def of(cls, name: str, most: int) -> "RecursionRoundsError":
        """Return the error of a recursion that may have so many rounds."""
        return cls(
            f"recursion {name} needs more than {most} rounds",
            hint="allow more in WITH RECURSIVE (LIMIT n ERROR), or write RETURN to omit later rows",
        )


class RecursionInterruptedError(RecursionLimitError):
    """A running recursion was stopped because nobody wants its query any more."""

    code = "recursion_interrupted"


class StepBudgetError(FederationError):
    """A query took more time or memory of a site than one step may, and does not run there."""

    code = "step_budget"


class InternalError(FederationError):
    """A defect of Pando itself; the message names the rule, operator or plan."""

    code = "internal_error"
