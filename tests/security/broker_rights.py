"""Who may publish on and read which topic: stated here by hand, not taken from `broker.access`.

The topics come from `streamsql.wire.topics.Topics`: a method or a parameter that is not stated here
fails the suite.
"""

import inspect
import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from streamsql.wire.topics import Topics

ENGINES = frozenset({"gw-1", "gw-2", "base"})
ANSWERING = ENGINES | {"static"}
"""Sites that run fragments."""
SITES = ANSWERING | {"coordinator"}
CLIENTS = SITES | {"viewer", "lander"}
STRANGER = "gw-9"
"""Id of a site that has no account."""

IDS = (*sorted(CLIENTS), STRANGER)
VALUES: dict[str, tuple[str, ...]] = {
    "gateway": IDS,
    "site": IDS,
    "host": IDS,
    "to": IDS,
    "sender": IDS,
    "query": ("q1",),
    "stream": ("climate", "sys_stream"),
    "sensor": ("t1",),
    "levels": ("near/a/b",),
    "verb": ("restart", "mark", "resync", "forget", "packs", "published", "flow"),
    "request": ("r1",),
    "name": ("climate",),
    "scope": ("own", "all"),
}
"""Values of the parameters of the methods of `Topics`."""

Who = frozenset[str]
Values = dict[str, str]


@dataclass(frozen=True)
class Rule:
    """Who may publish and read, whatever a topic's parameters are or given their values."""

    write: Who | Callable[[Values], Who]
    read: Who | Callable[[Values], Who]

    def stated(self, topic: str, values: Values) -> "Stated":
        """Return what this says of one topic."""
        return Stated(topic, _given(self.write, values), _given(self.read, values))


def _given(who: Who | Callable[[Values], Who], values: Values) -> Who:
    return who(values) if callable(who) else who


def _only(name: str, among: Who = CLIENTS) -> Who:
    return frozenset({name}) & among


def _requesters(verb: str) -> Who:
    """Who may send a request of this kind, in its own name."""
    known = {"resync": ANSWERING, "forget": ENGINES, "published": ENGINES}
    return known.get(verb, Who({"base", "lander"} if verb == "packs" else ()))


_COORDINATOR = Who({"coordinator"})
_WATCHING = Who({"coordinator", "viewer"})
_LANDED = _WATCHING | {"lander"}
_READINGS = _LANDED | {"base"}
_ASKED = ANSWERING | {"lander"}
"""Sites to which commands, requests or answers are sent."""

RULES = {
    "state": Rule(lambda v: _only(v["gateway"], ENGINES) | _COORDINATOR, CLIENTS),
    "birth": Rule(lambda v: _only(v["gateway"], ENGINES) | _COORDINATOR, _LANDED),
    "observation": Rule(lambda v: _only(v["gateway"], SITES), _READINGS),
    "last": Rule(lambda v: _only(v["gateway"], ENGINES), _WATCHING),
    "link": Rule(
        lambda v: _only(v["gateway"], ENGINES) | _COORDINATOR,
        lambda v: _only(v["gateway"], ENGINES) | _WATCHING,
    ),
    "history": Rule(lambda v: _only(v["gateway"], ENGINES), _READINGS),
    "command": Rule(
        lambda v: _COORDINATOR | _only(v["gateway"], ENGINES if v["verb"] == "mark" else Who()),
        lambda v: _COORDINATOR | _only(v["gateway"], _ASKED),
    ),
    "request": Rule(
        lambda v: _only(v["sender"], _requesters(v["verb"])),
        lambda v: _COORDINATOR | _only(v["site"], _ASKED),
    ),
    "settings": Rule(_COORDINATOR, lambda v: _COORDINATOR | _only(v["gateway"], ENGINES)),
    "clock": Rule(lambda v: _only(v["gateway"], ENGINES), _COORDINATOR),
    "response": Rule(lambda v: _only(v["gateway"], ANSWERING), _COORDINATOR),
    "dead": Rule(lambda v: _only(v["gateway"], SITES | {"lander"}), _COORDINATOR),
    "host_state": Rule(
        lambda v: _only(v["host"], Who({"static", "coordinator", "lander"})), CLIENTS
    ),
    "alarms": Rule(lambda v: _only(v["host"], _COORDINATOR), _COORDINATOR | {"lander"}),
    "tables": Rule(_COORDINATOR, lambda v: _COORDINATOR | _only(v["host"], Who({"static"}))),
    "reports": Rule(_COORDINATOR, lambda v: _COORDINATOR | _only(v["host"], Who({"static"}))),
    "fill": Rule(lambda _v: Who({"static"}), lambda v: _COORDINATOR | _only(v["gateway"], ENGINES)),
    "fill_request": Rule(
        lambda v: _only(v["sender"], ENGINES if v["scope"] == "own" else Who({"base"})),
        lambda v: _COORDINATOR | _only(v["host"], Who({"static"})),
    ),
    "source": Rule(_COORDINATOR, _COORDINATOR | ANSWERING),
    "interest": Rule(_COORDINATOR, _COORDINATOR | ENGINES),
    "fragment": Rule(_COORDINATOR, lambda v: _COORDINATOR | _only(v["site"], ANSWERING)),
    "exchange": Rule(
        lambda v: _only(v["sender"], SITES), lambda v: _COORDINATOR | _only(v["to"], ANSWERING)
    ),
    "output": Rule(lambda v: _only(v["site"], ANSWERING), _WATCHING),
    "flow": Rule(lambda v: _only(v["site"], ANSWERING), _COORDINATOR),
    "columns": Rule(lambda v: _only(v["site"], ANSWERING), _COORDINATOR),
    "error": Rule(lambda v: _only(v["site"], ANSWERING) | _COORDINATOR, _COORDINATOR),
}
"""By method of `Topics`."""


