//! A policy as data: rules for paths, and the programs that may be started.
//!
//! Nothing here acts: the runtime compiles the rules and its view enforces them. Several policies are combined by taking the
//! strictest decision of each, so adding a policy never grants anything.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The access to a path, from least to most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    /// The path does not exist.
    Hidden,
    /// The path can be read.
    Read,
    /// The path can be read and can only grow: new files, and bytes appended to existing ones.
    Append,
    /// Full access.
    Write,
}

impl Access {
    /// Returns the name as spelled in policy files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Hidden => "hidden",
            Self::Read => "read",
            Self::Append => "append",
            Self::Write => "write",
        }
    }
}

/// One rule. The last rule that matches a path decides.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// The paths: an absolute glob in which `*` matches within one name and `**` matches any number of names.
    pub path: String,
    /// The access; a rule without it leaves access to other rules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<Access>,
    /// The labels of which a view needs one in order to see the path; an empty text removes the requirement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<Labels>,
    /// Whether the rule also applies to everything below a matching directory.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub inherit: bool,
}

fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_yes(inherit: &bool) -> bool {
    *inherit
}

/// The labels of a rule, of which a view needs one. If empty, everybody sees the path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(from = "OneOrMany", into = "Vec<String>")]
pub struct Labels(pub Vec<String>);

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl From<OneOrMany> for Labels {
    fn from(labels: OneOrMany) -> Self {
        match labels {
            OneOrMany::One(label) if label.is_empty() => Self(Vec::new()),
            OneOrMany::One(label) => Self(vec![label]),
            OneOrMany::Many(labels) => Self(labels),
        }
    }
}

impl From<Labels> for Vec<String> {
    fn from(labels: Labels) -> Self {
        labels.0
    }
}

/// Rules for paths, and the programs that may be started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// The rules, in order.
    #[serde(default, rename = "rule", alias = "rules", skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<Rule>,
    /// The only programs that may be started; `None` allows all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_commands: Option<Vec<String>>,
    /// Programs that may not be started.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied_commands: Vec<String>,
}

/// The reason a policy is rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// The text is not a valid policy file.
    #[error("cannot read the policy: {0}")]
    File(String),
    /// A rule is invalid.
    #[error("invalid rule for `{path}`: {reason}")]
    Rule {
        /// Its path.
        path: String,
        /// The reason.
        reason: String,
    },
    /// Another part of the policy is invalid.
    #[error("invalid policy: {0}")]
    Invalid(String),
}

/// Maximum number of rules in one policy, because each costs time in the directories it can match.
const RULES_MAX: usize = 1000;
/// Maximum size of a path or a label, in bytes.
const TEXT_MAX: usize = 4096;
/// Maximum number of labels in a rule, and of programs in a list.
const LIST_MAX: usize = 1000;

impl Policy {
    /// Parses a policy file in TOML.
    ///
    /// ```
    /// # use sandlite_presets::{Access, Policy};
    /// let policy = Policy::parse("[[rule]]\npath = \"/secret\"\naccess = \"hidden\"")?;
    /// assert_eq!(policy.rules[0].access, Some(Access::Hidden));
    /// # Ok::<(), sandlite_presets::PolicyError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns [`PolicyError`] if the text is not TOML, has unknown keys, or contains an invalid rule.
    pub fn parse(text: &str) -> Result<Self, PolicyError> {
        toml::from_str::<Self>(text).map_err(|error| PolicyError::File(error.to_string().trim_end().to_owned()))?.check()
    }

    /// Checks the constraints that the types do not express. Globs are checked when they are compiled.
    ///
    /// # Errors
    ///
    /// Returns [`PolicyError`] if a rule is invalid.
    pub fn check(self) -> Result<Self, PolicyError> {
        if self.rules.len() > RULES_MAX {
            return Err(PolicyError::Invalid(format!("more than {RULES_MAX} rules")));
        }
        for rule in &self.rules {
            let refused = |reason: &str| {
                let path = rule.path.chars().take(80).collect();
                Err(PolicyError::Rule { path, reason: reason.to_owned() })
            };
            let Some(names) = rule.path.strip_prefix('/') else { return refused("expected an absolute path") };
            if rule.path.len() > TEXT_MAX || rule.path.contains('\0') {
                return refused("the path is too long or contains a zero byte");
            }
            let names = names.strip_suffix('/').unwrap_or(names);
            if !names.is_empty() && names.split('/').any(|name| matches!(name, "" | "." | "..")) {
                return refused("expected plain names between slashes");
            }
            if rule.access.is_none() && rule.label.is_none() {
                return refused("missing `access` or `label`");
            }
            let labels = rule.label.iter().flat_map(|labels| &labels.0);
            if rule.label.as_ref().is_some_and(|labels| labels.0.len() > LIST_MAX) || labels.clone().any(|label| !is_label(label))
            {
                return refused("expected labels of 1 to 255 printable bytes without commas");
            }
        }
        let lists = [self.allowed_commands.as_deref().unwrap_or_default(), &self.denied_commands];
        for name in lists.into_iter().flatten() {
            if name.is_empty() || name.contains(['/', '\0']) || name.len() > 255 {
                return Err(PolicyError::Invalid(format!("invalid command name {name:?}: expected a plain name")));
            }
        }
        if lists.iter().any(|list| list.len() > LIST_MAX) {
            return Err(PolicyError::Invalid(format!("more than {LIST_MAX} commands in a list")));
        }
        Ok(self)
    }

