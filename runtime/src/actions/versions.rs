//! `log`, `diff`, `undo`, `restore`, `checkpoint`, `checkpoints` and `prune_versions`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Answer, Context, Request, shortened};
use crate::versions::{Comparison, Difference, LoggedVersion, ValueDifference};
use crate::{Cancel, Error, FsError, Keep, Pruned, Sandbox};

/// Maximum number of versions in a result.
const MOST: usize = 200;
/// Maximum length of a command in a list.
const COMMAND: usize = 500;
/// Maximum number of paths in a result, and in one row of a log.
const PATHS: usize = 1000;
const ROW_PATHS: usize = 20;
/// Number of digits of a digest in a line.
const SHORT: usize = 12;
/// Maximum size of a patch in one result.
const PATCH: usize = 64 << 10;

/// Selects the versions to list.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Log {
    /// List only versions that changed this path or a path below it.
    pub path: Option<String>,
    /// Maximum number of versions, at most 200; defaults to 20.
    pub limit: Option<usize>,
    /// List only versions before this one: the last `version` of the previous page.
    pub before: Option<i64>,
    /// Also return the number of added and removed lines per changed file; defaults to false.
    pub stat: bool,
    /// Compute missing digests; defaults to false.
    pub digest: bool,
}

/// Versions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct VersionList {
    /// The versions, newest first.
    pub versions: Vec<VersionRow>,
}

/// One version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct VersionRow {
    /// Its number; a `v` in front of it makes it a reference.
    pub version: i64,
    /// The run that created it, whose number is a reference too.
    pub run: Option<i64>,
    /// Its origin: `run`, `setup` (a new sandbox), `base` (the oldest existing one) or `outside` (another program).
    pub made_by: &'static str,
    /// The command of the run.
    pub command: String,
    /// The exit code of the run.
    pub exit_code: Option<i32>,
    /// When it was committed, in milliseconds since 1970.
    pub time_ms: i64,
    /// The changed paths, at most 20.
    pub changed: Vec<String>,
    /// The number of changed paths.
    pub changes: usize,
    /// Its checkpoints.
    pub checkpoints: Vec<String>,
    /// The digest of its files in hexadecimal: equal trees have equal digests. Null if it was not computed yet.
    pub digest: Option<String>,
    /// The changed files with their numbers of lines, if they were requested: at most 20.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stat: Vec<ChangedLines>,
}

/// The number of lines that a version changed in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ChangedLines {
    /// The path.
    pub path: String,
    /// `A` for added, `M` for modified, `D` for deleted, `m` for changed permission bits.
    pub mark: char,
    /// The number of added lines; null for a binary file.
    pub added: Option<usize>,
    /// The number of removed lines; null for a binary file.
    pub removed: Option<usize>,
}

impl ChangedLines {
    fn line(&self) -> String {
        let lines = match (self.added, self.removed) {
            (Some(added), Some(removed)) => format!("  +{added} -{removed}"),
            _ => String::new(),
        };
        format!("\n        {} {}{lines}", self.mark, self.path)
    }
}

impl VersionRow {
    // The files that the version changed. The oldest one has no predecessor, and what another program overwrote is unknown.
    fn count_lines(&mut self, sandbox: &Sandbox, path: Option<&str>, cancel: Cancel) -> Result<(), Error> {
        if self.made_by == "base" {
            return Ok(());
        }
        let (before, paths) = (format!("v{}", self.version - 1), path.map(str::to_owned));
        let of = format!("v{}", self.version);
        let compared = match sandbox.versions().compare_until(&before, &of, paths.as_slice(), cancel) {
            Ok(compared) => compared,
            Err(Error::Invalid(_)) => return Ok(()),
            Err(error) if error.fs_error() == Some(FsError::Unknown) => return Ok(()),
            Err(error) => return Err(error),
        };
        let files = compared.differences.iter().filter(|one| !one.is_directory).take(ROW_PATHS);
        self.stat = files
            .map(|one| {
                let (added, removed) = compared.line_counts(one).unzip();
                ChangedLines { path: one.path.clone(), mark: one.kind.mark(), added, removed }
            })
            .collect();
        Ok(())
    }

