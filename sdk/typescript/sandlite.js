// Client of a Sandlite server, in one file, with `fetch` alone: browsers, Node 18 and later, Deno.
//
//     import { Client } from "./sandlite.js";
//     const client = new Client("http://127.0.0.1:8080", "sk-…");
//     const box = await client.createSandbox({ name: "demo", files: { "/data.csv": "a,b\n1,2\n" } });
//     console.log((await box.bash("wc -l /data.csv")).stdout);
//     for await (const event of box.streamBash("for i in 1 2 3; do echo $i; done")) console.log(event.text);
//
// Objects have the fields that the server sends; `sandlite.d.ts` describes them. A command that fails is a result with its exit code. A
// request that fails throws an `APIError`. Every method takes `{ signal }` as its last argument; aborting a command kills it.

const encoder = new TextEncoder();
const decoder = new TextDecoder();
const LONGEST_RETRY = 30;

/** A request that the server refused, or could not be reached for (`statusCode` 0). */
export class APIError extends Error {
  constructor(statusCode, errorCode = "", message = "", details = undefined) {
    super(message || errorCode || `HTTP ${statusCode}`);
    this.name = "APIError";
    this.statusCode = statusCode;
    this.errorCode = errorCode;
    this.details = details;
  }
}

class Http {
  constructor(baseUrl, headers, { timeout, retries, fetch }) {
    this.base = baseUrl.replace(/\/+$/, "");
    this.headers = headers;
    this.timeout = timeout;
    this.retries = retries;
    this.fetch = fetch;
  }

  /** Sends a request; a status that is not below 400 is an `APIError`. Waits and retries when the server has no room. */
  async send(method, path, { query, body, headers, signal, isStream = false } = {}) {
    const asked = new URLSearchParams();
    for (const [name, value] of Object.entries(query ?? {})) {
      if (value !== undefined && value !== null) asked.set(name, String(value));
    }
    const target = this.base + path + (String(asked) === "" ? "" : `?${asked}`);
    for (let attempt = 0; ; attempt++) {
      const answer = await this.once(target, { method, body, headers: { ...this.headers, ...headers } }, signal, isStream);
      const after = answer.headers.get("retry-after");
      const canRepeat = !(body instanceof ReadableStream) && attempt < this.retries && /^\d+$/.test(after ?? "");
      if (![429, 503].includes(answer.status) || !canRepeat) return checked(answer);
      await answer.body?.cancel();
      await pause(Math.min(Number(after), LONGEST_RETRY) * 1000, signal);
    }
  }

  async once(target, request, signal, isStream) {
    const signals = [signal, isStream || !this.timeout ? undefined : AbortSignal.timeout(this.timeout * 1000)].filter(Boolean);
    if (request.body instanceof ReadableStream) request.duplex = "half";
    try {
      return await this.fetch(target, { ...request, signal: joined(signals), cache: "no-store", credentials: "omit" });
    } catch (error) {
      if (signal?.aborted) throw signal.reason ?? error;
      throw new APIError(0, "unreachable", `${request.method} ${target.split("?")[0]}: ${error?.message ?? error}`);
    }
  }

  /** Sends JSON and returns JSON, or `null` for an empty body. */
  async json(method, path, body, { headers, ...how } = {}) {
    const sent = body === undefined ? undefined : JSON.stringify(body);
    const type = body === undefined ? {} : { "Content-Type": "application/json" };
    const answer = await this.send(method, path, { ...how, body: sent, headers: { ...type, ...headers } });
    const text = await answer.text();
    return text === "" ? null : JSON.parse(text);
  }
}

async function checked(answer) {
  if (answer.status < 400) return answer;
  const text = await answer.text();
  let problem;
  try {
    problem = JSON.parse(text);
  } catch {
    problem = undefined;
  }
  if (problem === null || typeof problem !== "object") throw new APIError(answer.status, "", text.slice(0, 1000).trim());
  throw new APIError(answer.status, String(problem.error ?? ""), String(problem.message ?? ""), problem.details);
}

// `AbortSignal.any`, which Node 18 does not have.
function joined(signals) {
  if (signals.length < 2) return signals[0];
  const first = new AbortController();
  for (const signal of signals) {
    if (signal.aborted) first.abort(signal.reason);
    signal.addEventListener("abort", () => first.abort(signal.reason), { once: true, signal: first.signal });
  }
  return first.signal;
}

