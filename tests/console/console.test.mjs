// Clicks through the console in a headless Chromium: `console.test.mjs URL KEY SKILL.zip`.
// The variables CHROMIUM, PLAYWRIGHT_CORE (its index.mjs) and PROFILE (a new directory) name what it needs; SHOTS a directory for pictures.

import assert from "node:assert/strict";
import { readFileSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { deflateRawSync } from "node:zlib";
import { Client } from "../../sdk/typescript/sandlite.js";

const [url, key, zip] = process.argv.slice(2);
const { chromium } = await import(process.env.PLAYWRIGHT_CORE);
const flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run"];
const profile = process.env.PROFILE ?? mkdtempSync(join(tmpdir(), "console-"));
const HOSTILE = `"><img src=x onerror="window.hurt=1"><script>window.hurt=1</script><svg onload=window.hurt=1>`;
const SCHEME = "javascript:window.hurt=1";

// What a hostile tenant leaves: names, contents, outputs, keys, values and skills with markup.
const client = new Client(url, key);
const box = await client.createSandbox({ name: "weekly report", files: { "/home/user/main.py": "print('hello')\n", "/home/user/data/prices.csv": "day,price\nmon,3\n" } });
const evil = await client.createSandbox({ name: HOSTILE.replaceAll("/", "") });
await evil.write(`/home/user/${HOSTILE.replaceAll("/", "")}.html`, HOSTILE);
await evil.write("/home/user/page.svg", `<svg xmlns="http://www.w3.org/2000/svg" onload="window.hurt=1"><script>window.hurt=1</script></svg>`);
await evil.kvSet(HOSTILE, HOSTILE);
await evil.bash(`echo '${HOSTILE}' > /out # ${HOSTILE}`);
await evil.checkpoint("named", HOSTILE);
await client.registerSkill(readFileSync(zip));
const manifest = ["---", "name: hostile", "version: 1.0.0", `description: '${HOSTILE}'`, "lang: python", "input_schema:", "  type: object", "  required: [text]", "  properties:", `    text: {type: string, description: '${HOSTILE}', title: '${HOSTILE}'}`, "    count: {type: integer, default: 2}", "    kind: {enum: [one, two]}", "---", "", `# ${HOSTILE}`, "", `[link](${SCHEME}) \`${HOSTILE}\``, "", `- ${HOSTILE}`].join("\n");
const script = ["import json, os", "data = json.loads(os.environ['SANDBOX_INPUT'])", `print('''${HOSTILE}''')`, "json.dump({'got': data, 'html': '''" + HOSTILE + "'''}, open(os.environ['SANDBOX_OUTPUT'], 'w'))", "open(os.environ['SANDBOX_FILES_DIR'] + 'a<b>.txt', 'w').write('artifact')"].join("\n");
await client.registerSkill(zipped({ "SKILL.md": manifest, "main.py": script }));
// The name of a key.
await fetch(`${url}/v1/keys`, { method: "POST", headers: { Authorization: `Bearer ${key}`, "Content-Type": "application/json" }, body: JSON.stringify({ role: "consumer", name: HOSTILE }) });

const context = await chromium.launchPersistentContext(profile, { executablePath: process.env.CHROMIUM, headless: true, args: flags, acceptDownloads: true, viewport: { width: 1280, height: 860 } });
const complaints = [];
const foreign = [];
const page = await context.newPage();
page.on("pageerror", (error) => complaints.push(String(error)));
// What is refused on purpose (a wrong key, a file that has changed) is in the browser's own log, too.
page.on("console", (message) => message.type() === "error" && !/status of (401|412)/.test(message.text()) && complaints.push(message.text()));
page.on("request", (request) => !request.url().startsWith(url) && !/^(data|blob):/.test(request.url()) && foreign.push(request.url()));
// A machine that builds at the same time is slow.
page.setDefaultTimeout(60_000);

const tests = [];
const test = (name, work) => tests.push([name, work]);
const tab = (name) => page.getByRole("navigation", { name: "Sandbox" }).getByRole("link", { name }).click();
const nav = (name) => page.getByRole("navigation", { name: "Main" }).getByRole("link", { name }).click();
const button = (name) => page.getByRole("button", { name, exact: true });
const dialog = () => page.getByRole("dialog");
const asked = (label) => dialog().getByLabel(label, { exact: true });
const openBox = async (name) => {
  await nav("Sandboxes");
  await page.getByRole("link", { name, exact: true }).click();
  await page.getByRole("list", { name: "Files" }).waitFor();
};
const shot = async (name) => process.env.SHOTS && page.screenshot({ path: join(process.env.SHOTS, `${name}.png`) });

test("the page has a strict policy and is cached by its etag", async () => {
  for (const path of ["/", "/console/console.js", "/console/console.css"]) {
    const answer = await fetch(url + path);
    assert.equal(answer.status, 200, path);
    assert.equal(answer.headers.get("content-security-policy"), "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
    assert.equal(answer.headers.get("x-content-type-options"), "nosniff");
    assert.equal((await fetch(url + path, { headers: { "If-None-Match": answer.headers.get("etag") } })).status, 304, path);
  }
  assert.equal((await fetch(`${url}/console/..%2f..%2fserve.rs`)).status, 404);
});

test("a wrong key is refused and the right one signs in", async () => {
  await page.goto(url);
  await page.getByLabel("API key").fill("sk-wrong");
  await page.keyboard.press("Enter");
  await page.getByRole("alert").filter({ hasText: "does not know this key" }).waitFor();
  await shot("sign-in");
  await page.getByLabel("API key").fill(key);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Sandboxes" }).waitFor();
  assert.equal(await page.evaluate(() => sessionStorage.length), 1);
  assert.equal(await page.evaluate(() => localStorage.length + document.cookie.length), 0);
  await shot("sandboxes");
});

test("a sandbox is created, forked and deleted", async () => {
  await button("New sandbox").click();
  await asked("Name").fill("made here");
  await dialog().getByRole("button", { name: "Create" }).click();
  await page.getByRole("heading", { name: "made here" }).waitFor();
  await button("Fork").click();
  await asked("Name").fill("forked");
  await dialog().getByRole("button", { name: "Fork" }).click();
  await page.getByRole("heading", { name: "forked" }).waitFor();
  await button("Delete").click();
  await dialog().getByRole("button", { name: "Delete" }).click();
  await page.getByRole("link", { name: "made here" }).waitFor();
  assert.equal(await page.getByRole("link", { name: "forked", exact: true }).count(), 0);
});

test("a file is edited, and not over another's change", async () => {
  await openBox("weekly report");
  await page.getByRole("button", { name: "main.py" }).click();
  const editor = page.getByLabel("Content of /home/user/main.py");
  await editor.fill("print('edited')\n");
  await editor.press("Control+s");
  await page.getByText("saved", { exact: true }).waitFor();
  assert.equal(await box.readText("/home/user/main.py"), "print('edited')\n");
  await shot("files");
  await box.write("/home/user/main.py", "theirs\n");
  await editor.fill("mine\n");
  await button("Save").click();
  await page.getByText("Somebody else changed this file meanwhile.").waitFor();
  assert.equal(await box.readText("/home/user/main.py"), "theirs\n");
  await button("Load theirs").click();
  await page.waitForFunction(() => document.querySelector("textarea.editor")?.value === "theirs\n");
  await button("New file").click();
  await asked("Name").fill("note.txt");
  await dialog().getByRole("button", { name: "Create" }).click();
  await page.getByLabel("Content of /home/user/note.txt").waitFor();
});

test("the terminal streams, remembers commands and stops them", async () => {
  await openBox("weekly report");
  await tab("Terminal");
  const input = page.getByLabel("Command");
  await input.fill("cd /home/user/data; for i in 1 2 3; do echo line $i; done; echo bad >&2");
  await input.press("Enter");
  await page.getByText("exit code 0").waitFor();
  assert.match(await page.locator(".screen .stdout").innerText(), /line 1\nline 2\nline 3/);
  assert.equal(await page.locator(".screen .stderr").innerText(), "bad\n");
  await input.fill("pwd");
  await input.press("Enter");
  await page.locator(".screen .stdout", { hasText: "/home/user/data" }).waitFor();
  await page.getByText("exit code 0").nth(1).waitFor();
  await input.press("ArrowUp");
  assert.equal(await input.inputValue(), "pwd");
  await input.press("ArrowUp");
  assert.match(await input.inputValue(), /^cd \/home\/user\/data/);
  await input.fill("echo going; while true; do sleep 0.05; done");
  await input.press("Enter");
  await page.locator(".screen .stdout", { hasText: "going" }).waitFor();
  await input.press("Control+c");
  await page.getByText("stopped after").waitFor();
  await page.getByLabel("Language").selectOption("python");
  await input.fill("6 * 7");
  await input.press("Enter");
  await page.locator(".screen .stdout", { hasText: "42" }).waitFor();
  await shot("terminal");
});

test("the timeline shows what others do as they do it", async () => {
  await openBox("weekly report");
  await tab("Timeline");
  await page.getByText("live", { exact: true }).waitFor();
  await box.bash("echo new > /home/user/data/live.txt");
  await page.getByText("/home/user/data/live.txt").first().waitFor();
  await page.getByRole("button", { name: /^Differences of version/ }).first().click();
  await page.locator(".patch .added", { hasText: "+new" }).waitFor();
  await shot("timeline");
});

test("the slider goes through the versions, and one is restored", async () => {
  await box.bash("echo second > /home/user/data/live.txt");
  await openBox("weekly report");
  await tab("Versions");
  await page.locator(".patch .added", { hasText: "+second" }).waitFor();
  await shot("versions");
  await page.getByRole("slider", { name: "Version" }).press("ArrowLeft");
  await page.getByRole("heading", { name: "echo new > /home/user/data/live.txt" }).waitFor();
  await page.getByLabel("Show").selectOption("now");
  await page.locator(".patch .removed", { hasText: "-new" }).waitFor();
  await page.getByLabel("Show").selectOption("files");
  await page.getByRole("button", { name: "data/" }).click();
  await page.getByRole("button", { name: "live.txt" }).click();
  await page.locator("pre.patch", { hasText: "new" }).waitFor();
  await button("Restore").click();
  await dialog().getByRole("button", { name: "Restore" }).click();
  await page.getByText("Restored version").waitFor();
  assert.equal(await box.readText("/home/user/data/live.txt"), "new\n");
  await button("Undo").click();
  await dialog().getByRole("button", { name: "Undo" }).click();
  await page.getByText("Undone.").waitFor();
  assert.equal(await box.readText("/home/user/data/live.txt"), "second\n");
});

test("values are written and deleted", async () => {
  await openBox("weekly report");
  await tab("Values");
  await button("New").click();
  await asked("Key").fill("plan");
  await dialog().getByRole("button", { name: "Create" }).click();
  await page.getByLabel("Value of plan").fill('{"steps": [');
  await button("Save").click();
  await page.getByText("Invalid JSON").waitFor();
  await page.getByLabel("Value of plan").fill('{"steps": [1]}');
  await button("Save").click();
  await page.getByText("Saved.").waitFor();
  assert.deepEqual(await box.kvGet("plan"), { steps: [1] });
});

test("a skill runs from a form, with logs and artifacts", async () => {
  await nav("Skills");
  await page.getByRole("link", { name: "hostile" }).click();
  await page.locator("form textarea").first().fill("words");
  await page.locator("input[name=count]").fill("3");
  await page.getByRole("form", { name: "Run" }).getByRole("button", { name: "Run" }).click();
  await page.getByRole("heading", { name: "Artifacts" }).waitFor();
  assert.match(await page.locator("pre[aria-label=Output]").innerText(), /"count": 3,\s+"text": "words"/);
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Download a<b>.txt" }).click()]);
  assert.equal(readFileSync(await download.path(), "utf-8"), "artifact");
  await shot("skill");
  await nav("Runs");
  await page.getByRole("img", { name: /Times of 1 runs/ }).waitFor();
  await page.getByRole("link", { name: "hostile" }).click();
  await page.getByRole("heading", { name: "Logs" }).waitFor();
  await shot("run");
});

test("an admin makes and revokes keys", async () => {
  await nav("Account");
  await page.getByRole("img", { name: /Storage/ }).waitFor();
  await page.getByRole("img", { name: /Fuel of 24 hours: [1-9]/ }).waitFor();
  assert.equal(await page.locator(".chart rect").count(), 24);
  await page.getByText("Requests per second").waitFor();
  await button("New key").click();
  await asked("Name").fill("guest");
  await dialog().getByRole("button", { name: "Create" }).click();
  const made = asked("Key");
  await made.waitFor();
  const text = await made.inputValue();
  assert.equal((await new Client(url, text).whoami()).role, "consumer");
  await dialog().getByRole("button", { name: "Copy and close" }).click();
  await page.getByRole("button", { name: "Revoke guest" }).click();
  await dialog().getByRole("button", { name: "Revoke" }).click();
  await page.getByText("Revoked.").waitFor();
  await assert.rejects(new Client(url, text).whoami(), { statusCode: 401 });
  await shot("account");
});

test("markup in names, contents, outputs and skills stays text", async () => {
  await nav("Sandboxes");
  const name = HOSTILE.replaceAll("/", "");
  await openBox(name);
  await page.getByRole("button", { name: `${name}.html` }).click();
  await page.locator("textarea.editor").waitFor();
  assert.equal(await page.locator("textarea.editor").inputValue(), HOSTILE);
  await page.getByRole("button", { name: "page.svg" }).click();
  await page.locator(".empty img").waitFor();
  await tab("Terminal");
  await page.getByLabel("Command").fill("cat /out");
  await page.getByLabel("Command").press("Enter");
  await page.locator(".screen .stdout", { hasText: "<script>" }).waitFor();
  await tab("Timeline");
  await page.getByText("/out").first().waitFor();
  await tab("Versions");
  // The last run changed no file.
  await page.getByText("No text differs.").waitFor();
  await page.getByRole("button", { name: "Older version" }).click();
  await page.locator(".patch .added", { hasText: "<script>" }).waitFor();
  await tab("Values");
  await page.getByRole("button", { name: HOSTILE }).click();
  await page.locator("textarea.editor").waitFor();
  await nav("Skills");
  await page.getByRole("link", { name: "hostile" }).click();
  await page.getByRole("region", { name: "Instructions" }).waitFor();
  assert.equal(await page.locator("main script, main svg[onload], main img[onerror], a[href^=javascript]").count(), 0);
  await nav("Runs");
  await page.getByRole("link", { name: "hostile" }).first().click();
  await page.getByRole("heading", { name: "Logs" }).waitFor();
  assert.equal(await page.locator("main script, main svg[onload], main img[onerror], a[href^=javascript]").count(), 0);
  // A path in the audit log.
  await fetch(`${url}/v1/files/${encodeURIComponent(HOSTILE)}`, { method: "DELETE", headers: { Authorization: `Bearer ${key}` } });
  await nav("Account");
  await page.getByRole("button", { name: `Revoke ${HOSTILE}` }).waitFor();
  await page.getByText(/DELETE .*\/files\/.*onerror/).first().waitFor();
  assert.equal(await page.locator("main script, main svg[onload], main img[onerror], a[href^=javascript]").count(), 0);
  assert.equal(await page.evaluate(() => window.hurt), undefined);
});

test("the keyboard reaches everything, and every control has a name", async () => {
  await page.goto(`${url}/#/sandboxes`);
  await page.reload();
  await page.getByRole("heading", { name: "Sandboxes" }).waitFor();
  await page.evaluate(() => document.activeElement.blur());
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Skip to content");
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => document.activeElement.id), "main");
  for (const place of ["", "/files", "/terminal", "/timeline", "/versions", "/values"]) {
    await page.goto(`${url}/#/sandboxes/${box.id}${place}`);
    await page.locator(".tabs").waitFor();
    const nameless = await page.evaluate(() => [...document.querySelectorAll("button, input:not([hidden]), select, textarea, a")].filter((control) => !(control.textContent.trim() || control.getAttribute("aria-label") || control.labels?.length > 0)).map((control) => control.outerHTML.slice(0, 80)));
    assert.deepEqual(nameless, [], place);
  }
});

