//! Utilities over files and directories.

pub mod chmod;
pub mod chown;
pub mod copy;
pub mod cp;
pub mod dd;
pub mod disk;
pub mod install;
pub mod links;
pub mod ls;
pub mod make;
pub mod mode;
pub mod mv;
pub mod paths;
pub mod rm;
pub mod stat;
pub mod test;
pub mod touch;
