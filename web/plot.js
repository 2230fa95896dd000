// SPDX-License-Identifier: Apache-2.0
// Points on a canvas that one pans, zooms, points at and draws a line around. It knows nothing of what they stand for.
import {h} from "./dom.js";
import {boxOf, inside, nearest, towards} from "./geometry.js";

const kTurn = 500; // milliseconds from one set of places to the next
const kMostPictures = 220,
  kPicture = 46, // pixels
  kAside = 90, // for pictures around the points
  kAbove = 130; // and for tools

export class Plot {
  // on: {point(i or -1), open(i), select(list of i), picture(i) -> an image, perhaps still on its way}.
  constructor(on) {
    this.on = on;
    this.canvas = h("canvas", {
      class: "plot",
      tabindex: 0,
      role: "application",
      "aria-label":
        "Map. Arrow keys go from point to point, Enter opens one, plus and minus zoom, Shift with arrows pans, 0 shows all.",
    });
    this.x = this.y = new Float32Array(0);
    this.view = {x: 0, y: 0, scale: 1};
    this.box = {x: 0, y: 0, width: 2, height: 2};
    this.names = [];
    this.pictures = false; // instead of points, where there is room
    this.marked = new Set();
    this.at = -1;
    this.lassoing = false;
    this.pointers = new Map();
    const canvas = this.canvas,
      listen = (name, act, options) => canvas.addEventListener(name, act.bind(this), options);
    listen("pointerdown", this.down);
    listen("pointermove", this.move);
    listen("pointerup", this.up);
    listen("pointercancel", this.up);
    listen("pointerleave", () => this.pointers.size || this.pointAt(-1));
    listen("dblclick", () => this.reset());
    listen("wheel", this.wheel, {passive: false});
    listen("keydown", this.key);
    this.resized = new ResizeObserver(() => this.fit());
    this.resized.observe(canvas);
    this.redraw = () => this.draw();
  }
  end() {
    this.resized.disconnect();
    cancelAnimationFrame(this.frame);
  }

  // points: {x, y, style(i) -> {colour, shape, faint}, shown(i)}. Places move from where the same rows were.
  set(points, from) {
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    ((this.style = points.style), (this.shown = points.shown ?? (() => true)), (this.names = points.names ?? []));
    if (from && !calm) this.moving = {x: from.x, y: from.y, start: performance.now()};
    ((this.x = points.x), (this.y = points.y));
    const still = this.view.scale === 1 && this.view.x === this.box.x && this.view.y === this.box.y;
    this.box = boxOf(this.x, this.y);
    if (still) this.reset();
    this.draw();
  }
  // names: [{x, y, text}], those that matter most first.
  restyle(style, shown, names = []) {
    ((this.style = style), (this.shown = shown ?? (() => true)), (this.names = names));
    this.draw();
  }
  mark(list) {
    this.marked = new Set(list);
    this.draw();
  }

  fit() {
    const box = this.canvas.getBoundingClientRect(),
      ratio = devicePixelRatio || 1;
    if (!box.width) return;
    ((this.width = box.width), (this.height = box.height), (this.ratio = ratio));
    this.canvas.width = Math.round(box.width * ratio);
    this.canvas.height = Math.round(box.height * ratio);
    this.draw();
  }
  unit() {
    const across = Math.max(this.width - kAside, kAside) / this.box.width,
      down = Math.max(this.height - kAbove, kAbove) / this.box.height;
    return Math.min(across, down) * this.view.scale;
  }
  toScreen(x, y) {
    return [this.width / 2 + (x - this.view.x) * this.unit(), this.height / 2 - (y - this.view.y) * this.unit()];
  }
  fromScreen(px, py) {
    return [this.view.x + (px - this.width / 2) / this.unit(), this.view.y - (py - this.height / 2) / this.unit()];
  }

