// SPDX-License-Identifier: Apache-2.0
// Which view is shown, of which store; what is dropped or pasted anywhere.
import * as api from "./api.js";
import {announce, h, show, trouble} from "./dom.js";
import {applyTheme, go, here, view} from "./state.js";
import {classesView} from "./classes.js";
import {gainsView} from "./gains.js";
import {mapView} from "./map.js";
import {searchFor, searchView} from "./search.js";
import {serverView} from "./server.js";

const main = document.getElementById("main");
const select = document.getElementById("store");
const views = {search: searchView, classes: classesView, map: mapView, gains: gainsView, server: serverView};
const titles = {search: "Search", classes: "Classes", map: "Map", gains: "Gains", server: "Server"};
let leave = null,
  shownView = "",
  generation = 0;

async function openStores() {
  view.stores = await api.stores();
  show(
    select,
    view.stores.map((store) => h("option", {value: store.name}, store.name)),
  );
  select.closest("label").hidden = view.stores.length < 2;
}

function askForToken() {
  const field = h("input", {id: "token", type: "password", autocomplete: "off", required: true});
  const form = h(
    "form",
    {
      class: "panel narrow",
      onsubmit: (event) => {
        event.preventDefault();
        api.setToken(field.value);
        start();
      },
    },
    h("h1", {}, "This server wants its token"),
    api.hasToken() ? h("p", {class: "trouble", role: "alert"}, "That is another one.") : null,
    h("label", {for: "token"}, "The first line of its token file"),
    field,
    h("button", {class: "main"}, "Open"),
  );
  show(main, form);
  field.focus();
}

// Whatever the address says.
async function render() {
  const mine = ++generation;
  const {view: name, values} = here();
  const wanted = view.stores.find((store) => store.name === values.get("store")) ?? view.stores[0];
  if (wanted !== view.store) ((view.store = wanted), (view.classes = null));
  select.value = wanted?.name ?? "";
  const known = name in views ? name : "search";
  for (const link of document.querySelectorAll("nav a")) {
    if (link.dataset.view === known) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${titles[known]} · fungi`;
  leave?.();
  leave = null;
  const moved = shownView && shownView !== known;
  shownView = known;
  if (!wanted && known !== "server") {
    show(main, h("p", {}, "This server holds no store."));
    return;
  }
  try {
    const left = (await views[known](main, values)) ?? null;
    if (mine === generation) leave = left;
    else left?.();
  } catch (error) {
    if (error.name === "AbortError" || mine !== generation) return;
    if (error.status === 401) askForToken();
    else show(main, trouble(error));
  }
  if (moved) {
    main.focus({preventScroll: true});
    announce(`${titles[known]} is shown`);
  }
}

// Links in the head keep the store.
for (const link of document.querySelectorAll("nav a, .brand"))
  link.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    go(link.dataset.view ?? "search", {});
    if (here().view === shownView) render();
  });
select.addEventListener("change", () => {
  view.store = view.stores.find((store) => store.name === select.value);
  go(here().view, {});
});
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});

// A file that is dropped or pasted is a question, wherever it lands.
const overlay = document.getElementById("drop");
const carriesFile = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
let inside = 0;
addEventListener("dragenter", (event) => {
  if (!carriesFile(event)) return;
  ++inside;
  overlay.hidden = false;
});
addEventListener("dragleave", (event) => {
  if (carriesFile(event) && --inside <= 0) ((overlay.hidden = true), (inside = 0));
});
addEventListener("dragover", (event) => carriesFile(event) && event.preventDefault());
addEventListener("drop", (event) => {
  if (!carriesFile(event)) return;
  event.preventDefault();
  overlay.hidden = true;
  inside = 0;
  if (event.dataTransfer.files[0]) searchFor({file: event.dataTransfer.files[0]});
});
addEventListener("paste", (event) => {
  const file = [...(event.clipboardData?.files ?? [])][0];
  const typing = event.target.closest?.("input, textarea");
  const text = event.clipboardData?.getData("text/plain").trim();
  if (file) searchFor({file});
  else if (!typing && text && view.store?.samples === "text") searchFor({text});
  else return;
  event.preventDefault();
});
addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.target.closest?.("input, textarea, select")) return;
  const field = document.querySelector("[data-first]");
  if (!field) return;
  event.preventDefault();
  field.focus();
});
// A new place begins at its top; back and forward go to where one was.
history.scrollRestoration = "manual";
const scrolled = new Map();
let steps = history.state?.step ?? 0;
addEventListener("hashchange", async (event) => {
  const seen = history.state?.step;
  if (event.oldURL) scrolled.set(event.oldURL, scrollY);
  if (seen === undefined) history.replaceState({step: ++steps}, "");
  await render();
  if (event.oldURL) scrollTo(0, seen === undefined ? 0 : (scrolled.get(location.href) ?? 0));
});

async function start() {
  applyTheme();
  try {
    await openStores();
    await render();
    document.documentElement.dataset.ready = "yes";
  } catch (error) {
    if (error.status === 401) askForToken();
    else show(main, trouble(error), h("button", {onclick: start}, "Try again"));
  }
}
start();
