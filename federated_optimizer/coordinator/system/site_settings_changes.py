"""Settings of engine sites: kept in the catalog, retained on the broker."""

import asyncio
from collections.abc import Mapping

import msgspec

from federated_optimizer.coordinator.contract.coordinator_model import ResultKind, StatementResult
from federated_optimizer.coordinator.shared_parts import SharedParts
from streamsql.data.types import Value
from streamsql.errors import BindingError, Span
from streamsql.syntax.statements import Name, Option
from streamsql.wire.site_messages import ENGINE_ROLES
from streamsql.wire.site_settings import SchedulerKind, SiteSettings

_TAKES = {
    "scheduler": "a name",
    "slice_ms": "milliseconds, or 'none'",
    "queue_rows": "a whole number",
    "share_synopses": "true or false",
    "report_seconds": "seconds",
}


class SettingsBook:
    """The settings of sites."""

    def __init__(self, shared: SharedParts, stored: Mapping[str, SiteSettings]) -> None:
        self._shared = shared
        self._set = dict(stored)

    def of(self, site: str) -> SiteSettings:
        """Return what is set at a site; where nobody has set anything, what it says it uses.

        Raises:
            KeyError: There is no such engine site.
        """
        if (
            self._shared.membership.role(site) not in ENGINE_ROLES
            and site not in self._shared.settings.bases
        ):
            raise KeyError(site)
        return self._set.get(site) or self._shared.membership.settings(site) or SiteSettings()

    async def change(
        self, site: str, changes: Mapping[str, Value], span: Span | None = None
    ) -> SiteSettings:
        """Set something at a site; what is not named stays.

        Raises:
            KeyError: There is no such engine site.
            BindingError: A name or a value is wrong; nothing has changed then.
        """
        settings = changed(self.of(site), changes, span)
        await asyncio.to_thread(self._shared.store.put_settings, site, settings)
        self._set[site] = settings
        self._shared.deployment.settings(site, settings)
        return settings

    def publish(self) -> None:
        """Tell all sites what is set there.

        Raises:
            MessagingError: The message queue is full.
        """
        for site, settings in self._set.items():
            self._shared.deployment.settings(site, settings)


def changed(
    settings: SiteSettings, changes: Mapping[str, Value], span: Span | None = None
) -> SiteSettings:
    """Return settings with changes.

    Raises:
        BindingError: A name or a value is wrong; says which and what is right.
    """
    fields = {field.name for field in msgspec.structs.fields(SiteSettings)}
    for name in changes:
        if name not in fields:
            raise BindingError(
                f"a site has no setting {name!r:.60}",
                span=span,
                hint=f"settings: {', '.join(sorted(fields))}",
                code="bad_option",
            )
    kinds = [str(kind) for kind in SchedulerKind]
    if changes.get("scheduler", kinds[0]) not in kinds:
        raise BindingError(
            f"there is no scheduler {changes['scheduler']!r:.60}",
            span=span,
            hint=f"schedulers: {', '.join(kinds)}",
            code="bad_option",
        )
    try:
        return msgspec.convert({**msgspec.structs.asdict(settings), **changes}, SiteSettings)
    except (msgspec.ValidationError, ValueError) as error:
        wrong = [name for name in changes if f"$.{name}`" in str(error)]  # of another type
        said = f"{wrong[0]} is {_TAKES[wrong[0]]}" if wrong else str(error)
        raise BindingError(
            f"invalid setting: {said}",
            span=span,
            hint="pando site settings SITE shows the current settings",
            code="bad_option",
        ) from error


async def alter_site(
    book: SettingsBook, site: Name, options: tuple[Option, ...]
) -> StatementResult:
    """Execute ALTER SITE; the answer lists all settings.

    Raises:
        BindingError: There is no such site, or a value is wrong.
    """
    changes = {option.name: _value(option) for option in options}
    try:
        settings = await book.change(site.text, changes, options[0].value_span)
    except KeyError:
        raise BindingError(
            f"there is no gateway or base site {site.text!r}",
            span=site.span,
            hint="SHOW GATEWAYS",
            code="unknown_relation",
        ) from None
    shown = msgspec.to_builtins(settings)
    return StatementResult(
        ResultKind.ROWS,
        f"site {site.text} altered",
        columns=("setting", "value"),
        rows=tuple((name, _words(value)) for name, value in shown.items()),
    )


def _words(value: object) -> str:
    """Return a setting's value as ALTER SITE and `pando site settings` take it."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return "none" if value is None else str(value)


def _value(option: Option) -> Value:
    """Return an option's text as the value it stands for."""
    text = option.value.strip()
    words = {"true": True, "on": True, "false": False, "off": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
