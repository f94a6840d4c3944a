//! The `requirements.txt` of a skill: resolved once, at push, into a sandbox that runs start from.

use runtime::{Export, Fetched, Host, Limits, Python, Sandbox, Sources};

use crate::catalog::Base;
use crate::{Error, Language, Package};

/// Packages included in the scientific Python.
const SCIENTIFIC: [&str; 16] = [
    "contourpy",
    "kiwisolver",
    "lxml",
    "matplotlib",
    "numpy",
    "pandas",
    "patsy",
    "pillow",
    "python-dateutil",
    "pytz",
    "regex",
    "scikit-learn",
    "scipy",
    "seaborn",
    "statsmodels",
    "tzdata",
];

/// Packages known to have no pure-Python distribution.
const NATIVE: [&str; 20] = [
    "cryptography",
    "duckdb",
    "grpcio",
    "jax",
    "onnxruntime",
    "opencv-python",
    "opencv-python-headless",
    "playwright",
    "polars",
    "psycopg2",
    "psycopg2-binary",
    "pyarrow",
    "pydantic-core",
    "pymupdf",
    "selenium",
    "spacy",
    "tensorflow",
    "tokenizers",
    "torch",
    "transformers",
];

const NATIVE_HINT: &str = "use a pure-Python package, or one included in the scientific Python";

/// The dependency of a requirement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// A wheel, judging by its name.
    Pure,
    /// The scientific Python.
    Scientific,
    /// A package that cannot run here, and the reason.
    Native(&'static str),
    /// Not a name with an optional version.
    Unreadable,
}

/// Returns the requirements in a `requirements.txt`, each with the number of its first line, from 1. A backslash continues a line; hashes are
/// left out, because wheels are checked by their own records.
pub(crate) fn lines(text: &str) -> Vec<(usize, String)> {
    let (mut found, mut open) = (Vec::new(), None);
    for (number, line) in (1..).zip(text.lines()) {
        let (start, before) = open.take().unwrap_or((number, String::new()));
        let whole = before + line;
        match whole.strip_suffix('\\') {
            Some(part) if !line.trim_start().starts_with('#') => open = Some((start, format!("{part} "))),
            _ => found.push((start, whole)),
        }
    }
    found.extend(open);
    let requirement = |line: &str| {
        let line = line.split(" #").next().unwrap_or_default();
        line.split(" --hash").next().unwrap_or_default().trim().to_owned()
    };
    let found = found.into_iter().map(|(number, line)| (number, requirement(&line)));
    found.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')).collect()
}

/// Parses a line of a `requirements.txt`.
pub(crate) fn need(line: &str) -> Need {
    let mut refuse = |name: &str| Err(runtime::Error::Invalid(name.to_owned()));
    // Only names are passed to pip, which might run code for anything else.
    if !runtime::requirements(line, &mut refuse).is_ok_and(|names| names.len() == 1) {
        return Need::Unreadable;
    }
    match normalized(line).as_str() {
        name if SCIENTIFIC.contains(&name) => Need::Scientific,
        name if NATIVE.contains(&name) => Need::Native("it contains native code or requires other programs"),
        _ => Need::Pure,
    }
}

fn normalized(line: &str) -> String {
    let end = line.find(|c: char| !(c.is_ascii_alphanumeric() || "-_.".contains(c))).unwrap_or(line.len());
    line[..end].to_ascii_lowercase().replace(['_', '.'], "-")
}

/// Runs `pip download` with these arguments and returns the downloaded wheels.
pub type Pip<'a> = &'a mut dyn FnMut(&[String]) -> Result<Fetched, runtime::Error>;

/// The sources of a skill's requirements, and whether a push replaces content.
#[derive(Default)]
pub struct Needs<'a> {
    /// Whether to replace the content of an existing version.
    pub replace: bool,
    /// The sources of wheels.
    pub sources: Sources,
    /// This machine's pip; without it, a skill with requirements is rejected.
    pub pip: Option<Pip<'a>>,
}

/// The resolved dependencies of a skill.
#[derive(Debug, Default)]
pub(crate) struct Resolved {
    pub(crate) snapshot: Option<Vec<u8>>,
    pub(crate) is_scientific: bool,
    pub(crate) notes: Vec<String>,
}

impl Resolved {
    pub(crate) fn base(&self) -> Base<'_> {
        Base { snapshot: self.snapshot.as_deref(), is_scientific: self.is_scientific }
    }
}

