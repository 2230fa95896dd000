// SPDX-License-Identifier: Apache-2.0
// Uses the page as people do: uploads, pastes, drops, types, walks, by mouse, by keys, on a phone and in the dark. page_test.py runs it.
import {strict as assert} from "node:assert";
import {readFileSync} from "node:fs";
import {chromium} from "playwright-core";

const given = JSON.parse(process.argv[2]);
const quiet = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--disable-dev-shm-usage",
];
const browser = await chromium.launchPersistentContext(given.profile, {
  executablePath: given.browser,
  args: quiet,
  viewport: {width: 1280, height: 900},
  reducedMotion: "reduce",
});
browser.setDefaultTimeout(12000);
const page = browser.pages()[0];
const axe = readFileSync(given.axe, "utf8");

// Whatever the console says is wrong, and so is every request to another host.
let said = [];
page.on("console", (message) => ["error", "warning"].includes(message.type()) && said.push(message.text()));
page.on("pageerror", (error) => said.push(`exception: ${error.message}`));
page.on("request", (request) => {
  if (!/^(blob|data):/.test(request.url()) && !request.url().startsWith(`${given.url}/`))
    said.push(`asks elsewhere: ${request.url()}`);
});
const silent = (where) => {
  const now = said;
  said = [];
  assert.deepEqual(now, [], `${where}: the console is not silent`);
};

const api = async (path, body) =>
  (
    await (body ? page.request.post(`${given.url}${path}`, {data: body}) : page.request.get(`${given.url}${path}`))
  ).json();
const open = async (hash) => {
  await page.goto(`${given.url}/#${hash}`);
  await page.reload();
  await page.waitForSelector("html[data-ready=yes]");
};
const answered = () => page.waitForSelector(".columns .card");
const rowsOf = (kind) => page.$$eval(`.column.${kind} .card`, (cards) => cards.map((card) => Number(card.dataset.row)));
// Without the asked row, which is its own nearest.
const found = async (question, features) =>
  (await api("/v1/search", {...question, features, k: "row" in question ? 9 : 8})).searches.map((one) =>
    one.neighbours
      .map((n) => n.row)
      .filter((row) => row !== question.row)
      .slice(0, 8),
  );
const bytes = (file) => [...readFileSync(file)];
const summary = () => page.textContent("[data-summary]");
const carry = (type, target, file, name, mime) =>
  page.evaluate(
    ([kind, where, data, called, form]) => {
      const carried = new DataTransfer();
      carried.items.add(new File([new Uint8Array(data)], called, {type: form}));
      const event =
        kind === "paste"
          ? new ClipboardEvent("paste", {clipboardData: carried, bubbles: true, cancelable: true})
          : new DragEvent(kind, {dataTransfer: carried, bubbles: true, cancelable: true});
      document.querySelector(where).dispatchEvent(event);
    },
    [type, target, bytes(file), name, mime],
  );

// What is drawn with the next frame, whenever that is.
async function eventually(holds, what) {
  for (let i = 0; i < 200; ++i) {
    if (await holds()) return;
    await page.waitForTimeout(50);
  }
  assert.fail(`it does not come to pass: ${what}`);
}
async function accessible(where) {
  await page.evaluate(axe);
  const {violations} = await page.evaluate(() => window.axe.run(document, {resultTypes: ["violations"]}));
  const serious = violations
    .filter((one) => ["serious", "critical"].includes(one.impact))
    .map(
      (one) =>
        `${one.id}: ${one.nodes
          .slice(0, 3)
          .map((node) => `${node.target} ${node.any?.[0]?.message ?? ""}`)
          .join("; ")}`,
    );
  assert.deepEqual(serious, [], `${where}: axe finds`);
}
const store = (await api("/v1/stores")).stores[0],
  blocks = store.blocks.map((one) => one.name),
  all = blocks.join("+");

