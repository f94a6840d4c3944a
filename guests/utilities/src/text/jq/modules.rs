//! `import` and `include`: where modules are found, and what they bring.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::ast::{Definition, Import, Module, Place, Term};
use super::json;
use super::parse;
use super::value::Json;
use crate::io;

/// A program or module, ready to be compiled.
#[derive(Debug, Default)]
pub(super) struct Loaded {
    /// Modules, by their numbers, with the prefix of their names here.
    pub links: Vec<(usize, Option<String>)>,
    /// Variables from files of data.
    pub data: Vec<(String, Json)>,
    pub definitions: Vec<Rc<Definition>>,
}

/// Everything that a run has read.
#[derive(Debug, Default)]
pub(super) struct Sources {
    /// Names and texts, for complaints.
    pub texts: Vec<(String, String)>,
    pub modules: Vec<Loaded>,
    pub paths: Vec<PathBuf>,
    /// The directories that are searched for modules by default.
    pub search: Vec<String>,
}

/// Deepest chain of modules that import each other.
const MAX_CHAIN: usize = 32;

impl Sources {
    /// Reads the main program; prints what is wrong with it.
    pub fn program(&mut self, text: &str, origin: &Path) -> Result<(Loaded, Term), usize> {
        let module = self.parse("<top-level>", text)?;
        let Module { imports, main, .. } = module;
        let Some(main) = main else {
            warn!("jq: error: Top-level program not given (try \".\")");
            return Err(1);
        };
        let mut loaded = self.link(&imports, origin, 0)?;
        if let Some(home) = std::env::var_os("HOME") {
            let file = PathBuf::from(home).join(".jq");
            if file.is_file() {
                let module = self.module(&file, 0)?;
                loaded.links.insert(0, (module, None));
            }
        }
        Ok((loaded, main))
    }

    fn parse(&mut self, name: &str, text: &str) -> Result<Module, usize> {
        let number = self.texts.len();
        self.texts.push((name.to_string(), text.to_string()));
        parse::parse(text, number).map_err(|complaints| {
            let count = complaints.len();
            for (message, at) in complaints {
                self.complain(&message, Place { text: number, at });
            }
            count
        })
    }

    /// Prints a complaint with the line it is about.
    pub fn complain(&self, message: &str, place: Place) {
        let Some((name, text)) = self.texts.get(place.text) else {
            return warn!("jq: error: {message}\n<unknown location>");
        };
        let before = text.get(..place.at).unwrap_or(text);
        let start = before.rfind('\n').map_or(0, |at| at + 1);
        let line = text[start..].split('\n').next().unwrap_or("");
        let number = before.matches('\n').count() + 1;
        let blanks = " ".repeat(before.len() - start);
        warn!("jq: error: {message} at {name}, line {number}:\n{line}{blanks}");
    }

    fn link(&mut self, imports: &[Import], origin: &Path, depth: usize) -> Result<Loaded, usize> {
        let mut loaded = Loaded::default();
        for import in imports {
            let variable = import.name.as_deref().and_then(|name| name.strip_prefix('$'));
            let option = |name: &str| match &import.metadata {
                Some(Json::Object(fields)) => fields.get(name).cloned(),
                _ => None,
            };
            let suffix = if variable.is_some() { ".json" } else { ".jq" };
            let search = match option("search") {
                Some(Json::String(path)) => vec![path.as_str().to_string()],
                Some(Json::Array(paths)) => paths
                    .0
                    .iter()
                    .filter_map(|path| if let Json::String(path) = path { Some(path.as_str().to_string()) } else { None })
                    .collect(),
                _ => std::iter::once(".".to_string()).chain(self.search.iter().cloned()).collect(),
            };
            let found = find(&import.path, suffix, &search, origin);
            let file = match found {
                Ok(file) => file,
                Err(_) if option("optional").is_some_and(|value| matches!(value, Json::Bool(true))) => continue,
                Err(message) => {
                    warn!("jq: error: {message}\n");
                    return Err(1);
                }
            };
            match variable {
                Some(name) => {
                    let value = data(&file, option("raw").is_some_and(|value| value.is_true()))?;
                    loaded.data.push((format!("{name}::{name}"), value.clone()));
                    loaded.data.push((name.to_string(), value));
                }
                None => {
                    let module = self.module(&file, depth + 1)?;
                    loaded.links.push((module, import.name.clone()));
                }
            }
        }
        Ok(loaded)
    }

