//! Skillbox's routes, for the document. Their router is in `skillbox.rs`; `tests/server` asks for each of them.

use super::Body::{Bytes, Events, Json, Nothing};
use super::{Body, Route};

const fn route(
    method: &'static str,
    path: &'static str,
    operation: &'static str,
    summary: &'static str,
    request: Body,
    answers: &'static [(u16, Body)],
    problems: &'static [u16],
) -> Route {
    Route { method, path, operation, summary, tag: "Skills", parameters: &[], request, answers, problems }
}

/// The routes of `skillbox.rs`.
#[rustfmt::skip]
pub(super) static SKILLBOX_ROUTES: &[Route] = &[
    route("POST", "/v1/executions", "runSkill", "Run a skill", Json("Any"), &[(200, Json("Any")), (202, Json("Any"))], &[404, 413, 415]),
    route("GET", "/v1/executions", "listExecutions", "List executions, newest first", Nothing, &[(200, Json("Any"))], &[]),
    route("GET", "/v1/executions/{id}", "getExecution", "Look at an execution", Nothing, &[(200, Json("Any"))], &[404]),
    route("DELETE", "/v1/executions/{id}", "cancelExecution", "Cancel an execution", Nothing, &[(204, Nothing)], &[404]),
    route("GET", "/v1/executions/{id}/logs", "getExecutionLogs", "Read the logs of an execution", Nothing, &[(200, Bytes("text/plain"))], &[404]),
    route("GET", "/v1/executions/{id}/events", "followExecution", "Follow the logs of an execution", Nothing, &[(200, Events)], &[404]),
    route("POST", "/v1/skills", "pushSkill", "Push a skill as a zip archive", Bytes("application/zip"), &[(200, Json("Any")), (201, Json("Any"))], &[413, 415]),
    route("GET", "/v1/skills", "listSkills", "List skills", Nothing, &[(200, Json("Any"))], &[]),
    route("POST", "/v1/skills/from-fields", "createSkill", "Create a skill from its parts", Json("Any"), &[(200, Json("Any")), (201, Json("Any"))], &[413, 415]),
    route("POST", "/v1/skills/validate", "validateSkill", "Check a skill without keeping it", Bytes("application/zip"), &[(200, Json("Any"))], &[413, 415]),
    route("DELETE", "/v1/skills/{name}", "deleteSkillVersions", "Delete a skill with all its versions", Nothing, &[(204, Nothing)], &[404]),
    route("PUT", "/v1/skills/{name}/files", "changeSkillFile", "Change one file as a new version", Json("Any"), &[(202, Json("Any"))], &[404, 413, 415]),
    route("PUT", "/v1/skills/{name}/files-batch", "changeSkillFiles", "Change files as a new version", Json("Any"), &[(202, Json("Any"))], &[404, 413, 415]),
    route("GET", "/v1/skills/{name}/versions", "listSkillVersions", "List the versions of a skill", Nothing, &[(200, Json("Any"))], &[404]),
    route("GET", "/v1/skills/{name}/diff", "diffSkillVersions", "Compare two versions of a skill", Nothing, &[(200, Json("Any"))], &[404]),
    route("PUT", "/v1/skills/{name}/active", "activateSkillVersion", "Choose the version that is used by default", Json("Any"), &[(200, Json("Any"))], &[404, 413, 415]),
    route("GET", "/v1/skills/{name}/{version}", "getSkill", "Describe a version of a skill", Nothing, &[(200, Json("Any"))], &[404]),
    route("DELETE", "/v1/skills/{name}/{version}", "deleteSkillVersion", "Delete a version of a skill", Nothing, &[(204, Nothing)], &[404]),
    route("GET", "/v1/skills/{name}/{version}/files", "listSkillFiles", "List the files of a version", Nothing, &[(200, Json("Any"))], &[404]),
    route("POST", "/v1/files", "uploadFile", "Upload a file", Bytes("multipart/form-data"), &[(201, Json("Any"))], &[413, 415]),
    route("GET", "/v1/files", "listFiles", "List files", Nothing, &[(200, Json("Any"))], &[]),
    route("GET", "/v1/files/{id}", "getFile", "Describe a file", Nothing, &[(200, Json("Any"))], &[404]),
    route("PUT", "/v1/files/{id}", "replaceFile", "Upload a new version of a file", Bytes("multipart/form-data"), &[(200, Json("Any"))], &[404, 413, 415]),
    route("DELETE", "/v1/files/{id}", "removeFile", "Delete a file", Nothing, &[(204, Nothing)], &[404]),
    route("GET", "/v1/files/{id}/download", "downloadFile", "Download a file", Nothing, &[(200, Bytes("application/octet-stream"))], &[404]),
    route("GET", "/v1/files/{id}/versions", "listFileVersions", "List the versions of a file", Nothing, &[(200, Json("Any"))], &[404]),
    route("DELETE", "/v1/sessions/{session}", "deleteSession", "Delete a session and its files", Nothing, &[(204, Nothing)], &[404]),
    route("GET", "/v1/sessions/{session}/files", "listSessionFiles", "List the files of a session", Nothing, &[(200, Json("Any"))], &[404]),
    route("GET", "/v1/sessions/{session}/files/{*name}", "downloadSessionFile", "Download a file of a session", Nothing, &[(200, Bytes("application/octet-stream"))], &[404]),
    route("DELETE", "/v1/sessions/{session}/files/{*name}", "deleteSessionFile", "Delete a file of a session", Nothing, &[(204, Nothing)], &[404]),
    route("POST", "/v1/sandbox/execute", "shellExecute", "Run a command in the sandbox of a session", Json("Any"), &[(200, Json("Any"))], &[404, 413, 415]),
    route("POST", "/v1/sandbox/read-file", "shellReadFile", "Read a file", Json("Any"), &[(200, Json("Any"))], &[404, 413, 415]),
    route("POST", "/v1/sandbox/write-file", "shellWriteFile", "Write a file", Json("Any"), &[(200, Json("Any"))], &[404, 413, 415]),
    route("POST", "/v1/sandbox/list-dir", "shellListDirectory", "List a directory", Json("Any"), &[(200, Json("Any"))], &[404, 413, 415]),
    route("POST", "/v1/sandbox/upload-file", "shellUploadFile", "Upload a file", Json("Any"), &[(200, Json("Any"))], &[404, 413, 415]),
    route("POST", "/v1/sandbox/upload-skill", "shellUploadSkill", "Copy a skill into the sandbox", Json("Any"), &[(200, Json("Any"))], &[404, 413, 415]),
    route("POST", "/v1/sandbox/sync", "shellSync", "Store the sandbox of a session", Json("Any"), &[(200, Json("Any"))], &[404, 413, 415]),
    route("POST", "/v1/sandbox/download-file", "shellDownloadFile", "Download a file", Json("Any"), &[(200, Bytes("application/octet-stream"))], &[404, 413, 415]),
    route("DELETE", "/v1/sandbox/{session}", "shellDestroy", "Delete the sandbox of a session", Nothing, &[(204, Nothing)], &[404]),
    route("GET", "/v1/admin/scanner/stats", "scannerStats", "Counters of the scanner (admins)", Nothing, &[(200, Json("Any"))], &[]),
    route("GET", "/v1/admin/scanner/patterns", "scannerPatterns", "Patterns of the scanner (admins)", Nothing, &[(200, Json("Any"))], &[]),
    route("PUT", "/v1/admin/scanner/patterns", "setScannerPatterns", "Change the patterns of the scanner (admins)", Json("Any"), &[(200, Json("Any"))], &[]),
    route("GET", "/v1/admin/scanner/config", "scannerConfig", "Settings of the scanner (admins)", Nothing, &[(200, Json("Any"))], &[]),
    route("PUT", "/v1/admin/scanner/config", "setScannerConfig", "Change the settings of the scanner (admins)", Json("Any"), &[(200, Json("Any"))], &[]),
    route("GET", "/v1/admin/skills/review", "listReviews", "Skills that wait for a review (admins)", Nothing, &[(200, Json("Any"))], &[]),
    route("PUT", "/v1/admin/skills/{name}/{version}/review", "reviewSkill", "Review a skill (admins)", Json("Any"), &[(200, Json("Any"))], &[404]),
];
