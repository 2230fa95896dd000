// SPDX-License-Identifier: Apache-2.0
// What the server is asked; openapi.json says what it answers.
import {h} from "./dom.js";

export class Refused extends Error {
  constructor(status, sentence, hint) {
    super(sentence);
    Object.assign(this, {status, sentence, hint});
  }
}

let token = sessionStorage.getItem("token") ?? "";
export const hasToken = () => token !== "";
export function setToken(text) {
  token = text.trim();
  if (token) sessionStorage.setItem("token", token);
  else sessionStorage.removeItem("token");
  pictures.clear();
}
const headers = () => (token ? {Authorization: `Bearer ${token}`} : {});

async function ask(path, options = {}) {
  let reply;
  try {
    reply = await fetch(path, {...options, headers: {...headers(), ...options.headers}});
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, "The server does not answer", "Is `fungi serve` still running? Then load this page again.");
  }
  if (reply.ok) return reply;
  const said = await reply.json().catch(() => null);
  const wait = reply.headers.get("Retry-After");
  throw new Refused(
    reply.status,
    said?.error?.message ?? `The server refuses with status ${reply.status}`,
    [said?.error?.hint, wait && reply.status === 429 ? `Try again in ${wait} s.` : ""].filter(Boolean).join(" "),
  );
}

const query = (values) => {
  const words = new URLSearchParams();
  for (const [name, value] of Object.entries(values))
    if (value !== undefined && value !== null && value !== "") words.set(name, value);
  return words.size ? `?${words}` : "";
};
const get = async (path, values = {}, signal = undefined) => (await ask(path + query(values), {signal})).json();

export const health = (signal) => get("healthz", {}, signal);
export const metrics = async (signal) => (await ask("metrics", {signal})).text();
export const stores = async (signal) => (await get("v1/stores", {}, signal)).stores;
export const classes = (store, signal) => get("v1/classes", {store}, signal);
export const rows = (store, values, signal) => get("v1/rows", {store, ...values}, signal);
export const row = (store, number, signal) => get(`v1/rows/${number}`, {store}, signal);
export const map = (store, values, signal) => get("v1/map", {store, ...values}, signal);
export const gains = (store, values, signal) => get("v1/gains", {store, ...values}, signal);

// question: {row}, {text}, or {file} with a File.
export async function search(store, question, {k, features, classes: only}, signal) {
  if (!question.file) {
    // A row is its own nearest; one more is asked for, and it is left out.
    const itself = question.row !== undefined;
    const body = {store, k: itself ? k + 1 : k, features, ...question};
    if (only?.length) body.classes = only;
    const headers = {"Content-Type": "application/json"};
    const reply = await ask("v1/search", {method: "POST", body: JSON.stringify(body), signal, headers});
    const found = await reply.json();
    if (itself)
      for (const one of found.searches)
        one.neighbours = one.neighbours.filter((neighbour) => neighbour.row !== question.row).slice(0, k);
    return found;
  }
  const form = new FormData();
  form.set("store", store);
  form.set("k", String(k));
  for (const one of features) form.append("features", one);
  for (const one of only ?? []) form.append("classes", one);
  form.set("file", question.file, question.file.name || "sample");
  return (await ask("v1/search", {method: "POST", body: form, signal})).json();
}

// Pictures cannot carry a token: then they are fetched, and shown out of memory.
const pictures = new Map(),
  kMostKept = 600;
export async function source(path) {
  if (!token) return path;
  if (!pictures.has(path)) {
    if (pictures.size >= kMostKept) {
      const [oldest, address] = pictures.entries().next().value;
      pictures.delete(oldest);
      address.then(
        (made) => URL.revokeObjectURL(made),
        () => {},
      );
    }
    pictures.set(
      path,
      ask(path)
        .then((reply) => reply.blob())
        .then((blob) => URL.createObjectURL(blob)),
    );
  }
  return pictures.get(path);
}
export const thumbnailPath = (store, number, side = 128) =>
  `v1/rows/${number}/thumbnail${query({store: store.name, side})}${"&"}v=${store.version}`;
export const samplePath = (store, number) => `v1/rows/${number}/sample${query({store: store.name})}&v=${store.version}`;

export function thumbnail(store, number, alt, side = 128) {
  const image = h("img", {alt, loading: "lazy", decoding: "async", width: side, height: side});
  const broken = () => image.classList.add("broken");
  image.addEventListener("error", broken);
  if (token) source(thumbnailPath(store, number, side)).then((address) => (image.src = address), broken);
  else image.src = thumbnailPath(store, number, side);
  return image;
}
