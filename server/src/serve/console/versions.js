// The timeline of changes as they come, and the versions with a slider through them.

import { h, fill, field, choose, ask, bytes, moment, doing, note, patch, save, reason } from "./dom.js";
import { forkOne } from "./sandboxes.js";
import { entries, content, nameOf, parentOf } from "./files.js";

const MARKS = { created: ["+", "good"], added: ["+", "good"], modified: ["~", "warn"], mode: ["~", "warn"], attributes: ["~", "warn"], renamed: ["→", "warn"], deleted: ["−", "bad"], lost: ["?", "bad"] };
const SHOWN = 30;
const MOST_ROWS = 300;

const mark = (kind) => {
  const [sign, tone] = MARKS[kind] ?? ["·", ""];
  return h("span", { class: `mark ${tone}`, title: kind }, sign);
};

export async function timeline({ root, box, signal }) {
  const list = h("ol", { class: "timeline" });
  const state = h("span", { class: "live off quiet small", role: "status" }, "connecting");
  const rows = new Map();
  const log = await box.log({ limit: SHOWN }, { signal });
  const known = new Map(log.map((version) => [version.version, version]));

  const group = (version, at) => {
    if (rows.has(version)) return rows.get(version);
    const facts = known.get(version);
    const title = h("strong", { class: "path" }, facts?.command?.split("\n")[0] || (facts ? facts.made_by : `version ${version}`));
    const changes = h("ul");
    const detail = h("div");
    const show = doing(async () => {
      if (detail.childElementCount > 0) return fill(detail);
      const shown = await box.action("show", { run: `v${version}` }, { signal });
      fill(detail, h("div", { class: "card" }, patch(shown.changes?.patch, shown.changes?.truncated)));
    });
    const item = h("li", { class: facts?.exit_code ? "failed" : "" },
      h("div", { class: "row" }, title, h("span", { class: "quiet small" }, `version ${version}`), h("span", { class: "quiet small" }, moment(at)), (facts?.checkpoints ?? []).map((name) => h("span", { class: "tag accent" }, name)), h("button", { type: "button", class: "plain", onclick: show, "aria-label": `Differences of version ${version}` }, "Diff")),
      changes, detail);
    list.prepend(item);
    while (list.childElementCount > MOST_ROWS) list.lastElementChild.remove();
    rows.set(version, { changes, title });
    // The command is not part of a change: it is requested once.
    if (!facts) {
      box.log({ limit: 5 }, { signal }).then((newer) => {
        const found = newer.find((row) => row.version === version);
        if (found?.command) title.textContent = found.command.split("\n")[0];
      }, () => {});
    }
    return rows.get(version);
  };

  fill(root, h("div", { class: "row", "aria-live": "off" }, h("p", { class: "quiet grow" }, "What each run changed, newest first."), state), list);
  const oldest = log.at(-1);
  for (const version of [...log].reverse()) group(version.version, version.time_ms);
  const after = oldest ? Math.max(0, oldest.version - 1) : 0;
  const seen = new Set();
  follow({ box, after, signal, state, each: (change) => {
    // A version whose last event did not come is sent again.
    const key = JSON.stringify([change.version, change.kind, change.path]);
    if (seen.has(key)) return;
    seen.add(key);
    const { changes } = group(change.version, change.time / 1e6);
    if (changes.childElementCount >= 50) return;
    const size = change.type === "file" && change.kind !== "deleted" ? bytes(change.size) : "";
    changes.append(h("li", { class: "small" }, mark(change.kind), h("span", { class: "mono path" }, change.from ? `${change.from} → ${change.path}` : change.path), " ", h("span", { class: "quiet" }, size)));
  } });
}

// Follows events while the page is shown; a connection that ends is opened again where it ended.
async function follow({ box, after, signal, state, each }) {
  let last = after;
  while (!signal.aborted) {
    try {
      state.className = "live quiet small";
      state.textContent = "live";
      for await (const event of box.events({ after: last, signal })) {
        each(event.change);
        last = Number(event.id) || last;
      }
    } catch (error) {
      if (signal.aborted) return;
      state.textContent = reason(error);
      if (error.statusCode >= 400 && error.statusCode < 500) return void (state.className = "live off quiet small");
    }
    state.className = "live off quiet small";
    await new Promise((resolve) => setTimeout(resolve, 1500));
  }
}

