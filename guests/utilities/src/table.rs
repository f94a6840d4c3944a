//! Which name starts which program.

use std::ffi::OsString;

use crate::program::run;
use crate::{archive, files, math, process, text};

/// A program: arguments in (its own name first), exit status out.
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
    "arch" => process::uname::arch,
    "awk" => text::awk::awk,
    "b2sum" => text::checksum::b2sum,
    "base32" => text::encode::base32,
    "base64" => text::encode::base64,
    "basename" => files::basename::basename,
    "basenc" => text::basenc::main,
    "bc" => math::bc::bc,
    "bunzip2" => archive::compress::bunzip2,
    "bzcat" => archive::compress::bzcat,
    "bzip2" => archive::compress::bzip2,
    "cal" => process::cal::main,
    "cat" => text::cat::main,
    "chgrp" => files::chown::chgrp,
    "chmod" => files::chmod::main,
    "chown" => files::chown::chown,
    "cksum" => text::checksum::cksum,
    "clear" => process::tput::clear,
    "cmp" => text::cmp::cmp,
    "column" => text::column::column,
    "comm" => text::comm::main,
    "cp" => files::cp::main,
    "cpio" => archive::cpio::main,
    "csplit" => text::csplit::main,
    "cut" => text::cut::main,
    "date" => process::date::main,
    "dc" => math::dc::dc,
    "dd" => files::dd::main,
    "df" => files::df::df,
    "diff" => text::diff::diff,
    "diff3" => text::diff3::diff3,
    "dir" => files::ls::dir,
    "dircolors" => files::dircolors::main,
    "dirname" => files::basename::dirname,
    "du" => files::du::du,
    "echo" => text::echo::echo,
    "egrep" => text::grep::egrep,
    "env" => process::env::main,
    "envsubst" => text::envsubst::envsubst,
    "expand" => text::tabs::expand,
    "expr" => math::expr::main,
    "factor" => math::factor::main,
    "fallocate" => files::fallocate::fallocate,
    "false" => process::status::r#false,
    "fgrep" => text::grep::fgrep,
    "file" => files::file::file,
    "find" => files::find::find,
    "fmt" => text::fmt::main,
    "fold" => text::fold::main,
    "free" => process::free::free,
    "gawk" => text::awk::awk,
    "getopt" => process::getopt::main,
    "grep" => text::grep::grep,
    "groups" => process::id::groups,
    "gunzip" => archive::compress::gunzip,
    "gzip" => archive::compress::gzip,
    "hd" => text::hexdump::hexdump,
    "head" => text::head::main,
    "hexdump" => text::hexdump::hexdump,
    "hostid" => process::uname::hostid,
    "hostname" => process::uname::hostname,
    "iconv" => text::iconv::iconv,
    "id" => process::id::id,
    "install" => files::install::main,
    "join" => text::join::main,
    "jq" => text::jq::jq,
    "kill" => process::kill::main,
    "less" => text::pager::pager,
    "link" => files::link::link,
    "ln" => files::links::ln,
    "locale" => process::locale::locale,
    "logname" => process::id::logname,
    "look" => text::look::main,
    "ls" => files::ls::ls,
    "lzcat" => archive::compress::lzcat,
    "lzma" => archive::compress::lzma,
    "mawk" => text::awk::awk,
    "md5sum" => text::checksum::md5sum,
    "mkdir" => files::mkdir::mkdir,
    "mkfifo" => files::mknod::mkfifo,
    "mknod" => files::mknod::mknod,
    "mktemp" => files::mktemp::mktemp,
    "more" => text::pager::pager,
    "mv" => files::mv::main,
    "nawk" => text::awk::awk,
    "nice" => process::nice::nice,
    "nl" => text::nl::main,
    "nohup" => process::nohup::nohup,
    "nproc" => process::uname::nproc,
    "numfmt" => math::numfmt::main,
    "od" => text::od::main,
    "paste" => text::paste::main,
    "patch" => text::patch::patch,
    "pathchk" => files::pathchk::main,
    "pr" => text::pr::main,
    "printenv" => process::printenv::printenv,
    "printf" => text::printf::main,
    "ptx" => text::ptx::main,
    "pwd" => files::pwd::pwd,
    "readlink" => files::paths::readlink,
    "realpath" => files::paths::realpath,
    "reset" => process::tput::reset,
    "rev" => text::rev::rev,
    "rg" => text::rg::rg,
    "rm" => files::rm::main,
    "rmdir" => files::mkdir::rmdir,
    "sandlite-decoder" => archive::decoder::decoder,
    "sed" => text::sed::sed,
    "seq" => math::seq::main,
    "setsid" => process::setsid::setsid,
    "sha1sum" => text::checksum::sha1sum,
    "sha224sum" => text::checksum::sha224sum,
    "sha256sum" => text::checksum::sha256sum,
    "sha384sum" => text::checksum::sha384sum,
    "sha512sum" => text::checksum::sha512sum,
    "shred" => files::shred::main,
    "shuf" => text::shuf::main,
    "sleep" => process::sleep::sleep,
    "sort" => text::sort::main,
    "split" => text::split::main,
    "sqlite3" => process::sqlite3::sqlite3,
    "stat" => files::stat::main,
    "stdbuf" => process::stdbuf::stdbuf,
    "strings" => text::strings::strings,
    "sum" => text::checksum::sum,
    "sync" => files::sync::sync,
    "tac" => text::tac::main,
    "tail" => text::tail::main,
    "tar" => archive::tar::tar,
    "tee" => text::tee::main,
    "test" => files::test::test,
    "time" => process::time::time,
    "timeout" => process::timeout::main,
    "tool" => process::tool::main,
    "touch" => files::touch::main,
    "tput" => process::tput::tput,
    "tr" => text::tr::main,
    "tree" => files::tree::tree,
    "true" => process::status::r#true,
    "truncate" => files::truncate::truncate,
    "tsort" => text::tsort::main,
    "tty" => process::who::tty,
    "uname" => process::uname::uname,
    "unexpand" => text::tabs::unexpand,
    "uniq" => text::uniq::main,
    "unlink" => files::link::unlink,
    "unlzma" => archive::compress::unlzma,
    "unxz" => archive::compress::unxz,
    "unzip" => archive::zip::unzip,
    "uptime" => process::who::uptime,
    "users" => process::who::users,
    "uudecode" => archive::uu::uudecode,
    "uuencode" => archive::uu::uuencode,
    "uuidgen" => process::uuidgen::uuidgen,
    "vdir" => files::ls::vdir,
    "wc" => text::wc::main,
    "which" => files::which::which,
    "who" => process::who::who,
    "whoami" => process::id::whoami,
    "xargs" => process::xargs::xargs,
    "xxd" => text::xxd::xxd,
    "xz" => archive::compress::xz,
    "xzcat" => archive::compress::xzcat,
    "yes" => text::yes::yes,
    "zcat" => archive::compress::zcat,
    "zip" => archive::zip::zip,
}

/// Returns the program with this name.
#[must_use]
pub fn find(name: &str) -> Option<Program> {
    NAMES.binary_search(&name).ok().map(|at| PROGRAMS[at])
}

/// Returns all names, sorted.
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
