//! Versions of skills: `MAJOR.MINOR.PATCH[-PRE]`, in the order of semantic versioning.

use std::cmp::Ordering;

/// Maximum length of a version.
const LONGEST: usize = 128;

/// Returns whether a text is a version.
///
/// ```
/// use sandlite_skills::is_version;
/// assert!(is_version("1.0.0") && is_version("2.3.1-beta.2"));
/// assert!(!is_version("1.0") && !is_version("v1.0.0") && !is_version("latest"));
/// ```
#[must_use]
pub fn is_version(text: &str) -> bool {
    let (core, pre) = match text.split_once('-') {
        Some((core, pre)) => (core, Some(pre)),
        None => (text, None),
    };
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let is_word = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let is_pre = |pre: &str| pre.split('.').all(is_word);
    text.len() <= LONGEST && core.split('.').count() == 3 && core.split('.').all(is_number) && pre.is_none_or(is_pre)
}

/// Returns the next patch version: of a pre-release, its release.
///
/// ```
/// use sandlite_skills::next_patch;
/// assert_eq!(next_patch("1.2.9").as_deref(), Some("1.2.10"));
/// assert_eq!(next_patch("1.0.0-beta").as_deref(), Some("1.0.0"));
/// assert_eq!(next_patch("latest"), None);
/// ```
#[must_use]
pub fn next_patch(version: &str) -> Option<String> {
    if !is_version(version) {
        return None;
    }
    if let Some((core, _)) = version.split_once('-') {
        return Some(core.to_owned());
    }
    let (rest, patch) = version.rsplit_once('.')?;
    let patch: u64 = patch.parse().ok()?;
    Some(format!("{rest}.{}", patch.checked_add(1)?))
}

/// Returns a `SKILL.md` whose front matter names another version; a text without front matter stays as it is.
///
/// ```
/// use sandlite_skills::with_version;
/// let skill = "---\nname: x\nversion: \"1.0.0\"\n---\nversion: stays\n";
/// assert_eq!(with_version(skill, "1.0.1"), "---\nname: x\nversion: \"1.0.1\"\n---\nversion: stays\n");
/// ```
#[must_use]
pub fn with_version(skill: &str, version: &str) -> String {
    // As in the front matter's parser, empty lines may come first.
    let mut lines: Vec<&str> = skill.trim_start_matches('\u{feff}').split_inclusive('\n').collect();
    let first = lines.iter().take_while(|line| line.trim().is_empty()).count();
    let end = lines.iter().skip(first + 1).position(|line| line.trim_end() == "---").map(|at| at + first + 1);
    let is_head = lines.get(first).is_some_and(|line| line.trim_end() == "---");
    let (true, Some(end)) = (is_head, end) else { return skill.to_owned() };
    let named = format!("version: \"{version}\"\n");
    match lines.iter().take(end).position(|line| is_version_field(line)) {
        Some(at) => drop(lines.splice(at..=at, [named.as_str()])),
        None => lines.insert(end, &named),
    }
    lines.concat()
}

fn is_version_field(line: &str) -> bool {
    let name = line.split_once(':').map(|(name, _)| name.trim_end());
    matches!(name, Some("version" | "\"version\"" | "'version'"))
}

/// Compares two versions; a pre-release comes before its release.
pub(crate) fn compare(a: &str, b: &str) -> Ordering {
    let split = |text: &'_ str| -> (String, Option<String>) {
        match text.split_once('-') {
            Some((core, pre)) => (core.to_owned(), Some(pre.to_owned())),
            None => (text.to_owned(), None),
        }
    };
    let ((core_a, pre_a), (core_b, pre_b)) = (split(a), split(b));
    dotted(&core_a, &core_b).then_with(|| match (pre_a, pre_b) {
        (None, None) => Ordering::Equal,
        (None, Some(_)) => Ordering::Greater,
        (Some(_), None) => Ordering::Less,
        (Some(a), Some(b)) => dotted(&a, &b),
    })
}

fn dotted(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a.split('.'), b.split('.'));
    loop {
        match (a.next(), b.next()) {
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => return Ordering::Less,
            (Some(_), None) => return Ordering::Greater,
            (Some(a), Some(b)) => match part(a, b) {
                Ordering::Equal => {}
                other => return other,
            },
        }
    }
}

// Numbers are compared by value, whatever their length, and sort before words.
fn part(a: &str, b: &str) -> Ordering {
    let number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    match (number(a), number(b)) {
        (true, true) => {
            let (a, b) = (a.trim_start_matches('0'), b.trim_start_matches('0'));
            a.len().cmp(&b.len()).then_with(|| a.cmp(b))
        }
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
        (false, false) => a.cmp(b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_as_semver_orders_them() {
        let ordered = [
            "0.9.9",
            "1.0.0-alpha",
            "1.0.0-alpha.1",
            "1.0.0-alpha.beta",
            "1.0.0-beta.2",
            "1.0.0-beta.11",
            "1.0.0-rc-1",
            "1.0.0-rc-1.x-y",
            "1.0.0",
            "1.2.0",
            "1.10.0",
            "99999999999999999999999.0.0",
        ];
        for pair in ordered.windows(2) {
            assert_eq!(compare(pair[0], pair[1]), Ordering::Less, "{pair:?}");
            assert_eq!(compare(pair[1], pair[0]), Ordering::Greater, "{pair:?}");
        }
        assert_eq!(compare("1.01.0", "1.1.0"), Ordering::Equal);
    }

    #[test]
    fn a_version_is_set_in_the_front_matter_and_nowhere_else() {
        let check = |skill: &str, expected: &str| assert_eq!(with_version(skill, "2.0.0"), expected);
        check("---\nname: x\n---\ntext", "---\nname: x\nversion: \"2.0.0\"\n---\ntext");
        check("---\nmetadata:\n  version: 1\n---\n", "---\nmetadata:\n  version: 1\nversion: \"2.0.0\"\n---\n");
        check("---\r\nversion: 1.0.0\r\n---\r\n", "---\r\nversion: \"2.0.0\"\n---\r\n");
        check("\u{feff}\n---\n'version' : 1.0.0\n---\n", "\n---\nversion: \"2.0.0\"\n---\n");
        check("version: 1.0.0\n", "version: 1.0.0\n");
        check("---\nname: x\n", "---\nname: x\n");
    }

    #[test]
    fn other_texts_are_not_versions() {
        for text in ["", "1", "1.0", "1.0.0.0", "v1.0.0", "1.0.x", "1.0.0-", "1.0.0-a..b", "1.0.0-a_b", "../1.0.0", "1.0.0+build"]
        {
            assert!(!is_version(text), "{text}");
        }
    }
}
