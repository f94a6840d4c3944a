//! Programs about processes, their surroundings and the clock.

pub mod cal;
pub mod date;
pub mod env;
pub mod free;
pub mod getopt;
pub mod id;
pub mod kill;
pub mod locale;
pub mod nice;
pub mod nohup;
pub mod printenv;
pub mod setsid;
pub mod sleep;
pub mod sqlite3;
pub mod status;
pub mod stdbuf;
pub mod time;
pub mod timeout;
pub mod tool;
pub mod tput;
pub mod uname;
pub mod uuidgen;
pub mod who;
pub mod xargs;
