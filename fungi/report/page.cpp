// SPDX-License-Identifier: Apache-2.0
// The style and the script of the page. The script is a convenience: without it everything is there
// to read.
#include <fmt/format.h>

#include "fungi/report/html.h"

namespace fungi::html {
namespace {

// Ink on every ground used here has a contrast of at least 4.5 : 1, in both schemes.
constexpr const char* kStyle = R"css(
:root{color-scheme:light;--paper:#fff;--ink:#1d2129;--soft:#566070;--line:#dfe3ea;--panel:#f5f7fa;--accent:#2f6fde;--good:#12713c;--bad:#b3261e;--plain:#7a8494;--dot:42%}
@media screen and (prefers-color-scheme:dark){:root{color-scheme:dark;--paper:#14171c;--ink:#e6e9ef;--soft:#a3adbb;--line:#333a45;--panel:#1d2229;--accent:#6ea0ff;--good:#63d091;--bad:#ff8a80;--plain:#8f9aab;--dot:64%}}
*{box-sizing:border-box}
body{font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;color:var(--ink);background:var(--paper);max-width:64rem;margin:0 auto;padding:1.5rem 1rem 3rem;overflow-wrap:break-word}
h1{font-size:1.75rem;line-height:1.2;margin:0 0 .3rem}
h2{font-size:1.2rem;margin:2.6rem 0 .5rem;padding-bottom:.25rem;border-bottom:1px solid var(--line)}
p{margin:.4rem 0}.note,caption,figcaption{color:var(--soft);font-size:.9rem}
caption{text-align:left;padding-bottom:.3rem}figure{margin:.5rem 0}
.tiles{display:flex;flex-wrap:wrap;gap:.8rem;margin:1.2rem 0 0;padding:0;list-style:none}
.tiles li{flex:1 1 12rem;background:var(--panel);border:1px solid var(--line);border-radius:8px;padding:.7rem 1rem}
.tiles strong{display:block;font-size:1.7rem;line-height:1.25;font-variant-numeric:tabular-nums}.tiles span{color:var(--soft);font-size:.9rem}
.scroll{overflow-x:auto}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}
td,th{padding:.22rem .9rem .22rem 0;text-align:right;border-bottom:1px solid var(--line);font-weight:400}td{white-space:nowrap}
thead th{color:var(--soft);font-size:.9rem;vertical-align:bottom}td:first-child,th:first-child{text-align:left}
.wide{width:100%}.steps th{font-weight:600}.up{color:var(--good)}.down{color:var(--bad)}
.bar{position:relative;width:38%;min-width:6rem}.bar i,.bar b{position:absolute}
.bar i{top:50%;height:.9rem;transform:translateY(-50%);background:var(--plain);border-radius:2px}.bar.grads i{background:var(--accent)}.bar.up i{background:var(--good)}.bar.down i{background:var(--bad)}.bar b{width:1px;top:0;bottom:0;background:var(--plain)}
.heat td,.heat th{border:0;padding:.3rem .6rem}.heat tbody td{min-width:4.2rem;height:3rem;text-align:center;background:rgb(47 111 222/calc(.75*var(--v)));border:1px solid var(--paper)}.heat thead th{text-align:center}
svg{display:block;max-width:100%}svg text{font:14px system-ui,sans-serif;fill:var(--ink)}
.chart{width:100%;max-width:46rem;height:auto}.grid{stroke:var(--line)}.line{fill:none;stroke-width:2.5}.mark{fill:none;stroke-width:9}
.s0{stroke:var(--plain)}.line.s0{stroke-dasharray:6 4}.mark.s0{stroke-linecap:round}.s1{stroke:var(--accent)}.mark.s1{stroke-linecap:square}.s2{stroke:var(--good)}.s3{stroke:var(--bad)}.line.s3{stroke-dasharray:2 3}.s4{stroke:var(--ink)}.line.s4{stroke-dasharray:10 4}.mark.s2,.mark.s4{stroke-linecap:round}.mark.s3{stroke-linecap:square}
.key{display:inline-block;width:32px;height:10px;margin-right:.5rem}
.cards{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(29rem,100%),1fr));gap:.8rem;margin-top:.6rem}
.card{border:1px solid var(--line);border-radius:8px;padding:.7rem;display:grid;grid-template-columns:5.5rem 1fr;gap:0 .8rem;break-inside:avoid}
.card[hidden]{display:none}.card .query{overflow-wrap:anywhere;font-size:.8rem;color:var(--soft);line-height:1.3}.card .query img{width:5.5rem;height:5.5rem;border-radius:4px}
.card .query strong{display:block;color:var(--ink);font-size:.95rem}
.card h3{font-size:.85rem;font-weight:400;margin:0 0 .15rem;color:var(--soft)}.card h3 b{font-weight:600}
.strip{display:grid;grid-template-columns:repeat(8,minmax(0,1fr));gap:3px;margin:0 0 .45rem;padding:0;list-style:none}
.strip li{position:relative;border:3px solid var(--bad);border-radius:5px;line-height:0}.strip li.same{border-color:var(--good)}
.strip img{width:100%;aspect-ratio:1}img{object-fit:cover}
.strip li::after{content:"\2715";position:absolute;right:-3px;bottom:-3px;font:700 10px/13px sans-serif;width:14px;text-align:center;color:var(--paper);background:var(--bad);border-radius:4px 0 4px 0}
.card.text{grid-template-columns:minmax(9rem,1fr) 3fr;grid-column:1/-1}.card.text .query p{color:var(--ink);font-size:.95rem}
.texts{margin:0 0 .45rem;padding:0;list-style:none;font-size:.85rem;line-height:1.35;overflow-wrap:anywhere}.texts li{border-left:3px solid var(--bad);padding:.1rem 0 .1rem .5rem;margin:.15rem 0}.texts li.same{border-color:var(--good)}
.texts li b::before{content:"\2715 "}.texts li.same b::before{content:"\2713 "}.texts b{color:var(--bad)}.texts .same b{color:var(--good)}mark{background:none;color:inherit;font-weight:700;text-decoration:underline;text-decoration-color:var(--accent)}
.strip li.same::after{content:"\2713";background:var(--good)}
.two{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(18rem,100%),1fr));gap:1rem;max-width:56rem}
.dots{width:100%;border:1px solid var(--line);border-radius:8px}.dots path{fill:none;stroke:hsl(var(--h) 72% var(--dot));stroke-width:17;stroke-linecap:round;stroke-opacity:.8}
.dots path:nth-child(even){stroke-linecap:square;stroke-width:14}.dots .dim{stroke:var(--line);stroke-opacity:.5}
button{font:inherit;font-size:.85rem;color:inherit;background:none;border:1px solid var(--line);border-radius:1rem;padding:.1rem .7rem;margin:.1rem 0;cursor:pointer}
.play{display:block;width:100%;padding:0;margin:0;border:0;border-radius:0;line-height:0}
button[aria-pressed=true]{border-color:var(--ink);background:var(--panel)}button:focus-visible{outline:2px solid var(--accent)}
.legend button::before{content:"";display:inline-block;width:.7em;height:.7em;margin-right:.45em;border-radius:50%;background:hsl(var(--h) 72% var(--dot))}.legend button:nth-child(even)::before{border-radius:1px}
html:not([data-ready]) .filter{display:none}
.settings td{text-align:left;white-space:normal;overflow-wrap:anywhere;font-family:ui-monospace,monospace;font-size:.85rem}.settings th{font-size:.85rem;vertical-align:top;color:var(--soft);white-space:nowrap}
details{margin-top:.6rem}summary{cursor:pointer;color:var(--soft)}
@media (max-width:40rem){body{padding-top:1rem}.settings th{white-space:normal}.wide .bar{display:none}td,th{padding-right:.6rem}svg.chart text{font-size:21px}.strip{grid-template-columns:repeat(auto-fill,minmax(36px,1fr))}}
@media print{@page{margin:14mm}*{print-color-adjust:exact;-webkit-print-color-adjust:exact}body{font-size:9.5pt;line-height:1.35;max-width:none;padding:0}td,th{padding-top:.1rem;padding-bottom:.1rem}.tiles strong{font-size:1.4em;white-space:nowrap}.settings td,.settings th{font-size:7.5pt}.filter{display:none}.card[hidden]{display:grid}
h2,figure,.note,.legend{break-after:avoid}h2{margin-top:1.4rem}tr,figure,.tiles,.two{break-inside:avoid}thead{display:table-header-group}.scroll{overflow:visible}.two{grid-template-columns:1fr 1fr}.cards{grid-template-columns:1fr 1fr}.card{grid-template-columns:4rem 1fr}.card .query img{width:4rem;height:4rem}.chart{max-width:30rem}}
)css";

