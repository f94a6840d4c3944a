//! `show`, `blame`, `bisect` and `replay`: queries about past runs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::history::HistoryRow;
use super::versions::{Differences, VersionRow};
use super::{Answer, Context, Request, shortened};
use crate::Error;
use crate::versions::{Replayed, Verdict};

/// Maximum number of lines in a result of `blame`.
const LINES: usize = 2000;
/// Maximum size of such a line, and of the command next to it.
const LINE: usize = 300;
const COMMAND: usize = 60;
/// Maximum size of each stream returned by `show`; `history` returns the rest.
const OUTPUT: usize = 60_000;

/// Selects the run to show.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Show {
    /// A run's number, or a version: `HEAD~3`, a checkpoint, `@{2 hours ago}`; defaults to `HEAD`, the last run that changed something.
    pub run: Option<String>,
}

/// A run with all its data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Shown {
    /// The run with its output; null if no run created the version.
    pub run: Option<HistoryRow>,
    /// The version that it created; null if it changed nothing.
    pub version: Option<i64>,
    /// The checkpoints of the version.
    pub checkpoints: Vec<String>,
    /// Its changes; null if there are none or if they are no longer known.
    pub changes: Option<Differences>,
}

impl Request for Show {
    type Data = Shown;

    fn run(self, context: &Context) -> Result<Answer, Error> {
        let reference = self.run.unwrap_or_else(|| "HEAD".to_owned());
        let shown = context.sandbox().versions().show_until(&reference, context.cancel())?;
        let changes = shown.changes.as_ref().map(|changes| Differences::new(changes, true));
        let run = shown.run.map(|mut run| {
            run.stdout.truncate(OUTPUT);
            run.stderr.truncate(OUTPUT);
            // The differences contain the same information, if they are still known.
            if changes.is_some() {
                run.changes = None;
            }
            run.parameters = None;
            let row = HistoryRow::whole(run, true);
            HistoryRow { command: shortened(row.command.clone(), OUTPUT), ..row }
        });
        let data = Shown {
            run,
            version: shown.version.as_ref().map(|version| version.number),
            checkpoints: shown.version.map(|version| version.labels).unwrap_or_default(),
            changes,
        };
        Ok(Answer::new(data.render(), &data))
    }
}

impl Shown {
    // The paths that the row of a run lists, because its version was pruned.
    fn recorded(&self) -> String {
        let changes = self.run.as_ref().map(|run| run.changes.as_slice()).unwrap_or_default();
        if changes.is_empty() {
            return if self.version.is_none() { "no changes" } else { "the changes are no longer known" }.to_owned();
        }
        let text = |change: &serde_json::Value, key: &str| change[key].as_str().unwrap_or_default().to_owned();
        let lines = changes.iter().map(|change| format!("\n{} {}", text(change, "kind"), text(change, "path")));
        format!("the version was pruned; changed paths:{}", lines.collect::<String>())
    }

    fn render(&self) -> String {
        let mut text = match &self.run {
            Some(run) => {
                let mut text = run.render();
                for (name, output) in [("stdout", &run.stdout), ("stderr", &run.stderr)] {
                    if let Some(output) = output.as_ref().filter(|output| !output.is_empty()) {
                        text.push_str(&format!("[{name}]\n{}\n", output.trim_end_matches('\n')));
                    }
                }
                text
            }
            None => format!("v{}: not created by a run\n", self.version.unwrap_or(0)),
        };
        match &self.changes {
            Some(changes) => text.push_str(&changes.render()),
            None => text.push_str(&self.recorded()),
        }
        text.truncate(text.trim_end_matches('\n').len());
        text
    }
}

/// Selects the lines to trace.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Blame {
    /// The text file.
    pub path: String,
    /// The first line to return, from 1; defaults to 1.
    #[serde(default)]
    pub offset: Option<usize>,
    /// Maximum number of lines, at most 2000.
    #[serde(default)]
    pub limit: Option<usize>,
}

/// The lines of a file with the runs that wrote them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Blamed {
    /// The path.
    pub path: String,
    /// The lines, in order.
    pub lines: Vec<BlamedLine>,
    /// The versions that wrote them, newest first.
    pub versions: Vec<VersionRow>,
    /// The number of lines in the file.
    pub total: usize,
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BlamedLine {
    /// Its number, from 1.
    pub line: usize,
    /// Its text; truncated to 300 bytes.
    pub text: String,
    /// The run that wrote it; null if it is older than all versions.
    pub run: Option<i64>,
    /// The version that the run created.
    pub version: i64,
}

impl Request for Blame {
    type Data = Blamed;

    fn run(self, context: &Context) -> Result<Answer, Error> {
        let path = context.sandbox().agent().absolute(&self.path)?;
        let blame = context.sandbox().versions().blame_until(&path, context.cancel())?;
        let versions: Vec<VersionRow> = blame.authors.into_iter().map(VersionRow::new).collect();
        let (offset, limit) = (self.offset.unwrap_or(1).max(1), self.limit.unwrap_or(LINES).min(LINES));
        let total = blame.lines.len();
        let wanted = blame.lines.into_iter().enumerate().skip(offset - 1).take(limit);
        let lines: Vec<BlamedLine> = wanted
            .filter_map(|(index, (text, author))| {
                let author = versions.get(author)?;
                let text = shortened(text, LINE);
                Some(BlamedLine { line: index + 1, text, run: author.run, version: author.version })
            })
            .collect();
        let data = Blamed { path, lines, versions, total };
        Ok(Answer::new(data.render(), &data))
    }
}

