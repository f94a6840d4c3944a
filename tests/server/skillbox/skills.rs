//! Skills: pushed in every form, read, edited, compared, deleted.

use ::skills::{File, pack};
use serde_json::{Value, json};

use super::{ECHO, skill};
use crate::http::{Server, chunked, form};

#[test]
fn a_skill_is_taken_in_every_form_that_clients_send() {
    let server = Server::start(&[]);
    let zip = |version: &str| pack(&skill("echo", version, ECHO));
    let answer = server.push(&skill("echo", "1.0.0", ECHO)).expect(201).json();
    let expected = json!({
        "name": "echo", "version": "1.0.0", "description": "A test.", "lang": "", "mode": "executable", "status": "available",
    });
    assert_eq!(answer, expected);
    server.push(&skill("echo", "1.0.0", ECHO)).expect(200);
    server.send("POST /v1/skills", Some(&server.key), &[("Content-Type", "application/octet-stream")], &zip("1.1.0")).expect(201);
    server.form("POST /v1/skills", &[], &[("name", "ignored")], ("echo.zip", &zip("1.2.0"))).expect(201);
    // The Go client streams its form: chunks, and no length.
    let (kind, body) = form(&[], ("echo.zip", &zip("1.3.0")));
    let headers = [("Content-Type", kind.as_str()), ("Transfer-Encoding", "chunked")];
    server.send("POST /v1/skills", Some(&server.key), &headers, &chunked(&body)).expect(201);
    let wrapped: Vec<File> = skill("echo", "1.4.0", ECHO)
        .into_iter()
        .map(|file| File::new(format!("echo-main/{}", file.path), file.content))
        .chain([File::new("__MACOSX/._SKILL.md", "x")])
        .collect();
    server.push(&wrapped).expect(201);
    let versions = server.get("/v1/skills/echo/versions").expect(200).json();
    let names: Vec<&str> = versions.as_array().unwrap().iter().filter_map(|row| row["version"].as_str()).collect();
    assert_eq!(names, ["1.4.0", "1.3.0", "1.2.0", "1.1.0", "1.0.0"]);
}

#[test]
fn a_push_that_is_not_a_skill_is_refused_by_name() {
    let server = Server::start(&["skill-bytes=20KB"]);
    let push =
        |kind: &str, body: &[u8]| server.send("POST /v1/skills", Some(&server.key), &[("Content-Type", kind)], body).error();
    let check = |got: (u16, String), status: u16, code: &str| assert_eq!(got, (status, code.to_owned()));
    check(push("application/json", b"{}"), 415, "unsupported_media_type");
    check(push("application/zip", b""), 400, "bad_request");
    check(push("application/zip", b"this is not a zip file"), 400, "invalid_skill");
    check(push("multipart/form-data; boundary=x", b"--x--\r\n"), 400, "bad_request");
    check(push("multipart/form-data", b""), 400, "bad_request");
    check(push("application/zip", &vec![b'x'; 30_000]), 413, "too_large");
    check(server.push(&[File::new("readme.txt", "hello")]).error(), 400, "invalid_skill");
    check(server.push(&[File::new("SKILL.md", "---\nname: [invalid\n---\n")]).error(), 400, "invalid_skill");
    check(server.push(&[File::new("SKILL.md", "---\nname: incomplete\n---\n")]).error(), 400, "invalid_skill");
    let mut nested = skill("echo", "1.0.0", ECHO);
    nested.push(File::new("more.zip", "PK"));
    let answer = server.push(&nested).expect(422).json();
    assert_eq!((&answer["error"], &answer["details"]["categories"]), (&json!("security_scan_failed"), &json!(["zip_bomb"])));
    assert_eq!(server.get("/v1/skills").json(), json!([]));
}

