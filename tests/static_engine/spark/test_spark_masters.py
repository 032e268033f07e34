"""Addresses of masters: each form that Spark has is told apart, all else is refused by name."""

import pytest

from static_engine.spark.spark_masters import MasterKind, master_kind
from streamsql.errors import DeploymentError


@pytest.mark.parametrize(
    ("master", "kind"),
    [
        ("local", MasterKind.LOCAL),
        ("local[*]", MasterKind.LOCAL),
        ("local[2]", MasterKind.LOCAL),
        ("local[2,4]", MasterKind.LOCAL),
        ("spark://h:7077", MasterKind.STANDALONE),
        ("spark://one:7077,two:7077", MasterKind.STANDALONE),
        ("k8s://https://10.0.0.1:6443", MasterKind.KUBERNETES),
        ("yarn", MasterKind.YARN),
        ("sc://h", MasterKind.CONNECT),
        ("sc://h:15002/;use_ssl=true;token=x", MasterKind.CONNECT),
    ],
)
def test_masters_are_told_apart(master: str, kind: MasterKind) -> None:
    assert master_kind(master) is kind
    assert kind.has_workers is (kind is not MasterKind.LOCAL)
    assert kind.starts_jvm is (kind is not MasterKind.CONNECT)


@pytest.mark.parametrize(
    "master", ["", "local[0]", "local[]", "spark://h", "spark://", "mesos://h:1", "http://h:7077"]
)
def test_what_is_no_master_is_refused_by_name(master: str) -> None:
    with pytest.raises(DeploymentError) as caught:
        master_kind(master)
    assert repr(master) in caught.value.message
    assert "spark://host:7077" in str(caught.value)
