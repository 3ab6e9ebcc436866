//! Server reflection of gRPC: which services, calls and messages there are, for tools such as
//! grpcurl.
//!
//! A tool gets a description of each package as a file of definitions would be described. It is
//! made of the tables of the messages, and of the table of the calls here. Version 1 and version
//! 1alpha differ in nothing but their names.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::messages::{
    AuthenticateRequest, AuthenticateResponse, CampaignRequest, CampaignResponse,
    DeleteRangeRequest, DeleteRangeResponse, ELECTION, HEALTH, HealthCheckRequest,
    HealthCheckResponse, LOCK, LeaderRequest, LeaderResponse, LeaseGrantRequest,
    LeaseGrantResponse, LeaseKeepAliveRequest, LeaseKeepAliveResponse, LeaseRevokeRequest,
    LeaseRevokeResponse, LeaseTimeToLiveRequest, LeaseTimeToLiveResponse, LockRequest,
    LockResponse, MVCC, ProclaimRequest, ProclaimResponse, PutRequest, PutResponse, RangeRequest,
    RangeResponse, ResignRequest, ResignResponse, SERVER, TxnRequest, TxnResponse, UnlockRequest,
    UnlockResponse, WatchRequest, WatchResponse,
};
use super::status::Code;
use super::wire::{
    Field, FieldInfo, Kind, MalformedMessage, Message, Package, Raw, camel, messages, object,
};

messages! {
    REFLECTION = "grpc.reflection.v1";

    /// A question. Of the fields after the host, it has one.
    ServerReflectionRequest {
        host: String = 1 "host",
        file_by_filename: Option<String> = 3 "file_by_filename",
        file_containing_symbol: Option<String> = 4 "file_containing_symbol",
        file_containing_extension: Option<ExtensionRequest> = 5 "file_containing_extension",
        all_extension_numbers_of_type: Option<String> = 6 "all_extension_numbers_of_type",
        list_services: Option<String> = 7 "list_services",
    }

    ExtensionRequest {
        containing_type: String = 1 "containing_type",
        extension_number: i32 = 2 "extension_number",
    }

    /// The answer. Of the fields after the request, it has one.
    ServerReflectionResponse {
        valid_host: String = 1 "valid_host",
        original_request: Option<ServerReflectionRequest> = 2 "original_request",
        file_descriptor_response: Option<FileDescriptorResponse> = 4 "file_descriptor_response",
        list_services_response: Option<ListServiceResponse> = 6 "list_services_response",
        error_response: Option<ErrorResponse> = 7 "error_response",
    }

    FileDescriptorResponse {
        file_descriptor_proto: Vec<Vec<u8>> = 1 "file_descriptor_proto",
    }

    ListServiceResponse {
        service: Vec<ServiceResponse> = 1 "service",
    }

    ServiceResponse {
        name: String = 1 "name",
    }

    ErrorResponse {
        error_code: i32 = 1 "error_code",
        error_message: String = 2 "error_message",
    }
}

messages! {
    _ = "google.protobuf";

    FileDescriptorProto {
        name: String = 1 "name",
        package: String = 2 "package",
        dependency: Vec<Vec<u8>> = 3 "dependency",
        message_type: Vec<DescriptorProto> = 4 "message_type",
        service: Vec<ServiceDescriptorProto> = 6 "service",
        syntax: String = 12 "syntax",
    }

    DescriptorProto {
        name: String = 1 "name",
        field: Vec<FieldDescriptorProto> = 2 "field",
        enum_type: Vec<EnumDescriptorProto> = 4 "enum_type",
        oneof_decl: Vec<OneofDescriptorProto> = 8 "oneof_decl",
    }

    FieldDescriptorProto {
        name: String = 1 "name",
        number: i32 = 3 "number",
        label: i32 = 4 "label",
        kind: i32 = 5 "type",
        type_name: String = 6 "type_name",
        oneof_index: Option<i32> = 9 "oneof_index",
    }

    EnumDescriptorProto {
        name: String = 1 "name",
        value: Vec<EnumValueDescriptorProto> = 2 "value",
    }

    EnumValueDescriptorProto {
        name: String = 1 "name",
        number: Option<i32> = 2 "number",
    }

    OneofDescriptorProto {
        name: String = 1 "name",
    }

    ServiceDescriptorProto {
        name: String = 1 "name",
        method: Vec<MethodDescriptorProto> = 2 "method",
    }

    MethodDescriptorProto {
        name: String = 1 "name",
        input_type: String = 2 "input_type",
        output_type: String = 3 "output_type",
        client_streaming: bool = 5 "client_streaming",
        server_streaming: bool = 6 "server_streaming",
    }
}