function pause(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, milliseconds);
    signal?.addEventListener("abort", () => (clearTimeout(timer), reject(signal.reason)), { once: true });
  });
}

/** Server-sent events of a response as `{ event, data, id }`. */
async function* serverSentEvents(answer) {
  const reader = answer.body.getReader();
  const text = new TextDecoder();
  let [left, event, data, id] = ["", "message", [], ""];
  try {
    for (;;) {
      const { done, value } = await reader.read();
      left += done ? text.decode() : text.decode(value, { stream: true });
      const lines = left.split(/\r\n|\n|\r(?!$)/);
      left = lines.pop();
      for (const line of lines) {
        const colon = line.indexOf(":");
        const name = colon < 0 ? line : line.slice(0, colon);
        const content = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
        if (line === "") {
          if (data.length > 0) yield { event, data: data.join("\n"), id };
          [event, data] = ["message", []];
        } else if (name === "event") event = content;
        else if (name === "data") data.push(content);
        else if (name === "id") id = content;
      }
      if (done) return;
    }
  } finally {
    // Closing the connection kills the run behind it.
    await reader.cancel().catch(() => {});
  }
}

function bytesOf(base64) {
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}

function base64Of(bytes) {
  let text = "";
  for (let at = 0; at < bytes.length; at += 0x8000) text += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return btoa(text);
}

async function contentOf(data) {
  if (typeof data === "string") return encoder.encode(data);
  if (data instanceof Blob) return new Uint8Array(await data.arrayBuffer());
  return data instanceof Uint8Array ? data : new Uint8Array(data);
}

const segment = (text) => encodeURIComponent(String(text));
const pathOf = (path) => path.replace(/^\/+/, "").split("/").map(encodeURIComponent).join("/");
const given = (fields) => Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined && value !== null));
const ran = (result) => ({ ...result, ok: result.exit_code === 0 });

/** A command that runs in the background. */
export class Job {
  #box;

  constructor(box, data) {
    this.#box = box;
    this.#set(data);
  }

  #set(data) {
    this.id = data.job;
    this.status = data.status ?? "running";
    this.action = data.action ?? "";
    this.error = data.error ?? null;
    this.result = data.result ? ran(data.result) : null;
  }

  /** Asks for the status. */
  async refresh(how) {
    this.#set(await this.#box.http.json("GET", `${this.#box.path}/jobs/${segment(this.id)}`, undefined, how));
    return this;
  }

  /** Waits until the command has ended and returns its result, or `null` if it was cancelled. */
  async wait({ interval = 100, signal } = {}) {
    while ((await this.refresh({ signal })).status === "running") await pause(interval, signal);
    if (this.status !== "failed") return this.result;
    throw new APIError(0, String(this.error?.error ?? "job_failed"), String(this.error?.message ?? this.error ?? ""));
  }

  /** Kills the command. */
  async cancel(how) {
    await this.#box.http.send("DELETE", `${this.#box.path}/jobs/${segment(this.id)}`, how);
  }
}

/** A sandbox on the server. Its fields are as of the last request that returned them. */
export class Sandbox {
  #http;

  constructor(http, data) {
    this.#http = http;
    this.#set(data);
  }

