// SPDX-License-Identifier: Apache-2.0
// What the map needs of plane geometry.

// Whether a point lies in a polygon of [x, y]: by the crossings of a ray.
export function inside(polygon, x, y) {
  let odd = false;
  for (let i = 0, j = polygon.length - 1; i < polygon.length; j = i++) {
    const [ax, ay] = polygon[i],
      [bx, by] = polygon[j];
    if (ay > y !== by > y && x < ((bx - ax) * (y - ay)) / (by - ay) + ax) odd = !odd;
  }
  return odd;
}

// The turn (and flip) by which the points of `next` lie best on those of `last` with the same rows: a map that only changes its features
// shall not spin. Both are {row, x, y} about the origin.
export function settle(last, next) {
  if (!last) return next;
  const at = new Map([...last.row].map((row, i) => [row, i]));
  let xx = 0,
    xy = 0,
    yx = 0,
    yy = 0;
  for (let i = 0; i < next.row.length; ++i) {
    const j = at.get(next.row[i]);
    if (j === undefined) continue;
    ((xx += next.x[i] * last.x[j]),
      (xy += next.x[i] * last.y[j]),
      (yx += next.y[i] * last.x[j]),
      (yy += next.y[i] * last.y[j]));
  }
  // Of all turns and all turned flips the one with the largest sum of products.
  const turn = Math.hypot(xx + yy, xy - yx),
    flip = Math.hypot(xx - yy, xy + yx);
  if (Math.max(turn, flip) === 0) return next;
  const [a, b, sign] =
    turn >= flip ? [(xx + yy) / turn, (xy - yx) / turn, 1] : [(xx - yy) / flip, (xy + yx) / flip, -1];
  const x = new Float32Array(next.row.length),
    y = new Float32Array(next.row.length);
  for (let i = 0; i < x.length; ++i) {
    x[i] = a * next.x[i] - sign * b * next.y[i];
    y[i] = b * next.x[i] + sign * a * next.y[i];
  }
  return {...next, x, y};
}

// The nearest of some points, and how far; -1: none within `reach`.
export function nearest(xs, ys, x, y, reach, shown = () => true) {
  let best = -1,
    least = reach * reach;
  for (let i = 0; i < xs.length; ++i) {
    const dx = xs[i] - x,
      dy = ys[i] - y,
      square = dx * dx + dy * dy;
    if (square < least && shown(i)) ((least = square), (best = i));
  }
  return best;
}

// The middle and the sizes of some points; never nothing.
export function boxOf(xs, ys) {
  const least = [Infinity, Infinity],
    most = [-Infinity, -Infinity];
  for (let i = 0; i < xs.length; ++i) {
    ((least[0] = Math.min(least[0], xs[i])), (most[0] = Math.max(most[0], xs[i])));
    ((least[1] = Math.min(least[1], ys[i])), (most[1] = Math.max(most[1], ys[i])));
  }
  if (!xs.length) return {x: 0, y: 0, width: 2, height: 2};
  return {
    x: (least[0] + most[0]) / 2,
    y: (least[1] + most[1]) / 2,
    width: Math.max(most[0] - least[0], 1e-3),
    height: Math.max(most[1] - least[1], 1e-3),
  };
}

// The point of some that is nearest to all the others: where a name for them stands well.
const kMostCompared = 80;
export function middleOf(xs, ys, list) {
  const step = Math.max(1, list.length / kMostCompared),
    some = [];
  for (let i = 0; i < list.length; i += step) some.push(list[Math.floor(i)]);
  let best = some[0],
    least = Infinity;
  for (const i of some) {
    let sum = 0;
    for (const j of some) sum += Math.hypot(xs[i] - xs[j], ys[i] - ys[j]);
    if (sum < least) ((least = sum), (best = i));
  }
  return best;
}

// The next point from one in a direction: near, and not far aside.
export function towards(xs, ys, from, dx, dy, shown = () => true) {
  let best = -1,
    least = Infinity;
  for (let i = 0; i < xs.length; ++i) {
    if (i === from || !shown(i)) continue;
    const along = (xs[i] - xs[from]) * dx + (ys[i] - ys[from]) * dy,
      aside = Math.abs((xs[i] - xs[from]) * dy - (ys[i] - ys[from]) * dx);
    if (along <= 0 || aside > 2 * along) continue;
    const cost = along + 2 * aside;
    if (cost < least) ((least = cost), (best = i));
  }
  return best;
}

// Colours that differ, for so many classes: hues by the golden angle beyond the first ones.
const kFirst = [208, 22, 140, 330, 48, 265, 178, 0, 95, 300];
export function colourOf(label, dark) {
  if (label < 0) return dark ? "#8a8580" : "#8d867e";
  const hue = label < kFirst.length ? kFirst[label] : (label * 137.508) % 360;
  const ring = Math.floor(label / kFirst.length) % 3;
  return `hsl(${hue.toFixed(0)} ${[72, 48, 85][ring]}% ${dark ? [64, 74, 54][ring] : [42, 54, 32][ring]}%)`;
}
