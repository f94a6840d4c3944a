//! `sandlite skill`: manages and runs skills.

mod bring;
mod look;
mod perform;

use std::path::{Path, PathBuf};

use runtime::Mount;
use runtime::actions::Answer;
use serde_json::Value;
use skills::actions::Context;
use skills::{Catalog, Skills};

use crate::args::{Global, Skill, SkillVerb};
use crate::exit::Code;
use crate::printer::{Hinted, Printer};

pub(crate) use perform::{TIMEOUT, read_input};

/// The environment variable that names the catalog if `--skills` is absent.
const VARIABLE: &str = "SANDLITE_SKILLS";

pub(crate) fn run(global: &Global, args: &Skill, printer: &Printer) -> anyhow::Result<Code> {
    Ok(super::answered(perform(global, args, printer).map_err(hinted), printer))
}

/// Runs a verb on directories of this machine, which needs no catalog.
pub(crate) fn here(verb: &SkillVerb, printer: &Printer) -> anyhow::Result<Code> {
    match verb {
        SkillVerb::Package { path, output } => bring::package(path, output.as_deref(), printer),
        SkillVerb::New { name, lang } => bring::new(name, *lang, printer),
        SkillVerb::Lint { path, security } => bring::lint(path, *security, printer),
        _ => anyhow::bail!("this verb needs a catalog"),
    }
}

/// Calls `push` with each skill of a git repository on this machine.
pub(crate) fn added(source: &str, mut push: impl FnMut(&skills::Package) -> anyhow::Result<Code>) -> anyhow::Result<Code> {
    for package in bring::packages(source)? {
        push(&package?)?;
    }
    Ok(Code::Success)
}

fn perform(global: &Global, args: &Skill, printer: &Printer) -> anyhow::Result<Code> {
    let open = || self::open(global, args.skills.as_deref());
    match &args.verb {
        SkillVerb::Push(push) => bring::push(&open()?, push, printer),
        SkillVerb::Add(add) => bring::add(&open()?, add, printer),
        SkillVerb::List { search } => look::list(&open()?, search.as_deref(), printer),
        SkillVerb::Show { name, instructions } => look::show(&open()?, name, *instructions, printer),
        SkillVerb::Files { name, path } => look::files(&open()?, name, path.as_deref(), printer),
        SkillVerb::Diff { from, to } => look::diff(&open()?, from, to.as_deref(), printer),
        SkillVerb::Versions { name } => act(&open()?, "skill_versions", &serde_json::json!({ "name": name }), printer),
        SkillVerb::Activate { name } => look::activate(&open()?, name, printer),
        SkillVerb::Delete { name } => act(&open()?, "delete_skill", &serde_json::json!({ "name": name }), printer),
        SkillVerb::Package { .. } | SkillVerb::New { .. } | SkillVerb::Lint { .. } => here(&args.verb, printer),
        SkillVerb::Run(run) => perform::run(&open()?, run, printer),
    }
}

/// Opens the catalog selected by the arguments or the environment.
pub(crate) fn open(global: &Global, named: Option<&Path>) -> anyhow::Result<Skills> {
    let catalog = catalog(global, named)?;
    Ok(Skills::with_start(catalog, global.preset.limits(), || crate::engine::settings().build()))
}

/// Returns a mount at `/skills` with the skills of a catalog.
pub(crate) fn mount(named: Option<&Path>) -> anyhow::Result<Mount> {
    let place = place(named)?;
    let catalog = catalog_at(&place, || crate::engine::give(runtime::Sandbox::builder()))?;
    let skills = Skills::with_start(catalog, runtime::Preset::Normal.limits(), || crate::engine::settings().build());
    skills.mount("/skills").map_err(|error| hinted(error.into()))
}

/// Same as [`open`], with a host that is already running.
#[cfg(feature = "mcp")]
pub(crate) fn open_with(global: &Global, named: Option<&Path>, host: runtime::Host) -> anyhow::Result<Skills> {
    Ok(Skills::new(catalog(global, named)?, &host, global.preset.limits()))
}

fn catalog(global: &Global, named: Option<&Path>) -> anyhow::Result<Catalog> {
    catalog_at(&place(named)?, || global.preset.give(crate::engine::give(runtime::Sandbox::builder())).wait(global.wait.0))
}

// Opens a directory, or the catalog in a sandbox that `builder` opens.
fn catalog_at(place: &Path, builder: impl FnOnce() -> runtime::Builder) -> anyhow::Result<Catalog> {
    let opened = if is_sandbox(place) { Catalog::inside(builder().database(place).open()?) } else { Catalog::open(place) };
    opened.map_err(|error| hinted(error.into()))
}

/// Returns the location of the catalog.
fn place(named: Option<&Path>) -> anyhow::Result<PathBuf> {
    if let Some(named) = named {
        return Ok(named.to_owned());
    }
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let data = || variable("XDG_DATA_HOME").or_else(|| variable("HOME").map(|home| home.join(".local/share")));
    let own = || data().map(|data| data.join("sandlite/skills"));
    variable(VARIABLE).or_else(own).ok_or_else(|| {
        Hinted::error("cannot locate the skill catalog: no home directory", "name the catalog with `--skills DIR`")
    })
}

// An existing file, or a name that denotes one.
fn is_sandbox(place: &Path) -> bool {
    place.is_file() || !place.is_dir() && place.extension().is_some_and(|extension| extension == "db")
}

// Converts an error of the library, keeping its hint.
fn hinted(error: anyhow::Error) -> anyhow::Error {
    match error.downcast::<skills::Error>() {
        Ok(skills::Error::Runtime(error)) => error.into(),
        Ok(error) => match error.hint() {
            Some(hint) => Hinted::error(error.to_string(), hint),
            None => error.into(),
        },
        Err(error) => error,
    }
}

/// Performs an action and prints its result as JSON or text.
fn act(skills: &Skills, name: &str, arguments: &Value, printer: &Printer) -> anyhow::Result<Code> {
    print(&answer(skills, name, arguments)?, printer)
}

fn answer(skills: &Skills, name: &str, arguments: &Value) -> anyhow::Result<Answer> {
    let action = skills::actions::find(name).ok_or_else(|| anyhow::anyhow!("unknown action `{name}`"))?;
    Ok(action.prepare(arguments.clone())?.run(&Context::new(skills.clone()))?)
}

fn print(answer: &Answer, printer: &Printer) -> anyhow::Result<Code> {
    if printer.is_json() {
        printer.json(&answer.data);
    } else {
        answer.text.lines().for_each(|line| printer.line(&printer.foreign(line)));
    }
    Ok(if answer.is_error { Code::Failure } else { Code::Success })
}
