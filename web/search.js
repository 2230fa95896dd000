// SPDX-License-Identifier: Apache-2.0
// A question, and its neighbours by the embedding and with gradients side by side.
import * as api from "./api.js";
import {announce, h, latest, plural, show, trouble} from "./dom.js";
import {
  blocksWord,
  chosenBlocks,
  embedding,
  go,
  gradients,
  here,
  joined,
  keep,
  kept,
  to,
  view,
  wish,
  wishFor,
} from "./state.js";
import {listClasses} from "./classes.js";
import {blockChips} from "./blocks.js";
import {comparison} from "./neighbours.js";
import {rowCard, sampleOf} from "./cards.js";

const once = latest();
const trail = []; // what was asked since the page was opened, newest last
const kMostTrail = 12;

// From anywhere: a sample becomes a question with an address of its own.
export function searchFor(question) {
  const sample = {...question, store: view.store.name, at: trail.length};
  const {values} = here();
  go("search", {sample: keep(sample), k: values.get("k"), blocks: values.get("blocks")});
}

const kinds = {
  image: {what: "picture", accept: "image/*", text: false, file: true},
  sound: {what: "sound", accept: "audio/*", text: false, file: true},
  text: {what: "text", accept: "", text: true, file: false},
};

function composer(store, small) {
  const kind = kinds[store.samples];
  if ((!kind || !store.takes_samples) && small) return null;
  if (!kind || !store.takes_samples)
    return h(
      "p",
      {class: "panel quiet"},
      "The model of this store is not there, so that new samples cannot be asked: begin with one of its rows.",
    );
  const file = h("input", {
    type: "file",
    id: "file",
    accept: kind.accept,
    class: "unseen",
    onchange: () => file.files[0] && searchFor({file: file.files[0]}),
  });
  const text = h("textarea", {
    id: "text",
    rows: small ? 1 : 2,
    "data-first": true,
    placeholder: small ? "another text" : "type or paste a text; Enter searches",
    onkeydown: (event) => {
      if (event.key !== "Enter" || event.shiftKey) return;
      event.preventDefault();
      text.form.requestSubmit();
    },
  });
  const asked = () => {
    if (text.value.trim()) searchFor({text: text.value.trim()});
  };
  return h(
    "form",
    {class: `panel ask ${small ? "small" : ""}`, onsubmit: (event) => (event.preventDefault(), asked())},
    kind.file
      ? h(
          "label",
          {class: "drop", for: "file"},
          file,
          h("strong", {}, small ? `Another ${kind.what}` : `Drop a ${kind.what} here`),
          h(
            "span",
            {class: "quiet"},
            small ? "drop or choose it" : kind.what === "picture" ? "or paste one, or choose a file" : "or choose a file",
          ),
        )
      : null,
    kind.text
      ? [
          h("label", {for: "text", class: small ? "unseen" : null}, small ? "Another text" : "A text"),
          h("div", {class: "row"}, text, h("button", {class: "main"}, "Search")),
        ]
      : null,
  );
}

async function controls(store, values) {
  const change = (changed) => {
    const kept = Object.fromEntries(values);
    delete kept.store;
    go("search", {...kept, ...changed});
  };
  const k = Number(values.get("k")) || wish("k");
  const count = h("input", {
    type: "range",
    id: "k",
    min: 1,
    max: 48,
    value: Math.min(k, 48),
    onchange: () => {
      wishFor("k", count.value);
      change({k: count.value});
    },
    oninput: () => (out.value = count.value),
  });
  const out = h("output", {for: "k"}, String(k));
  const only = (values.get("classes") ?? "").split("\n").filter(Boolean);
  const known = (await listClasses(store)).classes;
  const field =
    known.length > 1 &&
    h("input", {
      id: "only",
      list: "known",
      placeholder: "all classes",
      size: 14,
      onchange: () => {
        if (known.some((one) => one.class === field.value) && !only.includes(field.value))
          change({classes: [...only, field.value].join("\n")});
      },
    });
  return h(
    "div",
    {class: "controls", role: "group", "aria-label": "How to search"},
    h("span", {class: "control"}, h("label", {for: "k"}, "Neighbours"), count, out),
    blockChips(store, chosenBlocks(store, values), (chosen) => change({blocks: blocksWord(store, chosen)})),
    field
      ? h(
          "span",
          {class: "control"},
          h("label", {for: "only"}, "Only"),
          field,
          h(
            "datalist",
            {id: "known"},
            known.map((one) => h("option", {value: one.class})),
          ),
          only.map((name) =>
            h(
              "button",
              {
                type: "button",
                class: "chip",
                "aria-label": `No longer only ${name}`,
                onclick: () => change({classes: only.filter((one) => one !== name).join("\n")}),
              },
              name,
              " ×",
            ),
          ),
        )
      : null,
  );
}