    /// Returns whether the policy restricts nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty() && self.allowed_commands.is_none() && self.denied_commands.is_empty()
    }
}

/// Returns whether a text is valid as a label or the name of a principal.
#[must_use]
pub fn is_label(text: &str) -> bool {
    !text.is_empty() && text.len() <= 255 && !text.chars().any(|letter| letter.is_control() || letter == ',')
}

/// Formats the policy as a policy file.
impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |texts: &[String]| texts.iter().map(|text| quoted(text)).collect::<Vec<_>>().join(", ");
        if let Some(allowed) = &self.allowed_commands {
            writeln!(f, "allowed_commands = [{}]", list(allowed))?;
        }
        if !self.denied_commands.is_empty() {
            writeln!(f, "denied_commands = [{}]", list(&self.denied_commands))?;
        }
        for rule in &self.rules {
            writeln!(f, "[[rule]]\npath = {}", quoted(&rule.path))?;
            if let Some(access) = rule.access {
                writeln!(f, "access = \"{}\"", access.name())?;
            }
            match rule.label.as_ref().map(|labels| &labels.0[..]) {
                Some([]) => writeln!(f, "label = \"\"")?,
                Some([label]) => writeln!(f, "label = {}", quoted(label))?,
                Some(labels) => writeln!(f, "label = [{}]", list(labels))?,
                None => {}
            }
            if !rule.inherit {
                writeln!(f, "inherit = false")?;
            }
        }
        Ok(())
    }
}

// A TOML basic string.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => out.extend(['\\', letter]),
            letter if letter.is_control() => out.push_str(&format!("\\u{:04x}", u32::from(letter))),
            letter => out.push(letter),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_round_trips() {
        let text = "allowed_commands = [\"bash\", \"cat\"]\ndenied_commands = [\"rm\"]\n[[rule]]\npath = \"/a \\\"b\\\"/**\"\naccess = \"append\"\n\
                    [[rule]]\npath = \"/x\"\nlabel = [\"pii\", \"@ann\"]\ninherit = false\n[[rule]]\npath = \"/y\"\nlabel = \"\"\n";
        let policy = Policy::parse(text).unwrap();
        assert_eq!(policy.to_string(), text);
        assert_eq!(policy.rules[0].access, Some(Access::Append));
        assert!(policy.rules[0].inherit && !policy.rules[1].inherit);
        assert_eq!(policy.rules[2].label, Some(Labels::default()));
        assert!(Policy::default().is_empty() && !policy.is_empty());
    }

    #[test]
    fn a_policy_is_read_strictly() {
        let refused = |text: &str| Policy::parse(text).unwrap_err().to_string();
        assert!(refused("[[rule]]\npath = \"/a\"\nacess = \"read\"").contains("unknown field `acess`"));
        assert!(refused("[[rule]]\npath = \"/a\"\naccess = \"all\"").contains("unknown variant `all`"));
        assert_eq!(refused("[[rule]]\npath = \"a\"\naccess = \"read\""), "invalid rule for `a`: expected an absolute path");
        assert_eq!(
            refused("[[rule]]\npath = \"/a/../b\"\naccess = \"read\""),
            "invalid rule for `/a/../b`: expected plain names between slashes"
        );
        assert_eq!(refused("[[rule]]\npath = \"/a\""), "invalid rule for `/a`: missing `access` or `label`");
        assert_eq!(
            refused("denied_commands = [\"/bin/rm\"]"),
            "invalid policy: invalid command name \"/bin/rm\": expected a plain name"
        );
        assert!(refused("[[rule]]\npath = \"/a\"\nlabel = \"a,b\"").contains("without commas"));
    }

    #[test]
    fn access_grows_from_hidden_to_write() {
        assert!(Access::Hidden < Access::Read && Access::Read < Access::Append && Access::Append < Access::Write);
    }
}