const tests = {
  async "begins with somewhere to begin"() {
    await open("/search");
    assert.equal(await page.title(), "Search · fungi");
    assert.ok((await page.$$(".results .card")).length > 5);
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate(() => document.activeElement.className), "skip");
    await page.keyboard.press("Enter");
    assert.equal(await page.evaluate(() => document.activeElement.id), "main");
  },
  async "an uploaded picture has the neighbours of the service"() {
    await page.setInputFiles("#file", given.row);
    await answered();
    const image = readFileSync(given.row).toString("base64");
    const [plain, rich] = await found({image, name: "00006.png"}, [blocks[0], all]);
    assert.deepEqual(await rowsOf("plain"), plain);
    assert.deepEqual(await rowsOf("rich"), rich);
    const marked = await page.$$eval(".column.rich .card.only", (cards) =>
      cards.map((card) => Number(card.dataset.row)),
    );
    assert.deepEqual(
      marked,
      rich.filter((row) => !plain.includes(row)),
    );
    assert.match(await summary(), /Gradients (bring \d+ other neighbours? in|find the same)/);
    assert.ok(await page.$eval(".asked img", (image) => image.naturalWidth > 0));
    await page.waitForFunction(() =>
      [...document.querySelectorAll(".column img")].every((image) => image.naturalWidth > 0),
    );
  },
  async "pasted and dropped pictures are asked, too"() {
    const before = page.url();
    await carry("paste", "body", given.picture, "stripes.png", "image/png");
    await page.waitForFunction((address) => location.href !== address, before);
    await answered();
    assert.match(await page.textContent(".asked h2"), /stripes/);
    const pasted = page.url();
    await carry("dragenter", "main", given.row, "coat.png", "image/png");
    assert.ok(await page.isVisible("#drop"));
    await carry("drop", "main", given.row, "coat.png", "image/png");
    await page.waitForFunction((address) => location.href !== address, pasted);
    await page.waitForFunction(() => document.querySelector(".asked h2")?.textContent === "coat.png");
    assert.ok(await page.isHidden("#drop"));
  },
  async "what is no picture has a sentence, and the next one works"() {
    await page.setInputFiles("#file", given.broken);
    assert.ok((await page.textContent(".results [role=alert]")).length > 20);
    said = said.filter((text) => !text.includes("status of 4"));
    await page.setInputFiles("#file", given.picture);
    await answered();
  },
  async "a neighbour leads on, and back leads back"() {
    await open("/search?row=17");
    await answered();
    const [plain, rich] = await found({row: 17}, [blocks[0], all]);
    assert.deepEqual([await rowsOf("plain"), await rowsOf("rich")], [plain, rich]);
    assert.match(await page.textContent(".column.rich .agree"), /\d of 8 share its class/);
    await page.click(".column.rich .card >> nth=2 >> a");
    await page.waitForFunction((row) => location.hash.includes(`row=${row}`), rich[2]);
    await page.waitForFunction(() => document.querySelectorAll(".trail li").length > 0);
    await page.waitForFunction((row) => !document.querySelector(`.column.plain [data-row="${row}"]`), rich[2]);
    assert.equal((await page.$$(".trail li")).length, 2);
    await page.goBack();
    await page.waitForFunction(() => location.hash.includes("row=17"));
    await page.waitForFunction(
      (row) => document.querySelector(".column.plain .card")?.dataset.row === String(row),
      plain[0],
    );
    // Fewer gradients, fewer classes, more neighbours.
    await page.uncheck(`input[value="${blocks[1]}"]`);
    const less = blocks.filter((name) => name !== blocks[1]).join("+");
    await page.waitForFunction((words) => document.querySelector(".column.rich code")?.textContent === words, less);
    assert.deepEqual(await rowsOf("rich"), (await found({row: 17}, [less]))[0]);
    const {classes} = await api("/v1/classes");
    await page.fill("#only", classes[2].class);
    await page.press("#only", "Enter");
    await page.waitForFunction(
      (name) => [...document.querySelectorAll(".column .name")].every((one) => one.textContent === name),
      classes[2].class,
    );
  },
  async "keys walk among neighbours"() {
    await open("/search?row=17&k=6");
    await answered();
    await page.focus(".column.plain .card a");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowRight");
    const at = await page.evaluate(() => [
      document.activeElement.closest(".column").className,
      document.activeElement.closest(".card").dataset.row,
    ]);
    const rich = await rowsOf("rich");
    assert.deepEqual(at, ["column rich", String(rich[1])]);
    await page.keyboard.press("Enter");
    await page.waitForFunction((row) => location.hash.includes(`row=${row}`), rich[1]);
  },
  async "classes and their rows"() {
    await open("/classes");
    const {classes} = await api("/v1/classes");
    assert.equal((await page.$$(".classes li")).length, classes.length);
    await page.keyboard.press("/");
    await page.keyboard.type("sneak");
    assert.equal(await page.$$eval(".classes li:not([hidden])", (list) => list.length), 1);
    await page.click(".classes li:not([hidden]) a");
    await page.waitForSelector(".cards .card");
    assert.equal(await page.textContent("h1"), "sneaker");
    const {total} = await api("/v1/rows?class=sneaker");
    assert.equal((await page.$$(".cards .card")).length, Math.min(60, total));
    await accessible("rows of a class");
  },
  async "the map draws, zooms, chooses and opens"() {
    await open("/map?by=change");
    await page.waitForSelector(".stage:not([aria-busy])");
    const map = await api(`/v1/map?features=${encodeURIComponent(all)}&limit=3000`),
      plain = await api(`/v1/map?features=${blocks[0]}&limit=3000`);
    const gained = map.right.filter((right, i) => right === 1 && plain.right[i] === 0).length;
    const listed = await page.$$eval(".legend .key", (keys) =>
      Object.fromEntries(keys.map((key) => [key.dataset.group, Number(key.lastChild.textContent)])),
    );
    assert.equal(listed.gained ?? 0, gained);
    const inked = () =>
      page.$eval("canvas", (canvas) => {
        const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", {willReadFrequently: true});
        copy.drawImage(canvas, 0, 0);
        return copy.getImageData(0, 0, canvas.width, canvas.height).data.filter((value, i) => i % 4 === 3 && value > 0)
          .length;
      });
    await eventually(async () => (await inked()) > 2000, "points are drawn");
    const ink = await inked();
    // Pictures instead of points, which its address says.
    const shown = page.waitForResponse(/thumbnail.*side=64/);
    await page.click("text=Pictures");
    await shown;
    await eventually(async () => (await inked()) > 1.5 * ink, "pictures are drawn");
    assert.match(page.url(), /pictures=yes/);
    await page.click("text=Pictures");
    await eventually(async () => (await inked()) === ink, "points are drawn again");
    assert.doesNotMatch(page.url(), /pictures/);
    // Around everything.
    const box = await (await page.$("canvas")).boundingBox();
    await page.click("text=Lasso");
    await page.mouse.move(box.x + 4, box.y + box.height - 4);
    await page.mouse.down();
    for (const [x, y] of [
      [4, 2],
      [box.width - 4, 2],
      [box.width - 4, box.height - 4],
    ])
      await page.mouse.move(box.x + x, box.y + y, {steps: 4});
    await page.mouse.up();
    assert.match(
      await page.textContent(".chosen h2"),
      new RegExp(`${map.row.length.toLocaleString("en")} points chosen`),
    );
    assert.ok((await page.$$(".chosen .card")).length >= 50);
    await page.click("text=None");
    // One group alone.
    await page.check("input[value=class]");
    await page.waitForFunction(() => document.querySelectorAll(".legend .key").length > 4);
    await page.click(".legend .key >> nth=0");
    await eventually(async () => (await inked()) < ink / 2, "one group alone is drawn");
    await page.click(".legend .key >> nth=0");
    // By keys: to a point, to the next, closer, and into it.
    await page.focus("canvas");
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("ArrowRight");
    await page.waitForSelector(".tip:not([hidden]) img");
    await page.keyboard.press("+");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => location.hash.startsWith("#/search") && location.hash.includes("row="));
    // Without any gradient it is the map of the embedding; the other layout is another map.
    await open("/map?blocks=none&layout=neighbours");
    await page.waitForSelector(".stage:not([aria-busy])");
    const share = plain.right.filter((one) => one === 1).length / plain.right.filter((one) => one >= 0).length;
    assert.ok((await summary()).includes(`${(100 * share).toFixed(1)} %`), await summary());
  },
  async "gains are the service's"() {
    await open("/gains?k=5");
    await page.waitForSelector(".gains tbody tr");
    const gains = await api(`/v1/gains?k=5&before=${blocks[0]}&features=${encodeURIComponent(all)}`);
    assert.equal(await page.textContent(".figure.plain strong"), `${(100 * gains.before.accuracy).toFixed(1)} %`);
    assert.equal(await page.textContent(".figure.rich strong"), `${(100 * gains.after.accuracy).toFixed(1)} %`);
    assert.deepEqual(
      await page.$$eval(".gains tbody th", (list) => list.map((one) => one.textContent)),
      gains.classes.map((one) => one.class),
    );
  },
  async "texts are typed, and are shown as texts"() {
    if (!given.stores.includes("questions")) return;
    await open("/search");
    await page.selectOption("#store", "questions");
    await page.waitForSelector("#text");
    await page.fill("#text", "where is my card ?");
    await page.press("#text", "Enter");
    await answered();
    const [plain] = await found({text: "where is my card ?", store: "questions"}, ["embedding"]);
    assert.deepEqual(await rowsOf("plain"), plain);
    const {rows} = await api("/v1/rows?store=questions");
    const evil = rows.find((row) => row.text.includes("onerror"));
    await open(`/search?store=questions&row=${evil.row}`);
    await answered();
    assert.equal(await page.textContent(".asked .text"), evil.text);
    assert.equal(await page.title(), "Search · fungi");
    await accessible("texts");
  },
  async "sounds are dropped and played"() {
    if (!given.stores.includes("clips")) return;
    await open("/search?store=clips");
    await page.waitForSelector("#file", {state: "attached"});
    await carry("drop", "main", given.sound, "1.wav", "audio/wav");
    await answered();
    await page.waitForFunction(() =>
      [...document.querySelectorAll(".column img")].every((image) => image.naturalWidth > 0),
    );
    await page.click(".column .play >> nth=0");
    await page.waitForSelector(".play[aria-pressed=true]");
    await page.waitForSelector(".play[aria-pressed=true]", {state: "detached"});
    await accessible("sounds");
  },
  async "the settings and the state of the server"() {
    await open("/server");
    await page.waitForSelector(".stores li");
    assert.equal((await page.$$(".stores li.panel")).length, given.stores.length);
    assert.equal(await page.textContent(".figure strong"), "ok");
    const paper = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
    const light = await paper();
    await page.selectOption("#theme", "dark");
    assert.notEqual(await paper(), light);
    await page.reload();
    await page.waitForSelector("#theme");
    assert.notEqual(await paper(), light);
    await page.selectOption("#theme", "auto");
    await page.emulateMedia({colorScheme: "dark"});
    assert.notEqual(await paper(), light);
    await page.emulateMedia({colorScheme: "light"});
    assert.equal(await paper(), light);
  },
  async "every view, wide and on a phone, light and dark"() {
    const views = {
      search: "/search",
      row: "/search?row=17",
      classes: "/classes",
      map: "/map?by=right",
      gains: "/gains",
      server: "/server",
    };
    for (const [width, height, colorScheme] of [
      [1280, 900, "light"],
      [390, 844, "dark"],
    ]) {
      await page.setViewportSize({width, height});
      await page.emulateMedia({colorScheme});
      for (const [name, hash] of Object.entries(views)) {
        await open(hash);
        await page.waitForFunction(() => !document.querySelector("[aria-busy=true]"));
        const wider = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        assert.ok(wider <= 0, `${name} is ${wider} pixels wider than a window of ${width}`);
        await accessible(`${name}, ${width}, ${colorScheme}`);
        if (given.shots) await page.screenshot({path: `${given.shots}/${name}-${width}.png`});
        silent(name);
      }
    }
    await page.setViewportSize({width: 1280, height: 900});
    await page.emulateMedia({colorScheme: "light"});
  },
  async "a server with a token asks for it, and shows pictures"() {
    await page.goto(given.guarded);
    await page.fill("#token", "another one");
    await page.press("#token", "Enter");
    assert.match(await page.textContent(".trouble"), /another/);
    await accessible("the token");
    await page.fill("#token", given.token);
    await page.press("#token", "Enter");
    await page.waitForSelector(".cards .card");
    await page.waitForFunction(() =>
      [...document.querySelectorAll(".cards img")].some((image) => image.naturalWidth > 0 && image.src.startsWith("blob:")),
    );
    // Refused requests are told by the browser, which asked the other server; nothing else may be.
    const other = said.filter((one) => !/status of 401|asks elsewhere/.test(one));
    said = [];
    assert.deepEqual(other, []);
  },
  async "damage is noticed"() {
    await page.route("**/views.css", (route) => route.abort());
    await open("/search");
    assert.notEqual(said.length, 0, "a missing file went unnoticed");
    await page.unroute("**/views.css");
    await open("/search");
    said = [];
    await page.evaluate(() =>
      document.querySelector("nav").append(Object.assign(document.createElement("img"), {src: "icon.svg"})),
    );
    await assert.rejects(accessible("a picture without words"), /image-alt/);
    said = [];
  },
  async "a server that is gone"() {
    await open("/search?row=3");
    process.kill(given.server, "SIGKILL");
    await page.click(".column .card a");
    assert.match(await page.textContent(".trouble"), /does not answer/);
    said = [];
  },
};

let failed = 0;
const only = process.env.ONLY;
for (const [name, test] of Object.entries(tests)) {
  if (only && !name.includes(only)) continue;
  const start = Date.now();
  try {
    await test();
    silent(name);
    console.log(`right: ${name} (${((Date.now() - start) / 1000).toFixed(1)} s)`);
  } catch (error) {
    ++failed;
    console.log(`WRONG: ${name}\n  ${error.message}\n  at ${page.url()}; the console: ${said.join(" | ")}`);
    said = [];
    if (failed > 3) break; // it is not worth the time
  }
}
await browser.close();
process.exit(failed ? 1 : 0);
