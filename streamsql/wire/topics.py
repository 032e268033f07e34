"""MQTT topics: `pando/v1/{site}/…`. Ids match `[A-Za-z0-9_-]{1,64}`."""

import re
from urllib.parse import quote, unquote

from streamsql.errors import WireError

PREFIX = "pando/v1"
LANDERS = "lake"
"""Name of the subscription that landers share."""
MAX_LEVEL = 400
"""Characters of a text that is a level: 4,800 bytes at most."""
_EMPTY = "%"
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


def check_id(text: str, what: str = "id") -> str:
    """Return the id.

    Raises:
        WireError: It is not an id.
    """
    if not _ID.fullmatch(text):
        raise WireError(
            f"{what} {text!r:.80} is not an id",
            hint="use 1 to 64 letters, digits, '_' or '-'",
        )
    return text


def level_of(text: str) -> str:
    """Return text of any kind as one level of a topic.

    Raises:
        WireError: It is longer than a level may be, or no Unicode.

    Examples:
        >>> level_of("aa:bb.1"), level_of("room/3 +"), level_of("")
        ('aa:bb.1', 'room%2F3%20%2B', '%')
    """
    if len(text) > MAX_LEVEL:
        raise WireError(f"{text!r:.60} has {len(text)} characters; the max is {MAX_LEVEL}")
    try:
        return quote(text, safe=":@,;=()!") or _EMPTY
    except UnicodeEncodeError as error:
        raise WireError(f"{text!r:.60} is not Unicode") from error


def text_of_level(level: str) -> str:
    """Return what `level_of` was given.

    Raises:
        WireError: It has not written that: every text has one level.
    """
    try:
        text = "" if level == _EMPTY else unquote(level, errors="strict")
        if level_of(text) == level:
            return text
    except (UnicodeDecodeError, WireError):
        pass
    raise WireError(f"topic level {level!r:.80} is not the name of a link")


