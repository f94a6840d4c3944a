//! Skillbox's routes, for the document. Their router is in `skillbox.rs`; `tests/server` asks for each of them.

use super::Body::{Bytes, Events, Form, Json, Nothing};
use super::{Body, CURSOR, LIMIT, Parameter, Route, header, query};

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

impl Route {
    /// The same route with parameters in its query or headers.
    const fn with(self, parameters: &'static [Parameter]) -> Self {
        Self { parameters, ..self }
    }
}

const SESSION: &[Parameter] = &[header("X-Session-ID", "The session whose sandbox is used: 1 to 255 bytes.")];
const PAGE: &[Parameter] = &[
    LIMIT,
    CURSOR,
    query("skill", "string", "Only executions of this skill."),
    query("status", "string", "Only executions with this status: running, success, failed or timeout."),
];
const OF_FILES: &[Parameter] = &[
    LIMIT,
    query("offset", "integer", "Rows to leave out."),
    query("session_id", "string", "Only files of this session."),
    query("execution_id", "string", "Only files that this execution left."),
];
const RANGE: &[Parameter] =
    &[query("from", "string", "The older version; defaults to the active one."), query("to", "string", "The newer version.")];
const ONE_PATH: &[Parameter] = &[query("path", "string", "Only this file.")];
const REPLACE: &[Parameter] =
    &[query("replace", "boolean", "Whether other content may replace a version, which needs an admin's key; defaults to true.")];
const STATUS: &[Parameter] = &[query("status", "string", "Only skills with this status; all of them are available.")];

