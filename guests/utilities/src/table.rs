//! Which name starts which utility.

use std::ffi::OsString;

use crate::program::run;
use crate::{archive, basic, date, files, identity, processes, text, tool, uutils};

/// A utility: arguments in (its own name first), exit status out.
type Program = fn(Vec<OsString>) -> i32;

macro_rules! programs {
    ($($name:literal => $main:path,)*) => {
        const NAMES: &[&str] = &[$($name),*];
        const PROGRAMS: &[Program] = &[$(|args| run(args, $main)),*];
    };
}

// Sorted by name: `find` searches by halves.
programs! {
    "[" => files::test::bracket,
    "ar" => archive::ar::main,
    "arch" => identity::arch,
    "b2sum" => text::checksum::b2sum,
    "base32" => text::encode::base32,
    "base64" => text::encode::base64,
    "basename" => basic::basename,
    "basenc" => uutils::basenc,
    "cal" => date::cal::main,
    "cat" => text::cat::main,
    "chgrp" => files::chown::chgrp,
    "chmod" => files::chmod::main,
    "chown" => files::chown::chown,
    "cksum" => text::checksum::cksum,
    "comm" => text::comm::main,
    "cp" => files::cp::main,
    "cpio" => archive::cpio::main,
    "csplit" => uutils::csplit::checked,
    "cut" => text::cut::main,
    "date" => date::main,
    "dd" => files::dd::main,
    "df" => files::disk::df,
    "dir" => files::ls::dir,
    "dircolors" => uutils::dircolors,
    "dirname" => basic::dirname,
    "du" => files::disk::du,
    "echo" => basic::echo,
    "env" => processes::env::main,
    "expand" => text::tabs::expand,
    "expr" => text::expr::main,
    "factor" => uutils::factor_each,
    "false" => basic::r#false,
    "fmt" => text::fmt::main,
    "fold" => text::fold::main,
    "getopt" => processes::getopt::main,
    "groups" => identity::groups,
    "head" => text::head::main,
    "hostid" => identity::hostid,
    "hostname" => identity::hostname,
    "id" => identity::id,
    "install" => files::install::main,
    "join" => uutils::join_two,
    "kill" => processes::kill::main,
    "link" => basic::link,
    "ln" => files::links::ln,
    "logname" => identity::logname,
    "look" => text::look::main,
    "ls" => files::ls::ls,
    "md5sum" => text::checksum::md5sum,
    "mkdir" => files::make::mkdir,
    "mkfifo" => files::make::mkfifo,
    "mknod" => files::make::mknod,
    "mktemp" => files::make::mktemp,
    "mv" => files::mv::main,
    "nice" => processes::launch::nice,
    "nl" => text::nl::main,
    "nohup" => processes::launch::nohup,
    "nproc" => identity::nproc,
    "numfmt" => text::numfmt::main,
    "od" => uutils::od_any,
    "paste" => text::paste::main,
    "pathchk" => uutils::pathchk,
    "pr" => text::pr::main,
    "printenv" => basic::printenv,
    "printf" => text::printf::main,
    "ptx" => uutils::ptx,
    "pwd" => basic::pwd,
    "readlink" => files::paths::readlink,
    "realpath" => files::paths::realpath,
    "rm" => files::rm::main,
    "rmdir" => files::make::rmdir,
    "seq" => text::seq::main,
    "setsid" => processes::launch::setsid,
    "sha1sum" => text::checksum::sha1sum,
    "sha224sum" => text::checksum::sha224sum,
    "sha256sum" => text::checksum::sha256sum,
    "sha384sum" => text::checksum::sha384sum,
    "sha512sum" => text::checksum::sha512sum,
    "shred" => uutils::shred,
    "shuf" => text::shuf::main,
    "sleep" => basic::sleep,
    "sort" => text::sort::main,
    "split" => text::split::main,
    "stat" => files::stat::main,
    "stdbuf" => processes::launch::stdbuf,
    "sum" => text::checksum::sum,
    "sync" => basic::sync,
    "tac" => text::tac::main,
    "tail" => text::tail::main,
    "tee" => text::tee::main,
    "test" => files::test::test,
    "timeout" => processes::timeout::main,
    "tool" => tool::main,
    "touch" => files::touch::main,
    "tr" => text::tr::main,
    "true" => basic::r#true,
    "truncate" => files::make::truncate,
    "tsort" => text::tsort::main,
    "tty" => identity::tty,
    "uname" => identity::uname,
    "unexpand" => text::tabs::unexpand,
    "uniq" => text::uniq::main,
    "unlink" => basic::unlink,
    "uptime" => identity::uptime,
    "users" => identity::users,
    "uudecode" => archive::uu::uudecode,
    "uuencode" => archive::uu::uuencode,
    "vdir" => files::ls::vdir,
    "wc" => text::wc::main,
    "who" => identity::who,
    "whoami" => identity::whoami,
    "yes" => basic::yes,
}

/// The utility with this name.
#[must_use]
pub fn find(name: &str) -> Option<Program> {
    NAMES.binary_search(&name).ok().map(|at| PROGRAMS[at])
}

/// All names, sorted.
#[must_use]
pub fn names() -> &'static [&'static str] {
    NAMES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted() {
        assert!(NAMES.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
