// SPDX-License-Identifier: Apache-2.0
// A row as one sees it: its picture, its text, or the spectrogram of its sound, which is played.
import * as api from "./api.js";
import {h} from "./dom.js";
import {wish} from "./state.js";

export const nameOf = (row) => row.class ?? (row.label >= 0 ? `class ${row.label}` : "no class");
const described = (store, row) =>
  `${store.samples === "sound" ? "Sound" : store.samples === "text" ? "Text" : "Picture"} ${row.id}, ${nameOf(row)}`;

export function rowPicture(store, row, side = wish("side")) {
  if (row.text !== undefined) return h("p", {class: "text"}, row.text);
  if (store.shows_samples && store.samples !== "text")
    return api.thumbnail(store, row.row, described(store, row), side);
  return h("p", {class: "text"}, row.id);
}

let playing = null;
export function playButton(store, row) {
  if (store.samples !== "sound" || !store.shows_samples) return null;
  const button = h(
    "button",
    {
      type: "button",
      class: "play",
      "aria-label": `Play ${row.id}`,
      "aria-pressed": "false",
      onclick: async () => {
        const again = playing?.button === button;
        playing?.stop();
        if (again) return;
        const sound = new Audio(await api.source(api.samplePath(store, row.row)));
        const stop = () => {
          sound.pause();
          button.setAttribute("aria-pressed", "false");
          if (playing?.button === button) playing = null;
        };
        playing = {button, stop};
        button.setAttribute("aria-pressed", "true");
        sound.addEventListener("ended", stop);
        sound.play().catch(stop);
      },
    },
    h("span", {"aria-hidden": "true"}, "▶"),
  );
  return button;
}

// A row that leads to its own neighbours.
export function rowCard(store, row, {href, marks = [], below = null, classes = ""} = {}) {
  return h(
    "div",
    {class: `card ${classes}`, "data-row": row.row},
    h(
      "a",
      {href, "aria-label": [described(store, row), ...marks.map((mark) => mark.said)].join(", "), title: row.id},
      rowPicture(store, row),
      marks.length
        ? h(
            "span",
            {class: "marks", "aria-hidden": "true"},
            marks.map((mark) => h("span", {class: `mark ${mark.kind}`}, mark.shown)),
          )
        : null,
      h("span", {class: "name", "aria-hidden": "true"}, nameOf(row)),
    ),
    playButton(store, row),
    below,
  );
}

// What was asked: a row, a text or a file.
const addresses = new WeakMap();
export function sampleOf(store, question, row, {side = 200, small = false} = {}) {
  if (row) return rowPicture(store, row, side);
  if (question.text !== undefined) return h("p", {class: "text"}, question.text);
  if (!addresses.has(question.file)) addresses.set(question.file, URL.createObjectURL(question.file));
  if (store.samples === "sound")
    return small ? h("p", {class: "text"}, "♪") : h("audio", {controls: true, src: addresses.get(question.file)});
  const image = h("img", {
    alt: question.file.name || "The picture that was asked",
    src: addresses.get(question.file),
    width: side,
    height: side,
  });
  image.addEventListener("error", () => image.classList.add("broken")); // one that the browser does not know, such as TIFF
  return image;
}