/// The routes of `skillbox.rs`.
#[rustfmt::skip]
pub(super) static SKILLBOX_ROUTES: &[Route] = &[
    route("POST", "/v1/executions", "runSkill", "Run a skill", Json("RunSkill"), &[(200, Json("RunResult")), (202, Json("Execution"))], &[404, 413, 415]),
    route("GET", "/v1/executions", "listExecutions", "List executions, newest first", Nothing, &[(200, Json("Executions"))], &[]).with(PAGE),
    route("GET", "/v1/executions/{id}", "getExecution", "Look at an execution", Nothing, &[(200, Json("Execution"))], &[404]),
    route("DELETE", "/v1/executions/{id}", "cancelExecution", "Cancel an execution", Nothing, &[(204, Nothing)], &[404]),
    route("GET", "/v1/executions/{id}/logs", "getExecutionLogs", "Read the logs of an execution", Nothing, &[(200, Bytes("text/plain"))], &[404]),
    route("GET", "/v1/executions/{id}/events", "followExecution", "Follow the logs of an execution", Nothing, &[(200, Events)], &[404]),
    route("POST", "/v1/skills", "pushSkill", "Push a skill as a zip archive", Bytes("application/zip"), &[(200, Json("PushedSkill")), (201, Json("PushedSkill"))], &[413, 415]).with(REPLACE),
    route("GET", "/v1/skills", "listSkills", "List skills", Nothing, &[(200, Json("Skills"))], &[]).with(STATUS),
    route("POST", "/v1/skills/from-fields", "createSkill", "Create a skill from its parts", Json("SkillFields"), &[(200, Json("PushedSkill")), (201, Json("PushedSkill"))], &[413, 415]),
    route("POST", "/v1/skills/validate", "validateSkill", "Check a skill without keeping it", Bytes("application/zip"), &[(200, Json("ValidSkill"))], &[413, 415]),
    route("DELETE", "/v1/skills/{name}", "deleteSkillVersions", "Delete a skill with all its versions", Nothing, &[(204, Nothing)], &[404]),
    route("PUT", "/v1/skills/{name}/files", "changeSkillFile", "Change one file as a new version", Json("SkillFile"), &[(202, Json("RevisedSkill"))], &[404, 413, 415]),
    route("PUT", "/v1/skills/{name}/files-batch", "changeSkillFiles", "Change files as a new version", Json("SkillFiles"), &[(202, Json("RevisedSkill"))], &[404, 413, 415]),
    route("GET", "/v1/skills/{name}/versions", "listSkillVersions", "List the versions of a skill", Nothing, &[(200, Json("SkillVersions"))], &[404]),
    route("GET", "/v1/skills/{name}/diff", "diffSkillVersions", "Compare two versions of a skill", Nothing, &[(200, Json("SkillDiff"))], &[404]).with(RANGE),
    route("PUT", "/v1/skills/{name}/active", "activateSkillVersion", "Choose the version that is used by default", Json("Version"), &[(200, Json("ActiveVersion"))], &[404, 413, 415]),
    route("GET", "/v1/skills/{name}/{version}", "getSkill", "Describe a version of a skill", Nothing, &[(200, Json("Skill"))], &[404]),
    route("DELETE", "/v1/skills/{name}/{version}", "deleteSkillVersion", "Delete a version of a skill", Nothing, &[(204, Nothing)], &[404]),
    route("GET", "/v1/skills/{name}/{version}/files", "listSkillFiles", "List the files of a version", Nothing, &[(200, Json("SkillContents"))], &[404]).with(ONE_PATH),
    route("POST", "/v1/files", "uploadFile", "Upload a file", Form(&[], &["name"]), &[(201, Json("File"))], &[413, 415]),
    route("GET", "/v1/files", "listFiles", "List files", Nothing, &[(200, Json("Files"))], &[]).with(OF_FILES),
    route("GET", "/v1/files/{id}", "getFile", "Describe a file", Nothing, &[(200, Json("File"))], &[404]),
    route("PUT", "/v1/files/{id}", "replaceFile", "Upload a new version of a file", Form(&[], &[]), &[(200, Json("File"))], &[404, 413, 415]),
    route("DELETE", "/v1/files/{id}", "removeFile", "Delete a file", Nothing, &[(204, Nothing)], &[404]),
    route("GET", "/v1/files/{id}/download", "downloadFile", "Download a file", Nothing, &[(200, Bytes("application/octet-stream"))], &[404]),
    route("GET", "/v1/files/{id}/versions", "listFileVersions", "List the versions of a file", Nothing, &[(200, Json("Files"))], &[404]),
    route("DELETE", "/v1/sessions/{session}", "deleteSession", "Delete a session and its files", Nothing, &[(204, Nothing)], &[404]),
    route("GET", "/v1/sessions/{session}/files", "listSessionFiles", "List the files of a session", Nothing, &[(200, Json("Files"))], &[404]),
    route("GET", "/v1/sessions/{session}/files/{*name}", "downloadSessionFile", "Download a file of a session", Nothing, &[(200, Bytes("application/octet-stream"))], &[404]),
    route("DELETE", "/v1/sessions/{session}/files/{*name}", "deleteSessionFile", "Delete a file of a session", Nothing, &[(204, Nothing)], &[404]),
    route("POST", "/v1/sandbox/execute", "shellExecute", "Run a command in the sandbox of a session", Json("ShellCommand"), &[(200, Json("ShellOutput"))], &[404, 413, 415]).with(SESSION),
    route("POST", "/v1/sandbox/read-file", "shellReadFile", "Read a file", Json("ShellPath"), &[(200, Json("ShellContent"))], &[404, 413, 415]).with(SESSION),
    route("POST", "/v1/sandbox/write-file", "shellWriteFile", "Write a file", Json("ShellWrite"), &[(200, Json("ShellDone"))], &[404, 413, 415]).with(SESSION),
    route("POST", "/v1/sandbox/list-dir", "shellListDirectory", "List a directory", Json("ShellList"), &[(200, Json("ShellEntries"))], &[404, 413, 415]).with(SESSION),
    route("POST", "/v1/sandbox/upload-file", "shellUploadFile", "Upload a file", Form(&["path"], &[]), &[(200, Json("ShellUploaded"))], &[404, 413, 415]).with(SESSION),
    route("POST", "/v1/sandbox/upload-skill", "shellUploadSkill", "Copy a skill into the sandbox", Json("ShellSkill"), &[(200, Json("ShellFiles"))], &[404, 413, 415]).with(SESSION),
    route("POST", "/v1/sandbox/sync", "shellSync", "Store the sandbox of a session", Json("Any"), &[(200, Json("ShellDone"))], &[404, 413, 415]).with(SESSION),
    route("POST", "/v1/sandbox/download-file", "shellDownloadFile", "Download a file", Json("ShellPath"), &[(200, Bytes("application/octet-stream"))], &[404, 413, 415]).with(SESSION),
    route("DELETE", "/v1/sandbox/{session}", "shellDestroy", "Delete the sandbox of a session", Nothing, &[(204, Nothing)], &[404]),
    route("GET", "/v1/admin/scanner/stats", "scannerStats", "Counters of the scanner (admins)", Nothing, &[(200, Json("Any"))], &[]),
    route("GET", "/v1/admin/scanner/patterns", "scannerPatterns", "Patterns of the scanner (admins)", Nothing, &[(200, Json("ScannerPatterns"))], &[]),
    route("PUT", "/v1/admin/scanner/patterns", "setScannerPatterns", "Change the patterns of the scanner (admins)", Json("ScannerPatterns"), &[(200, Json("ScannerPatterns"))], &[]),
    route("GET", "/v1/admin/scanner/config", "scannerConfig", "Settings of the scanner (admins)", Nothing, &[(200, Json("Any"))], &[]),
    route("PUT", "/v1/admin/scanner/config", "setScannerConfig", "Change the settings of the scanner (admins)", Json("ScannerConfig"), &[(200, Json("Any"))], &[]),
    route("GET", "/v1/admin/skills/review", "listReviews", "Skills that wait for a review (admins)", Nothing, &[(200, Json("Any"))], &[]),
    route("PUT", "/v1/admin/skills/{name}/{version}/review", "reviewSkill", "Review a skill (admins)", Json("Review"), &[(200, Json("Any"))], &[404]),
];
