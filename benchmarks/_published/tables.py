"""Tables from files of figures: what a benchmark has found, as the documentation shows it."""

from collections.abc import Callable
from typing import NamedTuple

from benchmarks._published.argus_tables import (
    argus_claims,
    argus_ends,
    argus_sizes,
    argus_updates,
)
from benchmarks._published.calibration_tables import (
    calibration_constants,
    calibration_figures,
    calibration_worst,
)
from benchmarks._published.markdown_tables import Found, table
from benchmarks._published.optimizer_tables import (
    optimizer_goals,
    optimizer_planning,
    optimizer_queries,
    optimizer_worlds,
)


class Published(NamedTuple):
    """A table of the documentation.

    Attributes:
        page: Below `docs`.
        file: Of figures, below `docs/results`.
        command: That makes the file.
        render: Returns the table from the file's content.
    """

    page: str
    file: str
    command: str
    render: Callable[[Found], str]


def number(value: float | None, digits: int = 1) -> str:
    """Return a figure with as many digits behind the point; a dash where there is none."""
    return "-" if value is None else f"{value:,.{digits}f}"


def rounded(value: float) -> str:
    """Return a rate with three digits that count.

    Examples:
        >>> rounded(29405.59), rounded(96.6), rounded(9.7)
        ('29,400', '96.6', '9.7')
    """
    places = len(str(int(value))) - 3
    return f"{round(value, -places):,.0f}" if places >= 0 else f"{value:.1f}"


def subsumption(found: Found) -> str:
    """Return a line for each world: what of each kind is not found, and of how much."""
    kinds = {
        "usual": "usual filters",
        "unusual": "unusual filters",
        "contradictions": "contradictions",
        "needless": "needless parts",
        "lookups": "look-ups",
    }
    rows = [
        (world, *(f"{each[kind]['missed']:.1%} of {each[kind]['there']:,}" for kind in kinds))
        for world, each in found["worlds"].items()
    ]
    return table(("columns", *kinds.values()), rows)


def intake(found: Found) -> str:
    """Return the loads, and the targets that were missed."""
    labels = ("busy %", "µs", "p50 ms", "p99 ms", "MB at rest", "MB under load")
    titles = ("load", "unseen", "% of a core", "CPU a reading, µs", *labels[2:])
    rows = []
    for load, by_tree in found["loads"].items():
        figures = by_tree["here"]
        missing = (figures["unseen rows"] or 0) + (figures["unseen observations"] or 0)
        rows.append((load, number(missing, 0), *(number(figures[label]) for label in labels)))
    missed = found["missed"]
    told = "Missed: " + "; ".join(missed) if missed else "No target is missed"
    return f"{table(titles, rows)}\n\nBroker: {found['broker']}. {told}."


def connectors(found: Found) -> str:
    """Return a line for each connector and its bare library."""
    rows = []
    for kind, each in found["kinds"].items():
        ours, bare = (each["figures"][name] for name in ("connector", "bare library"))
        rates = [
            "limited by peer" if each["limited by peer"] else rounded(figures["readings/s"])
            for figures in (ours, bare)
        ]
        costs = [number(figures["µs/reading"]) for figures in (ours, bare)]
        rows.append((kind, rates[0], costs[0], rates[1], costs[1]))
    head = ("connector", "readings a second", "µs a reading", "bare library: a second", "µs")
    return table(head, rows)


def device_faults(found: Found) -> str:
    """Return a line for each connector."""
    head = ("connector", "acknowledged when", "sent", "acknowledged", "arrived", "lost after",
            "lost before", "doubled", "of these forgotten", "others at most",
            "kills", "s")  # fmt: skip
    rows = []
    for name, each in found["connectors"].items():
        keys = ("sent", "acknowledged", "arrived", "lost", "lost_before", "doubled",
                "forgotten", "allowed")  # fmt: skip
        counts = [f"{each[key]:,}" for key in keys]
        kills = sum(each["kills"].values())
        rows.append((name, each["acknowledged when"], *counts, kills, number(each["seconds"], 0)))
    settings = found["settings"]
    return (
        f"{table(head, rows)}\n\n{settings['readings']:,} readings of each device at most, seed "
        f"{settings['seed']}, broker of the federation: {found['broker']}."
    )


def mapping(found: Found) -> str:
    """Return a line for each payload."""
    rows = []
    for title, each in found["formats"].items():
        name, _, library = title.rpartition(" (")
        ours, bare = (number(each[f"{whose}, µs a payload"]) for whose in ("mapper", "library"))
        rows.append((name, each["bytes"], ours, f"{bare} ({library}"))
    return table(("payload", "bytes", "rows", "library"), rows)


_SINKS = (
    ("MQTT, new keys (written to the catalog first)", "mqtt upsert", "new keys"),
    ("MQTT, changed keys", "mqtt upsert", "changed keys"),
    ("MQTT, rows of a stream", "mqtt append", "rows"),
    ("webhook, changed keys, 100 a request", "webhook upsert", "changed keys"),
    ("webhook, rows of a stream, 100 a request", "webhook append", "rows"),
)


def sinks(found: Found) -> str:
    """Return a line for each kind of message."""
    rows = []
    for title, kind, what in _SINKS:
        (figures,) = (each for name, each in found.items() if name.startswith(kind))
        rate = rounded(figures[f"{what}: msg/s"])
        cost = f"{number(figures[f'{what}: CPU us/msg'], 0)} µs"
        late = [f"{number(figures[f'{share} ms at 200/s'])} ms" for share in ("p50", "p99")]
        rows.append((title, rate, cost, "" if what == "new keys" else ", ".join(late)))
    return table(("", "messages a second", "CPU a message", "p50, p99 at 200 a second"), rows)


