//! The messages of etcd that lock clients need, from `rpc.proto`, `kv.proto`, `v3lock.proto` and
//! `v3election.proto`.
//!
//! The first number of a field is its number in the bytes of a message; the text is its name in
//! JSON. Of the fields that etcd's definition calls `oneof`, which are an `Option` each, a message
//! has one.

use serde_json::{Map, Value};

use super::wire::{
    EnumField, Enumeration, Field, FieldInfo, MalformedMessage, Message, Package, Raw, camel,
    enumerations, messages, object,
};

enumerations! {
    /// The order of the keys in a response.
    SortOrder { None "NONE", Ascend "ASCEND", Descend "DESCEND" }

    /// By what the keys in a response are sorted.
    SortTarget { Key "KEY", Version "VERSION", Create "CREATE", Mod "MOD", Value "VALUE" }

    /// How a comparison must turn out.
    CompareResult { Equal "EQUAL", Greater "GREATER", Less "LESS", NotEqual "NOT_EQUAL" }

    /// What is compared.
    CompareTarget {
        Version "VERSION", Create "CREATE", Mod "MOD", Value "VALUE", Lease "LEASE",
    }

    /// Which events a watch leaves out.
    FilterType { NoPut "NOPUT", NoDelete "NODELETE" }

    /// What happened to a key.
    EventType { Put "PUT", Delete "DELETE" }

    /// Whether a service works, as the health protocol of gRPC says it.
    ServingStatus { Unspecified "UNKNOWN", Serving "SERVING", NotServing "NOT_SERVING" }
}

messages! {
    MVCC = "mvccpb";

    /// A key with its value.
    KeyValue {
        key: Vec<u8> = 1 "key",
        create_revision: i64 = 2 "create_revision",
        mod_revision: i64 = 3 "mod_revision",
        version: i64 = 4 "version",
        value: Vec<u8> = 5 "value",
        lease: i64 = 6 "lease",
    }

    /// A change of a key.
    Event {
        kind: EnumField<EventType> = 1 "type",
        kv: Option<KeyValue> = 2 "kv",
        prev_kv: Option<KeyValue> = 3 "prev_kv",
    }
}

