//! The overhead of HTTP, the effect of one tenant's flood on another, the memory of an idle sandbox, and thousands of
//! sandboxes.
//!
//! `cargo bench --workspace --bench server -- [warm] [flood] [memory] [many] [ROUNDS]`; without a name all parts. The server runs in this
//! process, on the host that the library's calls use, so that both are measured on the same machine at the same time. The bars: 3 times
//! the library's 99 % at 16 clients, 2 times the other tenant's own 99 % under a flood, 300 KB for each idle sandbox, and 10 000 sandboxes
//! of which 1 000 are in use.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use runtime::{Host, Sandbox};
use server::{Config, Keys, Log, NewKey, Reports, Role};

/// Commands of each client, where the command line does not say.
const ROUNDS: usize = 200;
/// Clients at a time.
const CLIENTS: usize = 16;
/// Sandboxes that wait.
const IDLE: u64 = 300;
/// Time after which the server frees the memory of idle sandboxes: it looks every 5 seconds for those unused since the last look.
const REST: Duration = Duration::from_secs(11);
/// Sandboxes that are known, and those of them that are used.
const REGISTERED: usize = 10_000;
const ACTIVE: usize = 1_000;
const COMMAND: &str = "echo warm";

struct Client {
    stream: BufReader<TcpStream>,
    address: SocketAddr,
    key: String,
}

impl Client {
    fn new(address: SocketAddr, key: &str) -> Self {
        let stream = TcpStream::connect(address).expect("the server listens");
        stream.set_nodelay(true).expect("a socket has options");
        Self { stream: BufReader::new(stream), address, key: key.to_owned() }
    }

    fn post(&mut self, path: &str, body: &str) -> (u16, String) {
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.address,
            self.key,
            body.len()
        );
        self.stream.get_mut().write_all(head.as_bytes()).expect("the server reads");
        let (mut status, mut length, mut line) = (0, 0, String::new());
        loop {
            line.clear();
            self.stream.read_line(&mut line).expect("the server answers");
            let text = line.trim_end();
            if text.is_empty() {
                break;
            }
            if let Some(code) = text.strip_prefix("HTTP/1.1 ") {
                status = code[..3].parse().expect("a status is a number");
            }
            if let Some(value) = text.to_ascii_lowercase().strip_prefix("content-length: ") {
                length = value.parse().expect("a length is a number");
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).expect("the body is whole");
        (status, String::from_utf8(body).expect("JSON is UTF-8"))
    }

    fn sandbox(&mut self) -> String {
        let (status, body) = self.post("/v1/sandboxes", "{}");
        assert_eq!(status, 201, "{body}");
        let sandbox: serde_json::Value = serde_json::from_str(&body).expect("a sandbox is JSON");
        sandbox["id"].as_str().expect("it has an id").to_owned()
    }

    fn bash(&mut self, id: &str) {
        let (status, body) = self.post(&format!("/v1/sandboxes/{id}/actions/bash"), &format!("{{\"command\":\"{COMMAND}\"}}"));
        assert!(status == 200 && body.contains("\"warm\\n\""), "{status} {body}");
    }
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let rounds = words.iter().find_map(|word| word.parse().ok()).unwrap_or(ROUNDS);
    let names: Vec<&str> = words.iter().map(String::as_str).filter(|word| word.parse::<usize>().is_err()).collect();
    let is_chosen = |name: &str| names.is_empty() || names.contains(&name);
    let host = Host::builder().build().expect("the engine starts");
    let data = tempfile::tempdir().expect("there is a place for files");
    let mut config = Config::new(data.path().join("data"));
    config.listen = SocketAddr::from(([127, 0, 0, 1], 0));
    config.log = Log::Off;
    config.requests_per_second = 1_000_000;
    config.sandboxes_of_tenant = 1_000_000;
    println!("{} cores, {} runs of a tenant at a time", config.sharing, config.concurrent_of_tenant);
    let keys = Keys::open(&config.data).expect("the catalog opens");
    let new = |tenant: &str| NewKey {
        tenant: tenant.to_owned(),
        role: Role::Admin,
        view: None,
        name: "bench".to_owned(),
        lifetime: None,
        is_service: false,
    };
    let key = |tenant: &str| keys.create(&new(tenant), None).expect("a key is made").0;
    let (first, second) = (key("first"), key("second"));
    let (sender, ready) = mpsc::channel();
    let reports = Reports {
        ready: Box::new(move |address, _| sender.send(address).expect("somebody waits")),
        line: Arc::new(|_| {}),
        freed: Arc::new(sandlite_cli::give_memory_back),
    };
    let engine = host.clone();
    std::thread::spawn(move || server::serve(config, engine, reports).expect("the server serves"));
    let address = ready.recv().expect("the server starts");

    println!("{:<44} {:>10} {:>10}", "", "median", "99 %");
    if is_chosen("warm") {
        for clients in [1, CLIENTS] {
            let library = show(&format!("library, {clients} at a time"), library(&host, data.path(), clients, rounds));
            let http = show(&format!("HTTP, {clients} at a time"), over_http(address, &first, clients, rounds));
            ratio(http, library, (clients == CLIENTS).then_some(3.0));
        }
    }
    if is_chosen("flood") {
        flood(address, &first, &second, rounds * 2);
    }
    if is_chosen("memory") {
        memory(address, &first);
    }
    if is_chosen("many") {
        many(address, &first);
    }
}

