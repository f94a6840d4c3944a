//! Components for tests: modules for preview1 with the adapter of the Bytecode Alliance, and components in text.

/// A module for preview1 as a component: every call of preview1 becomes calls of WASI 0.2.
pub fn componentised(text: &str) -> Vec<u8> {
    probes::component(&wat::parse_str(text).unwrap()).unwrap()
}

/// The imports of the components below, as one instance called `host`, and a memory with an allocator as `libc`.
const PRELUDE: &str = r#"
    (import "wasi:io/error@0.2.0" (instance $error (export "error" (type (sub resource)))))
    (alias export $error "error" (type $error-type))
    (import "wasi:io/poll@0.2.3" (instance $poll
        (export "pollable" (type $pollable (sub resource)))
        (export "[method]pollable.block" (func (param "self" (borrow $pollable))))
        (export "poll" (func (param "in" (list (borrow $pollable))) (result (list u32))))))
    (alias export $poll "pollable" (type $pollable))
    (import "wasi:io/streams@0.2.0" (instance $streams
        (alias outer 1 $error-type (type $e))
        (export "error" (type $error (eq $e)))
        (type $stream-error' (variant (case "last-operation-failed" (own $error)) (case "closed")))
        (export "stream-error" (type $stream-error (eq $stream-error')))
        (export "output-stream" (type $output (sub resource)))
        (export "input-stream" (type $input (sub resource)))
        (export "[method]output-stream.blocking-write-and-flush" (func
            (param "self" (borrow $output)) (param "contents" (list u8)) (result (result (error $stream-error)))))
        (export "[method]input-stream.blocking-read" (func
            (param "self" (borrow $input)) (param "len" u64) (result (result (list u8) (error $stream-error)))))))
    (alias export $streams "output-stream" (type $output))
    (alias export $streams "input-stream" (type $input))
    (import "wasi:cli/stdout@0.2.0" (instance $stdout
        (alias outer 1 $output (type $o))
        (export "output-stream" (type $stream (eq $o)))
        (export "get-stdout" (func (result (own $stream))))))
    (import "wasi:cli/stdin@0.2.0" (instance $stdin
        (alias outer 1 $input (type $i))
        (export "input-stream" (type $stream (eq $i)))
        (export "get-stdin" (func (result (own $stream))))))
    (import "wasi:clocks/monotonic-clock@0.2.6" (instance $clock
        (alias outer 1 $pollable (type $p))
        (export "pollable" (type $pollable (eq $p)))
        (export "subscribe-duration" (func (param "when" u64) (result (own $pollable))))))
    (import "wasi:random/random@0.2.0" (instance $random
        (export "get-random-bytes" (func (param "len" u64) (result (list u8))))))
    (import "wasi:sockets/network@0.2.0" (instance $network
        (type $error' (enum "unknown" "access-denied" "not-supported" "invalid-argument" "out-of-memory" "timeout"
            "concurrency-conflict" "not-in-progress" "would-block" "invalid-state" "new-socket-limit" "address-not-bindable"
            "address-in-use" "remote-unreachable" "connection-refused" "connection-reset" "connection-aborted"
            "datagram-too-large" "name-unresolvable" "temporary-resolver-failure" "permanent-resolver-failure"))
        (export "error-code" (type (eq $error')))
        (type $family' (enum "ipv4" "ipv6"))
        (export "ip-address-family" (type (eq $family')))))
    (alias export $network "error-code" (type $socket-error))
    (alias export $network "ip-address-family" (type $family))
    (import "wasi:sockets/tcp@0.2.0" (instance $tcp (export "tcp-socket" (type (sub resource)))))
    (alias export $tcp "tcp-socket" (type $tcp-socket))
    (import "wasi:sockets/tcp-create-socket@0.2.0" (instance $create
        (alias outer 1 $tcp-socket (type $s))
        (alias outer 1 $socket-error (type $e))
        (alias outer 1 $family (type $f))
        (export "tcp-socket" (type $socket (eq $s)))
        (export "error-code" (type $error (eq $e)))
        (export "ip-address-family" (type $family (eq $f)))
        (export "create-tcp-socket" (func (param "address-family" $family) (result (result (own $socket) (error $error)))))))
    (core module $libc
        (memory (export "memory") 2)
        (global $top (mut i32) (i32.const 4096))
        (func (export "realloc") (param i32 i32 i32 i32) (result i32) (local $at i32)
            (local.set $at (global.get $top))
            (global.set $top (i32.add (global.get $top) (i32.and (i32.add (local.get 3) (i32.const 7)) (i32.const -8))))
            (loop $more
                (if (i32.gt_u (global.get $top) (i32.mul (memory.size) (i32.const 65536)))
                    (then (if (i32.lt_s (memory.grow (i32.const 16)) (i32.const 0)) (then (unreachable))) (br $more))))
            (local.get $at)))
    (core instance $libc (instantiate $libc))
    (alias core export $libc "memory" (core memory $memory))
    (alias core export $libc "realloc" (core func $realloc))
    (core func $block (canon lower (func $poll "[method]pollable.block")))
    (core func $poll-all (canon lower (func $poll "poll") (memory $memory) (realloc $realloc)))
    (core func $write (canon lower (func $streams "[method]output-stream.blocking-write-and-flush") (memory $memory)))
    (core func $read (canon lower (func $streams "[method]input-stream.blocking-read") (memory $memory) (realloc $realloc)))
    (core func $out (canon lower (func $stdout "get-stdout")))
    (core func $in (canon lower (func $stdin "get-stdin")))
    (core func $after (canon lower (func $clock "subscribe-duration")))
    (core func $random (canon lower (func $random "get-random-bytes") (memory $memory) (realloc $realloc)))
    (core func $socket (canon lower (func $create "create-tcp-socket") (memory $memory)))
    (core func $drop-pollable (canon resource.drop $pollable))
    (type $own (resource (rep i32)))
    (core func $new (canon resource.new $own))
    (core instance $host
        (export "block" (func $block)) (export "poll" (func $poll-all)) (export "write" (func $write)) (export "read" (func $read))
        (export "out" (func $out)) (export "in" (func $in)) (export "after" (func $after)) (export "random" (func $random))
        (export "socket" (func $socket)) (export "drop" (func $drop-pollable)) (export "new" (func $new)))
"#;

/// The imports of the module inside.
const IMPORTS: &str = r#"
    (import "libc" "memory" (memory 2))
    (import "host" "block" (func $block (param i32)))
    (import "host" "poll" (func $poll (param i32 i32 i32)))
    (import "host" "write" (func $write (param i32 i32 i32 i32)))
    (import "host" "read" (func $read (param i32 i64 i32)))
    (import "host" "out" (func $out (result i32)))
    (import "host" "in" (func $in (result i32)))
    (import "host" "after" (func $after (param i64) (result i32)))
    (import "host" "random" (func $random (param i64 i32)))
    (import "host" "socket" (func $socket (param i32 i32)))
    (import "host" "drop" (func $drop (param i32)))
    (import "host" "new" (func $new (param i32) (result i32)))
"#;

/// A component whose `run` has this body, with all of [`IMPORTS`]. It returns 0 for success.
pub fn component(body: &str) -> Vec<u8> {
    let text = format!(
        r#"(component {PRELUDE}
            (core module $main {IMPORTS} (func (export "run") (result i32) (local $i i32) (local $j i32) {body}))
            (core instance $main (instantiate $main (with "libc" (instance $libc)) (with "host" (instance $host))))
            (func $run (result (result)) (canon lift (core func $main "run")))
            (instance $command (export "run" (func $run)))
            (export "wasi:cli/run@0.2.0" (instance $command)))"#
    );
    wat::parse_str(text).unwrap()
}