test("it fits a phone and the dark", async () => {
  await page.setViewportSize({ width: 390, height: 844 });
  await page.emulateMedia({ colorScheme: "dark" });
  const places = [
    ["sandboxes", "table"],
    [`sandboxes/${box.id}/files`, ".list li[data-path]"],
    [`sandboxes/${box.id}/terminal`, ".prompt textarea"],
    [`sandboxes/${box.id}/timeline`, ".timeline li li"],
    [`sandboxes/${box.id}/versions`, ".card .empty, .patch"],
    [`sandboxes/${box.id}/values`, ".list button"],
    ["skills", "table"],
    ["skills/hostile/latest", "form textarea"],
    ["runs", ".chart"],
    ["account", ".meter"],
  ];
  for (const [place, content] of places) {
    await page.goto(`${url}/#/${place}`);
    await page.locator(content).first().waitFor();
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(wide <= 0, `${place} is ${wide} pixels too wide`);
    const small = await page.evaluate(() => [...document.querySelectorAll("main svg text")].map((text) => text.getBoundingClientRect().height).filter((height) => height < 8));
    assert.deepEqual(small, [], `${place} has texts that are too small`);
    await shot(`phone-dark-${place.replaceAll("/", "-").replace(box.id, "box")}`);
  }
  const [back, ink] = await page.evaluate(() => [getComputedStyle(document.documentElement).backgroundColor, getComputedStyle(document.documentElement).color]);
  const light = (colour) => colour.match(/\d+/g).slice(0, 3).reduce((sum, part) => sum + Number(part), 0);
  assert.ok(light(back) < 150 && light(ink) > 500, `${back} ${ink}`);
});

