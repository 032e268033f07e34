"""Comparisons of plans in words, by the metric that decides."""

from dataclasses import dataclass

from streamsql.algebra.metrics import Metric, Term


@dataclass(frozen=True, slots=True)
class MetricWords:
    """Words for a metric.

    Attributes:
        least: Of the cheapest plan.
        nothing: Of a plan that costs nothing.
        does: What another plan does: `does` twice as much.
    """

    least: str
    nothing: str
    does: str


_WORDS = {
    Term.BYTES: MetricWords("it sends least", "nothing travels", "sends"),
    Term.MESSAGES: MetricWords("it sends the fewest messages", "nothing travels", "sends"),
    Term.LATENCY: MetricWords("its changes show first", "changes show at once", "takes"),
    Term.ENERGY: MetricWords("it takes the least energy", "it takes no energy", "takes"),
    Term.CPU: MetricWords("it computes least", "it computes nothing", "computes"),
    Term.STATE: MetricWords("it keeps the fewest bytes", "it keeps nothing", "keeps"),
    Term.ENGINE: MetricWords(
        "it uses Spark and the local executor least", "it uses neither of both", "uses them"
    ),
}


def words_of(metric: Metric) -> MetricWords:
    """Return the words for a metric; of several terms those of the weighted sum."""
    if metric.only is not None:
        return _WORDS[metric.only]
    return MetricWords(f"it costs least by {metric}", f"it costs nothing by {metric}", "costs")
