// Elements, words and small shapes. Whatever comes from the server becomes text or an attribute that cannot run: there is no way here to
// turn text into markup.

const SVG = "http://www.w3.org/2000/svg";
const PROPERTIES = new Set(["value", "checked", "disabled", "hidden", "readOnly", "multiple", "required"]);
const ATTRIBUTES = new Set([
  "class", "id", "type", "name", "for", "role", "title", "placeholder", "rows", "min", "max", "step", "tabindex", "lang", "download", "accept", "alt",
  "autocomplete", "autocapitalize", "spellcheck", "scope", "colspan", "list", "inputmode", "enterkeyhint",
]);

/** Creates an element: `h("button", { class: "primary", onclick }, "Save")`. */
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "href") element.setAttribute("href", address(value));
    else if (name === "src") element.setAttribute("src", picture(value));
    else if (name.startsWith("aria-") || name.startsWith("data-")) element.setAttribute(name, String(value));
    else if (PROPERTIES.has(name)) element[name] = value;
    else if (ATTRIBUTES.has(name)) element.setAttribute(name, value === true ? "" : String(value));
    else throw new TypeError(`attribute ${name} is not in the list`);
  }
  element.append(...children.flat(4).filter((child) => child !== undefined && child !== null && child !== false).map((child) => (child instanceof Node ? child : String(child))));
  return element;
}

// A place of the console, or a file that was made here.
function address(value) {
  const url = new URL(value, location.href);
  if (url.protocol === "blob:" || (url.origin === location.origin && /^https?:$/.test(url.protocol))) return url.href;
  return "#";
}

function picture(value) {
  return /^data:image\/(png|jpeg|gif|webp|svg\+xml);base64,[A-Za-z0-9+/=]*$/.test(value) ? value : "data:,";
}

/** Creates an element of a drawing. */
export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (/^(class|x|y|x1|y1|x2|y2|width|height|rx|viewBox|role|aria-label|text-anchor|preserveAspectRatio)$/.test(name)) element.setAttribute(name, String(value));
  }
  element.append(...children.map((child) => (child instanceof Node ? child : String(child))));
  return element;
}

/** Replaces what is in an element. */
export function fill(element, ...children) {
  element.replaceChildren(...children.flat(4).filter((child) => child !== undefined && child !== null && child !== false));
  return element;
}

/** A heading with what can be done. */
export function head(title, { above, below, actions = [] } = {}) {
  return h("div", { class: "head" }, h("div", {}, above && h("div", { class: "crumb" }, above), h("h1", {}, title), below && h("p", {}, below)), h("div", { class: "row" }, actions));
}

/** Shows a short message for a while. */
export function note(text, isBad = false) {
  const shown = h("p", { class: isBad ? "bad" : "" }, text);
  document.getElementById("notes").append(shown);
  setTimeout(() => shown.remove(), isBad ? 9000 : 3500);
}

/** What went wrong, for a person. */
export function reason(error) {
  if (error?.name === "AbortError") return "stopped";
  return error?.message || String(error);
}

/** Does something for a click; what goes wrong is shown. */
export function doing(work) {
  return async (event) => {
    event?.preventDefault?.();
    const button = event?.currentTarget instanceof HTMLButtonElement ? event.currentTarget : event?.submitter;
    if (button) button.disabled = true;
    try {
      await work(event);
    } catch (error) {
      if (error?.name !== "AbortError") note(reason(error), true);
    } finally {
      if (button) button.disabled = false;
    }
  };
}

/** A labelled control. */
export function field(label, control, hint) {
  return h("label", {}, label, hint && h("span", { class: "hint" }, hint), control);
}

/** Asks in a dialog; `fields` are [name, label, control]. Returns the values, or undefined if it was cancelled. */
export function ask(title, { text, fields = [], confirm = "OK", isDanger = false } = {}) {
  return new Promise((resolve) => {
    const problem = h("p", { class: "problem", role: "alert", hidden: true });
    const close = (value) => {
      dialog.close();
      dialog.remove();
      resolve(value);
    };
    const form = h(
      "form",
      { onsubmit: (event) => (event.preventDefault(), close(Object.fromEntries(fields.map(([name, , control]) => [name, control.type === "checkbox" ? control.checked : control.value])))) },
      h("h2", { id: "asked" }, title),
      text && h("p", { class: "quiet" }, text),
      fields.map(([, label, control, hint]) => field(label, control, hint)),
      problem,
      h("div", { class: "row end" }, h("button", { type: "button", onclick: () => close(undefined) }, "Cancel"), h("button", { type: "submit", class: isDanger ? "danger" : "primary" }, confirm)),
    );
    const dialog = h("dialog", { "aria-labelledby": "asked", oncancel: (event) => (event.preventDefault(), close(undefined)) }, form);
    document.body.append(dialog);
    dialog.showModal();
    (fields[0]?.[2] ?? form.querySelector("button[type=submit]")).focus();
  });
}