  #set(data) {
    for (const name of ["id", "name", "preset", "created_at", "used_at", "expires_at", "bytes"]) this[name] = data[name] ?? null;
  }

  get #path() {
    return `/v1/sandboxes/${segment(this.id)}`;
  }

  #jobs() {
    return { http: this.#http, path: this.#path };
  }

  /** Asks for the sandbox's fields again. */
  async refresh(how) {
    this.#set(await this.#http.json("GET", this.#path, undefined, how));
    return this;
  }

  /** Changes `name` or `ttl_seconds`; `null` keeps the sandbox for ever. */
  async update(fields, how) {
    this.#set(await this.#http.json("PATCH", this.#path, fields, how));
    return this;
  }

  /** Deletes the sandbox. */
  async delete(how) {
    await this.#http.send("DELETE", this.#path, how);
  }

  /** Creates an independent copy, of the present state or of a version: `{ name, at, ttl_seconds }`. */
  async fork(options = {}, how) {
    const body = given({ ...options, at: options.at === undefined ? undefined : String(options.at) });
    return new Sandbox(this.#http, await this.#http.json("POST", `${this.#path}/fork`, body, how));
  }

  /** The sandbox as a database file: a `Response` whose body can be saved. */
  async export({ history = true, signal } = {}) {
    return this.#http.send("GET", `${this.#path}/export`, { query: { history: history ? undefined : false }, signal, isStream: true });
  }

  /** Performs any action of the server by its name and returns its data. */
  async action(name, args = {}, { idempotencyKey, signal } = {}) {
    const headers = idempotencyKey ? { "Idempotency-Key": idempotencyKey } : {};
    return this.#http.json("POST", `${this.#path}/actions/${segment(name)}`, args, { headers, signal });
  }

  /** Runs a bash command line: `await box.bash("echo $WHO", { env: { WHO: "you" } })`. */
  async bash(command, options = {}, how) {
    return ran(await this.action("bash", { command, ...options }, how));
  }

  /** Runs Python code; with `echo: true`, or in a `session`, the last expression's value is in `value`. */
  async python(code, options = {}, how) {
    return ran(await this.action("python", { code, ...options }, how));
  }

  /** Runs a bash command line and yields its output as it comes, then `result`. Leaving the loop kills the command. */
  streamBash(command, options = {}, how) {
    return this.#stream("bash", { command, ...options }, how);
  }

  /** The same for Python code. */
  streamPython(code, options = {}, how) {
    return this.#stream("python", { code, ...options }, how);
  }

  async *#stream(action, args, { signal } = {}) {
    const headers = { Accept: "text/event-stream", "Content-Type": "application/json" };
    const body = JSON.stringify(args);
    const answer = await this.#http.send("POST", `${this.#path}/actions/${action}`, { body, headers, signal, isStream: true });
    const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() };
    for await (const { event, data: raw } of serverSentEvents(answer)) {
      const data = JSON.parse(raw);
      if (event in decoders) {
        const bytes = data.base64 === undefined ? encoder.encode(data.text) : bytesOf(data.base64);
        yield { kind: event, bytes, text: decoders[event].decode(bytes, { stream: true }) };
      } else if (event === "result") yield { kind: event, result: ran(data), text: "" };
      else if (event === "error") throw new APIError(200, String(data.error ?? ""), String(data.message ?? ""), data.details);
    }
  }

  /** Starts a bash command line in the background. */
  async startBash(command, options = {}, how) {
    return this.#start("bash", { command, ...options }, how);
  }

  /** Starts Python code in the background. */
  async startPython(code, options = {}, how) {
    return this.#start("python", { code, ...options }, how);
  }

  async #start(action, args, how = {}) {
    const headers = { Prefer: "respond-async" };
    const started = await this.#http.json("POST", `${this.#path}/actions/${action}`, args, { ...how, headers });
    return new Job(this.#jobs(), { action, ...started });
  }

  /** Lists the commands in the background. */
  async jobs({ limit, cursor, signal } = {}) {
    const page = await this.#http.json("GET", `${this.#path}/jobs`, undefined, { query: { limit, cursor }, signal });
    return { items: page.items.map((item) => new Job(this.#jobs(), item)), next_cursor: page.next_cursor ?? null };
  }

  /** Returns a command in the background by its id. */
  async job(id, how) {
    return new Job(this.#jobs(), await this.#http.json("GET", `${this.#path}/jobs/${segment(id)}`, undefined, how));
  }

  #file(path) {
    return `${this.#path}/files/${pathOf(path)}`;
  }

  /** Reads a file's bytes, as it is or `at` a version. */
  async read(path, { at, signal } = {}) {
    return (await this.readWithEtag(path, { at, signal })).bytes;
  }

  /** Reads a file's bytes together with its etag. */
  async readWithEtag(path, { at, signal } = {}) {
    const answer = await this.#http.send("GET", this.#file(path), { query: { at }, signal });
    return { bytes: new Uint8Array(await answer.arrayBuffer()), etag: answer.headers.get("etag") ?? "" };
  }

  /** Reads a file as UTF-8. */
  async readText(path, how) {
    return decoder.decode(await this.read(path, how));
  }

  /** Reads `length` bytes from `start`. */
  async readRange(path, start, length, { signal } = {}) {
    const headers = { Range: `bytes=${start}-${start + length - 1}` };
    return new Uint8Array(await (await this.#http.send("GET", this.#file(path), { headers, signal })).arrayBuffer());
  }

  /** Returns a name for the file's content, for `ifMatch`. */
  async etag(path, how) {
    return (await this.#http.send("HEAD", this.#file(path), how)).headers.get("etag") ?? "";
  }

  /** Writes a whole file and returns its new etag. `create` refuses to replace a file, `ifMatch` one that has changed. */
  async write(path, data, { ifMatch, create = false, signal } = {}) {
    const conditions = given({ "If-Match": ifMatch, "If-None-Match": create ? "*" : undefined });
    const headers = { "Content-Type": "application/octet-stream", ...conditions };
    const answer = await this.#http.send("PUT", this.#file(path), { body: await contentOf(data), headers, signal });
    return answer.headers.get("etag") ?? "";
  }

  /** Removes a file, or a directory with everything below it if `recursive` is set. */
  async remove(path, { recursive = false, ifMatch, signal } = {}) {
    const query = { recursive: recursive ? true : undefined };
    await this.#http.send("DELETE", this.#file(path), { query, headers: given({ "If-Match": ifMatch }), signal });
  }

  /** Lists a directory: path, kind and size of each entry. */
  async list(path = "/", { depth = 1, hidden = true, at, signal } = {}) {
    const given_at = at === undefined ? undefined : String(at);
    return (await this.action("list_files", given({ path, depth, hidden, at: given_at }), { signal })).entries;
  }

  /** Returns kind, size, permissions and time of a path. */
  async info(path, how) {
    return this.action("file_info", { path }, how);
  }

  /** Creates a directory and those above it. */
  async makeDirectory(path, how) {
    await this.action("make_directory", { path }, how);
  }

  /** Moves or renames a file or a directory. */
  async move(from, to, { overwrite = false, signal } = {}) {
    await this.action("move_file", { from, to, overwrite }, { signal });
  }

  /** Copies a file, or a directory with everything below it. */
  async copy(from, to, { recursive = false, signal } = {}) {
    await this.action("copy_files", { from, to, recursive }, { signal });
  }

  /** Writes many files, `{ path: content }`, all or none. */
  async writeFiles(files, how) {
    const rows = Object.entries(files).map(async ([path, data]) => {
      return { path, content: base64Of(await contentOf(data)), encoding: "base64" };
    });
    await this.action("write_files", { files: await Promise.all(rows) }, how);
  }

  /** Reads a tree as `{ name: bytes }`. */
  async readTree(path, how) {
    const answer = await this.#http.send("GET", `${this.#path}/tree/${pathOf(path)}`, how);
    return untar(new Uint8Array(await answer.arrayBuffer()));
  }

  /** Writes a tree, `{ name: content }`, in one step. */
  async writeTree(path, files, { signal } = {}) {
    const entries = await Promise.all(Object.entries(files).map(async ([name, data]) => [name, await contentOf(data)]));
    const headers = { "Content-Type": "application/x-tar" };
    await this.#http.send("PUT", `${this.#path}/tree/${pathOf(path)}`, { body: tar(entries), headers, signal });
  }

  /** Returns the JSON value of a key, or `undefined`. */
  async kvGet(key, how) {
    const found = await this.action("kv_get", { key }, how);
    if (!found.found) return undefined;
    if (found.part === undefined) return found.value;
    let [text, after] = [found.part, found.next_offset];
    while (after !== undefined && after !== null) {
      const part = await this.action("kv_get", { key, offset: after }, how);
      [text, after] = [text + part.part, part.next_offset];
    }
    return JSON.parse(text);
  }

  /** Keeps a JSON value under a key. */
  async kvSet(key, value, how) {
    await this.action("kv_set", { key, value }, how);
  }

  /** Removes a key and returns whether it existed. */
  async kvDelete(key, how) {
    return (await this.action("kv_delete", { key }, how)).found;
  }

  /** Lists the keys with a prefix. */
  async kvKeys(prefix = "", how) {
    const names = [];
    for (;;) {
      const page = await this.action("kv_keys", given({ prefix, after: names.at(-1) }), how);
      names.push(...page.keys);
      if (!page.truncated || page.keys.length === 0) return names;
    }
  }

  /** Lists what was done, newest first: `{ limit, before, name, grep }`, or one `{ run }` with its output. */
  async history(which = {}, how) {
    return (await this.action("history", which, how)).runs;
  }

  /** Lists the versions, newest first: `{ path, limit, before }`. */
  async log(which = {}, how) {
    return (await this.action("log", which, how)).versions;
  }

  /** Compares two versions, or a version and now: `files` and `patch`. */
  async diff(from, to, { paths, signal } = {}) {
    const second = to === undefined || to === null ? undefined : String(to);
    return this.action("diff", given({ from: String(from), to: second, paths }), { signal });
  }

  /** Takes the last changing runs back and returns what differs. */
  async undo(runs = 1, { dryRun = false, signal } = {}) {
    return this.action("undo", { runs, dry_run: dryRun }, { signal });
  }

  /** Brings everything, or some paths, back to a version. */
  async restore(version, { paths = [], dryRun = false, signal } = {}) {
    return this.action("restore", { version: String(version), paths, dry_run: dryRun }, { signal });
  }

  /** Names the present version. */
  async checkpoint(name, message, how) {
    return this.action("checkpoint", given({ name, message }), how);
  }

  /** Lists the checkpoints. */
  async checkpoints(how) {
    return (await this.action("checkpoints", {}, how)).checkpoints;
  }

  /** Yields committed changes after a version as they come; without `follow` those that are there. */
  async *events({ after, follow = true, signal } = {}) {
    if (!follow) {
      const page = await this.action("events", given({ after }), { signal });
      for (const change of page.events) yield { kind: "change", change, id: String(change.version), text: "" };
      return;
    }
    const headers = { Accept: "text/event-stream" };
    const answer = await this.#http.send("GET", `${this.#path}/events`, { query: { after }, headers, signal, isStream: true });
    for await (const { event, data, id } of serverSentEvents(answer)) {
      if (event === "change") yield { kind: event, change: JSON.parse(data), id, text: "" };
    }
  }
}

/** Speaks to a server. */
export class Client {
  #http;

  /** `timeout` is in seconds; `retries` is how often a request is repeated that the server had no room for. */
  constructor(baseUrl, apiKey = "", { tenantId, timeout = 660, retries = 2, fetch = globalThis.fetch.bind(globalThis) } = {}) {
    const headers = {};
    if (apiKey) headers.Authorization = `Bearer ${apiKey}`;
    if (tenantId) headers["X-Tenant-ID"] = tenantId;
    this.#http = new Http(baseUrl, headers, { timeout, retries, fetch });
  }

  /** Throws an `APIError` if the server cannot be reached. */
  async health(how) {
    await this.#http.json("GET", "/health", undefined, how);
  }

  /** Returns tenant, role, id and view of the key. */
  async whoami(how) {
    return this.#http.json("GET", "/v1/whoami", undefined, how);
  }

  /** Returns what the tenant uses, and its limits. */
  async usage(how) {
    return this.#http.json("GET", "/v1/usage", undefined, how);
  }

  /** Lists the tenant's keys. Needs the role admin. */
  async listKeys(how) {
    return this.#http.json("GET", "/v1/keys", undefined, how);
  }

  /** Creates a key, `{ role, name, view, expires }`; its text is not shown again. */
  async createKey(fields, how) {
    return this.#http.json("POST", "/v1/keys", given(fields), how);
  }

  /** Revokes a key at once. */
  async revokeKey(id, how) {
    await this.#http.send("DELETE", `/v1/keys/${segment(id)}`, how);
  }

  /** Lists the audit log, newest first. Needs the role admin. */
  async listAudit({ before, limit, signal } = {}) {
    return this.#http.json("GET", "/v1/audit", undefined, { query: { before, limit }, signal });
  }

  /** Creates a sandbox: `{ name, preset, files, base, snapshot, policy, ttl_seconds }`. */
  async createSandbox(options = {}, { idempotencyKey, signal } = {}) {
    const body = given(options);
    if (options.files) {
      const files = Object.entries(options.files).map(async ([path, data]) => {
        return [path, typeof data === "string" ? data : { base64: base64Of(await contentOf(data)) }];
      });
      body.files = Object.fromEntries(await Promise.all(files));
    }
    const headers = idempotencyKey ? { "Idempotency-Key": idempotencyKey } : {};
    return new Sandbox(this.#http, await this.#http.json("POST", "/v1/sandboxes", body, { headers, signal }));
  }

  /** Returns a sandbox by its id. */
  async getSandbox(id, how) {
    return new Sandbox(this.#http, await this.#http.json("GET", `/v1/sandboxes/${segment(id)}`, undefined, how));
  }

  /** Lists sandboxes, a page at a time. */
  async listSandboxes({ limit, cursor, name, signal } = {}) {
    const page = await this.#http.json("GET", "/v1/sandboxes", undefined, { query: { limit, cursor, name }, signal });
    return { items: page.items.map((item) => new Sandbox(this.#http, item)), next_cursor: page.next_cursor ?? null };
  }

  /** Deletes a sandbox by its id. */
  async deleteSandbox(id, how) {
    await this.#http.send("DELETE", `/v1/sandboxes/${segment(id)}`, how);
  }

  /** Creates a sandbox from a database file. */
  async importSandbox(database, { name, signal } = {}) {
    const headers = { "Content-Type": "application/vnd.sqlite3" };
    const body = database instanceof Blob ? database : await contentOf(database);
    const answer = await this.#http.send("POST", "/v1/sandboxes/import", { query: { name }, body, headers, signal });
    return new Sandbox(this.#http, await answer.json());
  }

  /** Runs a skill and waits for its result: `{ version, input, env, input_files, session_id }`. */
  async run(skill, options = {}, { idempotencyKey, signal } = {}) {
    const headers = idempotencyKey ? { "Idempotency-Key": idempotencyKey } : {};
    return this.#http.json("POST", "/v1/executions", given({ skill, ...options }), { headers, signal });
  }

  /** Starts a skill in the background and returns the id of the execution. */
  async start(skill, options = {}, how) {
    return (await this.#http.json("POST", "/v1/executions", given({ skill, ...options, async: true }), how)).execution_id;
  }

  /** Returns an execution by its id. */
  async getExecution(id, how) {
    return this.#http.json("GET", `/v1/executions/${segment(id)}`, undefined, how);
  }

  /** Lists executions, newest first. */
  async listExecutions({ limit, cursor, skill, status, signal } = {}) {
    return this.#http.json("GET", "/v1/executions", undefined, { query: { limit, cursor, skill, status }, signal });
  }

  /** Cancels an execution. */
  async cancelExecution(id, how) {
    await this.#http.send("DELETE", `/v1/executions/${segment(id)}`, how);
  }

  /** Yields the logs of an execution as they come, then `result`. */
  async *executionEvents(id, { signal } = {}) {
    const headers = { Accept: "text/event-stream" };
    const answer = await this.#http.send("GET", `/v1/executions/${segment(id)}/events`, { headers, signal, isStream: true });
    for await (const { event, data: raw } of serverSentEvents(answer)) {
      const data = JSON.parse(raw);
      if (event === "log") yield { kind: event, text: data.text ?? "" };
      else if (event === "result") yield { kind: event, result: data, text: "" };
    }
  }

  /** Returns what the skill printed. */
  async getExecutionLogs(id, how) {
    return (await this.#http.send("GET", `/v1/executions/${segment(id)}/logs`, how)).text();
  }

  /** Publishes a skill: the bytes of a zip file. */
  async registerSkill(zip, { signal } = {}) {
    const headers = { "Content-Type": "application/zip" };
    const body = zip instanceof Blob ? zip : await contentOf(zip);
    return (await this.#http.send("POST", "/v1/skills", { body, headers, signal })).json();
  }

  /** Lists the skills. */
  async listSkills(how) {
    return (await this.#http.json("GET", "/v1/skills", undefined, how)) ?? [];
  }

  /** Returns a skill with its instructions. */
  async getSkill(name, version = "latest", how) {
    return this.#http.json("GET", `/v1/skills/${segment(name)}/${segment(version)}`, undefined, how);
  }

  /** Deletes a version of a skill. */
  async deleteSkill(name, version, how) {
    await this.#http.send("DELETE", `/v1/skills/${segment(name)}/${segment(version)}`, how);
  }

  /** Returns the files of an execution as `{ name: bytes }`. The address is signed, so the key is not sent. */
  async downloadFiles(result, how) {
    if (!result.files_url) return {};
    const plain = new Http("", {}, { timeout: this.#http.timeout, retries: 0, fetch: this.#http.fetch });
    const answer = await plain.send("GET", result.files_url, how);
    const unpacked = answer.body.pipeThrough(new DecompressionStream("gzip"));
    return untar(new Uint8Array(await new Response(unpacked).arrayBuffer()));
  }

  /** Stores a file, to be an input of skills. */
  async uploadFile(name, data, how) {
    return this.#form("POST", "/v1/files", name, data, how);
  }

  /** Lists the stored files. */
  async listFiles({ session_id, execution_id, limit, offset, signal } = {}) {
    const query = { session_id, execution_id, limit, offset };
    return this.#http.json("GET", "/v1/files", undefined, { query, signal });
  }

  /** Returns a stored file's metadata. */
  async getFile(id, how) {
    return this.#http.json("GET", `/v1/files/${segment(id)}`, undefined, how);
  }

  /** Returns a stored file's bytes. */
  async downloadFile(id, how) {
    return new Uint8Array(await (await this.#http.send("GET", `/v1/files/${segment(id)}/download`, how)).arrayBuffer());
  }

  /** Stores the next version of a file; it has an id of its own. */
  async updateFile(id, name, data, how) {
    return this.#form("PUT", `/v1/files/${segment(id)}`, name, data, how);
  }

  /** Deletes a stored file. */
  async deleteFile(id, how) {
    await this.#http.send("DELETE", `/v1/files/${segment(id)}`, how);
  }

  /** Lists the versions of a stored file, newest first. */
  async listFileVersions(id, how) {
    return this.#http.json("GET", `/v1/files/${segment(id)}/versions`, undefined, how);
  }

  async #form(method, path, name, data, how) {
    const body = new FormData();
    body.set("file", data instanceof Blob ? data : new Blob([await contentOf(data)]), name);
    return (await this.#http.send(method, path, { ...how, body })).json();
  }
}

// Tar: as much of it as the server reads and writes. Entries that are not files are left out.

const BLOCK = 512;

function tar(entries) {
  const parts = [];
  for (const [name, data] of entries) {
    const raw = encoder.encode(name);
    if (raw.length > 100) {
      const fixed = ` path=${name}\n`;
      const size = (digits) => encoder.encode(fixed).length + digits;
      const digits = [2, 3, 4, 5].find((digits) => String(size(digits)).length === digits);
      add(parts, "pax", "x", encoder.encode(size(digits) + fixed));
    }
    add(parts, raw.slice(0, 100), "0", data);
  }
  parts.push(new Uint8Array(2 * BLOCK));
  return new Blob(parts);
}

function add(parts, name, kind, data) {
  const head = new Uint8Array(BLOCK);
  const put = (at, text) => head.set(typeof text === "string" ? encoder.encode(text) : text, at);
  put(0, name);
  put(100, "0000644\0" + "0000000\0" + "0000000\0" + data.length.toString(8).padStart(11, "0") + "\0" + "00000000000\0");
  put(148, "        ");
  put(156, kind);
  put(257, "ustar\u000000");
  put(148, head.reduce((sum, byte) => sum + byte, 0).toString(8).padStart(6, "0") + "\0 ");
  parts.push(head, data, new Uint8Array((BLOCK - (data.length % BLOCK)) % BLOCK));
}

function untar(bytes) {
  // Without a prototype, so that no name of a file means anything else.
  const files = Object.create(null);
  let long;
  for (let at = 0; at + BLOCK <= bytes.length; ) {
    const head = bytes.subarray(at, at + BLOCK);
    if (head.every((byte) => byte === 0)) break;
    const text = (from, length) => decoder.decode(head.subarray(from, from + length)).replace(/\0[^]*$/, "");
    const size = head[124] & 0x80 ? Number(head.subarray(128, 136).reduce((all, byte) => all * 256n + BigInt(byte), 0n)) : parseInt(text(124, 12).trim() || "0", 8);
    const data = bytes.slice(at + BLOCK, at + BLOCK + size);
    const kind = String.fromCharCode(head[156]);
    at += BLOCK + Math.ceil(size / BLOCK) * BLOCK;
    if (kind === "x") {
      long = /(?:^|\n)\d+ path=([^\n]*)\n/.exec(decoder.decode(data))?.[1] ?? long;
    } else if (kind === "L") {
      long = decoder.decode(data).replace(/\0[^]*$/, "");
    } else if (kind !== "g") {
      const prefix = text(257, 5) === "ustar" && head[263] === 0x30 ? text(345, 155) : "";
      const name = long ?? (prefix ? `${prefix}/${text(0, 100)}` : text(0, 100));
      if (kind === "0" || kind === "\0") files[name.replace(/^\.\//, "")] = data;
      long = undefined;
    }
  }
  return files;
}
