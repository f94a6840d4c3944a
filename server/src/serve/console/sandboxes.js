// All sandboxes: list, create, fork, delete.

import { h, fill, head, ask, choose, bytes, moment, doing, note, save } from "./dom.js";

export async function page({ root, client, signal, again }) {
  const rows = h("tbody");
  const more = h("button", { type: "button", hidden: true }, "Show more");
  let cursor;
  const load = async () => {
    const found = await client.listSandboxes({ limit: 50, cursor, signal });
    rows.append(...found.items.map((box) => row(box, client, again)));
    cursor = found.next_cursor;
    more.hidden = !cursor;
  };
  more.addEventListener("click", doing(load));
  await load();
  const create = h("button", { type: "button", class: "primary", onclick: doing(() => createOne(client)) }, "New sandbox");
  const bring = h("input", { type: "file", hidden: true, accept: ".db", "aria-label": "Database file" });
  bring.addEventListener("change", doing(async () => {
    const made = await client.importSandbox(bring.files[0]);
    location.hash = `#/sandboxes/${encodeURIComponent(made.id)}`;
  }));
  const top = head("Sandboxes", { below: "Each is a small computer in one file.", actions: [h("button", { type: "button", onclick: () => bring.click() }, "Import"), bring, create] });
  if (rows.childElementCount === 0) {
    fill(root, top, h("div", { class: "card empty" }, h("h2", {}, "No sandboxes yet"), h("p", {}, "Create one and run a first command in it.")));
    return;
  }
  const titles = h("tr", {}, h("th", { scope: "col" }, "Name"), h("th", { scope: "col", class: "wide" }, "Preset"), h("th", { scope: "col", class: "wide" }, "Used"), h("th", { scope: "col", class: "number" }, "Size"), h("th", { scope: "col" }, h("span", { hidden: true }, "Actions")));
  fill(root, top, h("div", { class: "card scroll" }, h("table", {}, h("thead", {}, titles), rows)), h("p", { class: "centre" }, more));
}

export const titleOf = (box) => box.name || box.id;

function row(box, client, again) {
  const name = titleOf(box);
  const remove = doing(async () => {
    if (!(await ask(`Delete ${name}?`, { text: "Its files and its history are deleted. This cannot be undone.", confirm: "Delete", isDanger: true }))) return;
    await box.delete();
    note("Deleted.");
    again();
  });
  return h("tr", {},
    h("td", { class: "name" }, h("a", { href: `#/sandboxes/${encodeURIComponent(box.id)}` }, name), box.name && h("div", { class: "quiet small mono" }, box.id.slice(0, 12))),
    h("td", { class: "wide quiet" }, box.preset),
    h("td", { class: "wide quiet" }, moment(box.used_at ?? box.created_at)),
    h("td", { class: "number" }, bytes(box.bytes)),
    h("td", { class: "actions" },
      h("button", { type: "button", class: "plain", "aria-label": `Fork ${name}`, onclick: doing(() => forkOne(box)) }, "Fork"),
      h("button", { type: "button", class: "plain danger", "aria-label": `Delete ${name}`, onclick: remove }, "Delete")));
}

async function createOne(client) {
  const answers = await ask("New sandbox", {
    confirm: "Create",
    fields: [
      ["name", "Name", h("input", { type: "text", autocomplete: "off", placeholder: "optional" })],
      ["preset", "Preset", choose([["", "Default of the server"], "strict", "normal", "permissive"], "")],
    ],
  });
  if (!answers) return;
  const box = await client.createSandbox({ name: answers.name || undefined, preset: answers.preset || undefined });
  location.hash = `#/sandboxes/${encodeURIComponent(box.id)}`;
}

/** Asks for a name and forks. */
export async function forkOne(box, at) {
  const answers = await ask(`Fork ${titleOf(box)}`, {
    text: at ? `An independent copy of version ${at}.` : "An independent copy of the present state.",
    confirm: "Fork",
    fields: [["name", "Name", h("input", { type: "text", autocomplete: "off", placeholder: "optional" })]],
  });
  if (!answers) return;
  const made = await box.fork({ name: answers.name || undefined, at });
  location.hash = `#/sandboxes/${encodeURIComponent(made.id)}`;
}

/** Saves a sandbox as a file. */
export async function exportOne(box) {
  const answer = await box.export();
  save(`${titleOf(box).replace(/[^\w.-]+/g, "-")}.db`, await answer.blob());
}