#[test]
fn only_admins_replace_the_content_of_a_version() {
    let server = Server::start(&[]);
    let publisher = server.key_of("default", "publisher");
    server.push_as(&publisher, &skill("echo", "1.0.0", ECHO)).expect(201);
    server.push_as(&publisher, &skill("echo", "1.0.0", ECHO)).expect(200);
    assert_eq!(server.push_as(&publisher, &skill("echo", "1.0.0", "true")).error(), (409, "conflict".to_owned()));
    server.push(&skill("echo", "1.0.0", "echo replaced")).expect(201);
    assert_eq!(server.run(&json!({ "skill": "echo" }))["logs"], "replaced\n");
}

#[test]
fn a_skill_is_shown_with_the_fields_of_its_file() {
    let server = Server::start(&[]);
    let head = "---\nname: full\ndescription: All of it.\nlang: bash\nimage: bash:5\ntimeout: 90s\nresources:\n  memory: 64Mi\n---\n\n# Do\n\n";
    server.push(&[File::new("SKILL.md", head), File::new("scripts/main.sh", "true")]).expect(201);
    let expected = json!({
        "name": "full", "version": "1.0.0", "description": "All of it.", "lang": "bash", "image": "bash:5", "timeout": "1m30s",
        "resources": { "memory": "64Mi" }, "mode": "executable", "instructions": "# Do", "content": "# Do",
    });
    assert_eq!(server.get("/v1/skills/full/latest").expect(200).json(), expected);
    assert_eq!(server.get("/v1/skills/full/1.0.0").expect(200).json(), expected);
    let listed = json!([{
        "name": "full", "version": "1.0.0", "description": "All of it.", "lang": "bash", "mode": "executable", "status": "available",
    }]);
    assert_eq!(server.get("/v1/skills?status=all").json(), listed);
    assert_eq!(server.get("/v1/skills?status=review").json(), json!([]));
    for (path, status) in [("full/2.0.0", 404), ("none/latest", 404), ("full/one", 400), ("..%2Fx/1.0.0", 400)] {
        assert_eq!(server.get(&format!("/v1/skills/{path}")).status, status, "{path}");
    }
}

#[test]
fn an_edit_is_the_next_version_and_versions_can_be_compared_and_chosen() {
    let server = Server::start(&[]);
    server.push(&skill("echo", "1.0.0", "echo one\necho two")).expect(201);
    let answer =
        server.put("/v1/skills/echo/files", &json!({ "path": "main.sh", "content": "echo one\necho 2" })).expect(202).json();
    assert_eq!(answer, json!({ "name": "echo", "version": "1.0.1", "status": "available" }));
    assert_eq!(server.run(&json!({ "skill": "echo" }))["logs"], "one\n2\n");
    let diff = server.get("/v1/skills/echo/diff?from=1.0.0&to=1.0.1").expect(200).json();
    assert_eq!((&diff["from"], &diff["to"]), (&json!("1.0.0"), &json!("1.0.1")));
    let script = diff["files"].as_array().unwrap().iter().find(|file| file["path"] == "main.sh").unwrap();
    let line = |op: &str, text: &str| json!({ "op": op, "text": text });
    let expected = json!([line(" ", "echo one"), line("-", "echo two"), line("+", "echo 2")]);
    assert_eq!((&script["status"], &script["lines"]), (&json!("modified"), &expected));
    // From the active version to itself: everything is new.
    let whole = server.get("/v1/skills/echo/diff?to=1.0.1").expect(200).json();
    assert!(whole["files"].as_array().unwrap().iter().all(|file| file["status"] == "added"), "{whole}");

    let text = |path: &str| server.get(&format!("/v1/skills/echo/latest/files?path={path}")).expect(200).json()[0].clone();
    assert!(text("SKILL.md")["content"].as_str().unwrap().contains("version: \"1.0.1\""));
    assert_eq!(text("main.sh"), json!({ "path": "main.sh", "content": "echo one\necho 2", "size_bytes": 15 }));
    let skill_md = text("SKILL.md")["content"].clone();
    let files =
        json!({ "files": [{ "path": "SKILL.md", "content": skill_md }, { "path": "./run.sh", "content": "echo three" }] });
    assert_eq!(server.put("/v1/skills/echo/files-batch", &files).expect(202).json()["version"], "1.0.2");
    let paths = |version: &str| -> Vec<Value> {
        let files = server.get(&format!("/v1/skills/echo/{version}/files")).expect(200).json();
        files.as_array().unwrap().iter().map(|file| file["path"].clone()).collect()
    };
    assert_eq!(
        (paths("latest"), paths("1.0.0")),
        (vec![json!("SKILL.md"), json!("run.sh")], vec![json!("SKILL.md"), json!("main.sh")])
    );

    let chosen = server.put("/v1/skills/echo/active", &json!({ "version": "1.0.0" })).expect(200).json();
    assert_eq!(chosen, json!({ "name": "echo", "active": "1.0.0" }));
    assert_eq!(server.run(&json!({ "skill": "echo" }))["logs"], "one\ntwo\n");
    let active: Vec<Value> = server.get("/v1/skills/echo/versions").json().as_array().unwrap().clone();
    let active: Vec<&Value> = active.iter().filter(|row| row["active"] == true).map(|row| &row["version"]).collect();
    assert_eq!(active, [&json!("1.0.0")]);
    // The next version after 1.0.0 exists: the one after those is free.
    let edit = json!({ "path": "new/file.txt", "content": "x" });
    assert_eq!(server.put("/v1/skills/echo/files", &edit).expect(202).json()["version"], "1.0.3");
}