    pub(super) fn new(logged: LoggedVersion) -> Self {
        let made_by = logged.made_by();
        let LoggedVersion { version, run } = logged;
        let changes = run.as_ref().and_then(|run| run.changes.as_ref()).and_then(|changes| changes.as_array());
        let paths = || changes.into_iter().flatten().filter_map(|change| change["path"].as_str().filter(|path| !path.is_empty()));
        Self {
            version: version.number,
            run: version.call,
            made_by,
            command: run.as_ref().map_or_else(String::new, |run| shortened(run.command.clone(), COMMAND)),
            exit_code: run.as_ref().and_then(|run| run.exit_code),
            time_ms: version.time / 1_000_000,
            changed: paths().take(ROW_PATHS).map(str::to_owned).collect(),
            changes: paths().count(),
            checkpoints: version.labels,
            digest: version.digest,
            stat: Vec::new(),
        }
    }

    fn line(&self) -> String {
        let name = self.run.map_or_else(|| format!("v{}", self.version), |run| run.to_string());
        let labels = self.checkpoints.iter().map(|label| format!(" [{label}]")).collect::<String>();
        let what = if self.command.is_empty() { self.made_by } else { self.command.lines().next().unwrap_or_default() };
        let paths = self.changed.join(" ");
        let more = self.changes.saturating_sub(self.changed.len());
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let changed = match self.stat.is_empty() {
            false => self.stat.iter().map(ChangedLines::line).collect(),
            true if paths.is_empty() => String::new(),
            true => format!("\n        {paths}{more}"),
        };
        let digest =
            self.digest.as_deref().map_or_else(String::new, |digest| format!("  {}", digest.get(..SHORT).unwrap_or(digest)));
        format!("{name:>6}{digest}{labels}  {what}{changed}")
    }
}

impl Request for Log {
    type Data = VersionList;

    fn run(self, context: &Context) -> Result<Answer, Error> {
        let sandbox = context.sandbox();
        let path = self.path.map(|path| sandbox.agent().absolute(&path)).transpose()?;
        let limit = self.limit.map(|limit| limit.min(MOST));
        let mut logged = sandbox.versions().log_until(path.as_deref(), self.before, limit, context.cancel())?;
        if self.digest {
            sandbox.versions().add_digests(&mut logged, context.cancel())?;
        }
        let mut versions: Vec<VersionRow> = logged.into_iter().map(VersionRow::new).collect();
        if self.stat {
            for row in &mut versions {
                row.count_lines(sandbox, path.as_deref(), context.cancel())?;
            }
        }
        let text = versions.iter().map(VersionRow::line).collect::<Vec<_>>().join("\n");
        let text = match path {
            _ if !text.is_empty() || limit == Some(0) => text,
            Some(path) => format!("no version changed `{path}`"),
            None => "no changes yet".to_owned(),
        };
        Ok(Answer::new(text, &VersionList { versions }))
    }
}

/// Selects the versions to compare.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Diff {
    /// The older version: a run's number, `HEAD~3`, a checkpoint, `@{2 hours ago}`. A run's number refers to the state after it.
    pub from: String,
    /// The newer version; defaults to `HEAD`, the current state.
    #[serde(default)]
    pub to: Option<String>,
    /// Compare only these paths and everything below them.
    #[serde(default)]
    pub paths: Vec<String>,
    /// Return only names and sizes, without the differing lines.
    #[serde(default)]
    pub names_only: bool,
}