@dataclass(frozen=True)
class Stated:
    """A topic, or a filter, and who may publish on it and read it."""

    topic: str
    write: Who
    read: Who


def topic_methods() -> list[str]:
    """Return the methods of `Topics` that make topics, from its code."""
    return [
        name
        for name, method in inspect.getmembers(Topics, inspect.isfunction)
        if not name.startswith("_") and name != "parts"
    ]


def _made(
    topics: Topics, method: str, values: Mapping[str, tuple[str, ...]] = VALUES
) -> Iterator[tuple[str, Values]]:
    make = getattr(topics, method)
    parameters = list(inspect.signature(make).parameters)
    for chosen in itertools.product(*(values[name] for name in parameters)):
        given = [part for text in chosen for part in text.split("/")]
        yield make(*given), dict(zip(parameters, chosen, strict=True))


def stated_by_method(federation: str, **values: tuple[str, ...]) -> dict[str, list[Stated]]:
    """Return every topic of a federation with a few sites, and who may what.

    Args:
        federation: Its name.
        values: Of parameters, in place of those in `VALUES`.

    Raises:
        KeyError: There are topics, or parts of them, that are not stated here.
    """
    topics, given = Topics(federation), VALUES | values
    return {
        method: [RULES[method].stated(*made) for made in _made(topics, method, given)]
        for method in topic_methods()
    }


def stated_topics(federation: str) -> list[Stated]:
    """Return all topics of `stated_by_method` in one list."""
    return [each for topics in stated_by_method(federation).values() for each in topics]


def stated_filters(federation: str) -> list[Stated]:
    """Return the filters of all topics of a kind: who may read all of these may subscribe."""
    topics, found = Topics(federation), []
    for method in topic_methods():
        readers = [RULES[method].stated(*made).read for made in _made(topics, method)]
        wide = dict.fromkeys(inspect.signature(getattr(topics, method)).parameters, "+")
        wide.pop("levels", None)
        found.append(
            Stated(getattr(topics, method)(*wide.values()), Who(), Who.intersection(*readers))
        )
    return found


def topics_elsewhere(federation: str) -> list[Stated]:
    """Return topics outside `Topics`: another federation, sinks, the broker's own."""
    root, control = f"pando/v1/{federation}", "$CONTROL/dynamic-security/v1"
    return [
        Stated(f"{root}/anything/else", Who(), _COORDINATOR),
        Stated(f"{root}x/gw/gw-1/state", Who(), Who()),
        Stated("pando/v1/other/gw/gw-1/state", Who(), Who()),
        Stated("pando/v2/other/gw/gw-1/state", Who(), Who()),
        Stated("elsewhere", Who(), Who()),
        Stated("building/free", _COORDINATOR, Who()),
        Stated("$SYS/broker/uptime", Who(), _COORDINATOR),
        Stated(f"{control}/response", Who(), _COORDINATOR),
    ]
