"""Whatever comes, the counts are those of the devices, and the bounds hold."""

import contextlib

from hypothesis import given
from hypothesis import strategies as st

from streamsql.mapping.payloads.sparkplug_payload import SparkplugPayload
from streamsql.mapping.sparkplug import followed_nodes
from streamsql.mapping.sparkplug.followed_nodes import FollowedNodes, TooManyError
from streamsql.mapping.sparkplug.session_changes import DeviceId

SECOND = 1_000_000
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["data", "birth", "node birth", "death", "wait", "hour"]),
        st.sampled_from("abcdef"),
        st.sampled_from(["", "x", "y", "z"]),
    ),
    max_size=60,
)


@given(STEPS)
def test_counts_are_right_and_bounded(steps: list[tuple[str, str, str]]) -> None:
    nodes, now = FollowedNodes(["Temp"]), 0
    most = followed_nodes.MAX_NODES, followed_nodes.MAX_DEVICES
    followed_nodes.MAX_NODES, followed_nodes.MAX_DEVICES = 3, 6
    try:
        for kind, name, device in steps:
            now += SECOND
            take(nodes, kind, ("g", name), device, now)
            states = [state for _, state in nodes]
            assert nodes.devices == sum(len(state.devices) for state in states) <= 6
            assert len(states) <= 3
    finally:
        followed_nodes.MAX_NODES, followed_nodes.MAX_DEVICES = most


def take(nodes: FollowedNodes, kind: str, node: tuple[str, str], device: str, now: int) -> None:
    gone: list[DeviceId] = []
    known = nodes.get(node)
    if kind == "hour":
        nodes.remove_silent(gone, now + 3_600 * SECOND)
    elif kind == "death":
        nodes.remove_device(gone, node, device)
    elif kind == "wait":
        if known is not None:
            nodes.end_wait(gone, node, known, now)
    else:
        with contextlib.suppress(TooManyError):
            state = nodes.node(gone, node, now)
            if kind == "node birth":
                nodes.take_node_birth(node, state, 0, now)
            nodes.device(gone, node, state, device, now)
            if kind != "data":
                nodes.take_birth(node, state, device, SparkplugPayload(None, None, ()), now)
