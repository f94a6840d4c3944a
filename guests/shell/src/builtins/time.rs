//! Dates as prompts and `printf` show them.

use common::strftime::{self, Dialect};
use sys::zone::Zone;

use crate::shell::Shell;
use crate::state::variables::Attributes;

/// The longest text that bash's `printf %()T` and prompts write.
const LONGEST_TIME: usize = 127;

impl Shell {
    /// Returns `strftime` of a moment in seconds since 1970 (by default now), in the zone of TZ: only an exported one counts.
    pub(crate) fn format_local_time(&mut self, format: &str, seconds: Option<i64>) -> String {
        let moment = seconds.map_or_else(sys::now_ns, |seconds| i128::from(seconds) * 1_000_000_000);
        let exported = self.variables.get("TZ").filter(|variable| variable.attributes.has(Attributes::EXPORT));
        let zone = exported.and_then(|variable| variable.scalar()).map_or_else(Zone::utc, Zone::named);
        let text = strftime::format(format.as_bytes(), moment, &zone, Dialect::Library);
        if text.len() > LONGEST_TIME { String::new() } else { String::from_utf8_lossy(&text).into_owned() }
    }
}