// What the address asks: a row, or a sample that was given before.
function questionOf(values) {
  if (values.has("row")) return {row: Number(values.get("row"))};
  if (!values.has("sample")) return null;
  const sample = kept(Number(values.get("sample")));
  if (!sample) return {lost: true};
  return sample.file ? {file: sample.file} : {text: sample.text};
}

function remember(question, facts, store) {
  const address = location.hash;
  const last = trail.findIndex((step) => step.address === address);
  if (last >= 0) trail.splice(last, 1);
  trail.push({address, question, facts, store});
  if (trail.length > kMostTrail) trail.shift();
}

function trailOf(store) {
  const steps = trail.filter((step) => step.store === store.name);
  if (steps.length < 2) return null;
  return h(
    "nav",
    {class: "trail", "aria-label": "The way here"},
    h(
      "ol",
      {},
      steps.map((step, i) =>
        h(
          "li",
          {},
          h(
            "a",
            {href: step.address, "aria-current": i === steps.length - 1 ? "step" : null},
            sampleOf(store, step.question, step.facts, {side: 48, small: true}),
          ),
        ),
      ),
    ),
  );
}

// Somewhere to begin: rows from all over the store.
async function beginnings(store, signal) {
  const count = Math.min(24, store.rows);
  const numbers = Array.from({length: count}, () => Math.floor(Math.random() * store.rows));
  const found = await Promise.all([...new Set(numbers)].map((number) => api.row(store.name, number, signal)));
  return h(
    "section",
    {"aria-labelledby": "begin"},
    h(
      "div",
      {class: "row"},
      h("h2", {id: "begin"}, "Or begin with one of these"),
      h("button", {type: "button", onclick: () => dispatchEvent(new Event("hashchange"))}, "Others"),
    ),
    h(
      "ul",
      {class: "cards"},
      found.map((row) => h("li", {}, rowCard(store, row, {href: to("search", {row: row.row})}))),
    ),
  );
}

export async function searchView(place, values) {
  const store = view.store,
    question = questionOf(values);
  const results = h(
    "section",
    {class: "results", "aria-busy": question ? "true" : null},
    question ? h("p", {class: "quiet"}, "Searching …") : null,
  );
  const head = h(
    "div",
    {class: "head"},
    h("h1", {class: question ? "unseen" : null}, "Neighbours, with and without gradients"),
    question
      ? null
      : h(
          "p",
          {class: "quiet"},
          `${plural(store.rows, "row")} of “${store.name}”${store.classes ? ` in ${plural(store.classes, "class", "classes")}` : ""}. ` +
            "Each question is answered twice: by the model's embedding alone, and by FUNGI, which puts gradients beside it.",
        ),
  );
  const asking = composer(store, question !== null);
  const made = question
    ? [head, h("div", {class: `bar-of-search ${store.samples}`}, asking, await controls(store, values)), results]
    : [head, asking, results];
  show(place, made);
  if (question?.lost) {
    show(results, h("p", {class: "panel"}, "A dropped sample is kept until the page is loaded anew: drop it again."));
    results.removeAttribute("aria-busy");
    return;
  }
  const {value, error, stale} = await once(async (signal) => {
    if (!question) return beginnings(store, signal);
    const chosen = chosenBlocks(store, values);
    const whole = joined(store, chosen);
    const features =
      store.kind === "index" || !gradients(store).length || !chosen.length
        ? [store.kind === "index" ? store.features : embedding(store)]
        : [embedding(store), whole];
    const [facts, found] = await Promise.all([
      question.row === undefined ? null : api.row(store.name, question.row, signal),
      api.search(
        store.name,
        question,
        {
          k: Number(values.get("k")) || wish("k"),
          features,
          classes: (values.get("classes") ?? "").split("\n").filter(Boolean),
        },
        signal,
      ),
    ]);
    if (found.version !== store.version) {
      // The store has changed under the running server.
      const fresh = (await api.stores(signal)).find((one) => one.name === store.name);
      if (fresh) Object.assign(store, fresh);
      view.classes = null;
    }
    remember(question, facts, store.name);
    return [trailOf(store), comparison(store, question, facts, found, to, values)];
  });
  if (stale) return;
  results.removeAttribute("aria-busy");
  if (error?.status === 401) throw error;
  show(results, error ? trouble(error) : value);
  if (question && !error) {
    announce(results.querySelector("[data-summary]")?.textContent ?? "The neighbours are there");
  }
}
