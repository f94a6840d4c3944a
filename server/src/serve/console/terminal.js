// The terminal: commands one after the other in a session, their output as it comes.

import { h, choose, fill, plain, time, count, bytes, reason } from "./dom.js";

const MOST_OUTPUT = 2 << 20;
const remembered = [];

export async function terminal({ root, box, signal }) {
  const screen = h("div", { class: "screen", role: "log", "aria-live": "polite", "aria-label": "Output", tabindex: 0 });
  const language = choose([["bash", "bash"], ["python", "python"]], "bash", { "aria-label": "Language" });
  const input = h("textarea", { class: "mono", rows: 1, spellcheck: "false", autocapitalize: "off", autocomplete: "off", enterkeyhint: "go", "aria-label": "Command", placeholder: "Type a command" });
  const stop = h("button", { type: "button", class: "danger", hidden: true, title: "Ctrl+C", onclick: () => running?.abort() }, "Stop");
  const go = h("button", { type: "submit", class: "primary" }, "Run");
  let [running, at, written] = [null, remembered.length, 0];

  const atEnd = () => screen.scrollHeight - screen.scrollTop - screen.clientHeight < 40;
  const put = (element) => {
    const follow = atEnd();
    screen.append(element);
    if (follow) screen.scrollTop = screen.scrollHeight;
    return element;
  };
  const grow = () => {
    input.style.height = "auto";
    input.style.height = `${input.scrollHeight + 2}px`;
  };
  const recall = (step) => {
    at = Math.max(0, Math.min(remembered.length, at + step));
    input.value = remembered[at] ?? "";
    grow();
  };

  const run = async () => {
    const text = input.value;
    if (running || text.trim() === "") return;
    if (remembered.at(-1) !== text) remembered.push(text);
    at = remembered.length;
    input.value = "";
    grow();
    running = new AbortController();
    signal.addEventListener("abort", () => running?.abort(), { once: true });
    stop.hidden = false;
    go.hidden = true;
    put(h("pre", { class: "typed" }, `${language.value === "bash" ? "$" : ">>>"} ${text}`));
    const began = performance.now();
    try {
      const events = box[language.value === "bash" ? "streamBash" : "streamPython"](text, { session: "console" }, { signal: running.signal });
      let last = null;
      for await (const event of events) {
        if (event.kind === "result") end(event.result);
        else if (written < MOST_OUTPUT) {
          written += event.text.length;
          const follow = atEnd();
          if (last?.className !== event.kind) last = put(h("pre", { class: event.kind }));
          last.append(plain(event.text));
          if (follow) screen.scrollTop = screen.scrollHeight;
        }
      }
    } catch (error) {
      const wasStopped = running.signal.aborted;
      put(h("div", { class: wasStopped ? "end" : "end bad" }, wasStopped ? `stopped after ${time(Math.round(performance.now() - began))}` : reason(error)));
    } finally {
      running = null;
      stop.hidden = true;
      go.hidden = false;
      input.focus({ preventScroll: true });
    }
  };
  const end = (result) => {
    for (const image of result.images ?? []) put(h("img", { src: `data:${image.mime};base64,${image.data}`, alt: "Picture that the code displayed" }));
    const words = [`exit code ${result.exit_code}`, time(result.duration_ms), `${count(result.usage?.fuel)} fuel`, result.usage?.memory_peak ? `${bytes(result.usage.memory_peak)} memory` : "", `run ${result.run}`];
    put(h("div", { class: result.exit_code === 0 ? "end" : "end bad" }, words.filter(Boolean).join(" · ")));
    for (const remark of result.notes ?? []) put(h("div", { class: "end" }, remark));
  };

  input.addEventListener("input", grow);
  input.addEventListener("keydown", (event) => {
    const isOneLine = !input.value.includes("\n");
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      run();
    } else if (event.key === "ArrowUp" && isOneLine) {
      event.preventDefault();
      recall(-1);
    } else if (event.key === "ArrowDown" && isOneLine) {
      event.preventDefault();
      recall(1);
    }
  });
  // Ctrl+C stops the command, unless text is selected to be copied.
  root.addEventListener("keydown", (event) => {
    const isSelected = String(getSelection()) !== "" || input.selectionStart !== input.selectionEnd;
    if (event.ctrlKey && event.key === "c" && running && !isSelected) {
      event.preventDefault();
      running.abort();
    }
  });
  const clear = h("button", { type: "button", class: "plain", onclick: () => (fill(screen), (written = 0), input.focus()) }, "Clear");
  fill(root,
    h("div", { class: "terminal" }, screen, h("form", { class: "prompt", onsubmit: (event) => (event.preventDefault(), run()) }, language, input, stop, go)),
    h("div", { class: "row" }, h("p", { class: "quiet small grow" }, "Enter runs a command, Shift+Enter adds a line, Ctrl+C stops it. Commands share a session: variables and the directory stay."), clear));
  input.focus({ preventScroll: true });
}
