//! Files: uploaded, versioned, given to runs, handed out.

use serde_json::{Value, json};

use super::{ECHO, skill};
use crate::http::Server;

fn upload(server: &Server, name: &str, content: &[u8]) -> Value {
    server.form("POST /v1/files", &[], &[], (name, content)).expect(201).json()
}

// T-NET-04: they are read before the run begins.
#[test]
fn input_files_that_no_run_has_room_for_are_not_read() {
    let server = Server::start(&["preset=strict"]);
    server.push(&skill("noop", "1.0.0", "true")).expect(201);
    let file = upload(&server, "large", &vec![7; 30_000_000]);
    let refused = server.run(&json!({ "skill": "noop", "input_files": vec![&file["id"]; 1000] }));
    assert_eq!(refused["status"], "failed");
    assert_eq!(refused["error"], "the input files are larger than 64 MB");
}

#[test]
fn a_file_has_versions_and_each_stays_unchanged() {
    let server = Server::start(&[]);
    let first = upload(&server, "report.html", b"one");
    assert_eq!((&first["name"], &first["size_bytes"], &first["version"]), (&json!("report.html"), &json!(3), &json!(1)));
    assert_eq!(
        (&first["tenant_id"], &first["content_type"], first.get("parent_id")),
        (&json!("default"), &json!("text/html"), None)
    );
    let id = first["id"].as_str().unwrap();
    let second = server.form(&format!("PUT /v1/files/{id}"), &[], &[], ("other.bin", b"second")).expect(200).json();
    assert_ne!(second["id"], first["id"]);
    assert_eq!((&second["version"], &second["parent_id"], &second["name"]), (&json!(2), &first["id"], &json!("report.html")));
    let third =
        server.form(&format!("PUT /v1/files/{}", second["id"].as_str().unwrap()), &[], &[], ("x", b"3")).expect(200).json();
    assert_eq!((&third["version"], &third["parent_id"]), (&json!(3), &first["id"]));
    for file in [&first, &second, &third] {
        let id = file["id"].as_str().unwrap();
        let versions = server.get(&format!("/v1/files/{id}/versions")).expect(200).json();
        let numbers: Vec<&Value> = versions.as_array().unwrap().iter().map(|row| &row["version"]).collect();
        assert_eq!(numbers, [3, 2, 1].map(Value::from).iter().collect::<Vec<_>>());
        assert_eq!(&server.get(&format!("/v1/files/{id}")).expect(200).json(), file);
    }
    assert_eq!(server.get(&format!("/v1/files/{id}/download")).expect(200).text(), "one");
    server.delete(&format!("/v1/files/{id}")).expect(204);
    for path in [format!("/v1/files/{id}"), format!("/v1/files/{id}/download"), format!("/v1/files/{id}/versions")] {
        assert_eq!(server.get(&path).error(), (404, "not_found".to_owned()));
    }
    assert_eq!(server.delete(&format!("/v1/files/{id}")).status, 404);
    assert_eq!(server.form(&format!("PUT /v1/files/{id}"), &[], &[], ("x", b"x")).status, 404);
}

#[test]
fn a_file_is_handed_out_as_bytes_under_a_plain_name() {
    let server = Server::start(&[]);
    let content: Vec<u8> = (0..200_000u32).flat_map(u32::to_le_bytes).collect();
    let file = server.form("POST /v1/files", &[], &[("name", "pages/ü \"x\".html")], ("x", &content)).expect(201).json();
    let answer = server.get(&format!("/v1/files/{}/download", file["id"].as_str().unwrap())).expect(200);
    assert!(answer.body == content);
    for (name, expected) in [
        ("content-type", "application/octet-stream"),
        ("x-content-type-options", "nosniff"),
        ("content-security-policy", "sandbox; default-src 'none'"),
        ("content-disposition", "attachment; filename=\"_ _x_.html\"; filename*=UTF-8''%C3%BC%20%22x%22.html"),
        ("content-length", "800000"),
    ] {
        assert_eq!(answer.header(name), Some(expected), "{name}");
    }
    for name in ["../x", "/etc/passwd", "a\\b", "a/../../b"] {
        let answer = server.form("POST /v1/files", &[], &[("name", name)], ("x", b"x"));
        assert_eq!(answer.error(), (400, "bad_request".to_owned()), "{name}");
    }
}

