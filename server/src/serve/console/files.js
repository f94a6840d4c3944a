// The file browser and its editor. A file is saved only if nobody else changed it meanwhile.

import { h, fill, ask, bytes, doing, note, reason, save } from "./dom.js";

const MOST_TEXT = 1 << 20;
const PICTURES = { png: "png", jpg: "jpeg", jpeg: "jpeg", gif: "gif", webp: "webp", svg: "svg+xml" };

export const nameOf = (path) => path.split("/").filter(Boolean).at(-1) ?? "/";
export const parentOf = (path) => path.replace(/\/+[^/]*\/*$/, "") || "/";
const join = (directory, name) => `${directory.replace(/\/+$/, "")}/${name}`;

/** A list of a directory: those below first, then files. */
export function entries(listed, open) {
  const sorted = [...listed].sort((a, b) => (b.kind === "directory") - (a.kind === "directory") || (a.path < b.path ? -1 : 1));
  return sorted.map((entry) => {
    const isDirectory = entry.kind === "directory";
    const size = isDirectory ? "" : entry.kind === "symlink" ? `→ ${entry.target ?? ""}` : bytes(entry.size);
    return h("li", { "data-path": entry.path }, h("button", { type: "button", onclick: doing(() => open(entry)) }, h("span", {}, nameOf(entry.path) + (isDirectory ? "/" : "")), h("span", { class: "size" }, size)));
  });
}

/** A file's content as something to look at. */
export function content(path, data) {
  const kind = PICTURES[path.split(".").at(-1).toLowerCase()];
  if (kind && data.length < 4 << 20) {
    let text = "";
    for (let at = 0; at < data.length; at += 0x8000) text += String.fromCharCode(...data.subarray(at, at + 0x8000));
    return { picture: h("img", { src: `data:image/${kind};base64,${btoa(text)}`, alt: nameOf(path) }) };
  }
  if (data.length > MOST_TEXT) return {};
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(data);
    return text.includes("\u0000") ? {} : { text };
  } catch {
    return {};
  }
}

