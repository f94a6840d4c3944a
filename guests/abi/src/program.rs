//! Files that are programs of a guest module, and how a module learns which of its programs it is.

use alloc::string::String;
use alloc::vec::Vec;

/// The beginning of a program's file. The name and a newline follow, so that a copy of the file is the same program.
///
/// Not `#!`: programs read such lines themselves. The NUL keeps a shell from reading a broken one as a script.
pub const MAGIC: &[u8] = b"\x7fSANDLITE\0";

/// The longest name of a program.
const LONGEST_NAME: usize = 64;

/// How the argument begins that the host puts before all others when a program is started by another name than its own, as
/// through a link: the program's name follows. No program has such a name itself.
const AS: &str = "sandlite:";

/// Returns the content of the file of a program.
#[must_use]
pub fn file(name: &str) -> Vec<u8> {
    [MAGIC, name.as_bytes(), b"\n"].concat()
}

/// Returns the name of the program that a file with this content is.
#[must_use]
pub fn named(content: &[u8]) -> Option<&str> {
    let name = content.strip_prefix(MAGIC)?.strip_suffix(b"\n")?;
    let name = core::str::from_utf8(name).ok()?;
    let valid = !name.is_empty() && name.len() <= LONGEST_NAME && !name.starts_with('.') && !name.contains(['/', '\n', '\0']);
    valid.then_some(name)
}

/// Arguments that say which program is meant. Those of a program that is started by its own name stay as they are.
#[must_use]
pub fn arguments(name: &str, mut args: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    if args.is_empty() {
        args.push(name.as_bytes().to_vec());
    }
    if args.first().is_some_and(|first| base(first) != name.as_bytes()) {
        args.insert(0, [AS.as_bytes(), name.as_bytes()].concat());
    }
    args
}

/// Returns the program that these arguments are for, and the arguments as they were given.
#[must_use]
pub fn meant<T: AsRef<[u8]>>(args: &[T]) -> (String, &[T]) {
    let first = args.first().map_or(&b""[..], AsRef::as_ref);
    let (name, rest) = match first.strip_prefix(AS.as_bytes()) {
        Some(name) => (name, args.get(1..).unwrap_or_default()),
        None => (base(first), args),
    };
    (String::from_utf8_lossy(name).into_owned(), rest)
}

/// Returns the last part of a path, without the `-` of a login shell.
fn base(path: &[u8]) -> &[u8] {
    let mut name = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    while let Some(rest) = name.strip_prefix(b"-") {
        name = rest;
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_names_its_program() {
        assert_eq!(named(&file("ls")), Some("ls"));
        assert_eq!(named(&file("[")), Some("["));
        for content in [&b""[..], b"ls\n", b"\x7fSANDLITE\0", b"\x7fSANDLITE\0\n", b"\x7fSANDLITE\0ls", b"\x7fSANDLITE\0../x\n"] {
            assert_eq!(named(content), None, "{content:?}");
        }
        assert_eq!(named(&file(&"x".repeat(65))), None);
    }

    #[test]
    fn a_program_learns_its_name_whatever_it_is_called() {
        let check = |name: &str, args: &[&str], changed: bool| {
            let args: Vec<Vec<u8>> = args.iter().map(|arg| arg.as_bytes().to_vec()).collect();
            let told = arguments(name, args.clone());
            assert_eq!(told != args, changed, "{args:?}");
            assert_eq!(meant(&told), (name.into(), &args[..]));
        };
        check("ls", &["ls", "-l"], false);
        check("ls", &["/usr/bin/ls"], false);
        check("bash", &["-bash"], false);
        check("ls", &["/tmp/l", "/"], true);
        check("ls", &["sandlite:cat", "/"], true);
        assert_eq!(meant(&arguments("ls", Vec::new())).0, "ls");
    }
}
