//! Finds the run that broke something: a binary search over versions, each tested by a command in a temporary copy.

use sqlite_fs::Version;

use super::compare::Comparison;
use super::{LoggedVersion, Versions};
use crate::run::{Command, ExitStatus};
use crate::sandbox::Sandbox;
use crate::{Cancel, Error};

/// The exit code for a version that cannot be tested, as in git.
const SKIP: u8 = 125;
/// Exit codes from here on end the search, as in git: the command itself was stopped.
const STOPPED: u8 = 128;

/// The verdict of a command on a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It exited with 0.
    Good,
    /// It exited with anything else.
    Bad,
    /// It exited with 125: the version cannot be tested.
    Skip,
}

/// A tested version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BisectStep {
    /// The version.
    pub version: Version,
    /// The exit code of the command.
    pub exit_code: u8,
    /// The verdict.
    pub verdict: Verdict,
}

/// The result of a search.
pub struct Bisection {
    /// The first bad version, with the run that created it. If versions before it were skipped, one of those may be the first.
    pub first_bad: LoggedVersion,
    /// Skipped versions, each of which may be the first bad one instead, oldest first.
    pub suspects: Vec<Version>,
    /// The changes of the first bad version; `None` if the version before it was pruned.
    pub changes: Option<Comparison>,
    /// The tested versions, in order.
    pub steps: Vec<BisectStep>,
}

impl Versions<'_> {
    /// Finds the first version at which a command fails, between a good one and a bad one (the current one by default). The
    /// command runs in a temporary copy of each tested version; exit code 125 skips a version, and 128 or more ends the search.
    ///
    /// ```
    /// # let sandbox = sandlite_runtime::Sandbox::builder().open()?;
    /// sandbox.bash("echo fine > /state")?;
    /// sandbox.versions().checkpoint("good", None)?;
    /// for command in ["touch /a", "echo broken > /state", "touch /b"] {
    ///     sandbox.bash(command)?;
    /// }
    /// let found = sandbox.versions().bisect("good", None, "grep -q fine /state")?;
    /// assert_eq!(found.first_bad.run.unwrap().command, "echo broken > /state");
    /// # Ok::<(), sandlite_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`Error::Invalid`] if a reference is invalid, the good version is not older than the bad one, the command fails at
    /// the good version or succeeds at the bad one, or is stopped.
    pub fn bisect(&self, good: &str, bad: Option<&str>, command: &str) -> Result<Bisection, Error> {
        self.bisect_until(good, bad, command, &Cancel::default())
    }

    /// Same as [`bisect`](Self::bisect), cancellable by a [`Cancel`].
    pub(crate) fn bisect_until(&self, good: &str, bad: Option<&str>, command: &str, cancel: &Cancel) -> Result<Bisection, Error> {
        let (good, bad) = (self.resolve(good)?, self.resolve(bad.unwrap_or("HEAD"))?);
        if good.number >= bad.number {
            let (good, bad) = (good.number, bad.number);
            return Err(Error::Invalid(format!("the good version v{good} must be older than the bad one v{bad}")));
        }
        let mut search = Search { versions: *self, command, cancel, steps: Vec::new(), skipped: Vec::new() };
        search.expect(&good, Verdict::Good)?;
        search.expect(&bad, Verdict::Bad)?;
        let (mut low, mut high) = (good.number, bad.number);
        while let Some(number) = search.next(low, high) {
            match search.try_at(number)? {
                Verdict::Good => low = number,
                Verdict::Bad => high = number,
                Verdict::Skip => search.skipped.push(number),
            }
        }
        let reader = self.reader()?;
        let mut suspects: Vec<i64> = search.skipped.iter().copied().filter(|number| (low..high).contains(number)).collect();
        suspects.sort_unstable();
        let suspects = suspects.into_iter().map(|number| self.shown(reader.version(number)?)).collect::<Result<_, Error>>()?;
        let version = reader.version(high)?;
        let changes = self.made_by(&version, cancel.clone())?;
        let first_bad =
            self.logged(vec![version])?.pop().ok_or_else(|| Error::Invalid("the version no longer exists".to_owned()))?;
        Ok(Bisection { first_bad, suspects, changes, steps: search.steps })
    }
}

struct Search<'a> {
    versions: Versions<'a>,
    command: &'a str,
    cancel: &'a Cancel,
    steps: Vec<BisectStep>,
    skipped: Vec<i64>,
}

impl Search<'_> {
    // The version nearest to the middle that is not skipped.
    fn next(&self, low: i64, high: i64) -> Option<i64> {
        let middle = low + (high - low) / 2;
        let mut between: Vec<i64> = Vec::new();
        for distance in 0..(high - low) {
            between.extend([middle - distance, middle + distance]);
            let found = between.drain(..).find(|number| *number > low && *number < high && !self.skipped.contains(number));
            if found.is_some() {
                return found;
            }
        }
        None
    }

    fn try_at(&mut self, number: i64) -> Result<Verdict, Error> {
        let version = self.versions.shown(self.versions.reader()?.version(number)?)?;
        let copy: Sandbox = self.versions.sandbox.at(&format!("v{number}"))?;
        let output = copy.run(Command::bash(self.command).cancelled_by(self.cancel.clone()))?;
        let exit_code = output.status.code();
        let stopped = !matches!(output.status, ExitStatus::Exited(_)) || exit_code >= STOPPED || self.cancel.is_killed();
        if stopped {
            let stderr = String::from_utf8_lossy(&output.stderr);
            let last = stderr.lines().last().unwrap_or_default();
            let why = output.status.limit().map_or_else(|| format!("exit code {exit_code}"), ToString::to_string);
            return Err(Error::Invalid(format!("the search stopped at v{number}: the command was stopped ({why}) {last}")));
        }
        let verdict = match exit_code {
            0 => Verdict::Good,
            SKIP => Verdict::Skip,
            _ => Verdict::Bad,
        };
        self.steps.push(BisectStep { version, exit_code, verdict });
        Ok(verdict)
    }

    fn expect(&mut self, version: &Version, expected: Verdict) -> Result<(), Error> {
        let found = self.try_at(version.number)?;
        if found == expected {
            return Ok(());
        }
        let code = self.steps.last().map_or(0, |step| step.exit_code);
        let word = if expected == Verdict::Good { "good" } else { "bad" };
        Err(Error::Invalid(format!("the command exits with {code} at the {word} version v{}", version.number)))
    }
}
