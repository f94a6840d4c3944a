/** Client of a Sandlite server. `sandlite.js` has the examples. */

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
export type Content = string | Uint8Array | ArrayBuffer | Blob;

/** The last argument of every method: aborting a command kills it. */
export interface How {
  signal?: AbortSignal;
}

/** How a request is repeated without being done twice. */
export interface HowOnce extends How {
  idempotencyKey?: string;
}

export interface ClientOptions {
  tenantId?: string;
  /** Seconds until a request that is not a stream is given up; defaults to 660. */
  timeout?: number;
  /** How often a request is repeated that the server had no room for (429 with `Retry-After`); defaults to 2. */
  retries?: number;
  fetch?: typeof fetch;
}

/** A request that the server refused, or could not be reached for (`statusCode` 0). */
export class APIError extends Error {
  constructor(statusCode: number, errorCode?: string, message?: string, details?: Json);
  statusCode: number;
  errorCode: string;
  details?: Json;
}

export interface Page<T> {
  items: T[];
  next_cursor: string | null;
}

export interface RunOptions {
  cwd?: string;
  env?: Record<string, string>;
  stdin?: string;
  timeout_ms?: number;
  rollback_on_failure?: boolean;
  session?: string;
  seed?: number;
  record?: boolean;
}

export interface Usage {
  fuel: number;
  wall_us: number;
  memory_peak: number;
  output: number;
  commands: number;
  processes: number;
  bytes_read: number;
  bytes_written: number;
}

/** How a command went. */
export interface Result {
  ok: boolean;
  status: "exited" | "signaled" | "limit";
  exit_code: number;
  stdout: string;
  stderr: string;
  truncated: boolean;
  limit: { name: string; value: string; used: string; hint: string; message: string; rolled_back: boolean } | null;
  cancelled: boolean;
  duration_ms: number;
  usage: Usage;
  run: number;
  restarted: boolean;
  notes: string[];
  value: Json;
  text: string | null;
  images: { mime: string; data: string }[];
}

export type OutputEvent =
  | { kind: "stdout" | "stderr"; bytes: Uint8Array; text: string }
  | { kind: "result"; result: Result; text: "" };

export interface Change {
  version: number;
  run: number | null;
  time: number;
  path: string;
  kind: "created" | "modified" | "attributes" | "deleted" | "renamed" | "lost";
  from: string | null;
  type: string | null;
  size: number;
  hash: string | null;
}

export interface ChangeEvent {
  kind: "change";
  change: Change;
  id: string;
  text: "";
}

export interface Entry {
  path: string;
  kind: string;
  size: number;
  target?: string;
}

export interface FileInfo {
  path: string;
  type: "file" | "directory" | "symlink" | "fifo" | "device";
  size: number;
  mode: string;
  modified: number;
  target: string | null;
}

export interface HistoryRow {
  run: number;
  name: string;
  command: string;
  status: "success" | "error" | "pending" | "interrupted";
  exit_code: number | null;
  limit: string | null;
  error: string | null;
  started_ms: number;
  duration_ms: number | null;
  changes: Json[];
  output_pruned: boolean;
  stdout: string | null;
  stderr: string | null;
}

export interface VersionRow {
  version: number;
  run: number | null;
  made_by: "run" | "setup" | "base" | "outside";
  command: string;
  exit_code: number | null;
  time_ms: number;
  changed: string[];
  changes: number;
  checkpoints: string[];
  digest: string | null;
}

export interface Differences {
  files: { path: string; kind: string; is_directory: boolean; old_size: number; new_size: number }[];
  total: number;
  values?: { value: "key" | "session"; name: string; kind: "added" | "modified" | "deleted" }[];
  values_unknown?: boolean;
  patch: string;
  truncated: boolean;
}

export interface Checkpoint {
  name: string;
  version: number;
  message: string | null;
  time_ms: number;
}

/** A command that runs in the background. */
export class Job {
  private constructor();
  readonly id: string;
  readonly action: string;
  readonly status: "running" | "done" | "failed" | "cancelled";
  readonly result: Result | null;
  readonly error: Json;
  refresh(how?: How): Promise<this>;
  wait(how?: How & { interval?: number }): Promise<Result | null>;
  cancel(how?: How): Promise<void>;
}