    fn module(&mut self, file: &Path, depth: usize) -> Result<usize, usize> {
        if let Some(known) = self.paths.iter().position(|path| path == file) {
            return Ok(known);
        }
        if depth > MAX_CHAIN {
            warn!("jq: error: modules import each other too deeply: {}\n", file.display());
            return Err(1);
        }
        let name = file.display().to_string();
        let text = read(file)?;
        let module = self.parse(&name, &text)?;
        if module.main.is_some() {
            warn!("jq: error: library should only have function definitions, not a main expression\n<unknown location>");
            return Err(1);
        }
        let origin = file.parent().unwrap_or(Path::new("/")).to_path_buf();
        let mut loaded = self.link(&module.imports, &origin, depth)?;
        loaded.definitions = module.definitions;
        self.modules.push(loaded);
        self.paths.push(file.to_path_buf());
        Ok(self.modules.len() - 1)
    }
}

fn read(file: &Path) -> Result<String, usize> {
    match io::read_all(io::path_bytes(file)) {
        Ok(text) => Ok(String::from_utf8_lossy(&text).into_owned()),
        Err(error) => {
            let name = file.display();
            warn!("jq: error loading data file {name}: Could not open {name}: {}\n", sys::message(&error));
            Err(1)
        }
    }
}

fn data(file: &Path, raw: bool) -> Result<Json, usize> {
    let text = read(file)?;
    if raw {
        return Ok(Json::string(text));
    }
    json::parse_all(text.as_bytes()).map(Json::array).map_err(|message| {
        warn!("jq: error loading data file {}: {message}\n", file.display());
        1
    })
}

fn find(relative: &str, suffix: &str, search: &[String], origin: &Path) -> Result<PathBuf, String> {
    let parts: Vec<&str> = relative.split('/').collect();
    if relative.contains('\\') {
        return Err(format!("Modules must be named by relative paths using '/', not '\\' ({relative})"));
    }
    if parts.contains(&"..") {
        return Err(format!("Relative paths to modules may not traverse to parent directories ({relative})"));
    }
    if parts.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(format!("module names must not have equal consecutive components: {relative}"));
    }
    let last = parts.last().copied().unwrap_or("");
    for directory in search {
        let base = match directory.strip_prefix("~/") {
            Some(rest) => PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(rest),
            None if directory.starts_with("$ORIGIN/") => PathBuf::from("/usr/bin").join(&directory["$ORIGIN/".len()..]),
            None => origin.join(directory),
        };
        for name in [format!("{relative}{suffix}"), format!("{relative}/jq/main{suffix}"), format!("{relative}/{last}{suffix}")] {
            let file = base.join(name);
            if file.is_file() {
                return Ok(file.canonicalize().unwrap_or(file));
            }
        }
    }
    Err(format!("module not found: {relative}"))
}

/// Returns a module's metadata, imports and functions.
pub(super) fn metadata(name: &str, search: &[String]) -> Result<Json, String> {
    let file = find(name, ".jq", search, Path::new("."))?;
    let text = io::read_all(io::path_bytes(&file)).map_err(|error| sys::message(&error))?;
    let text = String::from_utf8_lossy(&text);
    let Ok(module) = parse::parse(&text, 0) else { return Ok(Json::Null) };
    let imports = module.imports.iter().map(|import| {
        let mut fields = match &import.metadata {
            Some(Json::Object(fields)) => fields.0.iter().map(|(key, value)| (key.to_string(), value.clone())).collect(),
            _ => Vec::new(),
        };
        let data = import.name.as_ref().is_some_and(|name| name.starts_with('$'));
        if let Some(name) = &import.name {
            fields.push(("as".to_string(), Json::string(name.trim_start_matches('$'))));
        }
        fields.push(("is_data".to_string(), Json::Bool(data)));
        fields.push(("relpath".to_string(), Json::string(import.path.as_str())));
        Json::object(fields)
    });
    let functions =
        module.definitions.iter().map(|function| Json::string(format!("{}/{}", function.name, function.parameters.len())));
    let lists = [("deps".to_string(), Json::array(imports.collect())), ("defs".to_string(), Json::array(functions.collect()))];
    let mut fields = match &module.metadata {
        Some(Json::Object(fields)) => fields.0.iter().map(|(key, value)| (key.to_string(), value.clone())).collect(),
        _ => Vec::new(),
    };
    fields.extend(lists);
    Ok(Json::object(fields))
}