/// All packages.
const PACKAGES: [Package; 7] = [
    MVCC,
    SERVER,
    LOCK,
    ELECTION,
    HEALTH,
    REFLECTION,
    Package { name: "grpc.reflection.v1alpha", ..REFLECTION },
];

/// The calls of a service.
struct Service {
    package: &'static str,
    name: &'static str,
    calls: &'static [Call],
}

struct Call {
    name: &'static str,
    /// The package and the name of the message that the client sends, and of the answer.
    types: [(&'static str, &'static str); 2],
    /// Whether the client sends several messages, and whether it gets several.
    streams: [bool; 2],
}

const fn unary<Q: Message, A: Message>(name: &'static str) -> Call {
    Call { name, types: [(Q::PACKAGE, Q::NAME), (A::PACKAGE, A::NAME)], streams: [false; 2] }
}

const fn streams<Q: Message, A: Message>(name: &'static str, client: bool) -> Call {
    Call { streams: [client, true], ..unary::<Q, A>(name) }
}

/// The calls that `connection` serves.
const SERVICES: [Service; 8] = [
    Service {
        package: SERVER.name,
        name: "KV",
        calls: &[
            unary::<RangeRequest, RangeResponse>("Range"),
            unary::<PutRequest, PutResponse>("Put"),
            unary::<DeleteRangeRequest, DeleteRangeResponse>("DeleteRange"),
            unary::<TxnRequest, TxnResponse>("Txn"),
        ],
    },
    Service {
        package: SERVER.name,
        name: "Lease",
        calls: &[
            unary::<LeaseGrantRequest, LeaseGrantResponse>("LeaseGrant"),
            unary::<LeaseRevokeRequest, LeaseRevokeResponse>("LeaseRevoke"),
            unary::<LeaseTimeToLiveRequest, LeaseTimeToLiveResponse>("LeaseTimeToLive"),
            streams::<LeaseKeepAliveRequest, LeaseKeepAliveResponse>("LeaseKeepAlive", true),
        ],
    },
    Service {
        package: SERVER.name,
        name: "Watch",
        calls: &[streams::<WatchRequest, WatchResponse>("Watch", true)],
    },
    Service {
        package: SERVER.name,
        name: "Auth",
        calls: &[unary::<AuthenticateRequest, AuthenticateResponse>("Authenticate")],
    },
    Service {
        package: LOCK.name,
        name: "Lock",
        calls: &[
            unary::<LockRequest, LockResponse>("Lock"),
            unary::<UnlockRequest, UnlockResponse>("Unlock"),
        ],
    },
    Service {
        package: ELECTION.name,
        name: "Election",
        calls: &[
            unary::<CampaignRequest, CampaignResponse>("Campaign"),
            unary::<ProclaimRequest, ProclaimResponse>("Proclaim"),
            unary::<LeaderRequest, LeaderResponse>("Leader"),
            streams::<LeaderRequest, LeaderResponse>("Observe", false),
            unary::<ResignRequest, ResignResponse>("Resign"),
        ],
    },
    Service {
        package: HEALTH.name,
        name: "Health",
        calls: &[unary::<HealthCheckRequest, HealthCheckResponse>("Check")],
    },
    Service {
        package: REFLECTION.name,
        name: "ServerReflection",
        calls: &[streams::<ServerReflectionRequest, ServerReflectionResponse>(
            "ServerReflectionInfo",
            true,
        )],
    },
];