/** A sandbox on the server. */
export class Sandbox {
  private constructor();
  readonly id: string;
  readonly name: string | null;
  readonly preset: string;
  readonly created_at: string;
  readonly used_at: string;
  readonly expires_at: string | null;
  readonly bytes: number;
  refresh(how?: How): Promise<this>;
  update(fields: { name?: string; ttl_seconds?: number | null }, how?: How): Promise<this>;
  delete(how?: How): Promise<void>;
  fork(options?: { name?: string; at?: string | number; ttl_seconds?: number }, how?: How): Promise<Sandbox>;
  export(how?: How & { history?: boolean }): Promise<Response>;
  action(name: string, args?: Record<string, unknown>, how?: HowOnce): Promise<any>;

  bash(command: string, options?: RunOptions, how?: HowOnce): Promise<Result>;
  python(code: string, options?: RunOptions & { echo?: boolean }, how?: HowOnce): Promise<Result>;
  streamBash(command: string, options?: RunOptions, how?: How): AsyncGenerator<OutputEvent>;
  streamPython(code: string, options?: RunOptions & { echo?: boolean }, how?: How): AsyncGenerator<OutputEvent>;
  startBash(command: string, options?: RunOptions, how?: How): Promise<Job>;
  startPython(code: string, options?: RunOptions & { echo?: boolean }, how?: How): Promise<Job>;
  jobs(how?: How & { limit?: number; cursor?: string }): Promise<Page<Job>>;
  job(id: string, how?: How): Promise<Job>;

  read(path: string, how?: How & { at?: string | number }): Promise<Uint8Array>;
  readText(path: string, how?: How & { at?: string | number }): Promise<string>;
  readWithEtag(path: string, how?: How & { at?: string | number }): Promise<{ bytes: Uint8Array; etag: string }>;
  readRange(path: string, start: number, length: number, how?: How): Promise<Uint8Array>;
  etag(path: string, how?: How): Promise<string>;
  write(path: string, data: Content, how?: How & { ifMatch?: string; create?: boolean }): Promise<string>;
  remove(path: string, how?: How & { recursive?: boolean; ifMatch?: string }): Promise<void>;
  list(path?: string, how?: How & { depth?: number; hidden?: boolean; at?: string | number }): Promise<Entry[]>;
  info(path: string, how?: How): Promise<FileInfo>;
  makeDirectory(path: string, how?: How): Promise<void>;
  move(from: string, to: string, how?: How & { overwrite?: boolean }): Promise<void>;
  copy(from: string, to: string, how?: How & { recursive?: boolean }): Promise<void>;
  writeFiles(files: Record<string, Content>, how?: How): Promise<void>;
  readTree(path: string, how?: How): Promise<Record<string, Uint8Array>>;
  writeTree(path: string, files: Record<string, Content>, how?: How): Promise<void>;

  kvGet(key: string, how?: How): Promise<Json | undefined>;
  kvSet(key: string, value: Json, how?: How): Promise<void>;
  kvDelete(key: string, how?: How): Promise<boolean>;
  kvKeys(prefix?: string, how?: How): Promise<string[]>;

  history(which?: { limit?: number; before?: number; name?: string; grep?: string; run?: number; output_offset?: number }, how?: How): Promise<HistoryRow[]>;
  log(which?: { path?: string; limit?: number; before?: number; digest?: boolean }, how?: How): Promise<VersionRow[]>;
  diff(from: string | number, to?: string | number | null, how?: How & { paths?: string[] }): Promise<Differences>;
  undo(runs?: number, how?: How & { dryRun?: boolean }): Promise<Differences>;
  restore(version: string | number, how?: How & { paths?: string[]; dryRun?: boolean }): Promise<Differences>;
  checkpoint(name: string, message?: string, how?: How): Promise<Checkpoint>;
  checkpoints(how?: How): Promise<Checkpoint[]>;
  events(how?: How & { after?: number; follow?: boolean }): AsyncGenerator<ChangeEvent>;
}

