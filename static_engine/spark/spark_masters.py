"""Addresses of Spark masters, and what follows from their kind."""

import re
from enum import Enum

from streamsql.errors import DeploymentError


class MasterKind(Enum):
    """Place where Spark's work is done."""

    LOCAL = "this machine"
    STANDALONE = "a standalone cluster"
    KUBERNETES = "Kubernetes"
    YARN = "YARN"
    CONNECT = "a Spark Connect server"

    @property
    def starts_jvm(self) -> bool:
        """Whether the driver is a JVM of ours; a Connect server has its own."""
        return self is not MasterKind.CONNECT

    @property
    def has_workers(self) -> bool:
        """Whether executors other than our driver do the work."""
        return self is not MasterKind.LOCAL


_FORMS = {
    MasterKind.LOCAL: r"local(\[(\*|[1-9]\d*)(,\d+)?\])?",
    MasterKind.STANDALONE: r"spark://[^\s/,:]+:\d+(,[^\s/,:]+:\d+)*",
    MasterKind.KUBERNETES: r"k8s://\S+",
    MasterKind.YARN: r"yarn",
    MasterKind.CONNECT: r"sc://\S+",
}


def master_kind(master: str) -> MasterKind:
    """Return the kind of a master.

    Raises:
        DeploymentError: Spark has no such master.
    """
    for kind, form in _FORMS.items():
        if re.fullmatch(form, master):
            return kind
    raise DeploymentError(
        f"setting spark_master: {master!r:.80} is no master of Spark's",
        hint="write local[*], spark://host:7077, k8s://https://host:6443, yarn or sc://host:15002",
    )
