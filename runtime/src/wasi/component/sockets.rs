//! `wasi:sockets`: linked so that programs start, and refused. Nothing here opens anything (T-ISO-05).

use abi::Signal;
use wasmtime::StoreContextMut;
use wasmtime::component::{Linker, LinkerInstance, Resource, ResourceType, Val};

use super::{enter, functions, plain};
use crate::process::{Ended, State};

/// `network.network`: a handle without any power.
struct Network;

/// Every other resource of the interfaces. There is never one.
struct Never;

/// The interfaces with resources that cannot be created: the functions of each resource.
const NEVER: [(&str, &str, &[&str]); 5] = [
    ("ip-name-lookup", "resolve-address-stream", &["resolve-next-address", "subscribe"]),
    (
        "tcp",
        "tcp-socket",
        &[
            "start-bind",
            "finish-bind",
            "start-connect",
            "finish-connect",
            "start-listen",
            "finish-listen",
            "accept",
            "local-address",
            "remote-address",
            "is-listening",
            "address-family",
            "set-listen-backlog-size",
            "keep-alive-enabled",
            "set-keep-alive-enabled",
            "keep-alive-idle-time",
            "set-keep-alive-idle-time",
            "keep-alive-interval",
            "set-keep-alive-interval",
            "keep-alive-count",
            "set-keep-alive-count",
            "hop-limit",
            "set-hop-limit",
            "receive-buffer-size",
            "set-receive-buffer-size",
            "send-buffer-size",
            "set-send-buffer-size",
            "subscribe",
            "shutdown",
        ],
    ),
    (
        "udp",
        "udp-socket",
        &[
            "start-bind",
            "finish-bind",
            "stream",
            "local-address",
            "remote-address",
            "address-family",
            "unicast-hop-limit",
            "set-unicast-hop-limit",
            "receive-buffer-size",
            "set-receive-buffer-size",
            "send-buffer-size",
            "set-send-buffer-size",
            "subscribe",
        ],
    ),
    ("udp", "incoming-datagram-stream", &["receive", "subscribe"]),
    ("udp", "outgoing-datagram-stream", &["check-send", "send", "subscribe"]),
];

/// The functions that would create one.
const REFUSED: [(&str, &str); 3] = [
    ("ip-name-lookup", "resolve-addresses"),
    ("tcp-create-socket", "create-tcp-socket"),
    ("udp-create-socket", "create-udp-socket"),
];

pub(super) fn register(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    let mut network = interface(linker, "network")?;
    network.resource("network", ResourceType::host::<Network>(), |_, _| Ok(()))?;
    network.func_new("network-error-code", |_, _, _, results| answer(results, Val::Option(None)))?;
    let mut instance = interface(linker, "instance-network")?;
    functions! { instance, plain;
        "instance-network" () => |_call| Ok(Resource::<Network>::new_own(0));
    }
    for (name, resource, functions) in NEVER {
        let mut interface = interface(linker, name)?;
        interface.resource(resource, ResourceType::host::<Never>(), |_, _| Ok(()))?;
        for function in functions {
            interface
                .func_new(&format!("[method]{resource}.{function}"), |_, _, _, _| Err(Ended::Signal(Signal::SEGV).into()))?;
        }
    }
    for (name, function) in REFUSED {
        let refusal = || Val::Result(Err(Some(Box::new(Val::Enum("access-denied".to_owned())))));
        interface(linker, name)?.func_new(function, move |store: StoreContextMut<'_, State>, _, _, results| {
            plain(enter(store, |_call| Ok(()))?)?;
            answer(results, refusal())
        })?;
    }
    Ok(())
}

// An interface that is named again is continued.
fn interface<'a>(linker: &'a mut Linker<State>, name: &str) -> wasmtime::Result<LinkerInstance<'a, State>> {
    linker.instance(&format!("wasi:sockets/{name}@0.2.0"))
}

fn answer(results: &mut [Val], value: Val) -> wasmtime::Result<()> {
    results.iter_mut().take(1).for_each(|result| *result = value.clone());
    Ok(())
}
