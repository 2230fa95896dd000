// SPDX-License-Identifier: Apache-2.0
// The store as points of a plane: what lies together, what its neighbours get wrong, and what gradients change about that.
import * as api from "./api.js";
import {blockChips} from "./blocks.js";
import {nameOf, rowCard, rowPicture} from "./cards.js";
import {announce, h, latest, percent, plural, show, trouble} from "./dom.js";
import {colourOf, middleOf, settle} from "./geometry.js";
import {Plot} from "./plot.js";
import {kVerdicts, share, verdicts} from "./verdicts.js";
import {blocksWord, chosenBlocks, embedding, go, gradients, joined, to, view} from "./state.js";

const kMostPoints = 3000,
  kMostShown = 60,
  kMostLegend = 40,
  kMostNames = 60;
const once = latest();
const known = new Map(); // maps that were asked for, by address

const systemDark = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (document.documentElement.dataset.theme ?? (systemDark.matches ? "dark" : "light")) === "dark";

async function fetchMap(store, features, layout, signal) {
  const address = [store.name, store.version, features, layout].join(" ");
  if (!known.has(address))
    known.set(
      address,
      await api.map(store.name, {features: store.kind === "index" ? "" : features, layout, limit: kMostPoints}, signal),
    );
  if (known.size > 24) known.delete(known.keys().next().value);
  return known.get(address);
}

class MapView {
  constructor(place, store, values) {
    Object.assign(this, {place, store, values});
    this.alone = null; // the class, or the verdict, that alone is shown
    this.plot = new Plot({
      point: (i, at) => this.point(i, at),
      open: (i) => go("search", {row: this.data.row[i]}),
      select: (list) => this.select(list),
      picture: (i) => this.picture(this.data.row[i]),
    });
    this.images = new Map(); // by row
    this.plot.pictures = values.has("pictures");
    this.tip = h("div", {class: "tip", hidden: true});
    this.legend = h("div", {class: "legend", role: "group", "aria-label": "Legend"});
    this.said = h("p", {class: "quiet", "data-summary": true}, "Laying out …");
    this.chosen = h("section", {class: "chosen", "aria-label": "What is chosen"});
    this.stage = h("div", {class: "stage", "aria-busy": "true"}, this.plot.canvas, this.tip, this.tools());
    this.bar = h("div", {class: "controls", role: "group", "aria-label": "What the map shows"});
    this.controls();
    show(
      place,
      h("h1", {}, "Map"),
      this.said,
      this.bar,
      h("div", {class: "map"}, this.stage, h("aside", {}, this.legend, this.chosen)),
    );
    this.repaint = () => this.paint();
    document.addEventListener("theme", this.repaint);
    systemDark.addEventListener("change", this.repaint);
  }
  end() {
    this.plot.end();
    document.removeEventListener("theme", this.repaint);
    systemDark.removeEventListener("change", this.repaint);
  }

  // Of the address; what changes here changes it without a new page.
  by() {
    return this.values.get("by") ?? "class";
  }
  layout() {
    return this.values.get("layout") ?? "neighbours";
  }
  address(changed) {
    for (const [name, value] of Object.entries(changed))
      value === null ? this.values.delete(name) : this.values.set(name, value);
    const {store: ignored, ...rest} = Object.fromEntries(this.values);
    go("map", rest, {replace: true});
  }
  change(changed) {
    this.address(changed);
    this.controls();
    this.load();
  }
  picture(row) {
    if (!this.images.has(row)) {
      const image = api.thumbnail(this.store, row, "", 64);
      image.loading = "eager";
      image.addEventListener("load", () => this.plot.draw());
      this.images.set(row, image);
    }
    return this.images.get(row);
  }

  tools() {
    this.lasso = h(
      "button",
      {
        type: "button",
        "aria-pressed": "false",
        title: "Draw a line around points (or hold Shift)",
        onclick: () => {
          this.plot.lassoing = !this.plot.lassoing;
          this.lasso.setAttribute("aria-pressed", String(this.plot.lassoing));
        },
      },
      "Lasso",
    );
    const canShow = this.store.shows_samples && this.store.samples !== "text";
    return h(
      "div",
      {class: "tools"},
      this.lasso,
      canShow
        ? h(
            "button",
            {
              type: "button",
              "aria-pressed": String(this.plot.pictures),
              title: "Pictures instead of points, where there is room; closer there is more",
              onclick: (event) => {
                this.plot.pictures = !this.plot.pictures;
                event.currentTarget.setAttribute("aria-pressed", String(this.plot.pictures));
                this.address({pictures: this.plot.pictures ? "yes" : null});
                this.plot.draw();
              },
            },
            "Pictures",
          )
        : null,
      h("button", {type: "button", "aria-label": "Zoom in", onclick: () => this.plot.zoom(1.4)}, "+"),
      h("button", {type: "button", "aria-label": "Zoom out", onclick: () => this.plot.zoom(1 / 1.4)}, "−"),
      h("button", {type: "button", onclick: () => this.plot.reset()}, "All"),
    );
  }
  controls() {
    const {store, values} = this,
      focus = document.activeElement?.closest?.(".controls") === this.bar ? document.activeElement : null;
    const pick = (name, words, value) =>
      h(
        "fieldset",
        {class: "control pick"},
        h("legend", {}, name),
        Object.entries(words).map(([key, word]) =>
          h(
            "label",
            {class: "chip"},
            h("input", {
              type: "radio",
              name,
              value: key,
              checked: key === value,
              onchange: () => this.change({[name === "Colour" ? "by" : "layout"]: key}),
            }),
            word,
          ),
        ),
      );
    const compare = store.kind !== "index" && gradients(store).length > 0;
    show(
      this.bar,
      blockChips(store, chosenBlocks(store, values), (chosen) => this.change({blocks: blocksWord(store, chosen)})),
      pick(
        "Colour",
        {class: "class", right: "right / wrong", ...(compare ? {change: "gained / lost"} : {})},
        this.by(),
      ),
      pick("Layout", {neighbours: "neighbours", pca: "PCA"}, this.layout()),
    );
    // What had the focus has it again.
    if (focus) this.bar.querySelector(`input[name="${focus.name}"][value="${focus.value}"]`)?.focus();
  }

