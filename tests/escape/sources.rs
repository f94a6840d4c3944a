//! T-SRC-01, T-SRC-02: sources that lie, that are slow, or that change while somebody reads them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use runtime::{Command, FsError, Mount, Overrides, ProvidedNode, Provider, Sandbox, WallTime};

use super::host;

fn with(provider: Provider) -> Sandbox {
    Sandbox::builder().host(host()).mount(Mount::dynamic("/m", provider)).open().unwrap()
}

fn within(seconds: u64, script: &str) -> Command {
    let wall = WallTime(Duration::from_secs(seconds));
    Command::bash(script).limits(Overrides { wall: Some(wall), ..Overrides::default() })
}

#[test]
fn t_src_01_names_of_a_function_that_are_paths_lead_nowhere() {
    for name in ["..", ".", "", "../../etc/passwd", "a/b", "/etc", "a\0b", &"x".repeat(256)] {
        let owned = name.to_owned();
        let node = move || {
            ProvidedNode::directory([(owned.clone(), ProvidedNode::file("planted")), ("ok".to_owned(), ProvidedNode::file("1"))])
        };
        let sandbox = with(Provider::directory(move |_| Ok(node())));
        let output = sandbox.bash("ls -a /m; cat /m/ok; find /m; cp -r /m /tmp/copy; ls -A /tmp/copy").unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(!said.contains("planted") && !said.contains("ok"), "{name:?}: {said}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("sandlite: /m: invalid name"), "{name:?}");
        assert_eq!(sandbox.fs().list("/m").unwrap_err().fs_error(), Some(FsError::Io), "{name:?}");
        let out = tempfile::tempdir().unwrap();
        assert!(sandbox.export_tree("/", out.path().join("copy")).is_err(), "{name:?}");
    }
}

#[test]
fn t_src_01_an_endless_tree_ends_with_the_command() {
    fn endless(count: Arc<AtomicUsize>) -> Provider {
        Provider::directory(move |_| {
            count.fetch_add(1, Ordering::Relaxed);
            let below = || ProvidedNode::later(endless(Arc::clone(&count)));
            Ok(ProvidedNode::directory([("a", below()), ("b", below())]))
        })
    }
    let sandbox = with(endless(Arc::default()));
    let began = Instant::now();
    let output = sandbox.run(within(1, "find /m | wc -l; echo not reached")).unwrap();
    assert!(output.status.limit().is_some() && began.elapsed() < Duration::from_secs(10), "{:?}", output.status);
    assert_eq!(sandbox.bash("cat /m/a/b/a/nope").unwrap().status.code(), 1);
    // A function that provides itself in its own place has no directory to show.
    let itself: Arc<std::sync::OnceLock<Provider>> = Arc::default();
    let found = Arc::clone(&itself);
    let provider = Provider::directory(move |_| Ok(ProvidedNode::later(found.get().unwrap().clone())));
    let _ = itself.set(provider.clone());
    let sandbox = with(provider);
    assert!(!sandbox.run(within(5, "ls /m")).unwrap().status.success());
}

#[test]
fn t_src_01_a_content_is_bounded_and_counts_in_the_memory_of_the_command() {
    let sandbox = with(Provider::directory(|_| {
        // Zeros cost no memory until somebody reads them.
        let large = |size: usize| ProvidedNode::later(Provider::file(move |_| Ok(vec![0; size])));
        Ok(ProvidedNode::directory([("fits", large(8 << 20)), ("huge", large(3 << 30))]))
    }));
    let output = sandbox.bash("cat /m/huge | wc -c; wc -c < /m/fits").unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "0\n8388608\n");
    assert!(String::from_utf8_lossy(&output.stderr).contains("sandlite: /m/huge: the content has 3221225472 bytes"));
    // Each descriptor has its own content: together they meet the limit, not the machine.
    let script = "for n in {10..200}; do eval \"exec $n< /m/fits\" || exit 7; done";
    let output = sandbox.bash(script).unwrap();
    assert!(!output.status.success(), "{:?}", output.status);
}

#[test]
fn t_src_02_functions_that_never_return_do_not_pile_up() {
    let stop = Arc::new(AtomicBool::new(false));
    let (seen, is_over) = (Arc::new(AtomicUsize::new(0)), Arc::clone(&stop));
    let count = Arc::clone(&seen);
    let sandbox = with(Provider::file(move |_| {
        count.fetch_add(1, Ordering::Relaxed);
        while !is_over.load(Ordering::Relaxed) {
            std::thread::park_timeout(Duration::from_millis(5));
        }
        Ok(Vec::new())
    }));
    let script = "for n in {1..100}; do timeout 0.02 cat /m > /dev/null 2>&1; done; echo through";
    let output = sandbox.run(within(20, script)).unwrap();
    stop.store(true, Ordering::Relaxed);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "through\n", "{:?}", output.status);
    assert!(seen.load(Ordering::Relaxed) <= 32, "{seen:?}");
}

#[test]
fn t_src_02_a_panic_of_a_function_stays_its_own() {
    let sandbox = with(Provider::file(|_| panic!("/home/secret")));
    let output = sandbox.bash("cat /m; echo on").unwrap();
    assert_eq!(output.stdout, b"on\n");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("the function panicked") && !said.contains("secret"), "{said}");
}