/// The differences.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Differences {
    /// The paths that differ, sorted, at most 1000.
    pub files: Vec<Difference>,
    /// The number of differing paths.
    pub total: usize,
    /// The keys and sessions that differ, at most 1000; empty if only some paths were compared.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<ValueDifference>,
    /// Whether other keys may differ, because another program wrote to the file; absent if not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub values_unknown: bool,
    /// The differing lines, as a patch for `git apply`; truncated to 64 KB.
    pub patch: String,
    /// Whether something is omitted.
    pub truncated: bool,
}

impl Differences {
    pub(super) fn new(compared: &Comparison, with_patch: bool) -> Self {
        let mut patch = if with_patch { compared.patch() } else { String::new() };
        let is_long = patch.len() > PATCH;
        patch.truncate(patch.floor_char_boundary(PATCH));
        let total = compared.differences.len();
        let files: Vec<Difference> = compared.differences.iter().take(PATHS).cloned().collect();
        let values: Vec<ValueDifference> = compared.values.iter().take(PATHS).cloned().collect();
        let truncated = is_long || total > files.len() || compared.values.len() > values.len();
        Self { truncated, files, total, values, values_unknown: compared.values_unknown, patch }
    }

    pub(super) fn render(&self) -> String {
        if self.total == 0 && self.values.is_empty() && !self.values_unknown {
            return "no differences".to_owned();
        }
        let files = self.files.iter().map(|file| {
            let mark = file.kind.mark();
            format!("{mark} {}", file.path)
        });
        let unknown = self.values_unknown.then(|| "? keys: another program wrote to the file".to_owned());
        let lines = files.chain(self.values.iter().map(ValueDifference::to_string)).chain(unknown);
        let mut text = lines.collect::<Vec<_>>().join("\n");
        if !self.patch.is_empty() {
            text.push('\n');
            text.push_str(&self.patch);
        }
        if self.truncated {
            text.push_str("\n[incomplete: name fewer paths]");
        }
        text
    }
}

impl Request for Diff {
    type Data = Differences;

    fn run(self, context: &Context) -> Result<Answer, Error> {
        let sandbox = context.sandbox();
        let paths = absolute(context, &self.paths)?;
        let to = self.to.as_deref().unwrap_or("HEAD");
        let compared = sandbox.versions().compare_until(&self.from, to, &paths, context.cancel())?;
        let differences = Differences::new(&compared, !self.names_only);
        Ok(Answer::new(differences.render(), &differences))
    }
}

pub(super) fn absolute(context: &Context, paths: &[String]) -> Result<Vec<String>, Error> {
    paths.iter().map(|path| context.sandbox().agent().absolute(path)).collect()
}

/// Selects the runs to undo.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Undo {
    /// The number of runs to undo, counting only runs that changed something; defaults to 1.
    pub runs: Option<u32>,
    /// Return the changes without applying them.
    pub dry_run: bool,
}

impl Request for Undo {
    type Data = Differences;

    fn run(self, context: &Context) -> Result<Answer, Error> {
        let runs = self.runs.unwrap_or(1);
        if runs == 0 {
            return Err(Error::Invalid("invalid number of runs `0`: expected 1 or more".to_owned()));
        }
        let versions = context.sandbox().versions();
        let done = match self.dry_run {
            true => versions.preview(&format!("HEAD~{runs}"), &[], context.cancel())?,
            false => versions.undo(runs)?,
        };
        let differences = Differences::new(&done, false);
        Ok(Answer::new(differences.render(), &differences))
    }
}

/// Selects the state to restore.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Restore {
    /// The version: a run's number, `HEAD~3`, a checkpoint, `@{2 hours ago}`.
    pub version: String,
    /// Restore only these paths and everything below them; defaults to everything, including keys and sessions.
    #[serde(default)]
    pub paths: Vec<String>,
    /// Return the changes without applying them.
    #[serde(default)]
    pub dry_run: bool,
}

impl Request for Restore {
    type Data = Differences;

