// SPDX-License-Identifier: Apache-2.0
// The classes of a store, and the rows of one.
import * as api from "./api.js";
import {announce, h, plural, show, trouble} from "./dom.js";
import {rowCard} from "./cards.js";
import {go, to, view} from "./state.js";

// Asked once for a store.
export async function listClasses(store) {
  if (view.classes?.store !== store.name) view.classes = await api.classes(store.name);
  return view.classes;
}

const kPage = 60;

async function rowsOf(place, store, name) {
  const list = h("ul", {class: "cards"}),
    more = h("button", {type: "button"}, "More");
  const counted = h("p", {class: "quiet"});
  let there = 0;
  const load = async () => {
    more.disabled = true;
    try {
      const found = await api.rows(store.name, {...(name === null ? {} : {class: name}), offset: there, limit: kPage});
      list.append(...found.rows.map((row) => h("li", {}, rowCard(store, row, {href: to("search", {row: row.row})}))));
      there += found.rows.length;
      counted.textContent = `${there} of ${plural(found.total, "row")}`;
      more.hidden = there >= found.total || !found.rows.length;
      announce(counted.textContent);
    } catch (error) {
      if (error.status === 401) throw error;
      more.hidden = true;
      counted.replaceChildren(trouble(error));
    }
    more.disabled = false;
  };
  more.addEventListener("click", load);
  show(
    place,
    h("nav", {class: "crumbs", "aria-label": "Where this is"}, h("a", {href: to("classes")}, "Classes")),
    h("h1", {}, name ?? "All rows"),
    counted,
    list,
    more,
  );
  await load();
}

export async function classesView(place, values) {
  const store = view.store;
  if (values.has("class")) return rowsOf(place, store, values.get("class"));
  const {classes, without_label: without} = await listClasses(store);
  const withRows = classes.filter((one) => one.rows > 0);
  if (!withRows.length) return rowsOf(place, store, null);
  const most = Math.max(...withRows.map((one) => one.rows)),
    least = Math.min(...withRows.map((one) => one.rows));
  const strips = new Map();
  const look = new IntersectionObserver(
    (seen) => {
      for (const {target, isIntersecting} of seen) {
        if (!isIntersecting) continue;
        look.unobserve(target);
        api.rows(store.name, {class: strips.get(target), limit: 4}).then(
          ({rows}) =>
            target.append(
              ...rows.map((row) =>
                h(
                  "span",
                  {},
                  row.text ??
                    (store.shows_samples && store.samples !== "text" ? api.thumbnail(store, row.row, "", 64) : row.id),
                ),
              ),
            ),
          () => {},
        );
      }
    },
    {rootMargin: "200px"},
  );
  const items = withRows.map((one) => {
    const strip = h("span", {class: `strip ${store.samples}`, "aria-hidden": "true"});
    strips.set(strip, one.class);
    look.observe(strip);
    return h(
      "li",
      {"data-name": one.class.toLowerCase(), "data-rows": one.rows},
      h(
        "a",
        {href: to("classes", {class: one.class})},
        strip,
        h("strong", {}, one.class),
        h("span", {class: "quiet"}, plural(one.rows, "row")),
        least < most ? h("span", {class: "bar", "aria-hidden": "true", vars: {share: one.rows / most}}) : null,
      ),
    );
  });
  const list = h("ul", {class: "classes"}, items),
    none = h("p", {class: "quiet", hidden: true}, "No class has that in its name.");
  const filter = h("input", {
    type: "search",
    id: "filter",
    "data-first": true,
    placeholder: "cat",
    oninput: () => {
      const word = filter.value.trim().toLowerCase();
      for (const item of items) item.hidden = !item.dataset.name.includes(word);
      none.hidden = items.some((item) => !item.hidden);
    },
  });
  const order = h(
    "select",
    {
      id: "order",
      onchange: () => {
        const by = {
          number: () => 0,
          name: (a, b) => a.dataset.name.localeCompare(b.dataset.name),
          rows: (a, b) => b.dataset.rows - a.dataset.rows,
        };
        list.append(...(order.value === "number" ? items : [...items].sort(by[order.value])));
      },
    },
    h("option", {value: "number"}, "as in the store"),
    h("option", {value: "name"}, "by name"),
    h("option", {value: "rows"}, "largest first"),
  );
  show(
    place,
    h("h1", {}, "Classes"),
    h(
      "p",
      {class: "quiet"},
      `${plural(withRows.length, "class", "classes")}, ${plural(store.rows, "row")}${without ? `, ${without} without a label` : ""}`,
    ),
    h(
      "div",
      {class: "controls"},
      h("span", {class: "control"}, h("label", {for: "filter"}, "Find"), filter),
      h("span", {class: "control"}, h("label", {for: "order"}, "Order"), order),
      h(
        "button",
        {type: "button", onclick: () => go("search", {row: Math.floor(Math.random() * store.rows)})},
        "Any row",
      ),
    ),
    list,
    none,
  );
  return () => look.disconnect();
}