  async load() {
    const {store, values} = this,
      features = joined(store, chosenBlocks(store, values));
    this.stage.setAttribute("aria-busy", "true");
    const {value, error, stale} = await once(async (signal) => {
      const ask = (layout) =>
        Promise.all([
          fetchMap(store, features, layout, signal),
          this.by() === "change" ? fetchMap(store, embedding(store), layout, signal) : null,
        ]);
      // The plane of PCA is there at once, and moves to where neighbours lie together.
      if (!this.data && this.layout() !== "pca") {
        const first = await ask("pca");
        if (!signal.aborted) this.placePoints(first);
      }
      return ask(this.layout());
    });
    if (stale) return;
    this.stage.removeAttribute("aria-busy");
    if (error) {
      show(this.said, trouble(error));
      if (error.status === 401) throw error;
      return;
    }
    this.placePoints(value);
    this.tell(...value);
  }
  placePoints([data, plain]) {
    const last = this.data;
    this.data = settle(last, data);
    this.verdict = this.by() === "class" ? null : verdicts(this.by(), data, plain);
    const same = last && last.row.length === data.row.length && last.row.every((row, i) => row === data.row[i]);
    // Of a search that led here its rows are chosen.
    const near = new Set((this.values.get("near") ?? "").split(",").filter(Boolean).map(Number));
    if (!same) this.select([...this.data.row.keys()].filter((i) => near.has(this.data.row[i])));
    this.restyle();
    const {x, y} = this.data;
    this.plot.set({x, y, style: this.style, shown: this.shown, names: this.names()}, same ? last : null);
  }
  // What stands on the map: the classes that are shown, the largest first.
  names() {
    if (this.verdict) return [];
    const {x, y, label, classes} = this.data,
      of = new Map();
    for (let i = 0; i < x.length; ++i)
      if (label[i] >= 0 && this.shown(i)) of.has(label[i]) ? of.get(label[i]).push(i) : of.set(label[i], [i]);
    return [...of]
      .sort((a, b) => b[1].length - a[1].length)
      .slice(0, kMostNames)
      .map(([one, list]) => {
        const at = middleOf(x, y, list);
        return {x: x[at], y: y[at], text: classes[one]};
      });
  }
  tell(data, plain) {
    const now = share(data.right),
      before = plain ? share(plain.right) : null;
    const parts = [
      data.row.length < data.rows
        ? `${plural(data.row.length, "point")} of ${plural(data.rows, "row")}`
        : plural(data.rows, "row"),
    ];
    if (now !== null) parts.push(`their ${data.k} nearest vote right for ${percent(now)}`);
    if (before !== null) parts.push(`by the embedding alone for ${percent(before)}`);
    show(this.said, parts.join(", "), ".");
    announce(this.said.textContent);
  }

