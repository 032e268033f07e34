"""Properties of sessions: what a setting may add, and what is fixed."""

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from static_engine.spark.session_properties import (
    POOLS_FILE,
    check_properties,
    driver_properties,
    query_properties,
)
from static_engine.spark.spark_masters import MasterKind
from static_engine.spark.spark_work import Pool
from static_engine.static_settings import StaticSettings
from streamsql.errors import DeploymentError

KUBERNETES = {
    "spark.kubernetes.container.image": "registry.example/pando-static",
    "spark.kubernetes.namespace": "pando",
    "spark.driver.host": "static.pando.svc",
    "spark.executor.memory": "2g",
    "spark.executor.instances": "3",
    "spark.pyspark.python": "/opt/pando/bin/python",
}


def test_a_setting_adds_properties() -> None:
    check_properties(KUBERNETES)
    settings = StaticSettings(
        "mqtt://127.0.0.1:1",
        "data",
        spark_master="k8s://https://h:6443",
        spark_properties=KUBERNETES,
    )
    assert settings.spark_properties == KUBERNETES


@pytest.mark.parametrize(
    "name",
    ["image", "spark.master", "spark.sql.ansi.enabled", "spark.scheduler.mode", "sparkling"],
)
def test_a_property_that_is_fixed_or_none_is_refused_by_name(name: str) -> None:
    with pytest.raises(DeploymentError, match=name):
        check_properties({name: "x"})
    with pytest.raises(DeploymentError, match=name):
        StaticSettings("mqtt://127.0.0.1:1", "data", spark_properties={name: "x"})


def test_settings_of_spark_are_not_looked_at_without_spark() -> None:
    StaticSettings("mqtt://127.0.0.1:1", "data", spark_master="", use_spark=False)
    with pytest.raises(DeploymentError, match="spark_master"):
        StaticSettings("mqtt://127.0.0.1:1", "data", spark_master="")


def test_only_a_local_driver_is_bound_to_loopback() -> None:
    local = driver_properties(MasterKind.LOCAL, "local[2]", "1g", 10, Path("data"))
    assert local["spark.driver.host"] == "127.0.0.1"
    cluster = driver_properties(MasterKind.KUBERNETES, "k8s://h", "1g", 10, Path("data"))
    assert "spark.driver.host" not in cluster
    assert query_properties().items() <= local.items()
    assert query_properties().items() <= cluster.items()


def test_there_is_a_pool_for_each_kind_of_work() -> None:
    root = ET.parse(POOLS_FILE).getroot()  # noqa: S314 - our own file
    pools = {pool.get("name"): pool for pool in root}
    assert pools.keys() == {pool.value for pool in Pool}
    weights = {name: int(pool.findtext("weight", "0")) for name, pool in pools.items()}
    assert weights["interactive"] > weights["pipeline"] > weights["maintenance"] > 0
