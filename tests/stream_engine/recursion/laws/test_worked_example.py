"""The worked example of the literature: four links over three nodes, one node a site.

Messages are link rows sent to where they join, plus derived rows sent between sites, in
synchronous rounds.
"""

import pytest

from stream_engine.recursion.absorption.fixpoint_operator import FixpointOperator
from stream_engine.recursion.program.fixpoint_options import RecursionOptions
from stream_engine.testing.recursion_ensembles import Ensemble
from stream_engine.testing.recursion_programs import reachable
from streamsql.algebra.choices import Annotations, Shipping, Strategy
from streamsql.data.types import Row
from tests.stream_engine.recursion.row_explanations import explain_row, leaf_rows

SITES = ("A", "B", "C")
LINKS = {"p1": ("A", "B"), "p2": ("B", "C"), "p3": ("C", "A"), "p4": ("C", "B")}

FULL = {
    "AA": "p1p2p3",
    "AB": "p1",
    "AC": "p1p2",
    "BA": "p2p3",
    "BB": "p1p2p3 + p2p4",
    "BC": "p2",
    "CA": "p3",
    "CB": "p1p3 + p4",
    "CC": "p1p2p3 + p2p4",
}
WITHOUT_CB = {**FULL, "BB": "p1p2p3", "CB": "p1p3", "CC": "p1p2p3"}


def owner(key: Row, _sites: tuple[str, ...]) -> str:
    return str(key[0])


def loaded(shipping: Shipping, annotations: Annotations) -> tuple[Ensemble, list[int]]:
    options = RecursionOptions(
        strategy=Strategy.ABSORPTION, shipping=shipping, annotations=annotations, owner=owner
    )
    ensemble = Ensemble(reachable(), SITES, options)
    for source, target in LINKS.values():
        ensemble.apply(source, 0, {(source, target, 1): 1})
    return ensemble, ensemble.rounds()


def provenance(ensemble: Ensemble) -> dict[str, str]:
    """Return every row's annotation over the names of the links."""
    operators = [o for o in ensemble.operators.values() if isinstance(o, FixpointOperator)]
    assert len(operators) == len(SITES)
    token_names = {
        token: name
        for operator in operators
        for token, item in leaf_rows(operator, 0)
        for name, link in LINKS.items()
        if item == link
    }
    result = {}
    for operator in operators:
        for row in operator.state_rows():
            explanation = explain_row(operator, row)
            assert explanation is not None
            terms = ["".join(sorted(token_names[t] for t in s)) for s in explanation.supports]
            result["".join(map(str, row))] = " + ".join(sorted(terms))
    return result


@pytest.mark.parametrize("annotations", [Annotations.DNF, Annotations.BDD])
@pytest.mark.parametrize(
    ("shipping", "per_round"),
    [
        (Shipping.SHIP_ALL, [4, 5, 7, 4]),
        (Shipping.EAGER, [4, 5, 7, 3]),
        (Shipping.LAZY, [4, 5, 6, 1]),
        (Shipping.WITNESS, [4, 5, 6, 1]),
    ],
)
def test_messages_to_load(
    shipping: Shipping, annotations: Annotations, per_round: list[int]
) -> None:
    ensemble, sent = loaded(shipping, annotations)
    assert sent == per_round
    if shipping in (Shipping.LAZY, Shipping.WITNESS):
        assert_known_part(provenance(ensemble), FULL)
    else:
        assert provenance(ensemble) == FULL


@pytest.mark.parametrize("annotations", [Annotations.DNF, Annotations.BDD])
@pytest.mark.parametrize("shipping", list(Shipping))
def test_messages_to_delete_a_link(shipping: Shipping, annotations: Annotations) -> None:
    ensemble, _ = loaded(shipping, annotations)
    ensemble.apply("C", 0, {("C", "B", 1): -1})
    sent = ensemble.rounds()
    assert len(ensemble.rows()) == 9
    if shipping in (Shipping.LAZY, Shipping.WITNESS):
        assert 2 <= sum(sent) <= 6
        assert_known_part(provenance(ensemble), WITHOUT_CB)
    else:
        assert sum(sent) == 2
        assert provenance(ensemble) == WITHOUT_CB


def assert_known_part(known: dict[str, str], full: dict[str, str]) -> None:
    """A lazy receiver knows some supports of every row, and no wrong one."""
    assert known.keys() == full.keys()
    for row, text in known.items():
        assert set(text.split(" + ")) <= set(full[row].split(" + "))


def test_no_row_flickers_when_a_link_is_deleted_in_one_site() -> None:
    ensemble, _ = loaded(Shipping.EAGER, Annotations.DNF)
    before = {site: dict(view) for site, view in ensemble.views.items()}
    ensemble.apply("C", 0, {("C", "B", 1): -1})
    for site in SITES:
        assert ensemble.operators[site].settle() == {}
    assert ensemble.views == before


@pytest.mark.parametrize("annotations", [Annotations.DNF, Annotations.BDD])
def test_plain_and_packed_rows_say_the_same(annotations: Annotations) -> None:
    packed, plain = (
        Ensemble(
            reachable(),
            SITES,
            RecursionOptions(
                strategy=Strategy.ABSORPTION,
                shipping=Shipping.EAGER,
                annotations=annotations,
                owner=owner,
                packed=is_packed,
            ),
        )
        for is_packed in (True, False)
    )
    sent = []
    for ensemble in (packed, plain):
        for source, target in LINKS.values():
            ensemble.apply(source, 0, {(source, target, 1): 1})
        sent.append(ensemble.rounds())
        assert provenance(ensemble) == FULL
    assert sent[0] == sent[1]