  restyle() {
    const dark = isDark(),
      {data, verdict} = this;
    const colours = new Map(
      (kVerdicts[this.by()] ?? []).map(([name, light, night, shape]) => [
        name,
        {
          colour: dark ? night : light,
          shape,
          faint: name.startsWith("right before"),
          late: name === "gained" || name === "lost" || name === "wrong",
        },
      ]),
    );
    const none = {colour: colourOf(-1, dark), faint: true},
      byLabel = new Map();
    const styleOfLabel = (label) => {
      if (!byLabel.has(label)) byLabel.set(label, {colour: colourOf(label, dark)});
      return byLabel.get(label);
    };
    this.style = verdict ? (i) => colours.get(verdict[i]) ?? none : (i) => styleOfLabel(data.label[i]);
    this.group = verdict ? (i) => verdict[i] : (i) => data.label[i];
    this.shown = this.alone === null ? () => true : (i) => this.group(i) === this.alone;
    this.drawLegend(dark);
  }
  paint() {
    if (!this.data) return;
    this.restyle();
    this.plot.restyle(this.style, this.shown, this.names());
  }
  drawLegend(dark) {
    const counts = new Map();
    for (let i = 0; i < this.data.row.length; ++i) counts.set(this.group(i), (counts.get(this.group(i)) ?? 0) + 1);
    if (!counts.has(this.alone)) ((this.alone = null), (this.shown = () => true));
    const entries = this.verdict
      ? kVerdicts[this.by()].map(([name, light, night, shape]) => [name, name, dark ? night : light, shape])
      : this.data.classes.map((name, label) => [label, name, colourOf(label, dark), ""]);
    const listed = entries.filter(([group]) => counts.has(group));
    const focus = document.activeElement?.dataset?.group;
    show(
      this.legend,
      listed.slice(0, kMostLegend).map(([group, name, colour, shape]) =>
        h(
          "button",
          {
            type: "button",
            class: "key",
            "data-group": String(group),
            "aria-pressed": String(this.alone === group),
            title: `Only ${name}`,
            onclick: () => {
              this.alone = this.alone === group ? null : group;
              this.paint();
              announce(this.alone === null ? "All are shown" : `Only ${name} is shown`);
            },
          },
          h("span", {class: `spot ${shape}`, "aria-hidden": "true", vars: {colour}}),
          h("span", {}, name),
          h("span", {class: "quiet"}, String(counts.get(group))),
        ),
      ),
      listed.length > kMostLegend ? h("p", {class: "quiet"}, `and ${listed.length - kMostLegend} more`) : null,
    );
    if (focus !== undefined) this.legend.querySelector(`[data-group="${CSS.escape(focus)}"]`)?.focus();
  }

  rowAt(i) {
    const label = this.data.label[i];
    return {
      row: this.data.row[i],
      id: `row ${this.data.row[i]}`,
      label,
      class: label >= 0 ? this.data.classes[label] : null,
    };
  }
  point(i, at) {
    this.tip.hidden = i < 0;
    if (i < 0) return;
    const row = this.rowAt(i),
      said = this.verdict?.[i] ?? "";
    const fill = (facts) =>
      show(
        this.tip,
        rowPicture(this.store, facts, 96),
        h("strong", {}, nameOf(row)),
        said ? h("span", {class: "quiet"}, said) : null,
      );
    fill(row);
    if (this.store.samples === "text" || !this.store.shows_samples)
      api.row(this.store.name, row.row).then(
        (facts) => this.plot.at === i && fill(facts),
        () => {},
      );
    const left = at[0] > this.plot.width / 2;
    this.tip.style.setProperty("left", left ? "auto" : `${at[0] + 14}px`);
    this.tip.style.setProperty("right", left ? `${this.plot.width - at[0] + 14}px` : "auto");
    this.tip.style.setProperty("top", `${Math.max(0, Math.min(at[1] - 40, this.plot.height - 150))}px`);
    if (document.activeElement === this.plot.canvas)
      announce(`${nameOf(row)}${said ? `, ${said}` : ""}, row ${row.row}`);
  }
  async select(list) {
    this.plot.mark(list);
    if (!list.length)
      return show(
        this.chosen,
        h("p", {class: "quiet"}, "Draw a line around points to see them. Click one for its neighbours."),
      );
    const counts = new Map();
    for (const i of list) counts.set(nameOf(this.rowAt(i)), (counts.get(nameOf(this.rowAt(i))) ?? 0) + 1);
    const sorted = [...counts].sort((a, b) => b[1] - a[1]);
    const cards = h("ul", {class: "cards small"});
    show(
      this.chosen,
      h(
        "div",
        {class: "row"},
        h("h2", {}, `${plural(list.length, "point")} chosen`),
        h("button", {type: "button", onclick: () => this.select([])}, "None"),
      ),
      h(
        "ul",
        {class: "shares"},
        sorted
          .slice(0, 6)
          .map(([name, count]) =>
            h(
              "li",
              {},
              h("span", {}, name),
              h("span", {class: "bar", "aria-hidden": "true", vars: {share: count / list.length}}),
              h("span", {class: "quiet"}, String(count)),
            ),
          ),
      ),
      cards,
      list.length > kMostShown ? h("p", {class: "quiet"}, `${kMostShown} of them are shown.`) : null,
    );
    announce(`${plural(list.length, "point")} chosen, most of them ${sorted[0][0]}`);
    const step = Math.max(1, list.length / kMostShown); // some of all of them
    const few = Array.from({length: Math.min(list.length, kMostShown)}, (_, i) => this.rowAt(list[Math.floor(i * step)]));
    const facts =
      this.store.samples === "text"
        ? await Promise.all(few.map((row) => api.row(this.store.name, row.row).catch(() => row)))
        : few;
    return cards.append(
      ...facts.map((row) => h("li", {}, rowCard(this.store, row, {href: to("search", {row: row.row})}))),
    );
  }
}

export async function mapView(place, values) {
  const shown = new MapView(place, view.store, values);
  shown.select([]);
  await shown.load();
  return () => shown.end();
}