/** A choice. */
export function choose(options, value, properties = {}) {
  const select = h("select", properties, options.map((option) => (Array.isArray(option) ? h("option", { value: option[0] }, option[1]) : h("option", { value: option }, option))));
  if (value !== undefined) select.value = value;
  return select;
}

export function bytes(count) {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let [value, unit] = [Number(count) || 0, 0];
  while (value >= 1000 && unit < units.length - 1) [value, unit] = [value / 1000, unit + 1];
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
}

export function count(number) {
  const value = Number(number) || 0;
  if (value < 1e4) return String(value);
  return new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 }).format(value);
}

export function time(milliseconds) {
  const value = Number(milliseconds) || 0;
  if (value < 1000) return `${value} ms`;
  return value < 60_000 ? `${(value / 1000).toFixed(1)} s` : `${Math.floor(value / 60_000)} min ${Math.round((value % 60_000) / 1000)} s`;
}

/** A moment as people say it, with the exact one as title. */
export function moment(at) {
  const date = new Date(at ?? NaN);
  if (Number.isNaN(date.getTime())) return h("span", { class: "quiet" }, "—");
  const seconds = Math.round((Date.now() - date) / 1000);
  const past = Math.abs(seconds);
  const [amount, unit] = past < 60 ? [0, "second"] : past < 3600 ? [Math.round(seconds / 60), "minute"] : past < 86_400 ? [Math.round(seconds / 3600), "hour"] : [Math.round(seconds / 86_400), "day"];
  const text = past < 60 ? (seconds >= 0 ? "just now" : "soon") : new Intl.RelativeTimeFormat("en", { numeric: "auto" }).format(-amount, unit);
  return h("span", { title: date.toLocaleString(), class: "nowrap" }, text);
}

/** A patch with its lines coloured. */
export function patch(text, isTruncated = false) {
  if (!text) return h("p", { class: "quiet empty" }, "No text differs.");
  const kind = (line) => {
    if (/^(diff |\+\+\+ |--- )/.test(line)) return "file";
    if (line.startsWith("@@")) return "hunk";
    return line.startsWith("+") ? "added" : line.startsWith("-") ? "removed" : "";
  };
  const lines = text.replace(/\n$/, "").split("\n").slice(0, 5000).map((line) => h("span", { class: kind(line) }, line === "" ? " " : line));
  return h("pre", { class: "patch", tabindex: 0, role: "region", "aria-label": "Differences" }, lines, isTruncated && h("span", { class: "hunk" }, "… more is left out"));
}

/** Saves bytes as a file of this machine. */
export function save(name, data) {
  const url = URL.createObjectURL(data instanceof Blob ? data : new Blob([data]));
  const link = h("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** Text without the control sequences of terminals. */
export function plain(text) {
  // eslint-disable-next-line no-control-regex
  return text.replace(/\u001b(\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(\u0007|\u001b\\)|[@-Z\\-_])/g, "").replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/g, "");
}

/** Markdown as far as instructions use it: headings, lists, code, paragraphs. Links stay text. */
export function prose(text) {
  const root = h("div", { class: "prose" });
  const inline = (line) => line.split(/(`[^`]+`|\*\*[^*]+\*\*)/).map((piece) => {
    if (/^`.+`$/.test(piece)) return h("code", {}, piece.slice(1, -1));
    return /^\*\*.+\*\*$/.test(piece) ? h("strong", {}, piece.slice(2, -2)) : piece;
  });
  let [code, list, words] = [null, null, []];
  const paragraph = () => {
    if (words.length > 0) root.append(h("p", {}, inline(words.join(" "))));
    words = [];
  };
  for (const line of text.split("\n").slice(0, 5000)) {
    if (/^\s*```/.test(line)) {
      paragraph();
      if (code === null) code = [];
      else {
        root.append(h("pre", {}, h("code", {}, code.join("\n"))));
        code = null;
      }
      continue;
    }
    if (code !== null) {
      code.push(line);
      continue;
    }
    const title = /^(#{1,6})\s+(.*)$/.exec(line);
    const item = /^\s*[-*]\s+(.*)$/.exec(line);
    if (!item) list = null;
    if (title) {
      paragraph();
      root.append(h(["h1", "h2", "h3"][Math.min(title[1].length, 3) - 1], {}, inline(title[2])));
    } else if (item) {
      paragraph();
      if (list === null) root.append((list = h("ul")));
      list.append(h("li", {}, inline(item[1])));
    } else if (line.trim() === "") paragraph();
    else words.push(line.trim());
  }
  if (code !== null) root.append(h("pre", {}, h("code", {}, code.join("\n"))));
  paragraph();
  return root;
}