/// One client of a tenant, alone and together with twice the usual number of clients of another tenant.
fn flood(address: SocketAddr, flooding: &str, other: &str, rounds: usize) {
    let alone = show("another tenant, alone", over_http(address, other, 1, rounds));
    let stop = Arc::new(AtomicBool::new(false));
    let flood: Vec<_> = (0..CLIENTS * 2)
        .map(|_| {
            let (stop, key) = (Arc::clone(&stop), flooding.to_owned());
            std::thread::spawn(move || {
                let mut client = Client::new(address, &key);
                let id = client.sandbox();
                while !stop.load(Ordering::Relaxed) {
                    client.bash(&id);
                }
            })
        })
        .collect();
    let flooded = show("another tenant, beside a flood", over_http(address, other, 1, rounds));
    ratio(flooded, alone, Some(2.0));
    stop.store(true, Ordering::Relaxed);
    flood.into_iter().for_each(|client| client.join().expect("the flood ends"));
}

fn memory(address: SocketAddr, key: &str) {
    let mut client = Client::new(address, key);
    // Memory that the first ones leave in the allocator is reused by the following ones.
    for _ in 0..IDLE / 10 {
        let id = client.sandbox();
        client.bash(&id);
    }
    std::thread::sleep(REST);
    let before = resident();
    for _ in 0..IDLE {
        let id = client.sandbox();
        client.bash(&id);
    }
    let busy = resident().saturating_sub(before) / IDLE;
    std::thread::sleep(REST);
    let idle = resident().saturating_sub(before) / IDLE;
    println!("{:<44} {busy:>7} KB", format!("memory of each of {IDLE} sandboxes, just used"));
    println!("{:<44} {idle:>7} KB   {}", "the same, idle", verdict(idle <= 300, "300 KB"));
}

/// Makes many sandboxes and uses some of them again and again, then all of them once.
fn many(address: SocketAddr, key: &str) {
    let began = Instant::now();
    let ids: Vec<String> = std::thread::scope(|scope| {
        let makers: Vec<_> = (0..CLIENTS)
            .map(|_| {
                scope.spawn(move || {
                    let mut client = Client::new(address, key);
                    (0..REGISTERED / CLIENTS).map(|_| client.sandbox()).collect::<Vec<_>>()
                })
            })
            .collect();
        makers.into_iter().flat_map(|maker| maker.join().expect("sandboxes are made")).collect()
    });
    println!("{} sandboxes registered in {:.0?}, {} MB resident", ids.len(), began.elapsed(), resident() / 1024);
    let rotate = |name: &str, ids: &[String], rounds: usize| {
        let times = std::thread::scope(|scope| {
            let users: Vec<_> = (0..CLIENTS)
                .map(|number| {
                    let mine: Vec<&String> = ids.iter().skip(number).step_by(CLIENTS).collect();
                    scope.spawn(move || {
                        let mut client = Client::new(address, key);
                        let mut times = Vec::new();
                        for _ in 0..rounds {
                            for id in &mine {
                                let began = Instant::now();
                                client.bash(id);
                                times.push(began.elapsed());
                            }
                        }
                        times
                    })
                })
                .collect();
            users.into_iter().flat_map(|user| user.join().expect("a client ends")).collect::<Vec<_>>()
        });
        show(name, times);
        println!("{:<44} {:>7} MB resident", "", resident() / 1024);
    };
    rotate(&format!("{ACTIVE} of them, opened"), &ids[..ACTIVE], 1);
    rotate(&format!("{ACTIVE} of them, in turn, 3 rounds"), &ids[..ACTIVE], 3);
    rotate("all of them, closed and opened by use", &ids, 1);
}

fn ratio(measured: Duration, base: Duration, bar: Option<f64>) {
    let ratio = measured.as_secs_f64() / base.as_secs_f64();
    let verdict = bar.map(|bar| verdict(ratio <= bar, &format!("{bar:.0}x"))).unwrap_or_default();
    println!("{:<44} {:>10} {ratio:>9.2}x   {verdict}", "", "");
}

fn verdict(is_met: bool, bar: &str) -> String {
    format!("bar: {bar}, {}", if is_met { "met" } else { "MISSED" })
}

fn over_http(address: SocketAddr, key: &str, clients: usize, rounds: usize) -> Vec<Duration> {
    together(clients, rounds, |_| {
        let mut client = Client::new(address, key);
        let id = client.sandbox();
        move || client.bash(&id)
    })
}

fn library(host: &Host, directory: &std::path::Path, clients: usize, rounds: usize) -> Vec<Duration> {
    together(clients, rounds, |number| {
        let sandbox = Sandbox::builder().host(host).database(directory.join(format!("library-{clients}-{number}.db")));
        let sandbox = sandbox.open().expect("a sandbox opens");
        move || assert_eq!(sandbox.bash(COMMAND).expect("the command runs").stdout, b"warm\n")
    })
}

/// Returns the duration of each call of this many concurrent threads.
fn together<F: FnMut()>(clients: usize, rounds: usize, make: impl Fn(usize) -> F + Sync) -> Vec<Duration> {
    let begin = std::sync::Barrier::new(clients);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..clients)
            .map(|number| {
                let (make, begin) = (&make, &begin);
                scope.spawn(move || {
                    let mut call = make(number);
                    (0..5).for_each(|_| call());
                    begin.wait();
                    let times = (0..rounds).map(|_| {
                        let began = Instant::now();
                        call();
                        began.elapsed()
                    });
                    times.collect::<Vec<_>>()
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("a client ends")).collect()
    })
}

fn show(name: &str, mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    let at = |part: usize| times[(times.len() * part).div_ceil(100).clamp(1, times.len()) - 1];
    println!("{name:<44} {:>10.2?} {:>10.2?}", at(50), at(99));
    at(99)
}

fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}