#[test]
fn an_edit_that_makes_no_skill_is_refused() {
    let server = Server::start(&[]);
    server.push(&skill("echo", "1.0.0", ECHO)).expect(201);
    let put =
        |path: &str, content: &str| server.put("/v1/skills/echo/files", &json!({ "path": path, "content": content })).error();
    for path in ["", "../x", "/etc/passwd", "a\\b", "a//b"] {
        assert_eq!(put(path, "x"), (400, "bad_request".to_owned()), "{path}");
    }
    assert_eq!(put("SKILL.md", "nothing"), (400, "invalid_skill".to_owned()));
    assert_eq!(put("SKILL.md", "---\nname: other\ndescription: x\n---\n"), (400, "bad_request".to_owned()));
    assert_eq!(put("more.zip", "PK").0, 422);
    let batch = |files: Value| server.put("/v1/skills/echo/files-batch", &json!({ "files": files })).error();
    assert_eq!((batch(json!([])).0, batch(json!([{ "path": "x", "content": "" }])).0), (400, 400));
    assert_eq!(server.put("/v1/skills/none/files", &json!({ "path": "x", "content": "" })).error().0, 404);
    assert_eq!(server.put("/v1/skills/echo/active", &json!({ "version": "7.0.0" })).error().0, 404);
    assert_eq!(server.put("/v1/skills/echo/active", &json!({})).error().0, 400);
    assert_eq!(server.get("/v1/skills/echo/diff").error().0, 400);
    assert_eq!(server.get("/v1/skills/echo/diff?from=1.0.0&to=2.0.0").error().0, 404);
    assert_eq!(server.get("/v1/skills/echo/latest/files?path=none").error().0, 404);
    assert_eq!(server.get("/v1/skills/none/versions").expect(200).json(), json!([]));
}