  draw() {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame((now) => this.paint(now));
  }
  paint(now) {
    if (!this.width || !this.style) return;
    const to = this.canvas.getContext("2d"),
      unit = this.unit();
    to.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    to.clearRect(0, 0, this.width, this.height);
    let share = 1;
    if (this.moving) {
      const t = Math.min(1, (now - this.moving.start) / kTurn);
      share = t * t * (3 - 2 * t);
    }
    const count = this.x.length,
      crowd = Math.sqrt((this.width * this.height) / Math.max(count, 1));
    const radius = Math.max(1.6, Math.min(5, crowd / 5)) * Math.min(2.2, Math.sqrt(this.view.scale));
    const place = (i) => {
      const x = share < 1 ? this.moving.x[i] + share * (this.x[i] - this.moving.x[i]) : this.x[i];
      const y = share < 1 ? this.moving.y[i] + share * (this.y[i] - this.moving.y[i]) : this.y[i];
      return [this.width / 2 + (x - this.view.x) * unit, this.height / 2 - (y - this.view.y) * unit];
    };
    const late = [],
      pictured = this.pictures && share === 1 ? this.withPictures(place) : new Map();
    for (let i = 0; i < count; ++i) {
      if (!this.shown(i) || pictured.has(i)) continue;
      const style = this.style(i);
      if (style.late || this.marked.has(i)) late.push([i, style]);
      else this.spot(to, ...place(i), radius, style, this.marked.size > 0);
    }
    for (const [i, style] of late) {
      const marked = this.marked.has(i);
      const plain = {...style, faint: style.faint && !marked};
      this.spot(to, ...place(i), radius * (marked ? 1.25 : 1), plain, this.marked.size > 0 && !marked);
    }
    for (const [i, image] of pictured) this.drawPicture(to, ...place(i), image, this.style(i), this.marked.size > 0 && !this.marked.has(i));
    if (share === 1 && !this.pictures) this.drawNames(to); // pictures say it themselves
    if (this.at >= 0 && this.at < count) {
      const [px, py] = place(this.at);
      to.globalAlpha = 1;
      to.lineWidth = 2;
      to.strokeStyle = getComputedStyle(this.canvas).color;
      to.beginPath();
      to.arc(px, py, radius + 4, 0, 7);
      to.stroke();
    }
    if (this.line?.length > 1) {
      to.globalAlpha = 1;
      to.lineWidth = 1.5;
      to.setLineDash([5, 4]);
      to.strokeStyle = getComputedStyle(this.canvas).color;
      to.beginPath();
      for (const [px, py] of this.line) to.lineTo(px, py);
      to.closePath();
      to.stroke();
      to.setLineDash([]);
    }
    if (share < 1) this.frame = requestAnimationFrame((next) => this.paint(next));
    else this.moving = null;
  }
  spot(to, px, py, radius, style, faint) {
    if (px < -9 || py < -9 || px > this.width + 9 || py > this.height + 9) return;
    to.globalAlpha = faint || style.faint ? 0.22 : 0.85;
    if (style.shape === "cross") {
      to.strokeStyle = style.colour;
      to.lineWidth = Math.max(1.5, radius / 2);
      to.beginPath();
      (to.moveTo(px - radius, py - radius), to.lineTo(px + radius, py + radius));
      (to.moveTo(px + radius, py - radius), to.lineTo(px - radius, py + radius));
      to.stroke();
      return;
    }
    to.fillStyle = style.colour;
    to.beginPath();
    to.arc(px, py, radius, 0, 7);
    to.fill();
  }

  // Points that have room for a picture, those that are chosen before all others.
  withPictures(place) {
    const taken = new Map(),
      found = new Map();
    const take = (i) => {
      if (found.size >= kMostPictures || found.has(i) || !this.shown(i)) return;
      const [px, py] = place(i);
      if (px < 0 || py < 0 || px > this.width || py > this.height) return;
      const cx = Math.floor(px / kPicture),
        cy = Math.floor(py / kPicture);
      for (let x = cx - 1; x <= cx + 1; ++x)
        for (let y = cy - 1; y <= cy + 1; ++y) {
          const other = taken.get(`${x} ${y}`);
          if (other && Math.max(Math.abs(other[0] - px), Math.abs(other[1] - py)) < kPicture + 2) return;
        }
      taken.set(`${cx} ${cy}`, [px, py]);
      found.set(i, this.on.picture(i));
    };
    for (const i of this.marked) take(i);
    for (let i = 0; i < this.x.length; ++i) take(i);
    return found;
  }
  drawPicture(to, px, py, image, style, faint) {
    const half = kPicture / 2;
    to.globalAlpha = faint || style.faint ? 0.35 : 1;
    to.save();
    to.beginPath();
    to.roundRect(px - half, py - half, kPicture, kPicture, 7);
    to.fillStyle = style.colour;
    to.fill();
    to.beginPath();
    to.roundRect(px - half + 2.5, py - half + 2.5, kPicture - 5, kPicture - 5, 5);
    to.clip();
    if (image.complete && image.naturalWidth) to.drawImage(image, px - half + 2, py - half + 2, kPicture - 4, kPicture - 4);
    to.restore();
  }
  drawNames(to) {
    const style = getComputedStyle(this.canvas),
      boxes = [];
    to.font = `600 12.5px ${style.fontFamily}`;
    to.textAlign = "center";
    to.textBaseline = "middle";
    to.lineJoin = "round";
    to.globalAlpha = 1;
    for (const name of this.names) {
      const [px, middle] = this.toScreen(name.x, name.y),
        py = middle - 15, // above what it names
        half = to.measureText(name.text).width / 2 + 5;
      const box = [px - half, py - 10, px + half, py + 10];
      if (box[0] < 0 || box[1] < 0 || box[2] > this.width || box[3] > this.height) continue;
      if (boxes.some((b) => box[0] < b[2] && b[0] < box[2] && box[1] < b[3] && b[1] < box[3])) continue;
      boxes.push(box);
      to.lineWidth = 4;
      to.strokeStyle = style.backgroundColor;
      to.strokeText(name.text, px, py);
      to.fillStyle = style.color;
      to.fillText(name.text, px, py);
    }
  }

