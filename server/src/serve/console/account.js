// Usage of the tenant, and for admins its keys and the audit log.

import { h, svg, fill, head, ask, choose, bytes, count, moment, doing, note } from "./dom.js";
import { bars } from "./runs.js";

const HOUR = 3_600_000;

export async function page({ root, client, who, signal, again }) {
  const isAdmin = who.role === "admin";
  const [used, keys, audit] = await Promise.all([
    client.usage({ signal }).catch(() => null),
    isAdmin ? client.listKeys({ signal }) : [],
    isAdmin ? client.listAudit({ limit: 50, signal }).catch(() => []) : [],
  ]);
  const limits = used?.limits ?? {};
  const limit = (...names) => names.map((name) => limits[name]).find((value) => value !== undefined && value !== null);
  const quotas = used && h("section", { class: "card pad", "aria-label": "Usage" },
    meter("Sandboxes", used.sandboxes, limit("sandboxes", "sandboxes_of_tenant"), count),
    meter("Storage", used.bytes, limit("bytes", "bytes_of_tenant"), bytes),
    meter("Fuel this hour", used.fuel_this_hour, limit("fuel_per_hour", "fuel_this_hour", "fuel"), count),
    meter("Runs this hour", used.runs_this_hour, limit("runs_this_hour", "runs_per_hour"), count),
    h("dl", { class: "facts" }, [["Runs at a time", "concurrent"], ["Requests that may wait", "queue"], ["Requests per second", "requests_per_second"]].flatMap(([title, name]) => [h("dt", {}, title), h("dd", {}, count(limits[name] ?? 0))])));
  fill(root,
    head("Account", { below: `${who.tenant} · ${who.role}${who.view ? ` · sees sandboxes as ${who.view}` : ""}` }),
    h("div", { class: "stack" },
      quotas,
      used?.hours && h("div", { class: "card pad" }, h("h2", {}, "Fuel by the hour"), usage(used.hours)),
      isAdmin && h("div", { class: "row" }, h("h2", { class: "grow" }, "Keys"), h("button", { type: "button", class: "primary", onclick: doing(() => createKey(client, again)) }, "New key")),
      isAdmin && h("div", { class: "card scroll" }, keyTable(client, keys, who, again)),
      isAdmin && h("h2", {}, "Audit log"),
      isAdmin && h("div", { class: "card scroll" }, auditTable(audit, keys))));
}

/** The fuel of the last 24 hours. */
function usage(hours) {
  const now = Math.floor(Date.now() / HOUR);
  const known = new Map(hours.map((row) => [Math.floor(Date.parse(row.at) / HOUR), row]));
  const shown = Array.from({ length: 24 }, (_, index) => {
    const at = now - 23 + index;
    const { fuel, runs } = known.get(at) ?? { fuel: 0, runs: 0 };
    return { value: fuel, name: "", title: `${new Date(at * HOUR).toLocaleString()} · ${count(fuel)} fuel · ${runs} runs` };
  });
  const total = shown.reduce((sum, { value }) => sum + value, 0);
  return bars(shown, count, `Fuel of 24 hours: ${count(total)}`);
}

function meter(title, used, limit, shown) {
  const part = limit ? Math.min(1, Number(used) / Number(limit)) : 0;
  return h("div", { class: "meter" },
    h("div", {}, h("span", {}, title), h("span", { class: "quiet" }, limit ? `${shown(used)} of ${shown(limit)}` : shown(used))),
    limit && svg("svg", { viewBox: "0 0 400 8", preserveAspectRatio: "none", role: "img", "aria-label": `${title}: ${Math.round(part * 100)} percent` }, svg("rect", { class: "track", x: 0, y: 0, width: 400, height: 8, rx: 4 }), svg("rect", { class: part > 0.9 ? "used full" : "used", x: 0, y: 0, width: Math.max(part > 0 ? 4 : 0, part * 400), height: 8, rx: 4 })));
}

function keyTable(client, keys, who, again) {
  const rows = keys.map((key) => {
    const state = key.revoked_at ? h("span", { class: "tag bad" }, "revoked") : key.expires_at ? h("span", { class: "quiet" }, "expires ", moment(key.expires_at)) : "";
    const revoke = doing(async () => {
      if (!(await ask(`Revoke ${key.name || key.prefix}?`, { text: key.id === who.key ? "This is the key that you are signed in with." : "Requests with it are refused at once.", confirm: "Revoke", isDanger: true }))) return;
      await client.revokeKey(key.id);
      note("Revoked.");
      again();
    });
    return h("tr", {},
      h("td", { class: "name" }, key.name || "—", key.id === who.key && h("span", { class: "quiet small" }, " (this one)")),
      h("td", { class: "mono" }, `${key.prefix}…`),
      h("td", {}, key.role),
      h("td", { class: "wide quiet" }, key.last_used_at ? moment(key.last_used_at) : "never used"),
      h("td", {}, state),
      h("td", { class: "actions" }, !key.revoked_at && h("button", { type: "button", class: "plain danger", "aria-label": `Revoke ${key.name || key.prefix}`, onclick: revoke }, "Revoke")));
  });
  const titles = ["Name", "Key", "Role", "Used", "State", ""].map((title, index) => h("th", { scope: "col", class: index === 3 ? "wide" : "" }, title));
  return h("table", {}, h("thead", {}, h("tr", {}, titles)), h("tbody", {}, rows));
}

async function createKey(client, again) {
  const answers = await ask("New key", {
    confirm: "Create",
    fields: [
      ["name", "Name", h("input", { type: "text", autocomplete: "off", required: true })],
      ["role", "Role", choose([["consumer", "consumer: runs skills, uses sandboxes"], ["publisher", "publisher: also publishes skills"], ["admin", "admin: also manages keys"]], "consumer")],
      ["expires", "Expires after", h("input", { type: "text", autocomplete: "off", placeholder: "24h, or empty for never" })],
      ["view", "View", h("input", { type: "text", autocomplete: "off", placeholder: "optional: NAME or NAME:LABEL,LABEL" })],
    ],
  });
  if (!answers) return;
  const { key } = await client.createKey({ role: answers.role, name: answers.name, expires: answers.expires || undefined, view: answers.view || undefined });
  const text = h("input", { type: "text", class: "mono", readOnly: true, value: key, id: "new-key" });
  const answer = ask("The new key", { text: "Copy it now: it is not shown again.", fields: [["key", "Key", text]], confirm: "Copy and close" });
  text.select();
  if (await answer) await navigator.clipboard?.writeText(key).then(() => note("Copied."), () => {});
  again();
}

function auditTable(rows, keys) {
  const names = new Map(keys.map((key) => [key.id, key.name || key.prefix]));
  const titles = ["When", "Key", "Request", "Status"].map((title) => h("th", { scope: "col", class: title === "Status" ? "number" : "" }, title));
  const lines = rows.map((row) => h("tr", {}, h("td", { class: "quiet" }, moment(row.at)), h("td", {}, names.get(row.key) ?? row.key), h("td", { class: "mono path small" }, `${row.method} ${row.path}`), h("td", { class: `number ${row.status >= 400 ? "bad" : ""}` }, row.status)));
  return h("table", {}, h("thead", {}, h("tr", {}, titles)), h("tbody", {}, lines.length > 0 ? lines : h("tr", {}, h("td", { colspan: 4, class: "quiet" }, "Nothing yet."))));
}
