//! Instructions for the model: what the sandbox is and how to use it. The names of the tools come from the table of actions.

use rmcp::ErrorData;
use rmcp::model::{GetPromptResult, ListPromptsResult, Prompt, PromptMessage, Role, Tool};
use runtime::LimitName;
use runtime::actions::{Permission, quoted};

use super::{Service, tools};

const NAME: &str = "sandbox";

const TEXT: &str = "\
You have a sandbox: a small Linux-like computer in one file. Nothing in it can reach the network or the user's own files.
1. Run programs with {execute}: bash has some 160 programs (grep, sed, awk, jq, find, tar, sort, diff, …), Python is CPython 3.14 with its standard library.
2. Both see the same files. You start in {cwd}; /tmp is yours too. Files persist between calls.
3. Each call starts a fresh shell or interpreter. Pass the same `session` name to continue where the last call ended: variables,
   functions and `cd` of bash, globals and imports of Python.
4. A command that fails is a result, not an error of the tool: check the exit code and standard error.
5. A call may use {wall} of time, {memory} of memory and {output} of output. A call that reaches a limit is stopped; you get
   its output so far and a hint. Do less per call, or write large output to a file and read parts of it.
6. Each call is one recorded transaction. `rollback_on_failure` rolls back the file changes of a failed call.
7. To read files use {read_files}: they are cheaper than bash and report how to get the rest if there is more.
8. To change files use {write_files}. Prefer `edit_file` (exact old text → new text, all or nothing) to writing whole files.
   Pass `expected_version` from your last read, so that you never overwrite changes you have not seen.
9. Store small JSON values (plans, progress, findings) with {write_values}; read them with {read_values}.
10. {read_history} lists past runs; with `run` it shows one call's full output, including parts omitted from a result.
11. {snapshots} copy the whole sandbox, list the copies and delete them. To try something risky, `fork` first and pass its name as `sandbox` to the other tools.
12. {read_skills} list the skills and show how to use them: load a suitable skill before you do its work by hand. {run_skills} runs one on JSON.
   The files of skills are in /skills.
13. Prefer one script to twenty calls; prefer python for anything with data structures.
14. Check your work by running it before you say it is done.";

/// The placeholders for the names of tools, by required permission.
const NAMES: [(&str, Permission); 9] = [
    ("{execute}", Permission::Execute),
    ("{read_files}", Permission::ReadFiles),
    ("{write_files}", Permission::WriteFiles),
    ("{read_values}", Permission::ReadValues),
    ("{write_values}", Permission::WriteValues),
    ("{read_history}", Permission::ReadHistory),
    ("{snapshots}", Permission::Snapshots),
    ("{read_skills}", Permission::ReadSkills),
    ("{run_skills}", Permission::RunSkills),
];

/// Returns the instructions for a client, mentioning only the tools that it is offered.
pub(super) fn instructions(service: &Service) -> String {
    let (sandbox, offered) = (service.sandboxes().main(), service.tools());
    let mut text = String::new();
    let mut number = 0;
    for item in items() {
        let Some(item) = with_names(&item, offered) else { continue };
        match item.split_once(". ").filter(|(number, _)| number.parse::<u32>().is_ok()) {
            Some((_, rest)) => {
                number += 1;
                text.push_str(&format!("{number}. {rest}"));
            }
            None => text.push_str(&item),
        }
        text.push('\n');
    }
    text.truncate(text.trim_end().len());
    let entries = sandbox.limits().entries();
    let value =
        |wanted: LimitName| entries.iter().find(|(name, _)| *name == wanted).map_or_else(String::new, |(_, value)| value.clone());
    text.replace("{cwd}", sandbox.current_dir())
        .replace("{wall}", &value(LimitName::Wall))
        .replace("{memory}", &value(LimitName::Memory))
        .replace("{output}", &value(LimitName::Output))
}

// Returns the numbered items, each with its continuation lines.
fn items() -> Vec<String> {
    let mut items: Vec<String> = Vec::new();
    for line in TEXT.lines() {
        match items.last_mut().filter(|_| line.starts_with("   ")) {
            Some(item) => {
                item.push('\n');
                item.push_str(line);
            }
            None => items.push(line.to_owned()),
        }
    }
    items
}

// Returns an item with the names of its tools filled in; `None` if one of them is not offered.
fn with_names(item: &str, offered: &[Tool]) -> Option<String> {
    let mut text = item.to_owned();
    for (placeholder, permission) in NAMES.iter().filter(|(placeholder, _)| item.contains(placeholder)) {
        let names = Some(tools::names(offered, *permission)).filter(|names| !names.is_empty())?;
        text = text.replace(placeholder, &names);
    }
    let mut words = item.split('`').skip(1).step_by(2);
    words.all(|word| !tools::exists(word) || offered.iter().any(|tool| tool.name == word)).then_some(text)
}

/// Returns the list of prompts.
pub(super) fn list() -> ListPromptsResult {
    let prompt = Prompt::new(NAME, Some("How to work in the sandbox, in twenty lines"), None).with_title("Work in the sandbox");
    ListPromptsResult::with_all_items(vec![prompt])
}

/// Returns one prompt.
pub(super) fn get(name: &str, service: &Service) -> Result<GetPromptResult, ErrorData> {
    if name != NAME {
        return Err(ErrorData::invalid_params(format!("unknown prompt `{}`", quoted(name)), None));
    }
    let message = PromptMessage::new_text(Role::User, instructions(service));
    Ok(GetPromptResult::new(vec![message]).with_description("How to work in the sandbox"))
}
