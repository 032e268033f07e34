"""What the parts of a site say of themselves: one value of one property of one entity."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Property:
    """A row of `sys_stream` without its time and site.

    Attributes:
        query: "" for what belongs to no query.
        entity: Unique among the entities of its kind at the site: "f1/3", the operator with the
            number 3 in the circuit of fragment f1.
        kind: "site", "operator", "queue", "synopsis", "store", "channel", "source", …
        property: What is measured: "rows_in", "selectivity", …
    """

    query: str
    entity: str
    kind: str
    property: str
    value: float