    fn run(self, context: &Context) -> Result<Answer, Error> {
        let (versions, paths) = (context.sandbox().versions(), absolute(context, &self.paths)?);
        let done = match self.dry_run {
            true => versions.preview(&self.version, &paths, context.cancel())?,
            false => versions.restore(&self.version, &paths)?,
        };
        let differences = Differences::new(&done, false);
        Ok(Answer::new(differences.render(), &differences))
    }
}

/// A name for the current version.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Checkpoint {
    /// The name, which must be unique.
    pub name: String,
    /// A message.
    #[serde(default)]
    pub message: Option<String>,
}

/// A checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CheckpointRow {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: i64,
    /// The message.
    pub message: Option<String>,
    /// The creation time, in milliseconds since 1970.
    pub time_ms: i64,
}

impl From<crate::Label> for CheckpointRow {
    fn from(label: crate::Label) -> Self {
        let crate::Label { name, version, message, time } = label;
        Self { name, version, message, time_ms: time / 1_000_000 }
    }
}

impl Request for Checkpoint {
    type Data = CheckpointRow;

    fn run(self, context: &Context) -> Result<Answer, Error> {
        let row = CheckpointRow::from(context.sandbox().versions().checkpoint(&self.name, self.message.as_deref())?);
        Ok(Answer::new(format!("checkpoint {} is version {}", row.name, row.version), &row))
    }
}

/// All checkpoints.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Checkpoints {}

/// Checkpoints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CheckpointList {
    /// The checkpoints, newest first.
    pub checkpoints: Vec<CheckpointRow>,
}

impl Request for Checkpoints {
    type Data = CheckpointList;

    fn run(self, context: &Context) -> Result<Answer, Error> {
        let checkpoints: Vec<CheckpointRow> = context.sandbox().versions().checkpoints()?.into_iter().map(Into::into).collect();
        let lines = checkpoints.iter().map(|row| {
            let message = row.message.as_deref().map_or_else(String::new, |message| format!("  {message}"));
            format!("v{} {}{message}", row.version, row.name)
        });
        let text = lines.collect::<Vec<_>>().join("\n");
        Ok(Answer::new(if text.is_empty() { "no checkpoints".to_owned() } else { text }, &CheckpointList { checkpoints }))
    }
}

/// Selects the versions to keep.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PruneVersions {
    /// Maximum number of versions to keep.
    pub keep_versions: Option<u64>,
    /// Keep versions younger than this many seconds.
    pub keep_seconds: Option<u64>,
    /// Maximum number of bytes of earlier versions to keep.
    pub keep_bytes: Option<u64>,
}

/// The result of pruning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PrunedVersions {
    /// The number of deleted versions.
    pub versions: u64,
    /// Their size, in bytes.
    pub bytes: u64,
    /// The oldest remaining version.
    pub oldest: i64,
    /// The number of checkpoints deleted with their versions.
    pub checkpoints: u64,
}

impl Request for PruneVersions {
    type Data = PrunedVersions;

    fn run(self, context: &Context) -> Result<Answer, Error> {
        if self.keep_versions.is_none() && self.keep_seconds.is_none() && self.keep_bytes.is_none() {
            return Err(Error::Invalid("missing limit: expected keep_versions, keep_seconds or keep_bytes".to_owned()));
        }
        let since = self.keep_seconds.map(crate::versions::seconds_ago);
        let keep = Keep { versions: self.keep_versions, since, bytes: self.keep_bytes };
        let pruned = context.sandbox().versions().prune(&keep)?;
        let Pruned { versions, bytes, labels: checkpoints, oldest } = pruned;
        let data = PrunedVersions { versions, bytes, oldest, checkpoints };
        let counted = |number: u64, noun: &str| format!("{number} {noun}{}", if number == 1 { "" } else { "s" });
        let with = if checkpoints > 0 { format!(" and {}", counted(checkpoints, "checkpoint")) } else { String::new() };
        Ok(Answer::new(format!("pruned {}{with}, {bytes} bytes; the oldest is v{oldest}", counted(versions, "version")), &data))
    }
}
