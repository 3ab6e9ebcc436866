"""What a tool such as grpcurl does: learn the calls from the server, and make some of them.

Usage: reflection.py SOCKET

It has no definitions of etcd. The descriptions come from the server, and are read by the library
of Protocol Buffers.
"""

import sys

import grpc
from google.protobuf import json_format, message_factory
from google.protobuf.descriptor_pool import DescriptorPool
from grpc_reflection.v1alpha import reflection_pb2
from grpc_reflection.v1alpha import proto_reflection_descriptor_database as reflection_database

socket = sys.argv[1]
target = f"unix-abstract:{socket[1:]}" if socket.startswith("@") else f"unix:{socket}"
channel = grpc.insecure_channel(target, [("grpc.default_authority", "doorway")])
database = reflection_database.ProtoReflectionDescriptorDatabase(channel)
pool = DescriptorPool(database)


def call(method, message):
    """Make a call, and return its answer, or the first one of several."""
    streams = (method.client_streaming, method.server_streaming)
    kind = "_".join("stream" if several else "unary" for several in streams)
    path = f"/{method.containing_service.full_name}/{method.name}"
    answer = message_factory.GetMessageClass(method.output_type)
    stub = getattr(channel, kind)(path, type(message).SerializeToString, answer.FromString)
    if method.client_streaming:
        return next(stub(iter([message]), timeout=20), None)
    if method.server_streaming:
        return next(stub(message, timeout=20), None)
    return stub(message, timeout=20)


def ask(name, **fields):
    service, method = name.rsplit(".", 1)
    method = pool.FindServiceByName(service).methods_by_name[method]
    request = message_factory.GetMessageClass(method.input_type)()
    answer = call(method, json_format.ParseDict(fields, request))
    return json_format.MessageToDict(answer, preserving_proto_field_name=True)


# Everything that is listed is served.
services = database.get_services()
assert "etcdserverpb.KV" in services and "v3lockpb.Lock" in services, services
calls = [method for name in services for method in pool.FindServiceByName(name).methods]
for method in calls:
    try:
        call(method, message_factory.GetMessageClass(method.input_type)())
    except grpc.RpcError as error:
        wrong = (grpc.StatusCode.UNIMPLEMENTED, grpc.StatusCode.DEADLINE_EXCEEDED)
        assert error.code() not in wrong, (method.full_name, error)
assert len(calls) == 20, [method.full_name for method in calls]

# Version 1 gives the answers of version 1alpha.
request = reflection_pb2.ServerReflectionRequest
response = reflection_pb2.ServerReflectionResponse
symbol = request(host="here", file_containing_symbol="etcdserverpb.KV.Txn")
answers = []
for version in ("v1", "v1alpha"):
    path = f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo"
    stub = channel.stream_stream(path, request.SerializeToString, response.FromString)
    answers.append(next(stub(iter([symbol]), timeout=20)))
assert answers[0] == answers[1]
assert len(answers[0].file_descriptor_response.file_descriptor_proto) == 2
assert answers[0].original_request == symbol and answers[0].valid_host == "here"

# A lock, as etcd's clients take it.
lease = ask("etcdserverpb.Lease.LeaseGrant", TTL=10)["ID"]
key, value = "cmVwb3J0", "bWluZQ=="  # "report" and "mine" in base64.
absent = [{"target": "CREATE", "key": key, "create_revision": 0}]
put = [{"request_put": {"key": key, "value": value, "lease": lease}}]
taken = ask("etcdserverpb.KV.Txn", compare=absent, success=put)
assert taken["succeeded"], taken
held = ask("etcdserverpb.KV.Range", key=key)["kvs"]
assert held[0]["value"] == value and int(held[0]["create_revision"]) > 0, held
assert not ask("etcdserverpb.KV.Txn", compare=absent, success=put).get("succeeded")
assert ask("etcdserverpb.Lease.LeaseKeepAlive", ID=lease)["TTL"] == "10"
ask("etcdserverpb.Lease.LeaseRevoke", ID=lease)
print("all is well")