def hostile(found: Found) -> str:
    """Return a line for each format."""
    keys = ("payloads", "rows", "refused", "problems")
    rows = [
        (form, *(f"{each[key]:,}" for key in keys), number(each["seconds"], 0))
        for form, each in found["formats"].items()
    ]
    head = ("format", "payloads", "rows", "refused rows and payloads", "payloads with problems",
            "s")  # fmt: skip
    settings = found["settings"]
    told = f"{settings['count']:,} drawn payloads of each format, seed {settings['seed']}."
    return f"{table(head, rows)}\n\n{told}"


def fleet(found: Found) -> str:
    """Return the figures of coordinator, base site and bare subscriber, per broker."""
    labels = {
        "at rest per gateway, % of a core": 4,
        "per reading, µs": 0,
        "memory without gateways, MB": 0,
        "memory per gateway, kB": 0,
        "first all live, s": 1,
        "broker's fall, all live, s": 1,
        "broker's fall, result whole, s": 1,
    }
    rows = [
        (broker, who, *(number(figures.get(label), digits) for label, digits in labels.items()))
        for broker, by_process in found["brokers"].items()
        for who, figures in by_process.items()
    ]
    settings = found["settings"]
    told = f"{settings['gateways']} gateways, median of {settings['rounds']} runs per broker."
    return f"{table(('broker', 'process', *labels), rows)}\n\n{told}"


def security(found: Found) -> str:
    """Return what was tried at brokers, services and console, and what came of it."""
    names = {"embedded": "the embedded broker", "mosquitto": "Mosquitto"}
    rows = []
    for kind, figures in found["topics"].items():
        tried = figures["allowed"] + figures["refused"]
        refused = f"{figures['refused']:,} refused, {figures['delivered']:,} messages delivered"
        rows.append((f"topics at {names[kind]}", f"{tried:,}", f"{refused}: all as stated"))
    for kind, figures in found["messages"].items():
        grown = max(
            after - before for before, after in figures["megabytes_before_and_after"].values()
        )
        told = (
            f"{figures['refused_by_the_broker']:,} refused by the broker; "
            f"{figures['answers_compared']:,} times the answers were right; "
            f"{max(figures['dead_letters'].values()):,} dead letters of a service at most; "
            f"no service grew by more than {grown:.0f} MB"
        )
        rows.append((f"forged messages through {names[kind]}", f"{figures['messages']:,}", told))
    asked = found["requests"]
    before, after = asked["megabytes_before_and_after"]
    told = f"{asked['answered']:,} answered, {asked['refused']:,} refused: all as stated"
    each = f"{asked['routes']} routes of the console, as everybody"
    rows.append((each, f"{asked['answered'] + asked['refused']:,}", told))
    server_errors = sum(n for status, n in asked["answers"].items() if status.startswith("5"))
    told = (
        f"{server_errors} errors of the server, no secret told; it grew by {after - before:.0f} MB"
    )
    answered = sum(asked["answers"].values())
    rows.append(("malformed requests to the console", f"{answered:,}", told))
    return table(("what", "tried", "what came of it"), rows)


TABLES = {
    "subsumption": Published(
        "results/subsumption.md", "subsumption.json",
        "pando bench subsumption --out docs/results", subsumption,
    ),
    "optimizer-goals": Published(
        "results/optimizer.md", "optimizer.json", "pando bench optimizer --out docs/results",
        optimizer_goals,
    ),
    "optimizer-worlds": Published(
        "results/optimizer.md", "optimizer.json", "pando bench optimizer --out docs/results",
        optimizer_worlds,
    ),
    "optimizer-queries": Published(
        "results/optimizer.md", "optimizer.json", "pando bench optimizer --out docs/results",
        optimizer_queries,
    ),
    "optimizer-planning": Published(
        "results/optimizer.md", "optimizer.json", "pando bench optimizer --out docs/results",
        optimizer_planning,
    ),
    **{
        f"calibration-{name}": Published(
            "results/calibration.md",
            "calibration.json",
            "pando bench calibration --out docs/results",
            render,
        )
        for name, render in {
            "figures": calibration_figures,
            "constants": calibration_constants,
            "worst": calibration_worst,
        }.items()
    },
    **{
        f"argus-{name}": Published(
            "results/argus.md", "argus.json", "pando bench argus --out docs/results", render
        )
        for name, render in {
            "claims": argus_claims,
            "sizes": argus_sizes,
            "updates": argus_updates,
            "ends": argus_ends,
        }.items()
    },
    "security": Published(
        "security.md",
        "security.json",
        "python -m tests.security --out docs/results",
        security,
    ),
    "fleet": Published(
        "performance.md",
        "fleet.json",
        "python -m benchmarks.fleet --out docs/results",
        fleet,
    ),
    "intake": Published(
        "performance.md",
        "intake.json",
        "python -m benchmarks.intake --out docs/results",
        intake,
    ),
    "connectors": Published(
        "performance.md",
        "connectors.json",
        "python -m benchmarks.connectors --out docs/results",
        connectors,
    ),
    "device-faults": Published(
        "performance.md",
        "device-faults.json",
        "python -m benchmarks.device_faults --out docs/results",
        device_faults,
    ),
    "mapping": Published(
        "mapping.md", "mapping.json", "python -m benchmarks.mapping --out docs/results", mapping
    ),
    "sinks": Published(
        "sinks.md", "sinks.json", "python -m benchmarks.sinks --json > docs/results/sinks.json",
        sinks,
    ),
    "hostile-devices": Published(
        "results/README.md",
        "hostile-devices.json",
        "python -m tests.streamsql.mapping.hostile --out docs/results",
        hostile,
    ),
}  # fmt: skip
