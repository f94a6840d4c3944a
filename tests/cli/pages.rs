//! The HTML pages: whole, self-contained, and harmless whatever the sandbox holds. In a real browser when one is installed.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use super::skipped::skip;

/// Names, text and keys that would like to be markup.
const HOSTILE: &str = r#"
mkdir -p '/evil/<img src=x onerror=alert(1)>'
printf '<script>document.title = "owned"</script>\033[31m\n' | tee '/evil/a"b'\''c<b>.txt'
echo '</pre></details><script src="https://example.com/x.js"></script>' >&2
ln -s '"><script>document.title = "owned"</script>' /evil/link
printf 'binary \0 \377' > /evil/binary
"#;

fn sandlite(args: &[&str], directory: &Path) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_sandlite")).args(args).current_dir(directory).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// A sandbox with some history, and its page.
fn hostile_page(directory: &Path) -> String {
    sandlite(&["--db", "a.db", "bash", "-c", HOSTILE], directory);
    sandlite(&["--db", "a.db", "bash", "-c", "printf 'one\\ntwo\\n' > /note; echo '<b>' > '/<i>'"], directory);
    sandlite(&["--db", "a.db", "bash", "-c", "sed -i s/two/2/ /note"], directory);
    sandlite(&["--db", "a.db", "kv", "set", "<u>key", "<script>document.title = 'owned'</script>"], directory);
    sandlite(&["--db", "a.db", "info", "--html", "page.html"], directory);
    fs::read_to_string(directory.join("page.html")).unwrap()
}

/// The names of all elements, in order of appearance; panics where a tag is not closed.
fn elements(page: &str) -> Vec<String> {
    let page = page.replace(page.split("<style>").nth(1).unwrap().split("</style>").next().unwrap(), "");
    let mut open: Vec<String> = Vec::new();
    let mut found = Vec::new();
    for piece in page.split('<').skip(1) {
        let (tag, _) = piece.split_once('>').expect("every < begins a tag");
        let name = tag.trim_start_matches('/').split([' ', '\n']).next().unwrap().to_owned();
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name), "tags are nested");
        } else if !["!doctype", "meta", "input"].contains(&name.as_str()) {
            open.push(name.clone());
            found.push(name);
        }
    }
    assert!(open.is_empty(), "left open: {open:?}");
    found
}

#[test]
fn whatever_a_guest_wrote_is_text() {
    let directory = tempfile::tempdir().unwrap();
    let page = hostile_page(directory.path());
    let elements = elements(&page);
    for forbidden in ["script", "img", "iframe", "link", "a", "object", "i", "u"] {
        assert!(!elements.iter().any(|name| name == forbidden), "<{forbidden}> is on the page");
    }
    assert!(page.contains("&lt;script&gt;document.title"), "the text itself is shown");
    assert!(page.contains("default-src &#39;none&#39;") || page.contains("default-src 'none'"));
    assert!(!page.chars().any(|c| c.is_control() && c != '\n' && c != '\t'));
}

#[test]
fn nothing_is_loaded_from_anywhere() {
    let directory = tempfile::tempdir().unwrap();
    let page = hostile_page(directory.path());
    for attribute in [" src=", " href=", "url(", "@import"] {
        let outside_text =
            page.replace("&lt;", "").split('<').any(|piece| piece.split('>').next().is_some_and(|tag| tag.contains(attribute)));
        assert!(!outside_text, "{attribute} is on the page");
    }
}

#[test]
fn the_page_shows_runs_and_changes() {
    let directory = tempfile::tempdir().unwrap();
    let page = hostile_page(directory.path());
    for part in ["<h2>Usage</h2>", "<h2>Timeline</h2>", "<h2>Files</h2>", "<h2>Keys</h2>", "id=\"run-3\"", "<svg", "modified"] {
        assert!(page.contains(part), "{part} is missing");
    }
    sandlite(&["--db", "a.db", "history", "show", "2", "--html", "run.html"], directory.path());
    let run = fs::read_to_string(directory.path().join("run.html")).unwrap();
    assert!(run.contains("<h1>run 2</h1>") && run.contains("created"));
    elements(&run);
}