#[test]
fn an_upload_that_is_not_a_form_or_too_large_is_refused() {
    let server = Server::start(&["skill-bytes=1MB", "bytes-of-tenant=1500KB"]);
    assert_eq!(server.post("/v1/files", &json!({})).error(), (400, "bad_request".to_owned()));
    let (kind, body) =
        ("multipart/form-data; boundary=x", b"--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--x--\r\n");
    assert_eq!(server.send("POST /v1/files", Some(&server.key), &[("Content-Type", kind)], body).status, 400);
    assert_eq!(server.form("POST /v1/files", &[], &[], ("x", &[0; 1_100_000])).status, 400);
    upload(&server, "x", &[0; 900_000]);
    let full = server.form("POST /v1/files", &[], &[], ("x", &[0; 900_000]));
    assert_eq!(full.error(), (429, "limit_exceeded".to_owned()));
    assert!(full.header("retry-after").is_some());
}

#[test]
fn files_are_listed_newest_first_and_are_input_and_output_of_runs() {
    let server = Server::start(&[]);
    server.push(&skill("echo", "1.0.0", ECHO)).expect(201);
    server.push(&skill("read", "1.0.0", "cat \"$SANDBOX_INPUT_DIR\"/*")).expect(201);
    let ids: Vec<String> =
        ["a", "b", "c"].map(|name| upload(&server, name, name.as_bytes())["id"].as_str().unwrap().to_owned()).to_vec();
    assert_eq!(server.run(&json!({ "skill": "read", "input_files": ids }))["logs"], "abc");
    let names = |query: &str| -> Vec<String> {
        let rows = server.get(&format!("/v1/files{query}")).expect(200).json();
        rows.as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!((names("").len(), names("?limit=2").len(), names("?limit=2&offset=2").len()), (3, 2, 1));
    let run = server.run(&json!({ "skill": "echo" }));
    let id = run["execution_id"].as_str().unwrap();
    assert_eq!(names(&format!("?execution_id={id}")), ["nested/page.html"]);
}

// T-NET-08.
#[test]
fn readers_that_do_not_read_take_few_slots_and_none_of_another_tenant() {
    use std::io::Write as _;

    let server = Server::start(&[]);
    let other = server.key_of("other", "consumer");
    // More than the buffers of a connection hold.
    let large = vec![7; 24 << 20];
    let upload = server.form("POST /v1/files", &[], &[], ("large", &large)).expect(201).json();
    let path = format!("/v1/files/{}/download", upload["id"].as_str().unwrap());
    let open = || {
        let mut stream = std::net::TcpStream::connect(server.address).unwrap();
        let head = format!("GET {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\r\n", server.address, server.key);
        stream.write_all(head.as_bytes()).unwrap();
        // The first byte shows that it was admitted.
        stream.peek(&mut [0]).unwrap();
        stream
    };
    let mut slow: Vec<_> = (0..64).map(|_| open()).collect();
    let mut refused = server.get(&path);
    // Those that do not read for ten seconds are cut: on a slow machine others have to take their places.
    while refused.status == 200 && slow.len() < 256 {
        slow.extend((0..16).map(|_| open()));
        refused = server.get(&path);
    }
    assert_eq!((refused.error(), refused.header("retry-after")), ((429, "limit_exceeded".to_owned()), Some("1")));
    // Nobody waits for them: neither this tenant's other requests nor another tenant.
    server.get("/v1/files").expect(200);
    let (kind, body) = crate::http::form(&[], ("x", b"mine"));
    let theirs = server.send("POST /v1/files", Some(&other), &[("Content-Type", &kind)], &body).expect(201).json();
    let theirs = format!("GET /v1/files/{}/download", theirs["id"].as_str().unwrap());
    assert_eq!(server.send(&theirs, Some(&other), &[], b"").expect(200).text(), "mine");
    drop(slow);
    let began = std::time::Instant::now();
    while server.get(&path).status != 200 {
        assert!(began.elapsed().as_secs() < 60);
    }
}
