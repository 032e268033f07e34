"""What others publish of their own programs on their machines: nothing of it is measured here."""

from typing import NamedTuple


class TheirFigure(NamedTuple):
    """A figure that somebody publishes of their own program.

    Attributes:
        who: The program.
        what: The figure, in their words or figures.
        where: The page, and its section.
        seen: When it stood there.
    """

    who: str
    what: str
    where: str
    seen: str


THEIRS = (
    TheirFigure(
        "eKuiper",
        "12k messages a second, CPU sys+user 70 %, 20 MB on a Raspberry Pi 3B+; MQTT to a file "
        "through SELECT … WHERE",
        "README of github.com/lf-edge/ekuiper, 'MQTT throughput test'",
        "2026-11-26",
    ),
    TheirFigure(
        "eKuiper",
        "10k messages a second, CPU sys+user 25 %, 20 MB on an AWS t2.micro with one core, that is "
        "25 µs of CPU a message for all steps; the same test",
        "README of github.com/lf-edge/ekuiper, 'MQTT throughput test'",
        "2026-11-26",
    ),
    TheirFigure(
        "Telegraf",
        "time and allocations of each parser with Go 1.21.4, which its maintainers call no direct "
        "comparison; no figure from message to output was found",
        "github.com/influxdata/telegraf/issues/11850, comment of 2023-11-16",
        "2026-11-26",
    ),
)
