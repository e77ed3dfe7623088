"""The messages of etcd's API that are used, made of their field numbers.

The numbers are those of etcd's published api/etcdserverpb/rpc.proto and api/mvccpb/kv.proto (3.4 to 3.6 agree in them).
Classes are made when this is imported, so that they suit whatever version of protobuf's runtime is installed.
"""

# check: allow google.protobuf because it makes etcd's messages

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_PACKAGE = "etcdserverpb"
_MESSAGES: dict[str, str] = {
    "ResponseHeader": "cluster_id=1:uint64 member_id=2:uint64 revision=3 raft_term=4:uint64",
    "KeyValue": "key=1:bytes create_revision=2 mod_revision=3 version=4 value=5:bytes lease=6",
    "Event": "type=1:int32 kv=2:KeyValue prev_kv=3:KeyValue",
    "RangeRequest": "key=1:bytes range_end=2:bytes limit=3 revision=4 serializable=7:bool keys_only=8:bool "
    "count_only=9:bool",
    "RangeResponse": "header=1:ResponseHeader kvs=2*KeyValue more=3:bool count=4",
    "PutRequest": "key=1:bytes value=2:bytes lease=3",
    "PutResponse": "header=1:ResponseHeader",
    "DeleteRangeRequest": "key=1:bytes range_end=2:bytes prev_kv=3:bool",
    "DeleteRangeResponse": "header=1:ResponseHeader deleted=2 prev_kvs=3*KeyValue",
    "RequestOp": "request_range=1:RangeRequest request_put=2:PutRequest request_delete_range=3:DeleteRangeRequest",
    "ResponseOp": "response_range=1:RangeResponse response_put=2:PutResponse "
    "response_delete_range=3:DeleteRangeResponse",
    "Compare": "result=1:int32 target=2:int32 key=3:bytes mod_revision=6",
    "TxnRequest": "compare=1*Compare success=2*RequestOp failure=3*RequestOp",
    "TxnResponse": "header=1:ResponseHeader succeeded=2:bool responses=3*ResponseOp",
    "CompactionRequest": "revision=1 physical=2:bool",
    "CompactionResponse": "header=1:ResponseHeader",
    "WatchCreateRequest": "key=1:bytes range_end=2:bytes start_revision=3 progress_notify=4:bool prev_kv=6:bool",
    "WatchProgressRequest": "",
    "WatchRequest": "create_request=1:WatchCreateRequest progress_request=3:WatchProgressRequest",
    "WatchResponse": "header=1:ResponseHeader watch_id=2 created=3:bool canceled=4:bool compact_revision=5 "
    "cancel_reason=6:string events=11*Event",
    "LeaseGrantRequest": "TTL=1 ID=2",
    "LeaseGrantResponse": "header=1:ResponseHeader ID=2 TTL=3 error=4:string",
    "LeaseRevokeRequest": "ID=1",
    "LeaseRevokeResponse": "header=1:ResponseHeader",
    "AuthenticateRequest": "name=1:string password=2:string",
    "AuthenticateResponse": "header=1:ResponseHeader token=2:string",
    "StatusRequest": "",
    "StatusResponse": "header=1:ResponseHeader version=2:string dbSize=3 leader=4:uint64",
}
"""Message → fields: name, number, then `:type` or `*type` of a repeated message; without a type it is an int64."""

COMPARE_EQUAL, COMPARE_MOD = 0, 2
EVENT_DELETE = 1


def _classes() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(name="lastcall/etcd.proto", package=_PACKAGE, syntax="proto3")
    kinds = descriptor_pb2.FieldDescriptorProto
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for text in fields.split():
            label, _, rest = text.partition("=")
            repeated = "*" in rest
            number, _, type_ = rest.replace("*", ":").partition(":")
            field = message.field.add(name=label, number=int(number))
            field.label = kinds.LABEL_REPEATED if repeated else kinds.LABEL_OPTIONAL
            if type_ in _MESSAGES:
                field.type, field.type_name = kinds.TYPE_MESSAGE, f".{_PACKAGE}.{type_}"
            else:
                field.type = getattr(kinds, f"TYPE_{(type_ or 'int64').upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}")) for name in _MESSAGES
    }


_made = _classes()
RangeRequest = _made["RangeRequest"]
RangeResponse = _made["RangeResponse"]
PutRequest = _made["PutRequest"]
DeleteRangeRequest = _made["DeleteRangeRequest"]
RequestOp = _made["RequestOp"]
Compare = _made["Compare"]
TxnRequest = _made["TxnRequest"]
CompactionRequest = _made["CompactionRequest"]
WatchRequest = _made["WatchRequest"]
WatchCreateRequest = _made["WatchCreateRequest"]
WatchProgressRequest = _made["WatchProgressRequest"]
LeaseGrantRequest = _made["LeaseGrantRequest"]
AuthenticateRequest = _made["AuthenticateRequest"]
StatusRequest = _made["StatusRequest"]

_METHODS: dict[str, tuple[str, str]] = {
    "/etcdserverpb.KV/Range": ("RangeRequest", "RangeResponse"),
    "/etcdserverpb.KV/Txn": ("TxnRequest", "TxnResponse"),
    "/etcdserverpb.KV/Compact": ("CompactionRequest", "CompactionResponse"),
    "/etcdserverpb.Lease/LeaseGrant": ("LeaseGrantRequest", "LeaseGrantResponse"),
    "/etcdserverpb.Auth/Authenticate": ("AuthenticateRequest", "AuthenticateResponse"),
    "/etcdserverpb.Maintenance/Status": ("StatusRequest", "StatusResponse"),
    "/etcdserverpb.Watch/Watch": ("WatchRequest", "WatchResponse"),
}
RANGE = "/etcdserverpb.KV/Range"
TXN = "/etcdserverpb.KV/Txn"
COMPACT = "/etcdserverpb.KV/Compact"
GRANT = "/etcdserverpb.Lease/LeaseGrant"
AUTHENTICATE = "/etcdserverpb.Auth/Authenticate"
STATUS = "/etcdserverpb.Maintenance/Status"
WATCH = "/etcdserverpb.Watch/Watch"


def serializers(method: str) -> tuple[Any, Any]:
    """Return (how a request of this method is written, how its answer is read)."""
    request, response = _METHODS[method]
    return _made[request].SerializeToString, _made[response].FromString
