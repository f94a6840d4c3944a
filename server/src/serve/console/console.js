// The console: the signed-in key and the page that is shown.

import { Client } from "./sandlite.js";
import { h, fill, field, reason, note } from "./dom.js";
import * as sandboxes from "./sandboxes.js";
import * as sandbox from "./sandbox.js";
import * as skills from "./skills.js";
import * as runs from "./runs.js";
import * as account from "./account.js";

const KEY = "sandlite-key";
const PAGES = [
  [/^\/sandboxes$/, sandboxes.page, "Sandboxes"],
  [/^\/sandboxes\/([^/]+)(?:\/(\w+))?$/, sandbox.page, "Sandboxes"],
  [/^\/skills$/, skills.page, "Skills"],
  [/^\/skills\/([^/]+)\/([^/]+)$/, skills.one, "Skills"],
  [/^\/runs$/, runs.page, "Runs"],
  [/^\/runs\/([^/]+)$/, runs.one, "Runs"],
  [/^\/account$/, account.page, "Account"],
];
const NAV = [["Sandboxes", "#/sandboxes"], ["Skills", "#/skills"], ["Runs", "#/runs"], ["Account", "#/account"]];

const main = document.getElementById("main");
const session = { client: null, who: null };
let leaving = new AbortController();

async function signIn(key) {
  const client = new Client(location.origin, key);
  session.who = await client.whoami();
  session.client = client;
  sessionStorage.setItem(KEY, key);
  const place = document.getElementById("account");
  fill(place, h("span", { class: "who" }, `${session.who.tenant} · ${session.who.role}`), h("button", { class: "plain", type: "button", onclick: signOut }, "Sign out"));
  place.hidden = false;
}

function signOut() {
  sessionStorage.removeItem(KEY);
  session.client = session.who = null;
  show();
}

function signInPage() {
  const key = h("input", { type: "password", class: "mono", autocomplete: "off", spellcheck: "false", required: true, placeholder: "sk-…", id: "key" });
  const problem = h("p", { class: "problem", role: "alert", hidden: true });
  const submit = async (event) => {
    event.preventDefault();
    try {
      await signIn(key.value.trim());
      show();
    } catch (error) {
      problem.textContent = error.statusCode === 401 ? "The server does not know this key." : reason(error);
      problem.hidden = false;
      key.focus();
    }
  };
  fill(main, h("div", { class: "signin stack" },
    h("div", {}, h("h1", {}, "Sign in"), h("p", { class: "quiet" }, "With an API key of this server. It stays in this tab and is forgotten when the tab is closed.")),
    h("form", { class: "stack", onsubmit: submit }, field("API key", key), problem, h("button", { type: "submit", class: "primary" }, "Sign in"))));
  key.focus();
}

async function show(event) {
  const page = location.hash.replace(/^#/, "") || "/sandboxes";
  leaving.abort();
  leaving = new AbortController();
  const { signal } = leaving;
  const isIn = session.client !== null;
  document.getElementById("nav").hidden = document.getElementById("account").hidden = !isIn;
  if (!isIn) return signInPage();
  const found = PAGES.map(([pattern, render, name]) => [pattern.exec(page), render, name]).find(([match]) => match);
  if (!found) return void (location.hash = "#/sandboxes");
  const [match, render, name] = found;
  document.title = `${name} · Sandlite`;
  fill(document.getElementById("nav"), NAV.map(([title, href]) => h("a", { href, "aria-current": title === name ? "page" : undefined }, title)));
  const root = h("div");
  fill(main, root);
  if (event) main.focus({ preventScroll: true });
  try {
    const words = match.slice(1).map((word) => (word === undefined ? undefined : decodeURIComponent(word)));
    await render({ root, client: session.client, who: session.who, signal, words, again: () => show() });
  } catch (error) {
    if (signal.aborted) return;
    if (error.statusCode === 401) {
      signOut();
      return note("The key does not count any more.", true);
    }
    fill(root, h("div", { class: "problem", role: "alert" }, reason(error)));
  }
}

addEventListener("hashchange", show);
// The address after `#` is the page, so the skip link moves the focus itself.
document.querySelector(".skip").addEventListener("click", (event) => (event.preventDefault(), main.focus()));
const kept = sessionStorage.getItem(KEY);
if (kept) await signIn(kept).catch(() => sessionStorage.removeItem(KEY));
show();
