// SPDX-License-Identifier: Apache-2.0
// Two lists of neighbours beside each other: what each adds, how they agree, how far they are.
import {h, plural, short} from "./dom.js";
import {hasToken, samplePath} from "./api.js";
import {nameOf, playButton, rowCard, sampleOf} from "./cards.js";

const far = (neighbour) => neighbour.distance ?? neighbour.similarity;

// How long its bar is: the whole of it for the nearest similarity or the farthest distance.
function share(list, neighbour) {
  const most = Math.max(...list.map((one) => Math.abs(far(one))), 1e-12);
  return Math.min(1, Math.abs(far(neighbour)) / most);
}

function card(store, neighbour, i, search, other, wanted, rich, to, values) {
  const elsewhere = other ? other.neighbours.findIndex((one) => one.row === neighbour.row) : i;
  const marks = [{kind: "rank", shown: String(i + 1), said: `place ${i + 1}`}];
  let kind = "";
  if (elsewhere < 0) {
    marks.push(
      rich
        ? {kind: "new", shown: "new", said: "brought in by gradients"}
        : {kind: "new", shown: "leaves", said: "leaves with gradients"},
    );
    kind = "only";
  } else if (rich && elsewhere !== i) {
    const moved = elsewhere - i;
    marks.push({
      kind: moved > 0 ? "up" : "down",
      shown: `${moved > 0 ? "↑" : "↓"}${Math.abs(moved)}`,
      said: `place ${elsewhere + 1} by the embedding`,
    });
  }
  if (wanted !== null) {
    const same = neighbour.class === wanted;
    marks.push({
      kind: same ? "same" : "other",
      shown: same ? "✓" : "≠",
      said: same ? "of the same class" : "of another class",
    });
  }
  const named = neighbour.distance === undefined ? "similarity" : "distance";
  const keptValues = {k: values.get("k"), blocks: values.get("blocks"), classes: values.get("classes")};
  return h(
    "li",
    {},
    rowCard(store, neighbour, {
      href: to("search", {...keptValues, row: neighbour.row}),
      marks,
      classes: kind,
      below: h(
        "div",
        {class: "far"},
        h("span", {class: "bar", "aria-hidden": "true", vars: {share: share(search.neighbours, neighbour)}}),
        h("span", {}, h("span", {class: "unseen"}, `${named} `), short(far(neighbour))),
      ),
    }),
  );
}

function column(store, search, other, wanted, title, kind, to, values) {
  const list = search.neighbours;
  const agree =
    wanted === null
      ? list.filter((one) => one.class !== null && one.class === search.predicted).length
      : list.filter((one) => one.class === wanted).length;
  const said =
    search.predicted === null
      ? null
      : wanted !== null
        ? `${agree} of ${list.length} share its class`
        : `${agree} of ${list.length} are “${search.predicted}”`;
  return h(
    "section",
    {class: `column ${kind}`, "aria-label": title},
    h(
      "header",
      {},
      h("div", {}, h("h2", {}, title), h("code", {}, search.features)),
      said
        ? h(
            "p",
            {class: "agree"},
            h("span", {class: "bar", "aria-hidden": "true", vars: {share: list.length ? agree / list.length : 0}}),
            said,
          )
        : null,
    ),
    list.length
      ? h(
          "ol",
          {class: "cards"},
          list.map((one, i) => card(store, one, i, search, other, wanted, kind === "rich", to, values)),
        )
      : h("p", {class: "quiet"}, "There is no such row."),
  );
}

function summary(searches, wanted) {
  if (searches.length < 2) return "Of one kind of features there is nothing to compare.";
  const [before, after] = searches;
  const rows = new Set(before.neighbours.map((one) => one.row));
  const added = after.neighbours.filter((one) => !rows.has(one.row)).length;
  const parts = [
    added ? `Gradients bring ${plural(added, "other neighbour")} in` : "Gradients find the same neighbours",
  ];
  if (wanted !== null) {
    const of = (search) => search.neighbours.filter((one) => one.class === wanted).length;
    const more = of(after) - of(before);
    parts.push(
      more > 0
        ? `${more} more of its class`
        : more < 0
          ? `${-more} fewer of its class`
          : `as many of its class (${of(after)})`,
    );
  } else if (after.predicted !== null) {
    parts.push(
      before.predicted === after.predicted
        ? `both say “${after.predicted}”`
        : `“${before.predicted}” becomes “${after.predicted}”`,
    );
  }
  return `${parts.join(", ")}.`;
}

// Arrow keys go from card to card, and between the columns.
function walk(event) {
  const steps = {ArrowDown: [0, 1], ArrowUp: [0, -1], ArrowLeft: [-1, 0], ArrowRight: [1, 0]}[event.key];
  const link = event.target.closest?.(".column a");
  if (!steps || !link || event.altKey || event.ctrlKey || event.metaKey) return;
  const columns = [...event.currentTarget.querySelectorAll(".column")].map((one) => [
    ...one.querySelectorAll(".card > a"),
  ]);
  const at = columns.findIndex((links) => links.includes(link));
  const next = columns[at + steps[0]]?.[columns[at].indexOf(link) + steps[1]];
  if (!next) return;
  event.preventDefault();
  next.focus();
}

// The same row in the other list shines, too.
function shine(event) {
  const row = event.target.closest?.(".card")?.dataset.row;
  for (const one of event.currentTarget.querySelectorAll(".card"))
    one.classList.toggle("shine", event.type !== "mouseleave" && row !== undefined && one.dataset.row === row);
}

// The rows that are marked on the map.
function near(question, searches) {
  const rows = searches.flatMap((search) => search.neighbours.map((one) => one.row));
  return [...new Set(question.row === undefined ? rows : [question.row, ...rows])].join(",");
}

export function comparison(store, question, facts, found, to, values) {
  const searches = found.searches,
    two = searches.length > 1;
  const wanted = facts && facts.label >= 0 ? facts.class : null;
  const said = summary(searches, wanted);
  const asked = h(
    "section",
    {class: "asked panel", "aria-label": "What was asked"},
    !facts || store.shows_samples || facts.text !== undefined
      ? h("div", {class: "sample"}, sampleOf(store, question, facts), facts ? playButton(store, facts) : null)
      : null,
    h(
      "div",
      {},
      h("h2", {}, facts ? nameOf(facts) : question.file ? question.file.name || "Your picture" : "Your text"),
      facts ? h("p", {class: "quiet id"}, facts.id) : null,
      h("p", {class: "said", "data-summary": true}, said),
      h(
        "p",
        {class: "links"},
        facts?.class ? h("a", {href: to("classes", {class: facts.class})}, `All of “${facts.class}”`) : null,
        h("a", {href: to("map", {near: near(question, searches), blocks: values.get("blocks")})}, "These on the map"),
        facts && store.shows_samples && !hasToken()
          ? h("a", {href: samplePath(store, facts.row), target: "_blank", rel: "noopener"}, "The whole sample")
          : null,
      ),
    ),
  );
  const grid = h(
    "div",
    {class: `columns ${two ? "two" : ""}`, onkeydown: walk, onmouseover: shine, onfocusin: shine},
    searches.map((search, i) =>
      column(
        store,
        search,
        two ? searches[1 - i] : null,
        wanted,
        i === 0 ? (store.kind === "index" ? "Index" : "Embedding") : "With gradients",
        i === 0 ? "plain" : "rich",
        to,
        values,
      ),
    ),
  );
  grid.addEventListener("mouseleave", shine);
  return [asked, grid];
}
