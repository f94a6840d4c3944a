//! The files of `/proc`, generated for the process that opens them.

use super::{Pid, State};
use crate::defaults::USER;
use crate::vfs::ProcFile;

/// Returns the content of a file of `/proc` as this process sees it.
pub(super) fn content(state: &State, file: ProcFile) -> Vec<u8> {
    let meter = &state.job.meter;
    match file {
        ProcFile::Cmdline => zero_terminated(abi::program::meant(&state.args).1),
        ProcFile::Environ => zero_terminated(&state.env),
        ProcFile::Comm => format!("{}\n", command_name(state)).into_bytes(),
        ProcFile::Stat => {
            let (pid, parent, group) = ids(state);
            let (name, zeros) = (command_name(state), " 0".repeat(44));
            format!("{pid} ({name}) R {parent} {group} {group} 0 -1{zeros}\n").into_bytes()
        }
        ProcFile::Status => {
            let (pid, parent, _) = ids(state);
            let (name, umask) = (command_name(state), state.umask);
            let (uid, gid, peak) = (USER.uid, USER.gid, meter.usage().memory_peak / 1024);
            format!(
                "Name:\t{name}\nUmask:\t{umask:04o}\nState:\tR (running)\nTgid:\t{pid}\nPid:\t{pid}\nPPid:\t{parent}\nTracerPid:\t0\n\
                 Uid:\t{uid}\t{uid}\t{uid}\t{uid}\nGid:\t{gid}\t{gid}\t{gid}\t{gid}\nVmPeak:\t{peak:8} kB\nThreads:\t1\n"
            )
            .into_bytes()
        }
        ProcFile::Mounts => state.job.view.mount_lines().into_bytes(),
        ProcFile::Meminfo => {
            let total = meter.limits().memory.0 / 1024;
            let free = total.saturating_sub(meter.usage().memory_peak / 1024);
            format!("MemTotal:       {total} kB\nMemFree:        {free} kB\nMemAvailable:   {free} kB\n").into_bytes()
        }
        ProcFile::Uptime => {
            let seconds = state.job.clock.monotonic() / 10_000_000;
            format!("{}.{:02} 0.00\n", seconds / 100, seconds % 100).into_bytes()
        }
    }
}

// As in the kernel: the last component of the program's name, truncated to 15 bytes.
fn command_name(state: &State) -> String {
    let path = abi::program::meant(&state.args).1.first().map_or(&b"?"[..], Vec::as_slice);
    let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    String::from_utf8_lossy(name.get(..15).unwrap_or(name)).into_owned()
}

fn ids(state: &State) -> (Pid, Pid, Pid) {
    let table = state.job.table();
    (state.process.pid, table.parent(state.process.pid), table.group(state.process.pid))
}

fn zero_terminated(strings: &[Vec<u8>]) -> Vec<u8> {
    strings.iter().flat_map(|string| string.iter().copied().chain([0])).collect()
}