/// Resolves the requirements of a skill.
pub(crate) fn resolve(
    package: &Package,
    needs: Needs<'_>,
    host: impl Fn() -> Result<Host, Error>,
    limits: &Limits,
) -> Result<Resolved, Error> {
    let requirements = package.requirements();
    if requirements.is_empty() || !matches!(package.language(), None | Some(Language::Python)) {
        return Ok(Resolved::default());
    }
    let refused = |reason: String, hint: Option<&str>| Error::Requirements {
        name: package.manifest().name.clone(),
        reason,
        hint: hint.map(str::to_owned),
    };
    let (mut pure, mut native, mut resolved) = (Vec::new(), Vec::new(), Resolved::default());
    for requirement in requirements {
        match need(&requirement) {
            Need::Scientific => resolved.is_scientific = true,
            Need::Unreadable => {
                return Err(refused(format!("invalid requirement `{requirement}`"), Some("list one package name per line")));
            }
            // pip decides about packages listed as native, because some have a pure wheel by now.
            Need::Native(_) => {
                native.push(requirement.clone());
                pure.push(requirement);
            }
            Need::Pure => pure.push(requirement),
        }
    }
    let host = host()?;
    let has_scientific = || host.guests().iter().any(|guest| guest.name == "python-sci" && guest.installed);
    if resolved.is_scientific && !has_scientific() {
        let note = "the skill requires the scientific Python, which is not installed: run `sandlite guests add python-sci`";
        resolved.notes.push(note.to_owned());
    }
    if pure.is_empty() {
        return Ok(resolved);
    }
    let Some(pip) = needs.pip else {
        let names = pure.join(", ");
        return Err(refused(
            format!("cannot download {names}: pip is not available"),
            Some("push the skill with the command line, which uses this machine's pip"),
        ));
    };
    let python = if resolved.is_scientific && has_scientific() { Python::Scientific } else { Python::Core };
    let sandbox = Sandbox::builder().host(&host).custom_limits(limits.clone()).python(python).open()?;
    let done = sandbox.packages().install_named(&pure, Vec::new(), &needs.sources, pip)?;
    if let Some(first) = done.refused.first() {
        let reason = |name: &str, reason: &str| match need(name) {
            Need::Native(known) => format!("`{name}`: {known}"),
            _ => format!("`{name}`: {reason}"),
        };
        let reasons: Vec<String> = done.refused.iter().map(|one| reason(&one.name, &one.reason)).collect();
        let is_native = matches!(need(&first.name), Need::Native(_));
        return Err(refused(reasons.join("; "), if is_native { Some(NATIVE_HINT) } else { first.hint.as_deref() }));
    }
    // Importing it works, but much of it may need what was left out.
    let partial = native.iter().map(|name| format!("`{name}` usually contains native code, which cannot run: try the skill"));
    resolved.notes.extend(partial);
    if !done.missing.is_empty() {
        resolved.notes.push(format!("missing dependencies of its packages: {}", done.missing.join(", ")));
    }
    let directory = tempfile::tempdir().map_err(Error::host("create", "a temporary directory"))?;
    let path = directory.path().join("base.db");
    sandbox.export_with(&path, Export { history: false, ..Export::default() })?;
    resolved.snapshot = Some(std::fs::read(&path).map_err(Error::host("read", &path))?);
    Ok(resolved)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_requirement_is_known_by_its_name() {
        for (line, expected) in [
            ("six", Need::Pure),
            ("six==1.17.0", Need::Pure),
            ("NumPy>=2", Need::Scientific),
            ("scikit_learn[all] ; python_version > '3'", Need::Scientific),
            ("-r other.txt", Need::Unreadable),
            ("--index-url https://x", Need::Unreadable),
            ("pkg @ https://x/y.whl", Need::Unreadable),
            ("git+https://x", Need::Unreadable),
            ("./local", Need::Unreadable),
            ("six-1.17.0.tar.gz", Need::Unreadable),
            ("payload.zip[x]", Need::Unreadable),
        ] {
            assert_eq!(need(line), expected, "{line}");
        }
        assert!(matches!(need("torch==2.9"), Need::Native(_)));
    }

    #[test]
    fn lines_are_continued_and_hashes_are_left_out() {
        let text = "# pinned \\\nsix==1.17.0 \\\r\n    --hash=sha256:aa \\\n    --hash=sha256:bb\n\nrich>=13  # comment\ntail \\";
        let expected = [(2, "six==1.17.0"), (6, "rich>=13"), (7, "tail")];
        assert_eq!(lines(text), expected.map(|(number, line)| (number, line.to_owned())));
    }
}
