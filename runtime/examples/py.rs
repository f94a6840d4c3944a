//! Scratch.
use sandlite_runtime::{Command, Host, Preset, Sandbox};
use std::io::Write;
use std::time::Instant;
fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let t = Instant::now();
    let host = Host::builder().progress(|s| eprintln!("{s}")).build().unwrap();
    let sandbox = Sandbox::builder().host(&host).preset(Preset::Normal).open().unwrap();
    eprintln!("open {:?}", t.elapsed());
    if args[0] == "bench" {
        let code = args.get(1).map_or("print(1)", |s| s);
        let first = Instant::now();
        sandbox.python(code).unwrap();
        eprintln!("first {:?}", first.elapsed());
        let mut times: Vec<_> = (0..200)
            .map(|_| {
                let t = Instant::now();
                let o = sandbox.python(code).unwrap();
                assert!(o.status.success(), "{o:?}");
                t.elapsed()
            })
            .collect();
        times.sort();
        eprintln!("min {:?} median {:?} p90 {:?}", times[0], times[100], times[180]);
        return;
    }
    let t = Instant::now();
    let mut stdin = Vec::new();
    if std::env::var_os("STDIN").is_some() {
        std::io::Read::read_to_end(&mut std::io::stdin(), &mut stdin).unwrap();
    }
    let o = sandbox.run(Command::python_with(args).stdin(stdin)).unwrap();
    std::io::stdout().write_all(&o.stdout).unwrap();
    std::io::stderr().write_all(&o.stderr).unwrap();
    eprintln!("{:?} {:?} fuel {} mem {}", o.status, t.elapsed(), o.usage.fuel, o.usage.memory_peak);
}
