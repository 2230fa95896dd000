// SPDX-License-Identifier: Apache-2.0
// What gradients change, class by class.
import * as api from "./api.js";
import {blockChips} from "./blocks.js";
import {h, latest, percent, plural, show, trouble} from "./dom.js";
import {blocksWord, chosenBlocks, embedding, go, gradients, joined, to, view} from "./state.js";

const once = latest();
const signed = (share) => `${share > 0 ? "+" : share < 0 ? "−" : "±"}${(100 * Math.abs(share)).toFixed(1)}`;

function line(one) {
  const low = Math.min(one.before, one.after),
    kind = one.gain > 0 ? "up" : one.gain < 0 ? "down" : "";
  return h(
    "tr",
    {class: kind},
    h("th", {scope: "row"}, h("a", {href: to("classes", {class: one.class})}, one.class)),
    h("td", {class: "number"}, String(one.rows)),
    h("td", {class: "number"}, percent(one.before)),
    h(
      "td",
      {class: "wide"},
      h(
        "span",
        {
          class: "dumbbell",
          "aria-hidden": "true",
          vars: {low, gap: Math.abs(one.gain), before: one.before, after: one.after},
        },
        h("span", {class: "gap"}),
        h("span", {class: "dot before"}),
        h("span", {class: "dot after"}),
      ),
    ),
    h("td", {class: "number"}, percent(one.after)),
    h("td", {class: "number gain"}, signed(one.gain)),
  );
}

function page(found) {
  const difference = found.after.accuracy - found.before.accuracy;
  const one = (title, what, kind) =>
    h(
      "div",
      {class: `figure ${kind}`},
      h("span", {class: "quiet"}, title),
      h("strong", {}, percent(what.accuracy)),
      h("code", {}, what.features),
    );
  return [
    h(
      "div",
      {class: "figures"},
      one("By the embedding", found.before, "plain"),
      one("With gradients", found.after, "rich"),
      h(
        "div",
        {class: "figure"},
        h("span", {class: "quiet"}, "Difference"),
        h("strong", {}, signed(difference)),
        h("span", {class: "quiet"}, `± ${(100 * found.standard_error).toFixed(1)} (one standard error)`),
      ),
      h(
        "div",
        {class: "figure"},
        h("span", {class: "quiet"}, "Rows that change"),
        h("strong", {}, `${found.gained} / ${found.lost}`),
        h("span", {class: "quiet"}, "gained / lost"),
      ),
    ),
    h(
      "p",
      {class: "quiet", "data-summary": true},
      `${plural(found.rows, "row")} classified by their ${found.k} nearest${found.test ? ` in ${found.store}` : ", each left out in turn"}.`,
    ),
    h(
      "div",
      {class: "scroll", tabindex: 0, role: "region", "aria-label": "Gains by class"},
      h(
        "table",
        {class: "gains"},
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            ["Class", "Rows", "Before", "", "After", "Gain"].map((word) =>
              word ? h("th", {scope: "col", class: word === "Class" ? null : "number"}, word) : h("td", {}),
            ),
          ),
        ),
        h("tbody", {}, found.classes.map(line)),
      ),
    ),
  ];
}

export async function gainsView(place, values) {
  const store = view.store,
    others = view.stores.filter(
      (one) => one.name !== store.name && one.kind === "store" && one.samples === store.samples,
    );
  const change = (changed) =>
    go("gains", {...Object.fromEntries([...values].filter(([name]) => name !== "store")), ...changed});
  const results = h("section", {"aria-busy": "true"}, h("p", {class: "quiet"}, "Counting …"));
  show(place, h("h1", {}, "What gradients change"), results);
  if (store.kind === "index" || !gradients(store).length || !store.labelled) {
    results.removeAttribute("aria-busy");
    show(
      results,
      h(
        "p",
        {class: "panel"},
        store.kind === "index"
          ? "An index has one kind of features: serve its store, too, to compare."
          : store.labelled
            ? "This store has no gradients: extract some with --objectives."
            : "The rows of this store have no classes to compare.",
      ),
    );
    return;
  }
  const k = Number(values.get("k")) || 20;
  const count = h("input", {
    type: "number",
    id: "voters",
    min: 1,
    max: 1000,
    value: k,
    onchange: () => change({k: Math.max(1, Number(count.value) || 20)}),
  });
  const test = h(
    "select",
    {id: "test", onchange: () => change({test: test.value})},
    h("option", {value: ""}, "each row, left out"),
    others.map((one) => h("option", {value: one.name, selected: one.name === values.get("test")}, one.name)),
  );
  results.before(
    h(
      "div",
      {class: "controls", role: "group", "aria-label": "What is counted"},
      blockChips(store, chosenBlocks(store, values), (chosen) => change({blocks: blocksWord(store, chosen)})),
      h("span", {class: "control"}, h("label", {for: "voters"}, "Voters"), count),
      others.length ? h("span", {class: "control"}, h("label", {for: "test"}, "Rows"), test) : null,
    ),
  );
  const {value, error, stale} = await once((signal) =>
    api.gains(
      store.name,
      {
        test: values.get("test"),
        before: embedding(store),
        features: joined(store, chosenBlocks(store, values)),
        k,
      },
      signal,
    ),
  );
  if (stale) return;
  results.removeAttribute("aria-busy");
  if (error?.status === 401) throw error;
  show(results, error ? trouble(error) : page(value));
}
