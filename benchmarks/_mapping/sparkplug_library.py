"""Sparkplug payloads as the protobuf library writes and reads them."""

from typing import Any

from google.protobuf import (  # type: ignore[import-untyped]
    descriptor_pb2,
    descriptor_pool,
    message_factory,
)

_Type = descriptor_pb2.FieldDescriptorProto

# The fields of the specification's sparkplug_b.proto that this package reads, and one it skips.
_METRIC = {
    "name": (1, _Type.TYPE_STRING), "alias": (2, _Type.TYPE_UINT64),
    "timestamp": (3, _Type.TYPE_UINT64), "datatype": (4, _Type.TYPE_UINT32),
    "is_historical": (5, _Type.TYPE_BOOL), "is_null": (7, _Type.TYPE_BOOL),
    "int_value": (10, _Type.TYPE_UINT32), "long_value": (11, _Type.TYPE_UINT64),
    "float_value": (12, _Type.TYPE_FLOAT), "double_value": (13, _Type.TYPE_DOUBLE),
    "boolean_value": (14, _Type.TYPE_BOOL), "string_value": (15, _Type.TYPE_STRING),
    "bytes_value": (16, _Type.TYPE_BYTES), "unknown": (200, _Type.TYPE_BYTES),
}  # fmt: skip


def payload_class() -> Any:

    file = descriptor_pb2.FileDescriptorProto(name="b.proto", package="b", syntax="proto2")
    metric = file.message_type.add(name="Metric")
    for name, (number, kind) in _METRIC.items():
        metric.field.add(name=name, number=number, type=kind, label=_Type.LABEL_OPTIONAL)
    payload = file.message_type.add(name="Payload")
    for name, number in (("timestamp", 1), ("seq", 3)):
        payload.field.add(
            name=name, number=number, type=_Type.TYPE_UINT64, label=_Type.LABEL_OPTIONAL
        )
    payload.field.add(
        name="metrics", number=2, type=_Type.TYPE_MESSAGE, label=_Type.LABEL_REPEATED,
        type_name=".b.Metric",
    )  # fmt: skip
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("b.Payload"))