export async function versions({ root, box, signal }) {
  const log = (await box.log({ limit: 200 }, { signal })).reverse();
  if (log.length === 0) return fill(root, h("p", { class: "card empty" }, "Nothing was changed yet."));
  const slider = h("input", { type: "range", min: 0, max: log.length - 1, step: 1, value: String(log.length - 1), "aria-label": "Version" });
  const shown = choose([["changes", "What it changed"], ["now", "Compared with now"], ["files", "Files at this version"]], "changes", { "aria-label": "Show" });
  const facts = h("div", { class: "stack" });
  const detail = h("div", { class: "card", "aria-live": "polite" });
  let turn = 0;
  const again = async () => versions({ root, box, signal });

  const show = async () => {
    const mine = ++turn;
    const version = log[Number(slider.value)];
    const reference = `v${version.version}`;
    const isLast = version === log.at(-1);
    slider.setAttribute("aria-valuetext", `version ${version.version}, ${version.command || version.made_by}`);
    const restore = doing(async () => {
      const preview = await box.restore(reference, { dryRun: true });
      const text = preview.total === 0 ? "Nothing differs from it." : `${preview.total} ${preview.total === 1 ? "path changes" : "paths change"}. This is a run of its own and can be undone.`;
      if (!(await ask(`Restore version ${version.version}?`, { text, confirm: "Restore" }))) return;
      await box.restore(reference);
      note(`Restored version ${version.version}.`);
      await again();
    });
    fill(facts,
      h("div", { class: "row" }, h("h2", { class: "grow path mono" }, (version.command || version.made_by).split("\n")[0].slice(0, 200)), version.checkpoints.map((name) => h("span", { class: "tag accent" }, name)), isLast && h("span", { class: "tag" }, "now")),
      h("p", { class: "quiet" }, `Version ${version.version}`, version.run ? ` · run ${version.run}` : "", version.exit_code ? ` · exit code ${version.exit_code}` : "", " · ", moment(version.time_ms), ` · ${version.changes} ${version.changes === 1 ? "path" : "paths"}`),
      h("div", { class: "row" }, h("button", { type: "button", disabled: isLast, onclick: restore }, "Restore"), h("button", { type: "button", onclick: doing(() => forkOne(box, reference)) }, "Fork from here")));
    try {
      let made;
      if (shown.value === "changes") {
        const found = await box.action("show", { run: reference }, { signal });
        made = [paths(found.changes), patch(found.changes?.patch, found.changes?.truncated)];
      } else if (shown.value === "now") {
        const found = await box.diff(reference, undefined, { signal });
        made = [paths(found), patch(found.patch, found.truncated)];
      } else {
        made = h("div", {});
        await tree(made, box, reference, signal);
      }
      if (mine === turn) fill(detail, made);
    } catch (error) {
      if (!signal.aborted && mine === turn) fill(detail, h("p", { class: "problem" }, reason(error)));
    }
  };
  const paths = (found) => found?.files?.length > 0 && h("ul", { class: "list small" }, found.files.slice(0, 200).map((file) => h("li", {}, mark(file.kind), h("span", { class: "mono path" }, file.path))));
  const undo = doing(async () => {
    const preview = await box.undo(1, { dryRun: true });
    if (!(await ask("Undo the last change?", { text: `${preview.total} ${preview.total === 1 ? "path changes" : "paths change"} back. Undoing an undo is a redo.`, confirm: "Undo" }))) return;
    await box.undo();
    note("Undone.");
    await again();
  });
  const name = doing(async () => {
    const answers = await ask("Name this state", { fields: [["name", "Checkpoint", h("input", { type: "text", required: true, autocomplete: "off" })], ["message", "Message", h("input", { type: "text", placeholder: "optional", autocomplete: "off" })]], confirm: "Save" });
    if (!answers) return;
    await box.checkpoint(answers.name, answers.message || undefined);
    await again();
  });
  let waiting;
  slider.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(show, 120);
  });
  shown.addEventListener("change", show);
  fill(root, h("div", { class: "stack" },
    h("div", { class: "card pad" },
      h("div", { class: "row" }, h("span", { class: "quiet small grow" }, `${log.length} versions`), h("button", { type: "button", onclick: name }, "Checkpoint"), h("button", { type: "button", onclick: undo }, "Undo")),
      h("div", { class: "row" }, h("button", { type: "button", class: "plain", "aria-label": "Older version", onclick: () => (slider.stepDown(), show()) }, "‹"), h("div", { class: "grow" }, slider), h("button", { type: "button", class: "plain", "aria-label": "Newer version", onclick: () => (slider.stepUp(), show()) }, "›")),
      facts),
    h("div", { class: "row" }, field("Show", shown)),
    detail));
  await show();
}

// The tree of a past version: read in place, nothing is restored.
async function tree(root, box, reference, signal) {
  const go = async (path) => {
    const found = await box.action("list_files", { depth: 1, hidden: true, at: reference, ...(path === undefined ? {} : { path }) }, { signal });
    const list = entries(found.entries, (entry) => (entry.kind === "directory" ? go(entry.path) : look(entry.path)));
    fill(root, h("div", { class: "bar" }, h("button", { type: "button", class: "plain", "aria-label": "Up", disabled: found.path === "/", onclick: doing(() => go(parentOf(found.path))) }, "↑"), h("span", { class: "mono path" }, found.path)), h("ul", { class: "list" }, list.length === 0 ? h("li", { class: "quiet" }, h("span", {}, "Nothing here.")) : list));
  };
  const look = async (path) => {
    const data = await box.read(path, { at: reference, signal });
    const { text, picture } = content(path, data);
    const back = doing(() => go(parentOf(path)));
    const restore = doing(async () => {
      if (!(await ask(`Restore ${nameOf(path)}?`, { text: `Only this file, as it was at ${reference}.`, confirm: "Restore" }))) return;
      await box.restore(reference, { paths: [path] });
      note("Restored.");
    });
    fill(root, h("div", { class: "bar" }, h("button", { type: "button", class: "plain", onclick: back }, "← Files"), h("strong", { class: "mono path grow" }, path), h("button", { type: "button", class: "plain", onclick: () => save(nameOf(path), data) }, "Download"), h("button", { type: "button", onclick: restore }, "Restore this file")),
      text === undefined ? h("div", { class: "empty" }, picture ?? `${bytes(data.length)} that are not text.`) : h("pre", { class: "patch", tabindex: 0 }, h("span", {}, text)));
  };
  await go(undefined);
}
