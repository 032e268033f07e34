"""REST: the network of shared computations, what rests on what and how many queries that are."""

from enum import StrEnum
from typing import Annotated, Any

from fastapi import APIRouter, Query

from federated_optimizer.coordinator.contract.network_dot import network_dot
from federated_optimizer.coordinator.contract.network_model import (
    MOST_NODES,
    IndexReport,
    NetworkNode,
)
from streamsql.data.types import timestamp_text
from ui.api.objects import Object
from ui.api.routes import Coordinator

router = APIRouter(prefix="/api")


class NetworkFormat(StrEnum):
    """Forms in which the network is given."""

    JSON = "json"
    DOT = "dot"


@router.get("/network")
async def network(
    coordinator: Coordinator,
    most: Annotated[
        int, Query(ge=1, le=MOST_NODES, description="Nodes to list, the most used first")
    ] = MOST_NODES,
    form: Annotated[
        NetworkFormat, Query(alias="format", description="dot: a graph, as text")
    ] = NetworkFormat.JSON,
) -> dict[str, Any]:
    """Return the nodes, on which of them queries rest, and the numbers of those that are hidden."""
    found = coordinator.network(most)
    if form is NetworkFormat.DOT:
        return {"text": network_dot(found)}
    return {
        "nodes": [node_object(node) for node in found.nodes],
        "queries": found.queries,
        "hidden": found.hidden,
        "unlisted": found.unlisted,
    }


def node_object(node: NetworkNode) -> Object:
    """Return a node as JSON."""
    return {
        "node": node.name,
        "run": node.run,
        "fragment": node.fragment,
        "kind": str(node.kind),
        "computes": node.computes,
        "sites": list(node.sites),
        "sources": list(node.sources),
        "reads": list(node.reads),
        "readers": list(node.readers),
        "more_readers": node.more_readers,
        "queries": [{"id": query.id, "name": query.name} for query in node.queries],
        "direct": node.direct,
        "resting": node.resting,
        "owner": node.owner,
        "kept": node.kept,
        "since": timestamp_text(node.since),
        "rows": node.rows,
        "messages_per_second": node.messages,
        "bytes_per_second": node.bytes,
    }


@router.get("/network/index")
async def check_index(coordinator: Coordinator) -> dict[str, Any]:
    """Compare the computation index in the catalog with the runs."""
    return report_object(await coordinator.check_network())


@router.post("/network/index")
async def rebuild_index(coordinator: Coordinator) -> dict[str, Any]:
    """Compare the computation index with the runs, and write what is right; return what was not."""
    return report_object(await coordinator.check_network(rebuild=True))


def report_object(report: IndexReport) -> Object:
    """Return a comparison of the index as JSON."""
    return {
        "runs": report.runs,
        "differences": [
            {"run": each.run, "relation": each.relation, "kind": str(each.kind), "row": each.words}
            for each in report.differences
        ],
        "moving": report.moving,
        "rebuilt": report.rebuilt,
    }