impl Blamed {
    fn render(&self) -> String {
        let rendered = self.lines.iter().map(|line| {
            let author = self.versions.iter().find(|version| version.version == line.version);
            let name = line.run.map_or_else(|| format!("v{}", line.version), |run| run.to_string());
            let command = author.map_or("", |author| {
                let what = if author.command.is_empty() { author.made_by } else { &author.command };
                what.lines().next().unwrap_or_default()
            });
            let (command, number) = (shortened(command.to_owned(), COMMAND), line.line);
            let time = author.map_or_else(String::new, |author| minute(author.time_ms));
            format!("{name:>6} {time} ({command}) {number}: {}", line.text)
        });
        let text = rendered.collect::<Vec<_>>().join("\n");
        if text.is_empty() { "the file is empty".to_owned() } else { text }
    }
}

// A time in UTC to the minute.
fn minute(milliseconds: i64) -> String {
    let minutes = milliseconds.div_euclid(60_000);
    let (days, minute) = (minutes.div_euclid(24 * 60), minutes.rem_euclid(24 * 60));
    // Days of the proleptic Gregorian calendar, with March as the first month and eras of 400 years.
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let (day, month) = (day_of_year - (153 * month + 2) / 5 + 1, if month < 10 { month + 3 } else { month - 9 });
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}", minute / 60, minute % 60)
}

/// The range and the command of the search.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Bisect {
    /// A version at which the command succeeds: a run's number, `HEAD~3`, a checkpoint.
    pub good: String,
    /// A later version at which it fails; defaults to `HEAD`, the current state.
    #[serde(default)]
    pub bad: Option<String>,
    /// The bash command that tests a version: exit code 0 means good, 125 skips the version, any other code below 128 means bad.
    pub command: String,
}

/// The result of a search.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Bisected {
    /// The first bad version, with the run that created it.
    pub first_bad: VersionRow,
    /// Skipped versions, each of which may be the first bad one instead.
    pub suspects: Vec<i64>,
    /// The changes of the first bad version.
    pub changes: Option<Differences>,
    /// The tested versions, in order.
    pub steps: Vec<Tried>,
}

/// A tested version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Tried {
    /// The version.
    pub version: i64,
    /// The exit code of the command.
    pub exit_code: u8,
    /// `good`, `bad` or `skip`.
    pub verdict: Verdict,
}

impl Request for Bisect {
    type Data = Bisected;

    fn run(self, context: &Context) -> Result<Answer, Error> {
        let versions = context.sandbox().versions();
        let found = versions.bisect_until(&self.good, self.bad.as_deref(), &self.command, &context.cancel())?;
        let steps = found.steps.iter().map(|step| Tried {
            version: step.version.number,
            exit_code: step.exit_code,
            verdict: step.verdict,
        });
        let data = Bisected {
            changes: found.changes.as_ref().map(|changes| Differences::new(changes, true)),
            suspects: found.suspects.iter().map(|version| version.number).collect(),
            steps: steps.collect(),
            first_bad: VersionRow::new(found.first_bad),
        };
        Ok(Answer::new(data.render(), &data))
    }
}

impl Bisected {
    fn render(&self) -> String {
        let name = self.first_bad.run.map_or_else(|| format!("v{}", self.first_bad.version), |run| format!("run {run}"));
        let what = if self.first_bad.command.is_empty() { self.first_bad.made_by } else { &self.first_bad.command };
        let mut text = format!("{name} is the first bad one ({} versions tested): {what}\n", self.steps.len());
        if !self.suspects.is_empty() {
            let names: Vec<String> = self.suspects.iter().map(|version| format!("v{version}")).collect();
            text.push_str(&format!("or one of the skipped ones: {}\n", names.join(" ")));
        }
        text.push_str(&self.changes.as_ref().map_or_else(|| "the changes are no longer known".to_owned(), Differences::render));
        text
    }
}

/// The start of the replay.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Replay {
    /// The version to start from; defaults to the state before the first recorded run.
    pub from: Option<String>,
}

impl Request for Replay {
    type Data = Replayed;

    fn run(self, context: &Context) -> Result<Answer, Error> {
        let replayed = context.sandbox().versions().replay_until(self.from.as_deref(), &context.cancel())?;
        Ok(Answer::new(render(&replayed), &replayed).failed(replayed.difference.is_some()))
    }
}

fn render(replayed: &Replayed) -> String {
    let (runs, given) = (replayed.runs, replayed.given);
    let mut lines = Vec::new();
    match &replayed.difference {
        None => {
            let noun = if runs == 1 { "run" } else { "runs" };
            lines.push(format!("replayed {runs} {noun} from v{}: no differences", replayed.from));
        }
        Some(difference) => {
            let command = difference.command.lines().next().unwrap_or_default();
            lines.push(format!("run {} differs in {}: {command}", difference.run, difference.what));
            lines.push(format!("[recorded]\n{}", difference.recorded.trim_end_matches('\n')));
            lines.push(format!("[replayed]\n{}", difference.replayed.trim_end_matches('\n')));
        }
    }
    if given > 0 {
        lines.push(format!("[{given} versions were not recorded and were applied without replay]"));
    }
    lines.extend(replayed.notes.iter().map(|note| format!("[{note}]")));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::minute;

    #[test]
    fn a_moment_is_written_in_utc() {
        assert_eq!(minute(0), "1970-01-01 00:00");
        assert_eq!(minute(1_709_208_060_000), "2024-02-29 12:01");
        assert_eq!(minute(1_000_000_000_000), "2001-09-09 01:46");
        assert_eq!(minute(-60_000), "1969-12-31 23:59");
    }
}
