//! Python's interface to the host: one import that takes a request and keeps the response until it is fetched.
//!
//! New imports cannot be added to CPython's module, but it has one pair for HTTP (`_bashkit.http` in Python). There is no network
//! here, so such requests are rejected; a request whose method is [`METHOD`] is an operation that preview1 lacks: processes,
//! pipes, permissions. They have the semantics of the imports of `guests/abi`.
//!
//! Layout, little-endian. Request: `method`, `url`, `count u32` + headers, `body`; a string is `length u32` + bytes. The URL
//! names the operation; the body contains its numbers, `u32` each, then a path or an encoded [`Request`]. Response: `status u32`
//! (an errno, 0 for success), `0 u32`, `body`.

use abi::spawn::Request;
use abi::{Disposition, Errno, Signal};

use sqlite_fs::VolumeMut;

use super::call::Call;
use super::memory::MAX_PATH_BYTES;
use super::{files, metadata, processes, tools};
use crate::process::descriptor::Object;
use crate::process::wait::block;
use crate::process::{self, Fault};
use crate::run::Shown;
use crate::vfs::Node;

/// The method of requests for the host.
const METHOD: &[u8] = b"sandlite";

/// Maximum size of a request; the preset's limit on command text is checked inside it.
const MAX_REQUEST_BYTES: u32 = 8 << 20;

/// The kinds of values that Python code can display.
const SHOWN: [&str; 4] = ["text/plain", "application/json", "image/png", "image/svg+xml"];

/// The response to a guest that wants the network.
const NO_NETWORK: &[u8] = b"there is no network in the sandbox";

/// The request succeeded.
const ANSWERED: u32 = 0;
/// The request was rejected; the response is the reason.
const REFUSED: u32 = 1;

/// `http_request`: performs the request and keeps the response, whose length is written to `out`.
pub(super) fn request(call: &mut Call<'_>, pointer: u32, length: u32, timeout: i64, out: u32) -> Result<u32, Fault> {
    call.charge_bytes(length as usize);
    call.memory.bytes(out, 4)?;
    let bytes = call.memory.copy(pointer, length, MAX_REQUEST_BYTES)?;
    let (code, answer) = match operation(&bytes) {
        Some((name, body)) => (ANSWERED, answer(call, name, body, timeout)?),
        None => (REFUSED, NO_NETWORK.to_vec()),
    };
    call.memory.write_u32(out, u32::try_from(answer.len()).map_err(|_| Errno::OVERFLOW)?)?;
    call.state.answer = answer;
    Ok(code)
}

/// `http_take`: returns the response to the last request, and discards it.
pub(super) fn take(call: &mut Call<'_>, buffer: u32, length: u32) -> Result<(), Fault> {
    let answer = std::mem::take(&mut call.state.answer);
    if answer.len() > length as usize || buffer == 0 {
        return Err(Errno::INVAL.into());
    }
    Ok(call.memory.write(buffer, &answer)?)
}

/// The interface of the scientific Python: the same request after a timeout (`i64`), the same response.
pub(super) fn ask(call: &mut Call<'_>, pointer: u32, length: u32) -> Result<(), Fault> {
    call.charge_bytes(length as usize);
    let bytes = call.memory.copy(pointer, length, MAX_REQUEST_BYTES)?;
    let (timeout, bytes) = bytes.split_first_chunk::<8>().ok_or(Errno::INVAL)?;
    let (name, body) = operation(bytes).ok_or(Errno::INVAL)?;
    call.state.answer = answer(call, name, body, i64::from_le_bytes(*timeout))?;
    Ok(())
}

// The name and the body of a request for us.
fn operation(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (method, rest) = field(bytes)?;
    let (name, rest) = field(rest)?;
    let (headers, rest) = number(rest)?;
    let (body, _) = field(rest)?;
    (method == METHOD && headers == 0).then_some((name, body))
}

fn number(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (head, rest) = bytes.split_first_chunk::<4>()?;
    Some((u32::from_le_bytes(*head), rest))
}

