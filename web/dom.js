// SPDX-License-Identifier: Apache-2.0
// Elements without a framework: h("button", {class: "small", onclick: go}, "Go").

export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "vars")
      for (const [key, one] of Object.entries(value)) element.style.setProperty(`--${key}`, one);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

// In the place of what was there; gives the last of it.
export function show(place, ...children) {
  place.replaceChildren(...children.flat(3).filter(Boolean));
  return place;
}

// For those who do not see what has changed.
export function announce(text) {
  const place = document.getElementById("said");
  place.textContent = "";
  setTimeout(() => (place.textContent = text), 30);
}

export function trouble(error) {
  const said = error?.sentence ?? error?.message ?? String(error);
  return h(
    "div",
    {class: "trouble", role: "alert"},
    h("strong", {}, said),
    error?.hint ? h("p", {}, error.hint) : null,
  );
}

export const plural = (count, one, many = `${one}s`) => `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
export const percent = (share, digits = 1) => `${(100 * share).toFixed(digits)} %`;

// A number as short as it can be read.
export function short(value) {
  if (!Number.isFinite(value)) return "–";
  return Math.abs(value) >= 100 ? value.toFixed(0) : Math.abs(value) >= 10 ? value.toFixed(1) : value.toFixed(3);
}

// What was asked last wins: answers to earlier questions are dropped, and their requests ended.
export function latest() {
  let current = null;
  return async (work) => {
    current?.abort();
    const mine = (current = new AbortController());
    try {
      const value = await work(mine.signal);
      return mine.signal.aborted ? {stale: true} : {value};
    } catch (error) {
      return mine.signal.aborted ? {stale: true} : {error};
    }
  };
}
