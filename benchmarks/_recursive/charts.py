"""Four-panel charts as in the paper: one panel a metric, one line a scheme, 95 % intervals."""

import math
import statistics
from collections.abc import Sequence
from pathlib import Path

from benchmarks._recursive.trials import Runs

METRICS = (
    ("provenance_per_row", "provenance a row (B)", 1.0),
    ("bytes_per_site", "communication a site (MB)", 1e6),
    ("state_per_site", "state a site (MB)", 1e6),
    ("seconds", "convergence (s, virtual)", 1.0),
)

# Two-sided 97.5 % quantiles of Student's t for 1 to 30 degrees of freedom.
_T = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
)  # fmt: skip


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Return mean and half width of the 95 % interval.

    Examples:
        >>> interval([2.0, 2.0])
        (2.0, 0.0)
    """
    mean = statistics.fmean(values)
    if len(values) < 2:
        return mean, 0.0
    quantile = _T[min(len(values) - 2, len(_T) - 1)]
    return mean, quantile * statistics.stdev(values) / math.sqrt(len(values))


def draw(series: Runs, title: str, x_label: str, file: Path) -> None:
    """Write a four-panel chart as SVG.

    Points where a run did not finish are left out, as their true value is unknown.
    """
    import matplotlib as mpl  # noqa: PLC0415  (slow to import, needed only here)

    mpl.use("Agg")
    import matplotlib.pyplot as plt  # noqa: PLC0415

    mpl.rcParams["svg.hashsalt"] = file.stem  # the same data gives the same file
    figure, panels = plt.subplots(2, 2, figsize=(10, 7), layout="constrained")
    for (metric, label, unit), panel in zip(METRICS, panels.flat, strict=True):
        positive = False
        for number, (scheme, points) in enumerate(series.items()):
            xs, means, halves = [], [], []
            for x, runs in sorted(points.items()):
                if runs and all(run.costs.finished for run in runs):
                    mean, half = interval([getattr(run.costs, metric) / unit for run in runs])
                    xs.append(x)
                    means.append(mean)
                    halves.append(half)
            positive = positive or any(mean > 0 for mean in means)
            marker = "osv^D*"[number % 6]
            panel.errorbar(xs, means, yerr=halves, marker=marker, capsize=3, label=scheme)
        if positive:
            panel.set_yscale("log")
        panel.set_xlabel(x_label)
        panel.set_ylabel(label)
        panel.grid(visible=True, alpha=0.3)
    panels.flat[0].legend(fontsize="small")
    figure.suptitle(title)
    figure.savefig(file, metadata={"Date": None})
    plt.close(figure)
