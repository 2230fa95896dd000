// SPDX-License-Identifier: Apache-2.0
// What the server holds and how it fares, and the wishes of this browser.
import * as api from "./api.js";
import {h, plural, show, trouble} from "./dom.js";
import {applyTheme, view, wish, wishFor} from "./state.js";

const kEvery = 5000;

function storeOf(store) {
  const columns = store.blocks.reduce((sum, block) => sum + block.columns, 0);
  return h(
    "li",
    {class: "panel"},
    h("h3", {}, store.name, h("span", {class: "badge"}, store.kind), h("span", {class: "badge"}, store.samples)),
    store.trouble ? h("p", {class: "trouble", role: "alert"}, store.trouble) : null,
    h(
      "p",
      {},
      `${plural(store.rows, "row")}, ${plural(store.classes, "class", "classes")}, ${plural(columns, "column")}, ${store.metric}`,
    ),
    h(
      "p",
      {class: "quiet"},
      store.takes_samples
        ? `The model ${store.model} answers for new samples.`
        : "Its model is not there: rows are searched, new samples are not.",
      store.shows_samples ? "" : " Its samples are not shown: name their data set with --data.",
    ),
    h(
      "ul",
      {class: "chips"},
      store.blocks.map((block) =>
        h(
          "li",
          {class: "chip"},
          `${block.name} · ${block.columns}${block.weight === 1 ? "" : ` · weight ${block.weight}`}`,
        ),
      ),
    ),
    store.weights ? h("p", {class: "quiet id", title: store.weights}, `sha256 ${store.weights.slice(0, 16)} …`) : null,
  );
}

// "name{labels} value" of each line that is no comment.
function readings(text) {
  return text
    .split("\n")
    .filter((line) => line && !line.startsWith("#"))
    .map((line) => {
      const at = line.lastIndexOf(" ");
      return [line.slice(0, at), line.slice(at + 1)];
    });
}

function settings() {
  const theme = h(
    "select",
    {id: "theme", onchange: () => wishFor("theme", theme.value)},
    [
      ["auto", "as the system"],
      ["light", "light"],
      ["dark", "dark"],
    ].map(([value, word]) => h("option", {value, selected: value === wish("theme")}, word)),
  );
  const side = h(
    "select",
    {id: "side", onchange: () => wishFor("side", side.value)},
    [
      ["96", "small"],
      ["128", "medium"],
      ["192", "large"],
    ].map(([value, word]) => h("option", {value, selected: Number(value) === wish("side")}, word)),
  );
  return h(
    "section",
    {class: "panel", "aria-labelledby": "wishes"},
    h("h2", {id: "wishes"}, "Settings"),
    h(
      "div",
      {class: "controls"},
      h("span", {class: "control"}, h("label", {for: "theme"}, "Colours"), theme),
      h("span", {class: "control"}, h("label", {for: "side"}, "Pictures"), side),
      api.hasToken()
        ? h("button", {type: "button", onclick: () => (api.setToken(""), location.reload())}, "Forget the token")
        : null,
    ),
    h(
      "p",
      {class: "quiet"},
      "Kept in this browser. Keys: ",
      h("kbd", {}, "/"),
      " goes to the first field; arrows walk among neighbours and points; ",
      h("kbd", {}, "Enter"),
      " opens; back is the browser's.",
    ),
  );
}

export async function serverView(place) {
  const state = h("div", {class: "figures", "aria-live": "off"}),
    table = h("tbody");
  const stores = h("ul", {class: "stores"});
  show(
    place,
    h("h1", {}, "Server"),
    state,
    h("h2", {}, "Stores"),
    stores,
    settings(),
    h(
      "details",
      {},
      h("summary", {}, "Counters"),
      h(
        "div",
        {class: "scroll", tabindex: 0, role: "region", "aria-label": "Counters"},
        h(
          "table",
          {},
          h("thead", {}, h("tr", {}, h("th", {scope: "col"}, "Counter"), h("th", {scope: "col"}, "Value"))),
          table,
        ),
      ),
      h("p", {}, h("a", {href: "openapi.json"}, "openapi.json"), " says what else can be asked."),
    ),
  );
  const figure = (word, value) =>
    h("div", {class: "figure"}, h("span", {class: "quiet"}, word), h("strong", {}, String(value)));
  const look = async () => {
    try {
      const [health, list, counters] = await Promise.all([api.health(), api.stores(), api.metrics()]);
      view.stores = list;
      show(
        state,
        figure("State", health.status),
        figure("Version", health.version),
        figure("Stores", health.stores),
        figure("Waiting samples", health.waiting),
      );
      show(stores, list.map(storeOf));
      show(
        table,
        readings(counters).map(([name, value]) =>
          h("tr", {}, h("td", {}, h("code", {}, name)), h("td", {class: "number"}, value)),
        ),
      );
    } catch (error) {
      if (error.status === 401) throw error;
      show(state, trouble(error));
    }
  };
  await look();
  applyTheme();
  const timer = setInterval(() => document.hidden || look().catch(() => {}), kEvery);
  return () => clearInterval(timer);
}
