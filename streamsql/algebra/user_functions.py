"""Functions and aggregates of the user: Python code that the operator of a process has installed.

Code never travels: a plan names `package.module:name`, and every process that runs the plan finds
that name in its own Python path, and only in modules its operator has listed (`allow`; services
take the list from their setting `functions` or PANDO_FUNCTIONS). What is called must be defined in
the listed module itself, so that a module does not lend out what it imports.

A function takes and returns values as `streamsql.data.types` has them (times are microseconds) and
must be pure: the same arguments, the same result. With a NULL argument it is not called and the
result is NULL, unless it was declared CALLED ON NULL INPUT.

An aggregate is a class without constructor arguments and with the methods

    init()                  the state of an empty group
    step(state, *values)    the state with one more row
    retract(state, *values) the state without a row that it has
    merge(state, other)     the state of the rows of both
    final(state)            the result, or None

`step`, `retract` and `merge` return the state, changed or new; its result must not depend on the
order of rows. A row with a NULL is skipped, unless it was declared CALLED ON NULL INPUT.

Failure has the rule of all functions: an exception, or a result that is not of the declared type,
gives NULL; a row at which `step` raises is skipped, and must be recognizable by its values alone,
before the state is changed. Every failure is counted, with the last reason, in `failures`.
"""

import importlib
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from streamsql.data.types import DataType, Row, Value, coerce, unsigned
from streamsql.errors import DeploymentError

SETTING = "PANDO_FUNCTIONS"
"""The environment variable that lists the modules, separated by commas."""

_IMPLEMENTATION = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")
_MODULE = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
_ON_NULL = " on null"
_METHODS = ("init", "step", "retract", "merge", "final")


class AggregateClass(Protocol):
    """The methods of an aggregate's class; see the module."""

    def init(self) -> Any:
        """Return the state of an empty group."""

    def step(self, state: Any, *values: Any) -> Any:
        """Return the state with one more row."""

    def retract(self, state: Any, *values: Any) -> Any:
        """Return the state without a row that it has."""

    def merge(self, state: Any, other: Any) -> Any:
        """Return the state of the rows of both."""

    def final(self, state: Any) -> Any:
        """Return the result."""


@dataclass(frozen=True, slots=True)
class Failures:
    """Failures of an implementation in this process: their number and the last reason."""

    implementation: str
    count: int
    last: str


def is_implementation(text: str) -> bool:
    """Whether a text has the form `package.module:name`.

    Examples:
        >>> is_implementation("site.readings:dew_point"), is_implementation("dew_point")
        (True, False)
    """
    return _IMPLEMENTATION.fullmatch(text) is not None


def implementation_name(implementation: str, *, on_null: bool) -> str:
    """Return what plans call an implementation; no function of the language has a colon.

    Examples:
        >>> implementation_name("m:f", on_null=True)
        'm:f on null'
    """
    return implementation + _ON_NULL if on_null else implementation


def is_user_function(name: str) -> bool:
    """Whether the function name of a call is a user's implementation."""
    return ":" in name


def is_called_on_null(name: str) -> bool:
    """Whether an implementation takes NULLs."""
    return name.endswith(_ON_NULL)


class ForeignCodeRefused(BaseException):
    """Code of a user would be called where it may not be; no error of a function: it ends all."""