class Topics:
    """The topics of one federation (`site`).

    Methods with an argument left at `+` give subscription filters.
    """

    def __init__(self, site: str) -> None:
        self.site = check_id(site, "site")
        self.root = f"{PREFIX}/{site}"

    def state(self, gateway: str = "+") -> str:
        """Online or offline; retained; also the will."""
        return f"{self.root}/gw/{gateway}/state"

    def birth(self, gateway: str = "+") -> str:
        """Everything a gateway has; retained."""
        return f"{self.root}/gw/{gateway}/birth"

    def observation(self, gateway: str = "+", stream: str = "+") -> str:
        """Live readings of a stream."""
        return f"{self.root}/gw/{gateway}/obs/{stream}"

    def last(self, gateway: str = "+", sensor: str = "+") -> str:
        """The last reading of a sensor; retained."""
        return f"{self.root}/gw/{gateway}/last/{sensor}"

    def link(self, gateway: str = "+", *levels: str) -> str:
        """A directed link that the gateway owns; retained; empty when it is gone.

        Args:
            gateway: The owner.
            levels: Relation, source, target, and what else identifies the link, each as
                `level_of` writes it; none: all links of the gateway.
        """
        return f"{self.root}/gw/{gateway}/link/{'/'.join(levels or ('#',))}"

    def history(self, gateway: str = "+", stream: str = "+") -> str:
        """Readings stored while offline, oldest first."""
        return f"{self.root}/gw/{gateway}/hist/{stream}"

    def command(self, gateway: str = "+", verb: str = "+") -> str:
        """A command for a site, from the coordinator: rebirth, ping, flush and others."""
        return f"{self.root}/gw/{gateway}/cmd/{verb}"

    def request(self, site: str = "+", verb: str = "+", sender: str = "+") -> str:
        """Return the topic of a request (resync, forget) from a channel's receiver to its sender.

        Who asks is in the topic, so that access lists of brokers can vouch for it.
        """
        return f"{self.root}/gw/{site}/cmd/{verb}/{sender}"

    def flow(self, site: str = "+") -> str:
        """Counts of batches that a site has sent and received, by query (`SiteFlows`)."""
        return f"{self.root}/gw/{site}/flow"

    def columns(self, site: str = "+") -> str:
        """Counts of the columns of a gateway's source or a stored table (`SourceCount`).

        Values follow from it: only the coordinator may read them.
        """
        return f"{self.root}/gw/{site}/columns"

    def settings(self, gateway: str = "+") -> str:
        """What an operator has set at an engine site (`SiteSettings`); retained."""
        return f"{self.root}/gw/{gateway}/settings"

    def clock(self, gateway: str = "+") -> str:
        """A gateway asks the coordinator for the time; the answer is command `clock`."""
        return f"{self.root}/gw/{gateway}/clock"

    def response(self, gateway: str = "+", request: str = "+") -> str:
        """The answer to a command."""
        return f"{self.root}/gw/{gateway}/rsp/{request}"

    def dead(self, gateway: str = "+") -> str:
        """Payloads that could not be decoded."""
        return f"{self.root}/dead/{gateway}"

    def host_state(self, host: str = "+") -> str:
        """Online or offline of coordinator and static engine; retained; also the will."""
        return f"{self.root}/host/{host}/state"

    def tables(self, host: str = "static") -> str:
        """The definitions of all stored tables, for the host that answers them; retained."""
        return f"{self.root}/host/{host}/tables"

    def reports(self, host: str = "static") -> str:
        """How often a host that is no engine site reports to `sys_stream` (`ReportRequest`).

        Retained; empty while nobody reads it.
        """
        return f"{self.root}/host/{host}/reports"

    def alarms(self, host: str = "+") -> str:
        """Alarms that were raised, seen and cleared (`AlarmChange`), from the coordinator."""
        return f"{self.root}/host/{host}/alarms"

    def fill(self, gateway: str = "+") -> str:
        """Pieces of the lake for a site's windows (`FillRows`), from the static engine."""
        return f"{self.root}/gw/{gateway}/fill"

    def fill_request(self, host: str = "static", sender: str = "+", scope: str = "own") -> str:
        """A site asks for it (`FillWanted`).

        Args:
            host: The static engine.
            sender: The site, so that access lists of brokers can vouch for it.
            scope: "own" for the sender's readings, "all" for those of all gateways.
        """
        return f"{self.root}/host/{host}/fill/{scope}/{sender}"

    def source(self, name: str = "+") -> str:
        """The definition of a declared source (`SourceOrder`); retained; empty when it is dropped.

        Args:
            name: Of the source, as `level_of` writes it.
        """
        return f"{self.root}/source/{name}"

    def interest(self, stream: str = "+") -> str:
        """Whether anybody reads the observations of a stream (`Interest`); retained.

        Args:
            stream: Its name, as `level_of` writes it.
        """
        return f"{self.root}/interest/{stream}"

    def fragment(self, query: str = "+", site: str = "+") -> str:
        """The fragments of a query for one site; retained; empty uninstalls."""
        return f"{self.root}/q/{query}/frag/{site}"

    def exchange(self, query: str = "+", to: str = "+", sender: str = "+") -> str:
        """Delta batches between two sites; FIFO per (from, to, query)."""
        return f"{self.root}/q/{query}/x/{to}/{sender}"

    def output(self, query: str = "+", site: str = "+") -> str:
        """Delta batches of the query's result."""
        return f"{self.root}/q/{query}/out/{site}"

    def error(self, query: str = "+", site: str = "+") -> str:
        """What keeps a site from answering a query; retained; empty when it is over."""
        return f"{self.root}/q/{query}/error/{site}"

    def parts(self, topic: str) -> list[str]:
        """Return the levels after the site, e.g. ['gw', 'gw-1', 'state'].

        Raises:
            WireError: The topic belongs to something else.
        """
        if not topic.startswith(self.root + "/"):
            raise WireError(f"topic {topic!r:.120} is not below {self.root}")
        return topic[len(self.root) + 1 :].split("/")
