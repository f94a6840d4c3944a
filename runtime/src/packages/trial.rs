//! Wheels are tried in a separate sandbox before they are installed: whether those without their native code still work, and to
//! compile their modules with the Python that will import them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use presets::{Overrides, Preset, WallTime};

use super::wheel::Wheel;
use super::{SITE_PACKAGES, normalized};
use crate::host::Host;
use crate::{Command, Error, Sandbox};

/// The code that compiles modules until the deadline and prints the number compiled.
const COMPILE: &str = "\
import py_compile, sys, time
names, end, done = sys.stdin.read().splitlines(), time.monotonic() + 20, 0
for name in names:
    try:
        py_compile.compile(name, doraise=True, quiet=2)
    except Exception:
        pass
    done += 1
    if time.monotonic() > end:
        break
print(done)
";

/// Maximum duration of a package's import.
const IMPORT_TIME: Duration = Duration::from_secs(60);

/// Number of modules processed at once.
const AT_ONCE: usize = 4_000;

/// A compiled module and its source file.
pub(super) type Compiled = BTreeMap<String, Vec<u8>>;

/// The sandbox.
pub(super) struct Trial {
    sandbox: Sandbox,
}

impl Trial {
    /// Unpacks the wheels.
    pub(super) fn new(host: &Host, wheels: &[Wheel]) -> Result<Self, Error> {
        let sandbox = Sandbox::builder().host(host).preset(Preset::Permissive).open()?;
        let all: Vec<&Wheel> = wheels.iter().collect();
        sandbox.packages().place_with(&all, &Compiled::new()).map_err(|(_, error)| error)?;
        Ok(Self { sandbox })
    }

    /// Returns the packages that cannot be imported without their native code, and the reasons.
    pub(super) fn broken(&mut self, wheels: &[Wheel]) -> Result<Vec<(String, String)>, Error> {
        let mut broken = Vec::new();
        for wheel in wheels.iter().filter(|wheel| wheel.is_stripped()) {
            let code: String = wheel.modules().iter().map(|module| format!("import {module}\n")).collect();
            let wall = Some(WallTime(IMPORT_TIME));
            let output = self.sandbox.run(Command::python(code).limits(Overrides { wall, ..Overrides::default() }))?;
            if !output.status.success() {
                let stderr = String::from_utf8_lossy(&output.stderr);
                let reason = stderr.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it cannot be imported");
                broken.push((normalized(&wheel.package().name), reason.to_owned()));
            }
        }
        Ok(broken)
    }

    /// Returns the compiled modules of these wheels. Modules that cannot be compiled are omitted, as by pip.
    pub(super) fn compile(&mut self, wheels: &[&Wheel]) -> Result<Compiled, Error> {
        let names: Vec<String> = wheels.iter().flat_map(|wheel| wheel.sources()).collect();
        let mut compiled = Compiled::new();
        let mut rest = names.as_slice();
        while !rest.is_empty() {
            let (batch, _) = rest.split_at(rest.len().min(AT_ONCE));
            let output = self.sandbox.run(Command::python(COMPILE).stdin(batch.join("\n")))?;
            let done: usize = String::from_utf8_lossy(&output.stdout).trim().parse().unwrap_or_default();
            if done == 0 {
                // It reached a limit: the rest is compiled on import.
                break;
            }
            rest = rest.get(done..).unwrap_or_default();
        }
        let directories: BTreeSet<&str> = names.iter().filter_map(|name| Some(name.rsplit_once('/')?.0)).collect();
        for directory in directories {
            let place = format!("{directory}/__pycache__");
            if !self.sandbox.fs().exists(&place)? {
                continue;
            }
            for entry in self.sandbox.fs().list(&place)? {
                let path = format!("{place}/{}", entry.name);
                compiled.insert(path.clone(), self.sandbox.fs().read(&path)?);
            }
        }
        compiled.retain(|path, _| path.starts_with(SITE_PACKAGES));
        Ok(compiled)
    }
}