class UserFunctions:
    """The user functions of one process."""

    def __init__(self) -> None:
        self._modules: frozenset[str] = frozenset()
        self._is_refused = False
        self._failures: dict[str, Failures] = {}

    @property
    def modules(self) -> tuple[str, ...]:
        """The modules that the operator has listed."""
        return tuple(sorted(self._modules))

    def allow(self, modules: Iterable[str]) -> None:
        """Set the modules whose functions may run here.

        Raises:
            DeploymentError: A text is no module name.
        """
        listed = frozenset(modules)
        for module in sorted(listed):
            if not _MODULE.fullmatch(module):
                raise DeploymentError(
                    f"{module!r:.60} in {SETTING} is not the name of a Python module",
                    hint=f"{SETTING}=site.readings,site.units",
                )
        self._modules = listed

    @contextmanager
    def refused(self) -> Iterator[None]:
        """Let no implementation be found inside: `ForeignCodeRefused` is raised instead."""
        before, self._is_refused = self._is_refused, True
        try:
            yield
        finally:
            self._is_refused = before

    def failures(self) -> tuple[Failures, ...]:
        """Return what has failed so far, by implementation."""
        return tuple(self._failures[name] for name in sorted(self._failures))

    @property
    def failed(self) -> int:
        """How many calls have failed so far."""
        return sum(failures.count for failures in self._failures.values())

    def function(self, name: str, result: DataType) -> Callable[..., Any]:
        """Return a scalar function that never raises.

        Args:
            name: As a plan has it; NULLs must not reach it unless `is_called_on_null(name)`.
            result: The declared type.

        Raises:
            DeploymentError: It is not installed here.
        """
        implementation = _bare(name)
        found = self._find(implementation)

        def evaluate(*arguments: Any) -> Any:
            try:
                return coerce(found(*map(unsigned, arguments)), result)
            except Exception as error:  # noqa: BLE001  (any failure of foreign code is NULL)
                self.note(implementation, error)
                return None

        return evaluate

    def aggregate(self, name: str, result: DataType) -> "UserAggregate":
        """Return an aggregate.

        Raises:
            DeploymentError: Its class is not installed here, or lacks a method.
        """
        implementation = _bare(name)
        found = self._find(implementation)
        missing = [m for m in _METHODS if not callable(getattr(found, m, None))]
        if missing or not isinstance(found, type):
            what = f"has no {', '.join(missing)}" if missing else "is not a class"
            raise DeploymentError(
                f"aggregate {implementation}: it {what}",
                hint=f"an aggregate is a class with {', '.join(_METHODS)}",
            )
        try:
            made: AggregateClass = found()
        except Exception as error:
            raise DeploymentError(
                f"aggregate {implementation} cannot be made: {_reason(error)}",
                hint="its constructor takes no arguments",
            ) from error
        return UserAggregate(made, name, result, self)

    def check(
        self, implementation: str, *, aggregate: bool, merged: DataType | None = None
    ) -> None:
        """Check that an implementation is installed here.

        Args:
            implementation: `package.module:name`.
            aggregate: Whether it has to be the class of an aggregate.
            merged: Of an aggregate with MERGED BY: the type of its result.

        Raises:
            DeploymentError: It is not, or results of parts cannot be merged.
        """
        if not aggregate:
            self._find(implementation)
            return
        found = self.aggregate(implementation, merged or DataType.NULL)
        of_nothing = None if merged is None else found.of_nothing()
        if of_nothing is not None:
            raise DeploymentError(
                f"aggregate {implementation}: final(init()) is {of_nothing!r:.60}, "
                "and MERGED BY needs None there, for parts without a row that counts",
                hint="return None where there was no step, or leave out MERGED BY",
                code="bad_merge",
            )

    def note(self, implementation: str, error: Exception) -> None:
        """Count a failure."""
        known = self._failures.get(implementation)
        count = 1 if known is None else known.count + 1
        self._failures[implementation] = Failures(implementation, count, _reason(error))

    def _find(self, implementation: str) -> Callable[..., Any]:
        if self._is_refused:
            raise ForeignCodeRefused(implementation)
        module_name, _, name = implementation.partition(":")
        if module_name not in self._modules:
            listed = ", ".join(self.modules) or "none"
            raise DeploymentError(
                f"function {implementation} is not installed here: module {module_name!r} is none "
                f"of the modules with user functions ({listed})",
                hint=f"install the module at every site and add {module_name} to {SETTING}",
            )
        try:
            module = importlib.import_module(module_name)
        except Exception as error:
            raise DeploymentError(
                f"function {implementation}: module {module_name!r}, listed in {SETTING}, cannot "
                f"be imported: {_reason(error)}",
                hint="install it where this process finds its Python modules",
            ) from error
        found = getattr(module, name, None)
        if not callable(found) or getattr(found, "__module__", None) != module_name:
            what = "is not defined in" if found is not None else "is missing from"
            raise DeploymentError(
                f"function {implementation}: {name!r} {what} module {module_name!r}",
                hint="define the function or class in that module itself",
            )
        made: Callable[..., Any] = found
        return made


class UserAggregate:
    """An aggregate of the user, called safely.

    Attributes:
        on_null: Whether rows with NULLs count.
    """

    def __init__(
        self, made: AggregateClass, name: str, result: DataType, functions: UserFunctions
    ) -> None:
        self._made = made
        self._implementation = _bare(name)
        self._result = result
        self._functions = functions
        self.on_null = is_called_on_null(name)

    def takes(self, values: Row) -> bool:
        """Whether a row of arguments counts."""
        return self.on_null or None not in values

    def init(self) -> Any:
        """Return the state of an empty group.

        Raises:
            DeploymentError: It fails: then nothing can be computed with it.
        """
        try:
            return self._made.init()
        except Exception as error:
            raise DeploymentError(
                f"aggregate {self._implementation}: init() fails: {_reason(error)}"
            ) from error

    def step(self, state: Any, values: Row) -> tuple[Any, bool]:
        """Return the state with one more row, and whether the row was taken (else it failed)."""
        return self._changed(self._made.step, state, values)

    def retract(self, state: Any, values: Row) -> tuple[Any, bool]:
        """Return the state without a row that was taken, and whether that worked."""
        return self._changed(self._made.retract, state, values)

    def merge(self, state: Any, other: Any) -> tuple[Any, bool]:
        """Return the state of the rows of both, and whether that worked."""
        return self._changed(self._made.merge, state, (other,))

    def final(self, state: Any) -> Value:
        """Return the result; NULL when it fails or is not of the declared type.

        A negative zero, equal to zero, is 0.0, as of all aggregates: which rows came first, or
        whether results of parts were merged, does not show.
        """
        try:
            return unsigned(coerce(self._made.final(state), self._result))
        except Exception as error:  # noqa: BLE001  (any failure of foreign code is NULL)
            self._functions.note(self._implementation, error)
            return None

    def of_nothing(self) -> Value:
        """Return the result of an empty group."""
        return self.final(self.init())

    def over(self, rows: Iterable[Row]) -> Value:
        """Return the result over rows of arguments."""
        state = self.init()
        for values in rows:
            if self.takes(values):
                state, _ = self.step(state, values)
        return self.final(state)

    def _changed(
        self, change: Callable[..., Any], state: Any, values: tuple[Any, ...]
    ) -> tuple[Any, bool]:
        try:
            return change(state, *map(unsigned, values)), True
        except Exception as error:  # noqa: BLE001  (any failure of foreign code is counted)
            self._functions.note(self._implementation, error)
            return state, False


def modules_of(text: str) -> tuple[str, ...]:
    """Return the modules that a setting lists, separated by commas or blanks.

    Examples:
        >>> modules_of("site.readings, site.units")
        ('site.readings', 'site.units')
    """
    return tuple(text.replace(",", " ").split())


def _bare(name: str) -> str:
    return name.removesuffix(_ON_NULL)


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:200]


INSTALLED = UserFunctions()
"""Those of this process."""
