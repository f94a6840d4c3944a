//! Colours of names: GNU's built-in ones, changed by `LS_COLORS`.

use sys::Stat;
use sys::stat::{S_IFCHR, S_IFDIR, S_IFIFO, S_IFLNK};

/// Which escape a file gets.
pub struct Colors {
    codes: Vec<(String, String)>,
    endings: Vec<(Vec<u8>, String)>,
}

impl Colors {
    /// Returns the built-in colours and those of `LS_COLORS`.
    ///
    /// Without `LS_COLORS`, a terminal that is not known to have colours gets none, even when they are asked for.
    pub fn load() -> Option<Self> {
        let variable = |name: &str| std::env::var(name).unwrap_or_default();
        let known = [
            "xterm",
            "linux",
            "screen",
            "tmux",
            "vt100",
            "ansi",
            "rxvt",
            "cygwin",
            "konsole",
            "putty",
            "st",
            "Eterm",
            "cons25",
            "con",
            "dtterm",
            "gnome",
            "hurd",
            "jfbterm",
            "kterm",
            "mach",
            "mlterm",
            "alacritty",
            "eterm",
            "terminator",
        ];
        let term = variable("TERM");
        let colorful = !variable("COLORTERM").is_empty()
            || term.contains("color")
            || known.iter().any(|name| term == *name || term.strip_prefix(name).is_some_and(|rest| rest.starts_with(['-', '.'])));
        if !colorful && variable("LS_COLORS").is_empty() {
            return None;
        }
        let built_in = [
            ("di", "01;34"),
            ("ln", "01;36"),
            ("pi", "33"),
            ("so", "01;35"),
            ("bd", "01;33"),
            ("cd", "01;33"),
            ("ex", "01;32"),
            ("su", "37;41"),
            ("sg", "30;43"),
            ("st", "37;44"),
            ("ow", "34;42"),
            ("tw", "30;42"),
        ];
        let mut colors = Self {
            codes: built_in.iter().map(|(key, code)| ((*key).to_owned(), (*code).to_owned())).collect(),
            endings: Vec::new(),
        };
        for item in std::env::var("LS_COLORS").unwrap_or_default().split(':') {
            let Some((key, code)) = item.split_once('=') else { continue };
            match key.strip_prefix('*') {
                Some(ending) => colors.endings.push((ending.as_bytes().to_ascii_lowercase(), code.to_owned())),
                None => colors.codes.push((key.to_owned(), code.to_owned())),
            }
        }
        Some(colors)
    }

    fn code(&self, key: &str) -> Option<&str> {
        self.codes
            .iter()
            .rev()
            .find(|(known, _)| known == key)
            .map(|(_, code)| code.as_str())
            .filter(|code| !code.is_empty() && *code != "0" && *code != "00")
    }

    /// Returns the code for a file; `None` for no colour.
    pub fn of(&self, name: &[u8], stat: &Stat, target: Option<Option<Stat>>) -> Option<&str> {
        let mode = stat.mode;
        match stat.kind() {
            S_IFDIR => match (mode & 0o1000 != 0, mode & 0o002 != 0) {
                (true, true) => self.code("tw"),
                (false, true) => self.code("ow"),
                (true, false) => self.code("st"),
                _ => self.code("di"),
            },
            S_IFLNK => match target {
                Some(None) => self.code("or").or_else(|| self.code("ln")),
                Some(Some(there)) if self.code("ln") == Some("target") => self.of(name, &there, None),
                _ => self.code("ln"),
            },
            S_IFIFO => self.code("pi"),
            S_IFCHR => self.code("cd"),
            0o060_000 => self.code("bd"),
            0o140_000 => self.code("so"),
            _ if mode & 0o4000 != 0 => self.code("su"),
            _ if mode & 0o2000 != 0 => self.code("sg"),
            _ if mode & 0o111 != 0 => self.code("ex"),
            _ => {
                let lower = name.to_ascii_lowercase();
                self.endings
                    .iter()
                    .rev()
                    .find(|(ending, _)| lower.ends_with(ending))
                    .map(|(_, code)| code.as_str())
                    .or_else(|| self.code("fi"))
            }
        }
    }
}
