// SPDX-License-Identifier: Apache-2.0
// Where one is: the address behind '#' says it all, but for samples that were dropped, which are kept here.

export const view = {stores: [], store: null, classes: null};

// "#/map?store=pets&row=3" as {view: "map", values}.
export function here() {
  const [path, words = ""] = location.hash.replace(/^#\/?/, "").split("?");
  return {view: path || "search", values: new URLSearchParams(words)};
}

// An address in a view; the store stays.
export function to(name, values = {}) {
  const words = new URLSearchParams();
  if (view.stores.length > 1 && view.store) words.set("store", view.store.name);
  for (const [key, value] of Object.entries(values))
    if (value !== undefined && value !== null && value !== "" && value !== false) words.set(key, String(value));
  return `#/${name}${words.size ? `?${words}` : ""}`;
}
export function go(name, values, {replace = false} = {}) {
  const address = to(name, values);
  if (!replace) location.hash = address;
  else if (address !== location.hash) history.replaceState(history.state, "", address);
}

// Samples that were given, by number.
const samples = [];
export const keep = (sample) => samples.push(sample) - 1;
export const kept = (number) => samples[number];

// Wishes that outlive the page.
const defaults = {theme: "auto", k: 8, side: 128};
export function wish(name) {
  const said = localStorage.getItem(`fungi.${name}`);
  return said === null ? defaults[name] : typeof defaults[name] === "number" ? Number(said) || defaults[name] : said;
}
export function wishFor(name, value) {
  localStorage.setItem(`fungi.${name}`, String(value));
  if (name === "theme") applyTheme();
}
export function applyTheme() {
  const theme = wish("theme");
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  document.dispatchEvent(new Event("theme"));
}

// The embedding, and the gradient blocks beside it.
export const embedding = (store) => store.blocks[0]?.name ?? "embedding";
export const gradients = (store) => store.blocks.slice(1).map((block) => block.name);
export const joined = (store, chosen) => [embedding(store), ...chosen].join("+");
// Those that the address names with "blocks", or all.
export function chosenBlocks(store, values) {
  const all = gradients(store);
  if (!values.has("blocks")) return all;
  const named = values.get("blocks").split(",");
  return all.filter((name) => named.includes(name));
}
export function blocksWord(store, chosen) {
  return chosen.length === gradients(store).length ? null : chosen.join(",") || "none";
}
