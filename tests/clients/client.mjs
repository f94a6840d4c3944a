// Runs the list of tests through the JavaScript client: `client.mjs LIST URL KEY SKILL.zip`.

import { readFileSync } from "node:fs";
import { APIError, Client } from "../../sdk/typescript/sandlite.js";

const [path, url, key, zip] = process.argv.slice(2);
const client = new Client(url, key);
const text = (bytes) => new TextDecoder().decode(bytes);
const texts = (files) => Object.fromEntries(Object.entries(files).map(([name, bytes]) => [name, text(bytes)]));
const camel = (name) => name.replace(/_(\w)/g, (_, letter) => letter.toUpperCase());
const split = ({ idempotency_key, ...rest }) => [rest, { idempotencyKey: idempotency_key }];

const steps = {
  create: (_, args) => client.createSandbox(...split(args)),
  get: (_, { id }) => client.getSandbox(id),
  list_sandboxes: (_, args) => client.listSandboxes(args),
  bash: (box, { command, ...options }) => box.bash(command, options),
  python: (box, { code, ...options }) => box.python(code, options),
  async stream_bash(box, { command }) {
    const out = { stdout: [], stderr: [] };
    let result;
    for await (const event of box.streamBash(command)) {
      if (event.kind === "result") result = event.result;
      else out[event.kind].push(...event.bytes);
    }
    const [stdout, stderr] = [Buffer.from(out.stdout), Buffer.from(out.stderr)];
    return { stdout: String(stdout), stderr: String(stderr), stdout_hex: stdout.toString("hex"), exit_code: result.exit_code };
  },
  async stream_first(box, { command }) {
    for await (const event of box.streamBash(command)) return event.text;
  },
  start_bash: (box, { command }) => box.startBash(command),
  job_wait: (job) => job.wait(),
  async job_cancel(job) {
    await job.cancel();
    await job.wait();
    return job;
  },
  jobs: (box) => box.jobs(),
  read: async (box, { path, ...how }) => text(await box.read(path, how)),
  read_range: async (box, { path, start, length }) => text(await box.readRange(path, start, length)),
  etag: (box, { path }) => box.etag(path),
  write: (box, { path, text, if_match, create }) => box.write(path, text, { ifMatch: if_match, create }),
  list: (box, { path }) => box.list(path),
  info: (box, { path }) => box.info(path),
  make_directory: (box, { path }) => box.makeDirectory(path),
  copy: (box, { from, to }) => box.copy(from, to),
  move: (box, { from, to }) => box.move(from, to),
  write_files: (box, { files }) => box.writeFiles(files),
  remove: (box, { path, recursive }) => box.remove(path, { recursive }),
  upload_tree: (box, { path, files }) => box.writeTree(path, files),
  download_tree: async (box, { path }) => texts(await box.readTree(path)),
  kv_get: async (box, { key }) => (await box.kvGet(key)) ?? null,
  kv_set: (box, { key, value }) => box.kvSet(key, value),
  kv_delete: (box, { key }) => box.kvDelete(key),
  kv_keys: (box, { prefix }) => box.kvKeys(prefix),
  checkpoint: (box, { name, message }) => box.checkpoint(name, message),
  diff: (box, { from, to }) => box.diff(from, to),
  undo: (box, { runs }) => box.undo(runs),
  restore: (box, { version }) => box.restore(version),
  fork: (box, args) => box.fork(args),
  export_import: async (box, { name }) => client.importSandbox(await (await box.export()).blob(), { name }),
  async events(box, { after }) {
    const found = [];
    for await (const { change } of box.events({ after, follow: false })) found.push(change);
    return found;
  },
  async follow_until(box, { after, command, path }) {
    let wasAsked = false;
    for await (const { change } of box.events({ after })) {
      if (!wasAsked) await box.bash(command);
      wasAsked = true;
      if (change.path === path) return change;
    }
  },
  run: (_, { skill, ...options }) => client.run(skill, options),
  start: (_, { skill, ...options }) => client.start(skill, options),
  register_skill: () => client.registerSkill(readFileSync(zip)),
  get_skill: (_, { name }) => client.getSkill(name),
  delete_skill: (_, { name, version }) => client.deleteSkill(name, version),
  download_files: async (_, { result }) => texts(await client.downloadFiles(result)),
  async execution_result(_, { id }) {
    for await (const event of client.executionEvents(id)) if (event.kind === "result") return event.result;
  },
  upload_file: (_, { name, text }) => client.uploadFile(name, text),
  update_file: (_, { id, name, text }) => client.updateFile(id, name, text),
  download_file: async (_, { id }) => text(await client.downloadFile(id)),
  create_key: (_, args) => client.createKey(args),
  whoami_with: (_, { key }) => new Client(url, key).whoami(),
};
// The others take an id, or one object, or nothing.
const other = (name) => (on, args) => (on ?? client)[camel(name)](...("id" in args ? [args.id] : [args]));

function resolve(value, saved) {
  if (typeof value === "string" && value.startsWith("$")) return value.slice(1).split(".").reduce((found, name) => found[name], saved);
  if (value !== null && typeof value === "object" && !Array.isArray(value)) return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, resolve(inner, saved)]));
  return value;
}

function difference(given, found, saved, place = "$") {
  const expected = typeof given === "string" ? resolve(given, saved) : given;
  const show = (value) => JSON.stringify(value);
  if (expected !== null && typeof expected === "object" && "$contains" in expected) {
    const wanted = expected.$contains;
    const has = typeof found === "string" ? found.includes(wanted) : found.some((item) => !difference(wanted, item, saved));
    return has ? undefined : `${place}: ${show(found)} does not contain ${show(wanted)}`;
  }
  if (expected !== null && typeof expected === "object" && "$above" in expected) return found > expected.$above ? undefined : `${place}: ${found} is not above ${expected.$above}`;
  if (Array.isArray(expected) && Array.isArray(found) && expected.length === found.length) {
    return expected.map((one, at) => difference(one, found[at], saved, `${place}[${at}]`)).find(Boolean);
  }
  if (expected !== null && typeof expected === "object" && !Array.isArray(expected) && found !== null && typeof found === "object") {
    return Object.entries(expected).map(([name, value]) => difference(value, found[name], saved, `${place}.${name}`)).find(Boolean);
  }
  return expected === found ? undefined : `${place}: expected ${show(expected)}, found ${show(found)}`;
}

let failures = 0;
for (const { test, steps: list } of JSON.parse(readFileSync(path, "utf-8"))) {
  const saved = {};
  let problem;
  for (const [number, step] of list.entries()) {
    if (step.only && !step.only.includes("javascript")) continue;
    let found;
    try {
      found = await (steps[step.do] ?? other(step.do))(saved[step.on], resolve(step.args ?? {}, saved));
      if (step.fails) problem = `did not fail, returned ${JSON.stringify(found)}`;
    } catch (error) {
      if (!(error instanceof APIError)) throw error;
      const isRight = step.fails && error.statusCode === step.fails.status && error.errorCode === (step.fails.code ?? error.errorCode);
      if (!isRight) problem = `failed: ${error.statusCode} ${error.errorCode} ${error.message}`;
    }
    if (step.as) saved[step.as] = found;
    if (!problem && "expect" in step) problem = difference(step.expect, found, saved);
    if (problem) {
      problem = `step ${number} (${step.do}): ${problem}`;
      break;
    }
  }
  console.log(problem ? `FAILED ${test}: ${problem}` : `passed ${test}`);
  if (problem) failures += 1;
}
process.exitCode = failures ? 1 : 0;
