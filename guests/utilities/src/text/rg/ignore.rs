//! `.gitignore`, `.ignore` and `.rgignore`, and what file types are called.

use super::globs::Glob;
use crate::files::basename::last_component;
use crate::io;

struct Rule {
    directory: Vec<u8>,
    glob: Glob,
    negated: bool,
    only_directories: bool,
}

/// The rules of all directories above the one being read.
#[derive(Default)]
pub(super) struct Rules(Vec<Rule>);

impl Rules {
    /// Adds a directory's own rules; how many.
    pub fn enter(&mut self, directory: &[u8]) -> usize {
        let before = self.0.len();
        for name in [".gitignore", ".ignore", ".rgignore"] {
            let path = [directory, b"/", name.as_bytes()].concat();
            let Ok(text) = io::read_all(&path) else { continue };
            for line in crate::text::diff::lines(&text) {
                let line = line.trim_ascii_end();
                if line.is_empty() || line.starts_with(b"#") {
                    continue;
                }
                let (negated, line) = line.strip_prefix(b"!").map_or((false, line), |rest| (true, rest));
                let (only_directories, line) = line.strip_suffix(b"/").map_or((false, line), |rest| (true, rest));
                self.0.push(Rule { directory: directory.to_vec(), glob: Glob::new(line), negated, only_directories });
            }
        }
        self.0.len() - before
    }

    /// Takes away the last `count` rules.
    pub fn leave(&mut self, count: usize) {
        self.0.truncate(self.0.len() - count);
    }

    /// Whether the rules hide a path: the last one that matches decides.
    pub fn ignored(&self, path: &[u8], is_dir: bool) -> bool {
        for rule in self.0.iter().rev() {
            if rule.only_directories && !is_dir {
                continue;
            }
            let Some(relative) = path.strip_prefix(rule.directory.as_slice()) else { continue };
            let relative = relative.strip_prefix(b"/").unwrap_or(relative);
            let name = last_component(relative);
            if rule.glob.matches(name, relative) {
                return !rule.negated;
            }
        }
        false
    }
}

/// The names of files of a type; empty for an unknown type.
pub(super) fn type_globs(name: &str) -> &'static [&'static str] {
    match name {
        "rust" => &["*.rs"],
        "py" | "python" => &["*.py", "*.pyi"],
        "js" => &["*.js", "*.jsx", "*.cjs", "*.mjs", "*.vue"],
        "ts" | "typescript" => &["*.ts", "*.tsx", "*.cts", "*.mts"],
        "c" => &["*.c", "*.h", "*.H", "*.cats"],
        "cpp" => &["*.cpp", "*.cc", "*.cxx", "*.hpp", "*.hh", "*.hxx", "*.C", "*.h", "*.H", "*.inl"],
        "go" => &["*.go"],
        "java" => &["*.java", "*.jsp", "*.jspx", "*.properties"],
        "kotlin" => &["*.kt", "*.kts"],
        "ruby" => &["*.rb", "*.gemspec", "Gemfile", "Rakefile"],
        "php" => &["*.php", "*.php3", "*.php4", "*.php5", "*.phtml"],
        "sh" => &["*.sh", "*.bash", "*.zsh", "*.ksh", ".bashrc", ".profile"],
        "json" => &["*.json", "composer.lock", "*.sarif"],
        "yaml" => &["*.yaml", "*.yml"],
        "toml" => &["*.toml", "Cargo.lock"],
        "md" | "markdown" => &["*.md", "*.markdown", "*.mdown", "*.mkd", "*.mdx"],
        "html" => &["*.html", "*.htm", "*.ejs"],
        "css" => &["*.css", "*.scss"],
        "xml" => &["*.xml", "*.xsl", "*.xslt", "*.xsd", "*.dtd", "*.svg"],
        "sql" => &["*.sql", "*.psql"],
        "txt" => &["*.txt"],
        "csv" => &["*.csv"],
        "make" => &["Makefile", "makefile", "GNUmakefile", "*.mk", "*.mak"],
        "docker" => &["*Dockerfile*"],
        "lua" => &["*.lua"],
        "perl" => &["*.pl", "*.pm", "*.perl", "*.t"],
        "log" => &["*.log"],
        "swift" => &["*.swift"],
        "config" => &["*.cfg", "*.conf", "*.config", "*.ini"],
        _ => &[],
    }
}
