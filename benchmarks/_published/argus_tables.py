"""Tables of the protocol of many queries."""

from benchmarks._published.markdown_tables import Found, table

_WORDS = {True: "held", False: "**refuted**", None: "not judged"}


def argus_claims(found: Found) -> str:
    """Return a line for each claim."""
    rows = [
        (
            *(claim["words"], claim["thesis"] or "-", claim["ours"], _WORDS[claim["held"]]),
            claim.get("product") or "-",
        )
        for claim in found["claims"]
    ]
    return table(("claim", "thesis", "here", "verdict", "the product's default"), rows)


def argus_sizes(found: Found) -> str:
    """Return the size of each network by the number of queries."""
    return "\n\n".join(
        _by_configuration(each, "weighted", "{:,}") for each in found["sets"].values()
    )


def argus_updates(found: Found) -> str:
    """Return the milliseconds of an update by the number of queries."""
    return "\n\n".join(
        _by_configuration(each, "update_ms_median", "{:,.1f}") for each in found["sets"].values()
    )


def argus_ends(found: Found) -> str:
    """Return all figures of the last round that each configuration ran in."""
    head = ("set", "configuration", "queries", "runs", "nodes", "QNS", "ms: median", "mean", "max",
            "gateway", "base", "messages", "bytes", "MB", "plan ms", "registration ms: p50",
            "p99")  # fmt: skip
    rows = []
    for each in found["sets"].values():
        last = {
            name: (one["queries"], figures)
            for one in each["rounds"]
            for name, figures in one["configurations"].items()
            if "mb" in figures  # a size that was counted without rows is in the table of sizes
        }
        for name, (queries, f) in last.items():
            whole = (queries, f["runs"], f["nodes"], f["weighted"])
            times = ("update_ms_median", "update_ms_mean", "update_ms_max", "gateway_ms", "base_ms")
            sent = (f["messages"], f["bytes"], f["mb"])
            begun = ("plan_ms_median", "registration_ms_p50", "registration_ms_p99")
            rows.append(
                (
                    each["title"],
                    name,
                    *(f"{figure:,}" for figure in whole),
                    *(f"{f[time]:,.1f}" for time in times),
                    *(f"{figure:,.0f}" for figure in sent),
                    *(f"{f[time]:,.1f}" for time in begun),
                )
            )
    return table(head, rows)


def _by_configuration(each: Found, label: str, form: str) -> str:
    names = list(dict.fromkeys(name for one in each["rounds"] for name in one["configurations"]))
    rows = [
        (
            f"{one['queries']}",
            *(
                form.format(one["configurations"][name][label])
                if label in one["configurations"].get(name, ())
                else "-"
                for name in names
            ),
        )
        for one in each["rounds"]
    ]
    sizes = f"{each['title']}: {each['history']:,} rows, batches of {each['batch']:,}"
    return f"{sizes}\n\n{table(('queries', *names), rows)}"