/// The messages that have one field of several: the name of this choice in the definition of the
/// message, and the number of its first field. All fields after that belong to it, up to
/// [`AFTER_CHOICE`].
const CHOICES: [(&str, &str, i32); 6] = [
    ("RequestOp", "request", 1),
    ("ResponseOp", "response", 1),
    ("Compare", "target_union", 4),
    ("WatchRequest", "request_union", 1),
    ("ServerReflectionRequest", "message_request", 3),
    ("ServerReflectionResponse", "message_response", 4),
];

/// The field of `Compare` that comes after its choice.
const AFTER_CHOICE: i32 = 64;

/// Answer a question.
pub(super) fn answer(request: ServerReflectionRequest) -> ServerReflectionResponse {
    let mut response =
        ServerReflectionResponse { valid_host: request.host.clone(), ..Default::default() };
    if request.list_services.is_some() {
        let service = services().map(|(package, service)| ServiceResponse {
            name: format!("{}.{}", package.name, service.name),
        });
        response.list_services_response = Some(ListServiceResponse { service: service.collect() });
    } else {
        match found(&request) {
            Ok(package) => {
                let files = [vec![*package], dependencies(package)].concat();
                let files = files.iter().map(|package| file(package).bytes()).collect();
                response.file_descriptor_response =
                    Some(FileDescriptorResponse { file_descriptor_proto: files });
            }
            Err((code, error_message)) => {
                let error_code = code as i32;
                response.error_response = Some(ErrorResponse { error_code, error_message });
            }
        }
    }
    response.original_request = Some(request);
    response
}

/// The package that a question is about.
fn found(request: &ServerReflectionRequest) -> Result<&'static Package, (Code, String)> {
    let missing = |what: &str| (Code::NotFound, format!("there is no {what} here"));
    if let Some(name) = &request.file_by_filename {
        let package = PACKAGES.iter().find(|package| file_name(package.name) == *name);
        package.ok_or_else(|| missing(&format!("file {name}")))
    } else if let Some(symbol) = &request.file_containing_symbol {
        let package = PACKAGES.iter().find(|package| defines(package, symbol));
        package.ok_or_else(|| missing(&format!("service, call or message {symbol}")))
    } else if request.file_containing_extension.is_some()
        || request.all_extension_numbers_of_type.is_some()
    {
        Err(missing("extension"))
    } else {
        Err((Code::InvalidArgument, "the request asks for nothing that is known here".to_owned()))
    }
}

/// All services, each with its package. The last one is there in two versions.
fn services() -> impl Iterator<Item = (&'static Package, &'static Service)> {
    PACKAGES.iter().flat_map(|package| {
        let own = move |service: &&Service| home(service.package, package) == package.name;
        SERVICES.iter().filter(own).map(move |service| (package, service))
    })
}