#[test]
fn the_page_has_a_slider_over_the_versions() {
    let directory = tempfile::tempdir().unwrap();
    let page = hostile_page(directory.path());
    let versions = page.split("<section id=\"versions\">").nth(1).unwrap().split("</section>").next().unwrap();
    // The empty sandbox, its set-up, the three commands and the key.
    assert_eq!(versions.matches("<input type=\"radio\" name=\"version\"").count(), 6);
    assert_eq!(versions.matches("<article class=\"panel p").count(), 6);
    assert_eq!(versions.matches(" checked ").count(), 1, "the newest version is chosen");
    // `/note` is there from the fourth version on, and in another state from the fifth on.
    assert!(versions.contains(
        "<div class=\"state a3 b3\"><span class=\"name\">note</span><small>8 B</small><small class=\"by\">run 2</small>"
    ));
    assert!(
        versions.contains(
            "<div class=\"state a4\"><span class=\"name\">note</span><small>6 B</small><small class=\"by\">run 3</small>"
        )
    );
    assert!(versions.contains("<span class=\"del\">-two</span>\n<span class=\"add\">+2</span>"));
    // One rule each for later entries, removed entries and shown ones.
    assert!(versions.contains("main:has(.ticks>input:checked~#v3) .a3,main:has(#v3~input:checked) .b3{display:none}"));
    let past = directory.path().join("past.html");
    sandlite(&["--db", "a.db", "--at", "HEAD~2", "info", "--html", past.to_str().unwrap()], directory.path());
    assert_eq!(fs::read_to_string(past).unwrap().matches("<article class=\"panel p").count(), 4, "later versions are not shown");
}

#[test]
fn the_slider_is_bounded() {
    let directory = tempfile::tempdir().unwrap();
    let script = "mkdir /d; awk 'BEGIN { for (i = 1; i <= 6000; i++) { f = \"/d/f\" i; print i > f; close(f) } }'";
    sandlite(&["--db", "a.db", "bash", "-c", script], directory.path());
    sandlite(&["--db", "a.db", "bash", "-c", "seq 100000 > /long; rm /d/f1"], directory.path());
    sandlite(&["--db", "a.db", "info", "--html", "page.html"], directory.path());
    let page = fs::read_to_string(directory.path().join("page.html")).unwrap();
    assert!(page.contains(" more entries are not shown in the tree.") && page.contains("<li>… and "));
    assert_eq!(page.matches("<div class=\"state ").count(), 5000);
    assert!(page.len() < 8 << 20, "{}", page.len());
    elements(&page);
}

fn browser() -> Option<PathBuf> {
    if let Some(path) = env::var_os("CHROMIUM") {
        return Some(path.into());
    }
    let directories: Vec<PathBuf> = env::split_paths(&env::var_os("PATH")?).collect();
    let names = ["chromium", "chromium-browser", "google-chrome"];
    names.iter().flat_map(|name| directories.iter().map(move |directory| directory.join(name))).find(|path| path.is_file())
}

// Debian's package `chromium`; where it is not installed the structural tests above stand alone.
#[test]
fn a_real_browser_shows_the_page_and_runs_nothing() {
    let Some(browser) = browser() else {
        return skip("no browser: install the package `chromium`, or name one in CHROMIUM");
    };
    let directory = tempfile::tempdir().unwrap();
    hostile_page(directory.path());
    let page = format!("file://{}", directory.path().join("page.html").display());
    let output = Command::new(&browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--dump-dom", &page])
        .env("HOME", directory.path())
        .output()
        .unwrap();
    let dom = String::from_utf8_lossy(&output.stdout);
    assert!(dom.contains("<title>a.db · sandlite</title>"), "{dom}\n{}", String::from_utf8_lossy(&output.stderr));
    // Light and dark are both drawn, and differ.
    let drawn = |name: &str, mode: &[&str]| {
        let picture = directory.path().join(name);
        let shot = format!("--screenshot={}", picture.display());
        let drawing = Command::new(&browser)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=900,700"])
            .args(mode)
            .args([&shot, &page])
            .env("HOME", directory.path())
            .output()
            .unwrap();
        fs::read(&picture).unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&drawing.stderr)))
    };
    let (light, dark) = (drawn("light.png", &[]), drawn("dark.png", &["--blink-settings=preferredColorScheme=0"]));
    assert!(light.len() > 5_000 && dark.len() > 5_000 && light != dark);
    // Another version that is chosen looks different: the style sheet alone does it.
    let whole = fs::read_to_string(directory.path().join("page.html")).unwrap();
    let chosen = whole.replacen(" checked title", " title", 1).replacen("id=\"v3\" title", "id=\"v3\" checked title", 1);
    assert_ne!(whole, chosen);
    fs::write(directory.path().join("page.html"), chosen).unwrap();
    assert_ne!(drawn("chosen.png", &[]), light);
    // The parsed page has the elements we wrote and no others.
    assert!(dom.contains("<h2>Timeline</h2>") && !dom.contains("<script") && !dom.contains("<img"));
}
