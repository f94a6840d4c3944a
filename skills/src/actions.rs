//! The actions on skills: the operations of a catalog that agents and programs use, defined once for every interface.
//!
//! The table has the same type as that of the sandbox (`runtime/src/actions.rs`); here a [`Context`] is a catalog instead of a
//! sandbox.

mod looking;
mod running;
mod tools;

use runtime::actions::{Action, Effect, Permission};
use runtime::{Cancel, Error, Sandbox};

use crate::Skills;

pub use looking::{ActivateSkill, DeleteSkill, DiffSkill, ListSkills, LoadSkill, SkillFiles, SkillVersions};
pub use running::RunSkill;
pub use tools::{ToolSpec, described, tools};

/// The catalog that an action works on, and how its caller cancels it.
#[derive(Clone)]
pub struct Context {
    skills: Skills,
    sandbox: Option<Sandbox>,
    cancel: Cancel,
}

impl Context {
    /// Creates a context for these skills.
    #[must_use]
    pub fn new(skills: Skills) -> Self {
        Self { skills, sandbox: None, cancel: Cancel::default() }
    }

    /// Adds a sandbox whose files can be passed to skills and which can receive their output files.
    #[must_use]
    pub fn beside(mut self, sandbox: Sandbox) -> Self {
        self.sandbox = Some(sandbox);
        self
    }

    /// Uses this [`Cancel`] for the action's run instead of a new one.
    #[must_use]
    pub fn cancelled_by(mut self, cancel: Cancel) -> Self {
        self.cancel = cancel;
        self
    }

    /// Returns the sandbox.
    fn sandbox(&self) -> Result<&Sandbox, Error> {
        self.sandbox.as_ref().ok_or_else(|| Error::Invalid("no sandbox is available for files".to_owned()))
    }

    /// Returns the skills.
    #[must_use]
    pub fn skills(&self) -> &Skills {
        &self.skills
    }

    /// Cancels the action before or while it runs.
    #[must_use]
    pub fn cancel(&self) -> Cancel {
        self.cancel.clone()
    }
}

/// Returns every action.
#[must_use]
pub fn actions() -> &'static [Action<Context>] {
    ACTIONS
}

/// Returns the action with this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Action<Context>> {
    ACTIONS.iter().find(|action| action.name == name)
}

use Effect::{Adds, Changes, Reads};
use Permission::{ReadSkills, RunSkills, WriteSkills};

static ACTIONS: &[Action<Context>] = &[
    Action::new::<ListSkills>("list_skills", "List skills", LIST, Reads, ReadSkills),
    Action::new::<LoadSkill>("load_skill", "Read a skill", LOAD, Reads, ReadSkills),
    // Each run uses its own sandbox, so nothing existing is changed.
    Action::new::<RunSkill>("run_skill", "Run a skill", RUN, Adds, RunSkills),
    Action::new::<SkillVersions>("skill_versions", "List a skill's versions", VERSIONS, Reads, ReadSkills).for_programs(),
    Action::new::<SkillFiles>("skill_files", "List a skill's files", FILES, Reads, ReadSkills).for_programs(),
    Action::new::<DiffSkill>("diff_skill", "Compare a skill's versions", DIFF, Reads, ReadSkills).for_programs(),
    Action::new::<ActivateSkill>("activate_skill", "Select a skill's version", ACTIVATE, Changes, WriteSkills)
        .idempotent()
        .for_programs(),
    Action::new::<DeleteSkill>("delete_skill", "Delete a skill", DELETE, Changes, WriteSkills).for_programs(),
];

const LIST: &str = "Lists the skills with their descriptions. A skill is a package with instructions and usually a script.";
const LOAD: &str = "Returns the instructions of a skill and the names of its files; with `file` the text of one of them. Load a skill before you use it.";
const RUN: &str = "Runs a skill in a fresh sandbox: JSON in, JSON out, and files. Load the skill first to learn its input. Returns status, output, files \
and logs; if the status is not success, the result includes the reason.";
const VERSIONS: &str = "Lists the versions of a skill, newest first.";
const FILES: &str = "Lists the files of a skill; with `path` also the text of one.";
const DIFF: &str = "Compares two versions of a skill: files, and the lines that differ.";
const ACTIVATE: &str = "Selects the version of a skill that is used by default.";
const DELETE: &str = "Deletes a version of a skill, or the skill with all its versions.";