#[test]
fn a_skill_is_made_of_texts() {
    let server = Server::start(&[]);
    let fields = |code: &str| json!({ "name": "shout", "description": "Says: \"hey\"", "lang": "bash", "code": code, "instructions": "# Do" });
    let answer = server.post("/v1/skills/from-fields", &fields("echo hey")).expect(201).json();
    assert_eq!((&answer["version"], &answer["lang"], &answer["status"]), (&json!("1.0.0"), &json!("bash"), &json!("available")));
    assert_eq!(server.run(&json!({ "skill": "shout" }))["logs"], "hey\n");
    assert_eq!(server.get("/v1/skills/shout/latest").json()["description"], "Says: \"hey\"");
    server.post("/v1/skills/from-fields", &fields("echo hey")).expect(200);
    assert_eq!(server.post("/v1/skills/from-fields", &fields("echo ho")).expect(201).json()["version"], "1.0.1");
    assert_eq!(server.run(&json!({ "skill": "shout" }))["logs"], "ho\n");
    for (name, value) in
        [("name", ""), ("name", "../x"), ("description", " "), ("code", ""), ("lang", "cobol"), ("version", "one")]
    {
        let mut wrong = fields("echo hey");
        wrong[name] = json!(value);
        assert_eq!(server.post("/v1/skills/from-fields", &wrong).error(), (400, "bad_request".to_owned()), "{name}={value}");
    }
}

#[test]
fn a_skill_is_validated_and_not_kept() {
    let server = Server::start(&[]);
    let validate = |files: &[File]| {
        server.send("POST /v1/skills/validate", Some(&server.key), &[("Content-Type", "application/zip")], &pack(files))
    };
    let answer = validate(&skill("echo", "1.0.0", ECHO)).expect(200).json();
    assert_eq!(
        (&answer["valid"], &answer["skill_name"], &answer["skill_version"]),
        (&json!(true), &json!("echo"), &json!("1.0.0"))
    );
    let mut hostile = skill("echo", "1.0.0", ECHO);
    hostile.push(File::new("tool", b"\x7fELF\0".to_vec()));
    let answer = validate(&hostile).expect(422).json();
    assert_eq!(
        (&answer["error"], &answer["details"]["categories"]),
        (&json!("security_scan_failed"), &json!(["malicious_code"]))
    );
    assert_eq!(validate(&[File::new("x", "")]).error(), (400, "invalid_skill".to_owned()));
    assert_eq!(server.get("/v1/skills").json(), json!([]));
    // A push is rejected for the same reason once an admin added the pattern.
    let config = server.get("/v1/admin/scanner/config").expect(200).json();
    assert_eq!(config["approval_policy"], "none");
    server.put("/v1/admin/scanner/config", &json!({ "approval_policy": "auto" })).expect(200);
    assert_eq!(server.push(&hostile).error(), (422, "security_scan_failed".to_owned()));
    server.put("/v1/admin/scanner/config", &json!({ "approval_policy": "none" })).expect(200);
    server.push(&hostile).expect(201);
    let findings = server.get("/v1/skills/echo/versions").json()[0]["scan_findings"].clone();
    assert_eq!((&findings[0]["severity"], &findings[0]["file_path"]), (&json!("BLOCK"), &json!("tool")));
}

#[test]
fn routes_of_skillboxs_back_office_work_where_they_exist() {
    let server = Server::start(&["admin-token=secret"]);
    let admin = |method: &str, path: &str, token: &str, body: Value| {
        server.with_json(method, &format!("/v1/admin/{path}"), &[("X-Admin-Token", token)], &body)
    };
    let wrong = admin("GET", "scanner/stats", "wrong", Value::Null);
    assert_eq!(wrong.error(), (401, "unauthorized".to_owned()));
    assert_eq!(wrong.json()["message"], "valid admin token required");
    assert_eq!(admin("GET", "scanner/stats", "secret", Value::Null).expect(200).json(), json!({ "enabled": true }));
    assert_eq!(admin("GET", "scanner/patterns", "secret", Value::Null).expect(200).json(), json!({ "version": 1 }));
    for config in [json!({ "approval_policy": "always" }), json!({ "tier3_enabled": true })] {
        assert_eq!(admin("PUT", "scanner/config", "secret", config).error(), (422, "scanner_disabled".to_owned()));
    }
    assert_eq!(admin("PUT", "scanner/config", "secret", json!({ "approval_policy": "maybe" })).error().0, 400);
    assert_eq!(admin("GET", "skills/review", "secret", Value::Null).expect(200).json(), json!([]));
    assert_eq!(admin("PUT", "skills/x/1.0.0/review", "secret", json!({ "action": "approve" })).error().0, 404);
    assert_eq!(admin("PUT", "skills/x/1.0.0/review", "secret", json!({ "action": "hide" })).error().0, 400);
}

