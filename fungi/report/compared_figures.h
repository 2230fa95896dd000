// SPDX-License-Identifier: Apache-2.0
// The figures of a page of compared numbers, as SVG that is wide enough for a phone and stands in a
// grid where there is more room. Internal to this room.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fungi/report/compared_page.h"

namespace fungi {

inline constexpr std::string_view kFigureStyle = R"css(
.figs{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(18rem,100%),1fr));gap:.4rem 1.4rem}
.figs figure,.square{margin:.5rem 0;break-inside:avoid}.figs figcaption,.square figcaption{color:var(--ink);font-weight:600}
.fig{width:100%;max-width:30rem;height:auto}.fig text{font-size:14px}.fig .soft{fill:var(--soft);font-size:13px}
.fig .ours{fill:var(--accent)}.fig .paper{fill:var(--paper);stroke:var(--soft);stroke-width:1.8}.fig .to{stroke:var(--plain);stroke-width:1.2}
.fig .error{stroke:var(--accent);stroke-width:2}.fig .from{stroke:var(--plain);stroke-dasharray:3 3}.fig .cell{fill:var(--accent);stroke:var(--paper);stroke-width:2}
.fig .gain{fill:var(--good)}.fig .loss{fill:var(--bad)}.fig .same{fill:var(--plain)}.fig .axis{stroke:var(--plain)}
.keys{color:var(--soft);font-size:.9rem}.keys svg{display:inline-block;vertical-align:-2px;width:16px;height:16px;margin:0 .3rem 0 .8rem}.keys svg:first-child{margin-left:0}
)css";

// Everything that can be drawn of the numbers of ours; empty: nothing.
std::string figures_of(const ComparedTable& table);
// "embedding+kl+dino" is "+kl+dino": beside the embedding.
std::string short_features(const std::string& features);
// A minus sign is as wide as a plus sign.
std::string signed_number(double value, int digits);
// "full" is nothing to speak of.
std::string place_of(const ComparedNumber& number, bool with_backbone);

}  // namespace fungi
