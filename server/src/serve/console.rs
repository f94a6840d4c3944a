//! The console at `/`: plain files that are part of the program, under a policy that lets a page run and fetch nothing else.
//!
//! Its modules speak to the same routes as every client, through the JavaScript client of `sdk/typescript`.

use axum::Router;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH, REFERRER_POLICY, X_FRAME_OPTIONS};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use super::app::App;
use super::path::Path;
use super::problem::Problem;

/// T-NET-01: no script, style or address but our own, no frame around the page, no form that is sent anywhere.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/// Files are small and change with the program: a browser asks whether its copy is still right.
const CACHING: &str = "no-cache";

const PAGE: File = File { name: "", kind: "text/html; charset=utf-8", text: include_str!("console/index.html") };

macro_rules! script {
    ($name:literal) => {
        File { name: $name, kind: "text/javascript; charset=utf-8", text: include_str!(concat!("console/", $name)) }
    };
}

static FILES: &[File] = &[
    File { name: "console.css", kind: "text/css; charset=utf-8", text: include_str!("console/console.css") },
    script!("account.js"),
    script!("console.js"),
    script!("dom.js"),
    script!("files.js"),
    script!("runs.js"),
    script!("sandbox.js"),
    script!("sandboxes.js"),
    script!("skills.js"),
    script!("terminal.js"),
    script!("versions.js"),
    // A link to the client in `sdk/typescript`: a packed crate contains only files below its own directory.
    script!("sandlite.js"),
];

/// A file of the console.
struct File {
    name: &'static str,
    kind: &'static str,
    text: &'static str,
}

/// Routes that need no key: the page asks for one.
pub(super) fn routes() -> Router<App> {
    Router::new().route("/", get(page)).route("/console/{name}", get(file))
}

async fn page(headers: HeaderMap) -> Response {
    PAGE.respond(&headers)
}

async fn file(Path(name): Path<String>, headers: HeaderMap) -> Result<Response, Problem> {
    let file = FILES.iter().find(|file| file.name == name).ok_or_else(|| Problem::not_found("file"))?;
    Ok(file.respond(&headers))
}

impl File {
    fn respond(&self, asked: &HeaderMap) -> Response {
        let etag = format!("\"{}\"", blake3::hash(self.text.as_bytes()).to_hex());
        let is_known = asked.get_all(IF_NONE_MATCH).iter().any(|known| {
            known.to_str().is_ok_and(|known| known.split(',').any(|tag| tag.trim().trim_start_matches("W/") == etag))
        });
        let mut response = if is_known {
            StatusCode::NOT_MODIFIED.into_response()
        } else {
            ([(CONTENT_TYPE, self.kind)], self.text).into_response()
        };
        let headers = response.headers_mut();
        if let Ok(etag) = HeaderValue::from_str(&etag) {
            headers.insert(ETAG, etag);
        }
        for (name, value) in [
            (CACHE_CONTROL, CACHING),
            (CONTENT_SECURITY_POLICY, POLICY),
            (REFERRER_POLICY, "no-referrer"),
            (X_FRAME_OPTIONS, "DENY"),
            (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
            (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARKUP_FROM_TEXT: [&str; 9] = [
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "new Function",
        "DOMParser",
        "createContextualFragment",
        "srcdoc",
    ];

    // T-NET-07: names and content of files, output, skills.
    #[test]
    fn no_script_turns_text_into_markup_or_code() {
        for file in FILES {
            for way in MARKUP_FROM_TEXT {
                assert!(!file.text.contains(way), "{} has {way}", file.name);
            }
        }
    }

    #[test]
    fn the_page_has_no_inline_script_or_style_and_names_only_its_own_files() {
        let page = PAGE.text;
        assert!(!page.contains("<style") && !page.contains(" style=") && !page.contains(" onclick=") && !page.contains("://"));
        for script in page.split("<script").skip(1) {
            assert!(script.split('>').nth(1).is_some_and(|inside| inside.trim_start().starts_with("</script")), "{script}");
        }
        let named = page.split("/console/").skip(1).filter_map(|rest| rest.split('"').next());
        assert!(named.clone().count() >= 2);
        for name in named {
            assert!(FILES.iter().any(|file| file.name == name), "{name}");
        }
        for file in FILES {
            for import in file.text.lines().filter(|line| line.starts_with("import ")) {
                let name = import.split("\"./").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
                assert!(FILES.iter().any(|file| file.name == name), "{import}");
            }
        }
    }

    #[test]
    fn a_copy_that_is_still_right_is_not_sent_again() {
        let first = PAGE.respond(&HeaderMap::new());
        assert_eq!(first.status(), StatusCode::OK);
        assert!(first.headers()[CONTENT_SECURITY_POLICY].to_str().unwrap().starts_with("default-src 'none'; script-src 'self'"));
        let mut asked = HeaderMap::new();
        asked.insert(IF_NONE_MATCH, first.headers()[ETAG].clone());
        assert_eq!(PAGE.respond(&asked).status(), StatusCode::NOT_MODIFIED);
    }
}
