// Skills: the list, one with its instructions, and a form that runs it.

import { h, fill, head, field, choose, doing, note, prose, reason } from "./dom.js";
import { outcome } from "./runs.js";

export async function page({ root, client, who, signal, again }) {
  const found = await client.listSkills({ signal });
  const bring = h("input", { type: "file", hidden: true, accept: ".zip", "aria-label": "Zip file of a skill" });
  bring.addEventListener("change", doing(async () => {
    const made = await client.registerSkill(bring.files[0]);
    note(`Published ${made.name} ${made.version}.`);
    again();
  }));
  const publish = who.role !== "consumer" && [h("button", { type: "button", class: "primary", onclick: () => bring.click() }, "Publish"), bring];
  const top = head("Skills", { below: "Packages that agents find, read and run.", actions: publish || [] });
  if (found.length === 0) return fill(root, top, h("div", { class: "card empty" }, h("h2", {}, "No skills yet"), h("p", {}, "Publish a zip file with a SKILL.md, or push one with `sandlite skill push`.")));
  const rows = found.map((skill) => h("tr", {},
    h("td", { class: "name" }, h("a", { href: `#/skills/${encodeURIComponent(skill.name)}/${encodeURIComponent(skill.version)}` }, skill.name)),
    h("td", {}, skill.description),
    h("td", { class: "wide quiet nowrap" }, skill.version)));
  fill(root, top, h("div", { class: "card scroll" }, h("table", {}, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Name"), h("th", { scope: "col" }, "Description"), h("th", { scope: "col", class: "wide" }, "Version"))), h("tbody", {}, rows))));
}

export async function one({ root, client, signal, words: [name, version] }) {
  const skill = await client.getSkill(name, version, { signal });
  document.title = `${skill.name} · Sandlite`;
  const result = h("div", { class: "stack" });
  const form = inputForm(skill.input_schema);
  const stop = h("button", { type: "button", class: "danger", hidden: true }, "Stop");
  const run = doing(async () => {
    const input = form.value();
    const id = await client.start(skill.name, { version: skill.version, input });
    stop.hidden = false;
    stop.onclick = doing(() => client.cancelExecution(id));
    const logs = h("pre", { class: "small", role: "log", "aria-live": "polite", "aria-label": "Logs" });
    fill(result, h("div", { class: "card pad" }, h("p", { class: "quiet" }, "Running …"), logs));
    try {
      for await (const event of client.executionEvents(id, { signal })) if (event.kind === "log") logs.append(event.text);
      fill(result, await outcome(client, await client.getExecution(id, { signal })));
    } catch (error) {
      if (!signal.aborted) fill(result, h("p", { class: "problem", role: "alert" }, reason(error)));
    } finally {
      stop.hidden = true;
    }
  });
  const facts = [["Version", skill.version], ["Language", skill.lang], ["Timeout", skill.timeout], ["Memory", skill.resources?.memory]].filter(([, value]) => value);
  fill(root,
    head(skill.name, { above: h("a", { href: "#/skills" }, "Skills"), below: skill.description }),
    h("div", { class: "split even" },
      h("div", { class: "stack" },
        h("section", { class: "card pad stack", "aria-label": "Instructions" }, skill.instructions ? prose(skill.instructions) : h("p", { class: "quiet" }, "No instructions.")),
        h("dl", { class: "facts small" }, facts.map(([title, value]) => [h("dt", {}, title), h("dd", {}, value)]))),
      h("div", { class: "stack" },
        h("form", { class: "card pad stack", "aria-label": "Run", onsubmit: run }, h("h2", {}, "Run"), form.element, h("div", { class: "row" }, h("button", { type: "submit", class: "primary" }, "Run"), stop)),
        result)));
}

/** A form for a JSON schema, or an editor of JSON where it says nothing. */
export function inputForm(schema) {
  const properties = schema && typeof schema === "object" && schema.properties && typeof schema.properties === "object" ? Object.entries(schema.properties) : [];
  const json = h("textarea", { class: "mono", rows: 8, spellcheck: "false", "aria-label": "Input as JSON", value: "{}" });
  if (properties.length === 0) return { element: field("Input", json, "JSON"), value: () => parsed(json.value, "Input") };
  const required = new Set(Array.isArray(schema.required) ? schema.required : []);
  const controls = properties.map(([name, property]) => control(name, property ?? {}, required.has(name)));
  const collect = () => Object.fromEntries(controls.map(({ name, value }) => [name, value()]).filter(([, value]) => value !== undefined));
  const fields = h("div", { class: "stack" }, controls.map(({ element }) => element));
  const asJson = h("input", { type: "checkbox" });
  const place = h("div", {}, fields);
  asJson.addEventListener("change", () => {
    if (asJson.checked) {
      try {
        json.value = JSON.stringify(collect(), null, 2);
      } catch {
        json.value = "{}";
      }
    }
    fill(place, asJson.checked ? json : fields);
  });
  return { element: h("div", { class: "stack" }, place, h("label", { class: "check" }, asJson, "Edit as JSON")), value: () => (asJson.checked ? parsed(json.value, "Input") : collect()) };
}

function parsed(text, what) {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`${what} is not valid JSON: ${error.message}`);
  }
}

function control(name, property, isRequired) {
  const kind = Array.isArray(property.type) ? property.type.find((type) => type !== "null") : property.type;
  const title = `${property.title ?? name}${isRequired ? "" : " (optional)"}`;
  const hint = property.description;
  const start = property.default;
  const nothing = isRequired ? "" : undefined;
  if (Array.isArray(property.enum)) {
    const options = property.enum.map((value) => [JSON.stringify(value), String(value)]);
    const input = choose(isRequired ? options : [["", "—"], ...options], start === undefined ? undefined : JSON.stringify(start), { name });
    return { name, element: field(title, input, hint), value: () => (input.value === "" ? undefined : JSON.parse(input.value)) };
  }
  if (kind === "boolean") {
    const input = h("input", { type: "checkbox", name, checked: start === true });
    return { name, element: h("label", { class: "check" }, input, title, hint && h("span", { class: "hint" }, hint)), value: () => input.checked };
  }
  if (kind === "number" || kind === "integer") {
    const input = h("input", { type: "number", name, step: kind === "integer" ? 1 : "any", min: property.minimum, max: property.maximum, required: isRequired, value: start ?? "" });
    return { name, element: field(title, input, hint), value: () => (input.value === "" ? undefined : Number(input.value)) };
  }
  if (kind === "string" || kind === undefined && typeof start === "string") {
    const input = h("textarea", { name, rows: 2, required: isRequired, value: start ?? "" });
    return { name, element: field(title, input, hint), value: () => (input.value === "" ? nothing : input.value) };
  }
  const input = h("textarea", { name, class: "mono", rows: 4, spellcheck: "false", required: isRequired, value: start === undefined ? (kind === "array" ? "[]" : "{}") : JSON.stringify(start, null, 2) });
  return { name, element: field(title, input, [hint, "JSON"].filter(Boolean).join(" · ")), value: () => (input.value.trim() === "" ? undefined : parsed(input.value, title)) };
}