#[test]
fn an_admin_adds_patterns_to_the_scan_of_its_own_tenant() {
    let server = Server::start(&[]);
    let patterns = json!({
        "version": 1,
        "block_patterns": [{ "regex": "unicorn\\s*farm", "category": "farming", "description": "farms unicorns" }],
        "flag_patterns": [{ "regex": "^echo", "category": "talk" }],
    });
    server.put("/v1/admin/scanner/config", &json!({ "approval_policy": "auto" })).expect(200);
    server.push(&skill("mine", "1.0.0", "echo unicornfarm")).expect(201);
    server.put("/v1/admin/scanner/patterns", &patterns).expect(200);
    let mut stored = patterns.clone();
    stored["flag_patterns"][0]["description"] = json!("");
    assert_eq!(server.get("/v1/admin/scanner/patterns").expect(200).json(), stored);
    let refused = server.push(&skill("mine", "1.0.1", "echo UnicornFarm"));
    assert_eq!(refused.json()["details"]["categories"], json!(["farming"]));
    assert_eq!(refused.json()["message"], "upload rejected by security scan: farms unicorns in `main.sh`");
    assert_eq!(refused.error(), (422, "security_scan_failed".to_owned()));
    server.push(&skill("mine", "1.0.2", "echo gold")).expect(201);
    let found = server.get("/v1/skills/mine/versions").json();
    assert_eq!(
        found[0]["scan_findings"][0],
        json!({ "severity": "FLAG", "category": "talk", "file_path": "main.sh", "line": 1, "description": "" })
    );
    let other = server.key_of("other", "admin");
    assert_eq!(server.send("GET /v1/admin/scanner/patterns", Some(&other), &[], b"").json(), json!({ "version": 1 }));
    for wrong in [
        json!({}),
        json!({ "version": 2 }),
        json!({ "version": 1, "popular_packages": [] }),
        json!({ "version": 1, "block_patterns": [{ "regex": "(", "category": "x" }] }),
        json!({ "version": 1, "block_patterns": [{ "regex": "x", "category": "" }] }),
    ] {
        assert_eq!(server.put("/v1/admin/scanner/patterns", &wrong).error(), (400, "invalid_patterns".to_owned()), "{wrong}");
    }
    assert_eq!(server.get("/v1/admin/scanner/patterns").json(), stored);
    server.put("/v1/admin/scanner/patterns", &json!({ "version": 1 })).expect(200);
    server.push(&skill("mine", "1.0.1", "echo UnicornFarm")).expect(201);
}

#[test]
fn a_deleted_skill_can_be_pushed_again() {
    let server = Server::start(&[]);
    for version in ["1.0.0", "2.0.0"] {
        server.push(&skill("echo", version, ECHO)).expect(201);
    }
    server.delete("/v1/skills/echo/latest").expect(204);
    assert_eq!(server.get("/v1/skills/echo/2.0.0").status, 404);
    assert_eq!(server.get("/v1/skills/echo/latest").expect(200).json()["version"], "1.0.0");
    assert_eq!(server.delete("/v1/skills/echo/2.0.0").error(), (404, "not_found".to_owned()));
    server.delete("/v1/skills/echo").expect(204);
    assert_eq!((server.delete("/v1/skills/echo").status, server.delete("/v1/skills/none/latest").status), (404, 404));
    assert_eq!(server.post("/v1/executions", &json!({ "skill": "echo" })).status, 404);
    server.push(&skill("echo", "1.0.0", ECHO)).expect(201);
    assert_eq!(server.run(&json!({ "skill": "echo" }))["status"], "success");
}