export async function files({ root, box, signal }) {
  const list = h("ul", { class: "list", "aria-label": "Files" });
  const place = h("span", { class: "mono path grow" });
  const up = h("button", { type: "button", class: "plain", "aria-label": "Up", onclick: doing(() => go(parentOf(directory))) }, "↑");
  const right = h("div", { class: "card" });
  let [directory, opened, isDirty] = ["/", null, false];

  const leave = async () => !isDirty || Boolean(await ask("Leave without saving?", { text: `${opened} has changes that are not saved.`, confirm: "Leave", isDanger: true }));
  addEventListener("beforeunload", (event) => isDirty && event.preventDefault(), { signal });

  const go = async (path) => {
    const arguments_ = { depth: 1, hidden: true, ...(path === undefined ? {} : { path }) };
    const found = await box.action("list_files", arguments_, { signal });
    directory = found.path;
    place.textContent = directory;
    up.disabled = directory === "/";
    const rows = entries(found.entries, (entry) => (entry.kind === "directory" ? go(entry.path) : open(entry.path)));
    fill(list, rows.length === 0 ? h("li", { class: "quiet" }, h("span", {}, "Nothing here yet.")) : rows, found.truncated && h("li", { class: "quiet" }, "More entries are left out."));
    mark();
  };
  const mark = () => list.querySelectorAll("li").forEach((item) => (item.dataset.path === opened ? item.setAttribute("aria-current", "true") : item.removeAttribute("aria-current")));

  const open = async (path) => {
    if (!(await leave())) return;
    const { bytes: data, etag } = await box.readWithEtag(path, { signal });
    opened = path;
    isDirty = false;
    mark();
    show(path, data, etag);
  };

  const show = (path, data, etag) => {
    const { text, picture } = content(path, data);
    const remove = doing(async () => {
      if (!(await ask(`Delete ${nameOf(path)}?`, { text: "A version before this one still has it.", confirm: "Delete", isDanger: true }))) return;
      await box.remove(path, { ifMatch: etag || undefined });
      opened = null;
      isDirty = false;
      empty();
      await go(directory);
    });
    const move = doing(async () => {
      const to = h("input", { type: "text", class: "mono", value: path, required: true });
      const answers = await ask("Move", { fields: [["to", "New path", to]], confirm: "Move" });
      if (!answers || answers.to === path) return;
      await box.move(path, answers.to);
      isDirty = false;
      await go(directory);
      await open(answers.to);
    });
    const actions = [
      h("button", { type: "button", class: "plain", onclick: () => save(nameOf(path), data) }, "Download"),
      h("button", { type: "button", class: "plain", onclick: move }, "Move"),
      h("button", { type: "button", class: "plain danger", onclick: remove }, "Delete"),
    ];
    const title = h("strong", { class: "mono path grow" }, path);
    if (text === undefined) {
      fill(right, h("div", { class: "bar" }, title, actions), h("div", { class: "empty" }, picture ?? `${bytes(data.length)} that are not text.`));
      return;
    }
    const state = h("span", { class: "quiet small", role: "status" });
    const editor = h("textarea", { class: "mono editor", spellcheck: "false", autocapitalize: "off", "aria-label": `Content of ${path}`, value: text });
    const store = async (tag) => {
      try {
        etag = await box.write(path, editor.value, tag ? { ifMatch: tag } : {});
      } catch (error) {
        if (error.statusCode !== 412) throw error;
        return clash();
      }
      data = new TextEncoder().encode(editor.value);
      isDirty = false;
      state.textContent = "saved";
      await go(directory);
    };
    const clash = () => {
      const bar = h("div", { class: "bar problem", role: "alert" }, h("span", { class: "grow" }, "Somebody else changed this file meanwhile."),
        h("button", { type: "button", onclick: doing(() => ((isDirty = false), open(path))) }, "Load theirs"),
        h("button", { type: "button", class: "danger", onclick: doing(async () => (await store(undefined), bar.remove())) }, "Keep mine"));
      right.querySelector(".problem")?.remove();
      editor.before(bar);
    };
    const button = h("button", { type: "button", class: "primary", title: "Ctrl+S", onclick: doing(() => store(etag)) }, "Save");
    editor.addEventListener("input", () => ((isDirty = true), (state.textContent = "changed")));
    editor.addEventListener("keydown", (event) => {
      if ((event.ctrlKey || event.metaKey) && event.key === "s") {
        event.preventDefault();
        button.click();
      }
    });
    fill(right, h("div", { class: "bar" }, title, state, actions, button), editor);
  };

  const empty = () => fill(right, h("p", { class: "empty" }, "Choose a file to read or edit it."));
  const create = doing(async () => {
    const answers = await ask("New file", { fields: [["name", "Name", h("input", { type: "text", class: "mono", required: true, autocomplete: "off" })]], confirm: "Create" });
    if (!answers || !(await leave())) return;
    isDirty = false;
    const path = join(directory, answers.name);
    await box.write(path, "", { create: true });
    await go(directory);
    await open(path);
  });
  const createDirectory = doing(async () => {
    const answers = await ask("New directory", { fields: [["name", "Name", h("input", { type: "text", class: "mono", required: true, autocomplete: "off" })]], confirm: "Create" });
    if (!answers) return;
    await box.makeDirectory(join(directory, answers.name));
    await go(directory);
  });
  const chosen = h("input", { type: "file", multiple: true, hidden: true, "aria-label": "Files to upload" });
  chosen.addEventListener("change", doing(async () => {
    for (const file of chosen.files) await box.write(join(directory, file.name), file);
    note(chosen.files.length === 1 ? "Uploaded." : `Uploaded ${chosen.files.length} files.`);
    chosen.value = "";
    await go(directory);
  }));
  empty();
  const left = h("div", { class: "card" }, h("div", { class: "bar" }, up, place), list,
    h("div", { class: "bar" }, h("button", { type: "button", class: "plain", onclick: create }, "New file"), h("button", { type: "button", class: "plain", onclick: createDirectory }, "New directory"), h("button", { type: "button", class: "plain", onclick: () => chosen.click() }, "Upload"), chosen));
  fill(root, h("div", { class: "split" }, left, right));
  try {
    await go(undefined);
  } catch (error) {
    fill(list, h("li", { class: "bad" }, reason(error)));
  }
}