constexpr const char* kScript = R"js(
{
  const all = (selector) => [...document.querySelectorAll(selector)];
  const press = (buttons, pressed) => buttons.forEach((b) => b.setAttribute("aria-pressed", String(b === pressed)));
  const classes = all("[data-class]"), filters = all("[data-show]");
  classes.forEach((button) => button.addEventListener("click", () => {
    const chosen = button.getAttribute("aria-pressed") === "true" ? null : button;
    press(classes, chosen);
    all(".dots path").forEach((p) => p.classList.toggle("dim", chosen !== null && p.dataset.of !== chosen.dataset.class));
  }));
  filters.forEach((button) => button.addEventListener("click", () => {
    press(filters, button);
    all(".card").forEach((card) => { card.hidden = button.dataset.show !== "all" && button.dataset.show !== card.dataset.kind; });
  }));
  let heard = null;
  all("[data-play]").forEach((button) => button.addEventListener("click", () => {
    const clip = document.getElementById(button.dataset.play), again = heard !== clip || clip.paused;
    if (heard) heard.pause();
    heard = clip;
    if (again) { clip.currentTime = 0; clip.play(); }
  }));
  document.documentElement.dataset.ready = "yes";
}
)js";

}  // namespace

std::string page(std::string_view title, std::string_view body, std::string_view style,
                 std::string_view script) {
  // The policy makes "self-contained" a promise the browser keeps: nothing can be loaded from
  // anywhere.
  return fmt::format(
      "<!doctype html>\n<html lang=en><head><meta charset=utf-8>"
      "<meta http-equiv=Content-Security-Policy content=\"default-src 'none'; img-src data:; "
      "media-src data:; "
      "style-src 'unsafe-inline'; script-src 'unsafe-inline'\">"
      "<meta name=viewport content=\"width=device-width,initial-scale=1\"><link rel=icon "
      "href=\"data:,\"><title>{}</title><style>{}{}</style></head>\n"
      "<body><main>{}</main><script>{}{}</script></body></html>\n",
      escape(title), kStyle, style, body, script, kScript);
}

}  // namespace fungi::html