fn field(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = number(bytes)?;
    rest.split_at_checked(length as usize)
}

fn answer(call: &mut Call<'_>, name: &[u8], body: &[u8], timeout: i64) -> Result<Vec<u8>, Fault> {
    let (status, body) = match perform(call, name, body, timeout) {
        Ok(body) => (0, body),
        Err(Fault::Errno(errno)) => (u32::from(errno.raw()), Vec::new()),
        Err(ended) => return Err(ended),
    };
    let mut bytes = Vec::with_capacity(12 + body.len());
    for number in [status, 0, u32::try_from(body.len()).map_err(|_| Errno::OVERFLOW)?] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    bytes.extend_from_slice(&body);
    Ok(bytes)
}

// The first `N` numbers of a body, and the rest.
fn numbers<const N: usize>(mut body: &[u8]) -> Result<([u32; N], &[u8]), Errno> {
    let mut numbers = [0; N];
    for slot in &mut numbers {
        (*slot, body) = number(body).ok_or(Errno::INVAL)?;
    }
    Ok((numbers, body))
}

fn encoded(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

fn perform(call: &mut Call<'_>, name: &[u8], body: &[u8], timeout: i64) -> Result<Vec<u8>, Fault> {
    match name {
        b"begin" => {
            call.state.process.set_disposition(Signal::PIPE, Disposition::Ignore);
            Ok(call.state.cwd.clone())
        }
        b"stat" => {
            let ([follow], path) = numbers(body)?;
            let node = node(call, path, follow)?;
            Ok(metadata::of_node(call.state, node)?.encode().to_vec())
        }
        b"fstat" => {
            let ([fd], _) = numbers(body)?;
            Ok(files::stat(call, fd)?.encode().to_vec())
        }
        b"chmod" => {
            let ([follow, mode], path) = numbers(body)?;
            let node = node(call, path, follow)?;
            call.state.job.view.chmod(node, mode)?;
            Ok(Vec::new())
        }
        b"fchmod" => {
            let ([fd, mode], _) = numbers(body)?;
            let file = files::file(call, fd)?;
            let (Object::File(held) | Object::Directory(held) | Object::Generated(held, ..)) = &file.object else {
                return Err(Errno::INVAL.into());
            };
            call.state.job.view.chmod(held.node, mode)?;
            Ok(Vec::new())
        }
        b"chown" => {
            let ([follow, uid, gid], path) = numbers(body)?;
            let node = node(call, path, follow)?;
            metadata::chown(call.state, node, uid, gid)?;
            Ok(Vec::new())
        }
        b"umask" => {
            let ([mask], _) = numbers(body)?;
            Ok(encoded(&[std::mem::replace(&mut call.state.umask, mask & 0o777)]))
        }
        b"pipe" => {
            // Both ends close on exec, as in Python's own `os.pipe`.
            let (reading, writing) = processes::new_pipe(call, true)?;
            Ok(encoded(&[reading, writing]))
        }
        b"dup" => {
            let ([fd, minimum, close_on_exec], _) = numbers(body)?;
            let file = files::file(call, fd)?;
            Ok(encoded(&[call.state.descriptors.insert(file, minimum, close_on_exec != 0)?]))
        }
        b"dup2" => {
            let ([fd, to, close_on_exec], _) = numbers(body)?;
            call.state.descriptors.duplicate_to(fd, to)?;
            call.state.descriptors.set_close_on_exec(to, close_on_exec != 0)?;
            Ok(Vec::new())
        }
        b"close_on_exec" => {
            let ([fd, on], _) = numbers(body)?;
            call.state.descriptors.set_close_on_exec(fd, on != 0)?;
            Ok(Vec::new())
        }
        b"descriptors" => Ok(encoded(&call.state.descriptors.numbers())),
        b"ids" => {
            let pid = call.state.process.pid;
            let table = call.state.job.table();
            Ok(encoded(&[pid, table.parent(pid), table.group(pid)]))
        }
        b"group" => {
            let ([pid], _) = numbers(body)?;
            match call.state.job.table().group(pid) {
                0 => Err(Errno::SRCH.into()),
                group => Ok(encoded(&[group])),
            }
        }
        b"set_group" => {
            let ([pid, group], _) = numbers(body)?;
            call.state.job.table().set_group(call.state.process.pid, pid, group)?;
            Ok(Vec::new())
        }
        b"spawn" => {
            let request = Request::decode(body).ok_or(Errno::INVAL)?;
            Ok(encoded(&[process::start(call.state, &request)?]))
        }
        b"exec" => {
            let request = Request::decode(body).ok_or(Errno::INVAL)?;
            Err(process::exec(&call.state.job, request)?.into())
        }
        b"wait" => {
            let ([pid], _) = numbers(body)?;
            wait(call, pid.cast_signed(), timeout)
        }
        b"kill" => {
            let ([pid, signal], _) = numbers(body)?;
            processes::kill(call, pid.cast_signed(), signal)?;
            Ok(Vec::new())
        }
        b"signal_action" => {
            let ([signal, disposition], _) = numbers(body)?;
            Ok(encoded(&[processes::set_action(call, signal, disposition)?]))
        }
        b"show" => {
            let (mime, data) = field(body).ok_or(Errno::INVAL)?;
            let mime = std::str::from_utf8(mime).ok().filter(|mime| SHOWN.contains(mime)).ok_or(Errno::INVAL)?;
            call.state.job.show(Shown { mime: mime.to_owned(), data: data.to_vec() })?;
            Ok(Vec::new())
        }
        b"tools" => Ok(tools::listed(call, true)),
        b"tool" => {
            let (name, arguments) = field(body).ok_or(Errno::INVAL)?;
            tools::perform(call, name, arguments)
        }
        _ => Err(Errno::NOSYS.into()),
    }
}

fn node(call: &Call<'_>, path: &[u8], follow: u32) -> Result<Node, Fault> {
    if path.len() > MAX_PATH_BYTES as usize {
        return Err(Errno::NAMETOOLONG.into());
    }
    processes::node_at(call, std::str::from_utf8(path).map_err(|_| Errno::ILSEQ)?, follow)
}

// `timeout` in milliseconds; negative: none. When it passes, the result is pid 0.
fn wait(call: &mut Call<'_>, pid: i32, timeout: i64) -> Result<Vec<u8>, Fault> {
    call.may_wait();
    let which = processes::which_children(call, pid);
    let (job, process) = (&call.state.job, &call.state.process);
    let until = u64::try_from(timeout).ok().and_then(|timeout| job.clock.after(timeout.saturating_mul(1_000_000)));
    let mut ended = job.table().reap(process.pid, which)?;
    if ended.is_none() && timeout != 0 {
        ended = block(job, process, until, || job.table().reap(process.pid, which).transpose())?.transpose()?;
    }
    let (pid, status) = ended.map_or((0, 0), |waited| (waited.pid, waited.status.to_raw()));
    Ok(encoded(&[pid, status]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(method: &str, name: &str, body: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for field in [method.as_bytes(), name.as_bytes()] {
            bytes.extend_from_slice(&(field.len() as u32).to_le_bytes());
            bytes.extend_from_slice(field);
        }
        bytes.extend_from_slice(&0u32.to_le_bytes());
        bytes.extend_from_slice(&(body.len() as u32).to_le_bytes());
        bytes.extend_from_slice(body);
        bytes
    }

    #[test]
    fn requests_for_the_host_and_the_network_are_distinguished() {
        assert_eq!(operation(&request("sandlite", "stat", b"xyz")), Some((&b"stat"[..], &b"xyz"[..])));
        assert_eq!(operation(&request("GET", "http://example.com/", b"")), None);
    }

    #[test]
    fn a_request_that_is_cut_short_is_refused() {
        let whole = request("sandlite", "stat", b"xyz");
        for length in 0..whole.len() {
            assert_eq!(operation(&whole[..length]), None, "prefix of {length} bytes");
        }
    }
}