/// The package that is meant by the name of a package in the description of another one. What
/// version 1 of reflection has is there in version 1alpha, too, under the name of that version.
fn home(package: &'static str, within: &Package) -> &'static str {
    let own = package == REFLECTION.name && within.name.starts_with(REFLECTION.name);
    if own { within.name } else { package }
}

/// Does a package define this service, call, message, field or list of names?
fn defines(package: &Package, symbol: &str) -> bool {
    let symbol = symbol.strip_prefix(package.name).and_then(|rest| rest.strip_prefix('.'));
    let Some(symbol) = symbol else { return false };
    let (name, member) = symbol.split_once('.').map_or((symbol, None), |(a, b)| (a, Some(b)));
    let calls = services()
        .filter(|(home, service)| home.name == package.name && service.name == name)
        .any(|(_, service)| {
            member.is_none_or(|member| service.calls.iter().any(|call| call.name == member))
        });
    let is_part = |field: &FieldInfo, part: &str| match field.kind {
        Kind::Enumeration(list, _) => list == part || field.name == part,
        _ => field.name == part,
    };
    let message = package.messages.iter().find(|(message, _)| *message == name);
    calls
        || message.is_some_and(|(_, fields)| {
            member.is_none_or(|part| fields.iter().any(|field| is_part(field, part)))
        })
}

fn file_name(package: &str) -> String {
    format!("{}.proto", package.replace('.', "/"))
}

/// The other packages whose messages a package uses.
fn dependencies(package: &Package) -> Vec<Package> {
    let fields = package.messages.iter().flat_map(|(_, fields)| *fields);
    let used: BTreeSet<&str> = fields
        .filter_map(|field| match field.kind {
            Kind::Message(of, _) => Some(home(of, package)),
            _ => None,
        })
        .collect();
    let other = |it: &&Package| it.name != package.name && used.contains(it.name);
    PACKAGES.iter().filter(other).copied().collect()
}

/// The description of a package.
fn file(package: &Package) -> FileDescriptorProto {
    let own = services().filter(|(home, _)| home.name == package.name);
    let uses = dependencies(package);
    FileDescriptorProto {
        name: file_name(package.name),
        package: package.name.to_owned(),
        dependency: uses.iter().map(|it| file_name(it.name).into_bytes()).collect(),
        message_type: package.messages.iter().map(|it| descriptor(package, it.0, it.1)).collect(),
        service: own.map(|(_, it)| service(package, it)).collect(),
        syntax: "proto3".to_owned(),
    }
}

fn type_name(within: &Package, (package, name): (&'static str, &str)) -> String {
    format!(".{}.{name}", home(package, within))
}

fn service(package: &Package, service: &Service) -> ServiceDescriptorProto {
    let method = |call: &Call| MethodDescriptorProto {
        name: call.name.to_owned(),
        input_type: type_name(package, call.types[0]),
        output_type: type_name(package, call.types[1]),
        client_streaming: call.streams[0],
        server_streaming: call.streams[1],
    };
    let method = service.calls.iter().map(method).collect();
    ServiceDescriptorProto { name: service.name.to_owned(), method }
}

fn descriptor(package: &Package, name: &'static str, fields: &[FieldInfo]) -> DescriptorProto {
    let choice = CHOICES.iter().find(|choice| choice.0 == name);
    let lists = fields.iter().filter_map(|field| match field.kind {
        Kind::Enumeration(name, names) => Some(enumeration(name, names)),
        _ => None,
    });
    let field = |field: &FieldInfo| {
        let (kind, type_name) = match field.kind {
            Kind::Int64 => (3, String::new()),
            Kind::Uint64 => (4, String::new()),
            Kind::Int32 => (5, String::new()),
            Kind::Bool => (8, String::new()),
            Kind::Text => (9, String::new()),
            Kind::Message(of, message) => (11, type_name(package, (of, message))),
            Kind::Bytes => (12, String::new()),
            Kind::Enumeration(list, _) => {
                (14, type_name(package, (package.name, name)) + "." + list)
            }
        };
        let chosen = choice.filter(|it| (it.2..AFTER_CHOICE).contains(&field.number));
        FieldDescriptorProto {
            name: field.name.to_owned(),
            number: field.number,
            label: if field.repeated { 3 } else { 1 },
            kind,
            type_name,
            oneof_index: chosen.map(|_| 0),
        }
    };
    DescriptorProto {
        name: name.to_owned(),
        field: fields.iter().map(field).collect(),
        enum_type: lists.collect(),
        oneof_decl: choice
            .map(|choice| OneofDescriptorProto { name: choice.1.to_owned() })
            .into_iter()
            .collect(),
    }
}

/// A list of names, in the message whose field has one of them.
fn enumeration(name: &str, names: &[&str]) -> EnumDescriptorProto {
    let value = |(name, number): (&&str, i32)| EnumValueDescriptorProto {
        name: (*name).to_owned(),
        number: Some(number),
    };
    let value = names.iter().zip(0..).map(value).collect();
    EnumDescriptorProto { name: name.to_owned(), value }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(request: ServerReflectionRequest) -> ServerReflectionResponse {
        let response = answer(request.clone());
        assert_eq!(response.original_request, Some(request));
        response
    }

    /// The descriptions that contain a symbol.
    fn files(symbol: &str) -> Vec<FileDescriptorProto> {
        let file_containing_symbol = Some(symbol.to_owned());
        let response =
            ask(ServerReflectionRequest { file_containing_symbol, ..Default::default() });
        let files = response.file_descriptor_response.unwrap_or_default().file_descriptor_proto;
        files.iter().map(|bytes| FileDescriptorProto::decode(bytes).expect("a file")).collect()
    }

    #[test]
    fn all_services_are_listed_in_their_packages() {
        let list_services = Some(String::new());
        let response = ask(ServerReflectionRequest { list_services, ..Default::default() });
        let listed = response.list_services_response.unwrap_or_default().service;
        let names: Vec<&str> = listed.iter().map(|service| service.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "etcdserverpb.KV",
                "etcdserverpb.Lease",
                "etcdserverpb.Watch",
                "etcdserverpb.Auth",
                "v3lockpb.Lock",
                "v3electionpb.Election",
                "grpc.health.v1.Health",
                "grpc.reflection.v1.ServerReflection",
                "grpc.reflection.v1alpha.ServerReflection",
            ]
        );
        for name in names {
            let (package, service) = name.rsplit_once('.').expect("a package");
            let file = files(name).remove(0);
            assert_eq!(file.package, package);
            assert!(file.service.iter().any(|it| it.name == service), "{name}");
        }
    }

    /// Each type that a file names is defined in it or in a file that it names.
    #[test]
    fn every_type_is_defined() {
        for package in PACKAGES {
            let files = [vec![package], dependencies(&package)].concat();
            let files: Vec<_> = files.iter().map(file).collect();
            let of = |file: &FileDescriptorProto, name: &str| format!(".{}.{name}", file.package);
            let mut known = BTreeSet::new();
            for file in &files {
                for message in &file.message_type {
                    let name = of(file, &message.name);
                    known.extend(message.enum_type.iter().map(|it| format!("{name}.{}", it.name)));
                    known.insert(name);
                }
            }
            let first = &files[0];
            let fields = first.message_type.iter().flat_map(|message| &message.field);
            let methods = first.service.iter().flat_map(|service| &service.method);
            let used = fields.map(|field| &field.type_name).filter(|name| !name.is_empty());
            let used = used.chain(methods.flat_map(|it| [&it.input_type, &it.output_type]));
            for name in used {
                assert!(known.contains(name), "{name} in {}", first.name);
            }
            let wanted = files[1..].iter().map(|file| file.name.clone().into_bytes());
            assert_eq!(first.dependency, wanted.collect::<Vec<_>>());
        }
    }

    #[test]
    fn symbols_are_found_by_their_parts_and_unknown_ones_refused() {
        for symbol in [
            "etcdserverpb.KV.Txn",
            "etcdserverpb.Compare",
            "etcdserverpb.Compare.CompareTarget",
            "etcdserverpb.Compare.range_end",
        ] {
            let names: Vec<String> = files(symbol).into_iter().map(|file| file.name).collect();
            assert_eq!(names, ["etcdserverpb.proto", "mvccpb.proto"], "{symbol}");
        }
        let compare = files("etcdserverpb.Compare").remove(0).message_type;
        let compare = compare.into_iter().find(|it| it.name == "Compare").expect("it is there");
        let chosen = compare.field.iter().filter(|field| field.oneof_index == Some(0));
        let chosen: Vec<&str> = chosen.map(|field| field.name.as_str()).collect();
        assert_eq!(chosen, ["version", "create_revision", "mod_revision", "value", "lease"]);
        let refused = |request| {
            let error = ask(request).error_response.expect("an error");
            (error.error_code, error.error_message)
        };
        for symbol in ["etcdserverpb.KV.Compact", "etcdserverpb", "KV", "", "v3lockpb.Lock.Lock.x"]
        {
            let file_containing_symbol = Some(symbol.to_owned());
            let request = ServerReflectionRequest { file_containing_symbol, ..Default::default() };
            let text = format!("there is no service, call or message {symbol} here");
            assert_eq!(refused(request), (5, text));
        }
        let file_by_filename = Some("rpc.proto".to_owned());
        let request = ServerReflectionRequest { file_by_filename, ..Default::default() };
        assert_eq!(refused(request), (5, "there is no file rpc.proto here".to_owned()));
        assert_eq!(refused(ServerReflectionRequest::default()).0, 3);
    }
}