messages! {
    SERVER = "etcdserverpb";

    /// What every response begins with.
    ResponseHeader {
        cluster_id: u64 = 1 "cluster_id",
        member_id: u64 = 2 "member_id",
        revision: i64 = 3 "revision",
        raft_term: u64 = 4 "raft_term",
    }

    RangeRequest {
        key: Vec<u8> = 1 "key",
        range_end: Vec<u8> = 2 "range_end",
        limit: i64 = 3 "limit",
        revision: i64 = 4 "revision",
        sort_order: EnumField<SortOrder> = 5 "sort_order",
        sort_target: EnumField<SortTarget> = 6 "sort_target",
        serializable: bool = 7 "serializable",
        keys_only: bool = 8 "keys_only",
        count_only: bool = 9 "count_only",
        min_mod_revision: i64 = 10 "min_mod_revision",
        max_mod_revision: i64 = 11 "max_mod_revision",
        min_create_revision: i64 = 12 "min_create_revision",
        max_create_revision: i64 = 13 "max_create_revision",
    }

    RangeResponse {
        header: Option<ResponseHeader> = 1 "header",
        kvs: Vec<KeyValue> = 2 "kvs",
        more: bool = 3 "more",
        count: i64 = 4 "count",
    }

    PutRequest {
        key: Vec<u8> = 1 "key",
        value: Vec<u8> = 2 "value",
        lease: i64 = 3 "lease",
        prev_kv: bool = 4 "prev_kv",
        ignore_value: bool = 5 "ignore_value",
        ignore_lease: bool = 6 "ignore_lease",
    }

    PutResponse {
        header: Option<ResponseHeader> = 1 "header",
        prev_kv: Option<KeyValue> = 2 "prev_kv",
    }

    DeleteRangeRequest {
        key: Vec<u8> = 1 "key",
        range_end: Vec<u8> = 2 "range_end",
        prev_kv: bool = 3 "prev_kv",
    }

    DeleteRangeResponse {
        header: Option<ResponseHeader> = 1 "header",
        deleted: i64 = 2 "deleted",
        prev_kvs: Vec<KeyValue> = 3 "prev_kvs",
    }

    /// One operation of a transaction. A transaction inside a transaction is not read.
    RequestOp {
        request_range: Option<RangeRequest> = 1 "request_range",
        request_put: Option<PutRequest> = 2 "request_put",
        request_delete_range: Option<DeleteRangeRequest> = 3 "request_delete_range",
        request_txn: Option<Vec<u8>> = 4 "request_txn",
    }

    ResponseOp {
        response_range: Option<RangeResponse> = 1 "response_range",
        response_put: Option<PutResponse> = 2 "response_put",
        response_delete_range: Option<DeleteRangeResponse> = 3 "response_delete_range",
    }

    Compare {
        result: EnumField<CompareResult> = 1 "result",
        target: EnumField<CompareTarget> = 2 "target",
        key: Vec<u8> = 3 "key",
        version: Option<i64> = 4 "version",
        create_revision: Option<i64> = 5 "create_revision",
        mod_revision: Option<i64> = 6 "mod_revision",
        value: Option<Vec<u8>> = 7 "value",
        lease: Option<i64> = 8 "lease",
        range_end: Vec<u8> = 64 "range_end",
    }

    TxnRequest {
        compare: Vec<Compare> = 1 "compare",
        success: Vec<RequestOp> = 2 "success",
        failure: Vec<RequestOp> = 3 "failure",
    }

    TxnResponse {
        header: Option<ResponseHeader> = 1 "header",
        succeeded: bool = 2 "succeeded",
        responses: Vec<ResponseOp> = 3 "responses",
    }

    LeaseGrantRequest {
        ttl: i64 = 1 "TTL",
        id: i64 = 2 "ID",
    }

    LeaseGrantResponse {
        header: Option<ResponseHeader> = 1 "header",
        id: i64 = 2 "ID",
        ttl: i64 = 3 "TTL",
        error: String = 4 "error",
    }

    LeaseRevokeRequest {
        id: i64 = 1 "ID",
    }

    LeaseRevokeResponse {
        header: Option<ResponseHeader> = 1 "header",
    }

    LeaseKeepAliveRequest {
        id: i64 = 1 "ID",
    }

    LeaseKeepAliveResponse {
        header: Option<ResponseHeader> = 1 "header",
        id: i64 = 2 "ID",
        ttl: i64 = 3 "TTL",
    }

    LeaseTimeToLiveRequest {
        id: i64 = 1 "ID",
        keys: bool = 2 "keys",
    }

    LeaseTimeToLiveResponse {
        header: Option<ResponseHeader> = 1 "header",
        id: i64 = 2 "ID",
        ttl: i64 = 3 "TTL",
        granted_ttl: i64 = 4 "grantedTTL",
        keys: Vec<Vec<u8>> = 5 "keys",
    }

    WatchRequest {
        create_request: Option<WatchCreateRequest> = 1 "create_request",
        cancel_request: Option<WatchCancelRequest> = 2 "cancel_request",
        progress_request: Option<WatchProgressRequest> = 3 "progress_request",
    }

    WatchCreateRequest {
        key: Vec<u8> = 1 "key",
        range_end: Vec<u8> = 2 "range_end",
        start_revision: i64 = 3 "start_revision",
        progress_notify: bool = 4 "progress_notify",
        filters: Vec<EnumField<FilterType>> = 5 "filters",
        prev_kv: bool = 6 "prev_kv",
        watch_id: i64 = 7 "watch_id",
        fragment: bool = 8 "fragment",
    }

    WatchCancelRequest {
        watch_id: i64 = 1 "watch_id",
    }

    WatchProgressRequest {}

    WatchResponse {
        header: Option<ResponseHeader> = 1 "header",
        watch_id: i64 = 2 "watch_id",
        created: bool = 3 "created",
        canceled: bool = 4 "canceled",
        compact_revision: i64 = 5 "compact_revision",
        cancel_reason: String = 6 "cancel_reason",
        fragment: bool = 7 "fragment",
        events: Vec<Event> = 11 "events",
    }

    AuthenticateRequest {
        name: String = 1 "name",
        password: String = 2 "password",
    }

    AuthenticateResponse {
        header: Option<ResponseHeader> = 1 "header",
        token: String = 2 "token",
    }
}

messages! {
    LOCK = "v3lockpb";

    LockRequest {
        name: Vec<u8> = 1 "name",
        lease: i64 = 2 "lease",
    }

    LockResponse {
        header: Option<ResponseHeader> = 1 "header",
        key: Vec<u8> = 2 "key",
    }

    UnlockRequest {
        key: Vec<u8> = 1 "key",
    }

    UnlockResponse {
        header: Option<ResponseHeader> = 1 "header",
    }
}

messages! {
    ELECTION = "v3electionpb";

    /// The key by which a client leads.
    LeaderKey {
        name: Vec<u8> = 1 "name",
        key: Vec<u8> = 2 "key",
        rev: i64 = 3 "rev",
        lease: i64 = 4 "lease",
    }

    CampaignRequest {
        name: Vec<u8> = 1 "name",
        lease: i64 = 2 "lease",
        value: Vec<u8> = 3 "value",
    }

    CampaignResponse {
        header: Option<ResponseHeader> = 1 "header",
        leader: Option<LeaderKey> = 2 "leader",
    }

    ProclaimRequest {
        leader: Option<LeaderKey> = 1 "leader",
        value: Vec<u8> = 2 "value",
    }

    ProclaimResponse {
        header: Option<ResponseHeader> = 1 "header",
    }

    LeaderRequest {
        name: Vec<u8> = 1 "name",
    }

    LeaderResponse {
        header: Option<ResponseHeader> = 1 "header",
        kv: Option<KeyValue> = 2 "kv",
    }

    ResignRequest {
        leader: Option<LeaderKey> = 1 "leader",
    }

    ResignResponse {
        header: Option<ResponseHeader> = 1 "header",
    }
}

messages! {
    HEALTH = "grpc.health.v1";

    HealthCheckRequest {
        service: String = 1 "service",
    }

    HealthCheckResponse {
        status: EnumField<ServingStatus> = 1 "status",
    }
}
