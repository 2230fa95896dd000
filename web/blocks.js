// SPDX-License-Identifier: Apache-2.0
// Gradient blocks, switched on and off.
import {h} from "./dom.js";
import {embedding, gradients} from "./state.js";

export function blockChips(store, chosen, changed) {
  const all = gradients(store);
  if (!all.length || store.kind === "index") return null;
  return h(
    "fieldset",
    {class: "control blocks"},
    h("legend", {}, "Gradients"),
    h("span", {class: "chip fixed"}, embedding(store)),
    all.map((name) =>
      h(
        "label",
        {class: "chip"},
        h("input", {
          type: "checkbox",
          name: "block",
          value: name,
          checked: chosen.includes(name),
          onchange: (event) => {
            const now = event.target.checked ? [...chosen, name] : chosen.filter((one) => one !== name);
            changed(all.filter((one) => now.includes(one)));
          },
        }),
        `+ ${name}`,
      ),
    ),
  );
}
