// One sandbox: its tabs, and its keys and values.

import { h, fill, head, field, ask, bytes, doing, note, reason } from "./dom.js";
import { titleOf, forkOne, exportOne } from "./sandboxes.js";
import { files } from "./files.js";
import { terminal } from "./terminal.js";
import { timeline, versions } from "./versions.js";

const TABS = { files: ["Files", files], terminal: ["Terminal", terminal], timeline: ["Timeline", timeline], versions: ["Versions", versions], values: ["Values", values] };

export async function page({ root, client, signal, words: [id, tab = "files"] }) {
  const box = await client.getSandbox(id, { signal });
  document.title = `${titleOf(box)} · Sandlite`;
  const base = `#/sandboxes/${encodeURIComponent(id)}`;
  const place = h("div");
  const remove = doing(async () => {
    if (!(await ask(`Delete ${titleOf(box)}?`, { text: "Its files and its history are deleted. This cannot be undone.", confirm: "Delete", isDanger: true }))) return;
    await box.delete();
    location.hash = "#/sandboxes";
  });
  const rename = doing(async () => {
    const name = h("input", { type: "text", value: box.name ?? "", required: true, autocomplete: "off" });
    const answers = await ask("Rename", { fields: [["name", "Name", name]], confirm: "Rename" });
    if (!answers) return;
    await box.update({ name: answers.name });
    root.querySelector("h1").textContent = titleOf(box);
  });
  fill(root,
    head(titleOf(box), {
      above: h("a", { href: "#/sandboxes" }, "Sandboxes"),
      below: [box.preset, bytes(box.bytes), box.expires_at && `expires ${new Date(box.expires_at).toLocaleString()}`].filter(Boolean).join(" · "),
      actions: [
        h("button", { type: "button", onclick: rename }, "Rename"),
        h("button", { type: "button", onclick: doing(() => exportOne(box)) }, "Export"),
        h("button", { type: "button", onclick: doing(() => forkOne(box)) }, "Fork"),
        h("button", { type: "button", class: "danger", onclick: remove }, "Delete"),
      ],
    }),
    h("nav", { class: "tabs", "aria-label": "Sandbox" }, Object.entries(TABS).map(([name, [title]]) => h("a", { href: `${base}/${name}`, "aria-current": name === tab ? "page" : undefined }, title))),
    place);
  root.querySelector(".tabs [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
  await (TABS[tab] ?? TABS.files)[1]({ root: place, box, signal });
}

async function values({ root, box, signal }) {
  const list = h("ul", { class: "list" });
  const right = h("div", { class: "card" });
  const prefix = h("input", { type: "search", placeholder: "Prefix", "aria-label": "Prefix of keys", autocomplete: "off" });
  let chosen;
  const load = async () => {
    const keys = await box.kvKeys(prefix.value, { signal });
    fill(list, keys.length === 0 ? h("li", { class: "quiet" }, h("span", {}, "No keys.")) : keys.slice(0, 1000).map((key) => h("li", { "aria-current": key === chosen ? "true" : undefined }, h("button", { type: "button", class: "mono", onclick: doing(() => open(key)) }, h("span", {}, key)))));
  };
  const open = async (key, isNew = false) => {
    chosen = key;
    const value = isNew ? {} : await box.kvGet(key, { signal });
    const text = h("textarea", { class: "mono editor", spellcheck: "false", "aria-label": `Value of ${key}`, value: JSON.stringify(value ?? null, null, 2) });
    const problem = h("span", { class: "bad small", role: "alert" });
    const store = doing(async () => {
      let parsed;
      try {
        parsed = JSON.parse(text.value);
      } catch (error) {
        problem.textContent = `Invalid JSON: ${reason(error)}`;
        return;
      }
      problem.textContent = "";
      await box.kvSet(key, parsed);
      note("Saved.");
      await load();
    });
    const remove = doing(async () => {
      if (!(await ask(`Delete the key ${key}?`, { confirm: "Delete", isDanger: true }))) return;
      await box.kvDelete(key);
      chosen = undefined;
      empty();
      await load();
    });
    fill(right, h("div", { class: "bar" }, h("strong", { class: "mono grow path" }, key), problem, !isNew && h("button", { type: "button", class: "plain danger", onclick: remove }, "Delete"), h("button", { type: "button", class: "primary", onclick: store }, "Save")), text);
    await load();
    text.focus();
  };
  const empty = () => fill(right, h("p", { class: "empty" }, "Choose a key to see its JSON value."));
  const create = doing(async () => {
    const answers = await ask("New key", { fields: [["key", "Key", h("input", { type: "text", class: "mono", required: true, autocomplete: "off" })]], confirm: "Create" });
    if (answers) await open(answers.key, true);
  });
  prefix.addEventListener("input", doing(load));
  empty();
  await load();
  fill(root, h("div", { class: "split" }, h("div", { class: "card" }, h("div", { class: "bar" }, h("div", { class: "grow" }, prefix), h("button", { type: "button", onclick: create }, "New")), list), right));
}