  zoom(by, px = this.width / 2, py = this.height / 2) {
    const before = this.fromScreen(px, py);
    this.view.scale = Math.max(0.5, Math.min(80, this.view.scale * by));
    const after = this.fromScreen(px, py);
    ((this.view.x += before[0] - after[0]), (this.view.y += before[1] - after[1]));
    this.draw();
  }
  reset() {
    this.view = {x: this.box.x, y: this.box.y, scale: 1};
    this.draw();
  }
  spotOf(event) {
    const box = this.canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }
  under(px, py) {
    const [x, y] = this.fromScreen(px, py);
    return nearest(this.x, this.y, x, y, 12 / this.unit(), this.shown);
  }
  pointAt(i) {
    if (i === this.at) return;
    this.at = i;
    this.on.point(i, i < 0 ? null : this.toScreen(this.x[i], this.y[i]));
    this.draw();
  }

  down(event) {
    if (event.button > 0) return;
    this.canvas.setPointerCapture(event.pointerId);
    const at = this.spotOf(event);
    this.pointers.set(event.pointerId, at);
    ((this.start = at), (this.dragged = false));
    this.line = (this.lassoing || event.shiftKey) && this.pointers.size === 1 ? [at] : null;
  }
  move(event) {
    const at = this.spotOf(event),
      last = this.pointers.get(event.pointerId);
    if (!last) return this.pointAt(this.under(...at));
    if (Math.hypot(at[0] - this.start[0], at[1] - this.start[1]) > 4) this.dragged = true;
    if (this.pointers.size === 2) {
      const [a, b] = [...this.pointers.values()],
        before = Math.hypot(a[0] - b[0], a[1] - b[1]);
      this.pointers.set(event.pointerId, at);
      const [c, d] = [...this.pointers.values()];
      this.zoom(Math.hypot(c[0] - d[0], c[1] - d[1]) / Math.max(before, 1), (c[0] + d[0]) / 2, (c[1] + d[1]) / 2);
      this.line = null;
      return undefined;
    }
    this.pointers.set(event.pointerId, at);
    if (this.line) this.line.push(at);
    else if (this.dragged)
      ((this.view.x -= (at[0] - last[0]) / this.unit()), (this.view.y += (at[1] - last[1]) / this.unit()));
    this.draw();
    return undefined;
  }
  up(event) {
    if (!this.pointers.delete(event.pointerId)) return;
    const line = this.line;
    this.line = null;
    if (line && this.dragged) {
      const polygon = line.map(([px, py]) => this.fromScreen(px, py)),
        found = [];
      for (let i = 0; i < this.x.length; ++i) if (this.shown(i) && inside(polygon, this.x[i], this.y[i])) found.push(i);
      this.on.select(found);
    } else if (!this.dragged && event.type === "pointerup") {
      const i = this.under(...this.spotOf(event));
      // A finger points first, and opens with the second touch.
      if (i >= 0 && (event.pointerType === "mouse" || i === this.touched)) this.on.open(i);
      else ((this.touched = i), this.pointAt(i));
    }
    this.draw();
  }
  wheel(event) {
    event.preventDefault();
    this.zoom(Math.exp(-Math.max(-200, Math.min(200, event.deltaY)) / 300), ...this.spotOf(event));
  }
  key(event) {
    const steps = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1]}[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (steps && event.shiftKey) {
      ((this.view.x += (steps[0] * 60) / this.unit()), (this.view.y += (steps[1] * 60) / this.unit()));
      this.draw();
    } else if (steps) {
      const from = this.at >= 0 ? this.at : nearest(this.x, this.y, this.view.x, this.view.y, 9, this.shown);
      const next = this.at < 0 ? from : towards(this.x, this.y, from, ...steps, this.shown);
      if (next >= 0) (this.pointAt(next), this.keepInView(next));
    } else if (event.key === "Enter" && this.at >= 0) this.on.open(this.at);
    else if (event.key === "+" || event.key === "=") this.zoom(1.4);
    else if (event.key === "-") this.zoom(1 / 1.4);
    else if (event.key === "0") this.reset();
    else if (event.key === "Escape") this.on.select([]);
    else return;
    event.preventDefault();
  }
  keepInView(i) {
    const [px, py] = this.toScreen(this.x[i], this.y[i]);
    if (px > 20 && py > 20 && px < this.width - 20 && py < this.height - 20) return;
    ((this.view.x = this.x[i]), (this.view.y = this.y[i]));
    this.draw();
  }
}
