// Runs of skills: a list with a chart of their times, and one with its output, logs and artifacts.

import { h, svg, fill, head, choose, bytes, time, moment, doing, save, reason } from "./dom.js";

const TONES = { success: "good", failed: "bad", timeout: "bad" };
export const statusTag = (status) => h("span", { class: `tag ${TONES[status] ?? ""}` }, status);

export async function page({ root, client, signal }) {
  const status = choose([["", "All"], "success", "failed", "timeout", "running"], "", { "aria-label": "Status" });
  const place = h("div", { class: "stack" });
  const load = async () => {
    const { items, next_cursor } = await client.listExecutions({ limit: 50, status: status.value || undefined, signal });
    const rows = h("tbody", {}, items.map(row));
    let cursor = next_cursor;
    const more = h("button", { type: "button", hidden: !cursor, onclick: doing(async () => {
      const page = await client.listExecutions({ limit: 50, status: status.value || undefined, cursor, signal });
      rows.append(...page.items.map(row));
      cursor = page.next_cursor;
      more.hidden = !cursor;
    }) }, "Show more");
    if (items.length === 0) return fill(place, h("div", { class: "card empty" }, h("h2", {}, "No runs"), h("p", {}, "Runs of skills appear here with their output, logs and artifacts.")));
    const titles = ["Skill", "Status", "Started", "Time"].map((title, index) => h("th", { scope: "col", class: index === 3 ? "number" : index === 2 ? "wide" : "" }, title));
    fill(place, h("div", { class: "card pad" }, h("h2", {}, "Time of the last runs"), chart(items)), h("div", { class: "card scroll" }, h("table", {}, h("thead", {}, h("tr", {}, titles)), rows)), h("p", { class: "centre" }, more));
  };
  status.addEventListener("change", doing(load));
  fill(root, head("Runs", { below: "Of skills, newest first.", actions: [status] }), place);
  await load();
}

function row(run) {
  return h("tr", {},
    h("td", { class: "name" }, h("a", { href: `#/runs/${encodeURIComponent(run.execution_id)}` }, run.skill_name || run.execution_id), " ", h("span", { class: "quiet small" }, run.skill_version)),
    h("td", {}, statusTag(run.status)),
    h("td", { class: "wide quiet" }, moment(run.created_at)),
    h("td", { class: "number" }, run.status === "running" ? "…" : time(run.duration_ms)));
}

/** The times of runs, oldest first. */
export function chart(runs) {
  const shown = [...runs].reverse().map((run) => ({ value: run.duration_ms || 0, name: /^\w+$/.test(run.status) ? run.status : "", title: `${run.skill_name ?? ""} · ${run.status} · ${time(run.duration_ms)}` }));
  const most = Math.max(1, ...shown.map(({ value }) => value));
  return bars(shown, time, `Times of ${shown.length} runs, at most ${time(most)}`);
}

/** Bars with an axis. A drawing is as wide as its screen, so that its texts keep their size. */
export function bars(shown, written, label) {
  const [width, height, left, bottom] = [innerWidth < 700 ? 340 : 720, 150, 52, 18];
  const most = Math.max(1, ...shown.map(({ value }) => value));
  const step = (width - left) / Math.max(shown.length, 20);
  const drawing = svg("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
  for (const part of [0, 0.5, 1]) {
    const y = 10 + (height - bottom - 10) * (1 - part);
    drawing.append(svg("line", { x1: left, x2: width, y1: y, y2: y }), svg("text", { x: left - 8, y: y + 4, "text-anchor": "end" }, written(Math.round(most * part))));
  }
  shown.forEach(({ value, name, title }, index) => {
    const size = value > 0 || name ? Math.max(2, (value / most) * (height - bottom - 10)) : 0;
    drawing.append(svg("rect", { class: name, x: left + index * step + step * 0.15, width: Math.min(step * 0.7, 22), y: height - bottom - size, height: size, rx: 2 }, svg("title", {}, title)));
  });
  return drawing;
}

export async function one({ root, client, signal, words: [id] }) {
  const run = await client.getExecution(id, { signal });
  const place = h("div", { class: "stack" });
  fill(root, head(run.skill_name || "Run", { above: h("a", { href: "#/runs" }, "Runs"), below: [run.skill_version, run.execution_id].filter(Boolean).join(" · ") }), place);
  fill(place, run.status === "running" ? h("p", { class: "quiet" }, "Running …") : await outcome(client, run));
  if (run.status !== "running") return;
  const logs = h("pre", { class: "small", role: "log", "aria-label": "Logs" });
  const stop = h("button", { type: "button", class: "danger", onclick: doing(() => client.cancelExecution(id)) }, "Stop");
  fill(place, h("div", { class: "card pad stack" }, h("div", { class: "row" }, h("p", { class: "quiet grow" }, "Running …"), stop), logs));
  for await (const event of client.executionEvents(id, { signal })) if (event.kind === "log") logs.append(event.text);
  fill(place, await outcome(client, await client.getExecution(id, { signal })));
}

/** How a run went: output, error, artifacts, logs. */
export async function outcome(client, run) {
  const logs = run.logs ?? (await client.getExecutionLogs(run.execution_id).catch(() => ""));
  return [
    h("div", { class: "card pad stack" },
      h("div", { class: "row" }, h("h2", { class: "grow" }, "Result"), statusTag(run.status), h("span", { class: "quiet small" }, time(run.duration_ms))),
      run.error && h("p", { class: "problem" }, run.error),
      run.output === undefined || run.output === null ? h("p", { class: "quiet" }, "No output.") : h("pre", { "aria-label": "Output" }, typeof run.output === "string" ? run.output : JSON.stringify(run.output, null, 2))),
    run.files_list?.length > 0 && artifacts(client, run),
    run.input !== undefined && h("div", { class: "card pad stack" }, h("h2", {}, "Input"), h("pre", { class: "small" }, JSON.stringify(run.input, null, 2))),
    logs && h("div", { class: "card pad stack" }, h("h2", {}, "Logs"), h("pre", { class: "small" }, logs)),
  ].filter(Boolean);
}

function artifacts(client, run) {
  const list = h("ul", { class: "list" });
  let fetched;
  const get = () => (fetched ??= client.downloadFiles(run));
  for (const name of run.files_list.slice(0, 500)) {
    const size = h("span", { class: "size" });
    const download = doing(async () => {
      try {
        const data = (await get())[name.replace(/^\.?\//, "")];
        if (!data) throw new Error(`${name} is not in the archive`);
        size.textContent = bytes(data.length);
        save(name.split("/").at(-1), data);
      } catch (error) {
        fetched = undefined;
        throw new Error(`cannot download: ${reason(error)}`);
      }
    });
    list.append(h("li", {}, h("button", { type: "button", "aria-label": `Download ${name}`, onclick: download }, h("span", {}, name), size)));
  }
  return h("div", { class: "card pad stack" }, h("h2", {}, "Artifacts"), list);
}