test("signing out forgets the key", async () => {
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByLabel("API key").waitFor();
  assert.equal(await page.evaluate(() => sessionStorage.length), 0);
});

test("nothing complained and nothing was asked of other machines", async () => {
  assert.deepEqual(complaints, []);
  assert.deepEqual(foreign, []);
});

let failed = 0;
for (const [name, work] of tests) {
  try {
    await work();
    console.log(`passed ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`FAILED ${name}: ${error.stack}`);
    if (process.env.SHOTS) await page.screenshot({ path: join(process.env.SHOTS, `failed-${failed}.png`) });
    await page.reload().catch(() => {});
  }
}
await context.close();
console.log(failed === 0 ? "all passed" : `${failed} failed`);
process.exit(failed === 0 ? 0 : 1);

// A zip file of some texts.
function zipped(files) {
  const [parts, directory] = [[], []];
  let at = 0;
  for (const [name, text] of Object.entries(files)) {
    const [raw, title] = [Buffer.from(text), Buffer.from(name)];
    const packed = deflateRawSync(raw);
    const head = Buffer.alloc(26);
    head.writeUInt16LE(20, 0);
    head.writeUInt16LE(8, 4);
    head.writeUInt32LE(crc(raw), 10);
    head.writeUInt32LE(packed.length, 14);
    head.writeUInt32LE(raw.length, 18);
    head.writeUInt16LE(title.length, 22);
    const rest = Buffer.alloc(14);
    rest.writeUInt32LE(at, 10);
    const local = Buffer.concat([Buffer.from("PK\x03\x04"), head, title, packed]);
    directory.push(Buffer.concat([Buffer.from("PK\x01\x02\x14\x00"), head, rest, title]));
    parts.push(local);
    at += local.length;
  }
  const index = Buffer.concat(directory);
  const end = Buffer.alloc(18);
  end.writeUInt16LE(directory.length, 4);
  end.writeUInt16LE(directory.length, 6);
  end.writeUInt32LE(index.length, 8);
  end.writeUInt32LE(at, 12);
  return Buffer.concat([...parts, index, Buffer.from("PK\x05\x06"), end]);
}

function crc(bytes) {
  let value = ~0;
  for (const byte of bytes) {
    value ^= byte;
    for (let bit = 0; bit < 8; bit++) value = (value >>> 1) ^ (value & 1 ? 0xedb88320 : 0);
  }
  return ~value >>> 0;
}
