// SPDX-License-Identifier: Apache-2.0
// What the neighbours of a point vote for, and what gradients change about that.
// By what is asked: names, colours by day and night, shapes.
export const kVerdicts = {
  right: [
    ["right", "#177a5b", "#4cc79d", ""],
    ["wrong", "#c2321c", "#ff7d66", "cross"],
  ],
  change: [
    ["gained", "#177a5b", "#4cc79d", ""],
    ["lost", "#b3128e", "#ff7bdc", "cross"],
    ["wrong before and after", "#c2601c", "#f0a35e", ""],
    ["right before and after", "#8d867e", "#7a756f", ""],
  ],
};

// What a point is by the neighbours' votes: "right", "gained", ...; null: it has no class.
export function verdicts(by, data, plain) {
  if (by === "right") return data.right.map((one) => (one < 0 ? null : one ? "right" : "wrong"));
  const before = new Map(plain.row.map((row, i) => [row, plain.right[i]]));
  return data.right.map((after, i) => {
    const first = before.get(data.row[i]) ?? -1;
    if (after < 0 || first < 0) return null;
    return after > first
      ? "gained"
      : after < first
        ? "lost"
        : after
          ? "right before and after"
          : "wrong before and after";
  });
}

// Of those that have a class, how many are right; null: none has one.
export function share(list) {
  const counted = list.filter((one) => one >= 0);
  return counted.length ? counted.filter((one) => one === 1).length / counted.length : null;
}