/** How the run of a skill went. */
export interface RunResult {
  execution_id: string;
  status: "running" | "success" | "failed" | "timeout" | "cancelled";
  output?: Json;
  files_url?: string;
  files_list?: string[];
  logs?: string;
  duration_ms: number;
  error: string | null;
}

export interface Execution extends RunResult {
  skill_name: string;
  skill_version: string;
  tenant_id: string;
  input?: Json;
  created_at: string;
  finished_at?: string | null;
}

export interface Skill {
  name: string;
  version: string;
  description: string;
  lang: string;
  mode: string;
  status?: string;
  instructions?: string;
  image?: string;
  timeout?: string;
  resources?: Record<string, string>;
  input_schema?: Json;
}

export interface StoredFile {
  id: string;
  tenant_id: string;
  session_id: string | null;
  execution_id: string | null;
  name: string;
  content_type: string;
  size_bytes: number;
  version: number;
  parent_id: string | null;
  created_at: string;
  updated_at: string;
}

export interface SkillRunOptions {
  version?: string;
  input?: Json;
  env?: Record<string, string>;
  input_files?: string[];
  session_id?: string;
}

/** Speaks to a server. */
export class Client {
  constructor(baseUrl: string, apiKey?: string, options?: ClientOptions);
  health(how?: How): Promise<void>;
  whoami(how?: How): Promise<{ tenant: string; role: string; key: string; view: string | null }>;
  usage(how?: How): Promise<{ sandboxes: number; bytes: number; fuel_this_hour: number; runs_this_hour: number; hours: { at: string; fuel: number; runs: number }[]; limits: Record<string, number> }>;
  listKeys(how?: How): Promise<any[]>;
  createKey(fields: { role: "admin" | "publisher" | "consumer"; name?: string; view?: string; expires?: string }, how?: How): Promise<{ id: string; key: string }>;
  revokeKey(id: string, how?: How): Promise<void>;
  listAudit(how?: How & { before?: number; limit?: number }): Promise<any[]>;

  createSandbox(
    options?: {
      name?: string;
      preset?: "strict" | "normal" | "permissive";
      files?: Record<string, Content>;
      base?: string;
      snapshot?: string;
      policy?: string;
      ttl_seconds?: number;
    },
    how?: HowOnce,
  ): Promise<Sandbox>;
  getSandbox(id: string, how?: How): Promise<Sandbox>;
  listSandboxes(how?: How & { limit?: number; cursor?: string; name?: string }): Promise<Page<Sandbox>>;
  deleteSandbox(id: string, how?: How): Promise<void>;
  importSandbox(database: Content, how?: How & { name?: string }): Promise<Sandbox>;

  run(skill: string, options?: SkillRunOptions, how?: HowOnce): Promise<RunResult>;
  start(skill: string, options?: SkillRunOptions, how?: How): Promise<string>;
  getExecution(id: string, how?: How): Promise<Execution>;
  listExecutions(how?: How & { limit?: number; cursor?: string; skill?: string; status?: string }): Promise<Page<Execution>>;
  cancelExecution(id: string, how?: How): Promise<void>;
  executionEvents(id: string, how?: How): AsyncGenerator<{ kind: "log"; text: string } | { kind: "result"; result: RunResult; text: "" }>;
  getExecutionLogs(id: string, how?: How): Promise<string>;
  registerSkill(zip: Content, how?: How): Promise<Skill>;
  listSkills(how?: How): Promise<Skill[]>;
  getSkill(name: string, version?: string, how?: How): Promise<Skill>;
  deleteSkill(name: string, version: string, how?: How): Promise<void>;
  downloadFiles(result: RunResult, how?: How): Promise<Record<string, Uint8Array>>;

  uploadFile(name: string, data: Content, how?: How): Promise<StoredFile>;
  listFiles(how?: How & { session_id?: string; execution_id?: string; limit?: number; offset?: number }): Promise<StoredFile[]>;
  getFile(id: string, how?: How): Promise<StoredFile>;
  downloadFile(id: string, how?: How): Promise<Uint8Array>;
  updateFile(id: string, name: string, data: Content, how?: How): Promise<StoredFile>;
  deleteFile(id: string, how?: How): Promise<void>;
  listFileVersions(id: string, how?: How): Promise<StoredFile[]>;
}
