// SPDX-License-Identifier: Apache-2.0
#include "fungi/report/compared_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "fungi/report/html.h"

namespace fungi {
namespace {

constexpr size_t kBars = 40;  // rows of a chart

constexpr const char* kStyle = R"css(
.warning{border-left:4px solid #c60;padding:.3rem .8rem;margin:.6rem 0}
.compared td,.compared th{padding:.1rem .6rem;text-align:left}.compared td.n{text-align:right;font-variant-numeric:tabular-nums}
.compared tr.none td{color:var(--soft)}svg.bars{max-width:100%;height:auto}svg.bars text{font:12px sans-serif;fill:var(--ink)}
svg.bars .paper{fill:#9aa7b5}svg.bars .ours{fill:var(--accent)}details{margin:.4rem 0}
)css";

std::string number(const std::optional<double>& value, const char* format) {
  return value ? fmt::format(fmt::runtime(format), *value) : "–";
}

std::string table_of(const ComparedTable& table) {
  std::string rows;
  for (const ComparedNumber& n : table.numbers)
    rows += fmt::format(
        "<tr{}><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td class=\"n\">{}</td>"
        "<td class=\"n\">{}</td><td class=\"n\">{}</td></tr>",
        n.ours ? "" : " class=\"none\"", html::escape(n.backbone), html::escape(n.data),
        html::escape(n.setting), html::breakable(n.features), number(n.paper, "{:.1f}"),
        number(n.ours, "{:.2f}"),
        number(n.paper && n.ours ? std::optional(*n.ours - *n.paper) : std::nullopt, "{:+.2f}"));
  return fmt::format(
      "<table class=\"compared\"><thead><tr><th>backbone</th><th>data</th><th>setting</th>"
      "<th>features</th><th>paper</th><th>ours</th><th>difference</th></tr></thead>"
      "<tbody>{}</tbody></table>",
      rows);
}

std::string bar(const char* kind, const std::optional<double>& value, size_t y) {
  if (!value) return "";
  const double wide = 4 * std::clamp(*value, 0.0, 100.0);
  return fmt::format(
      "<rect class=\"{}\" x=\"330\" y=\"{}\" width=\"{:.1f}\" height=\"9\"/>"
      "<text x=\"{:.1f}\" y=\"{}\" style=\"font-size:10px\">{:.1f}</text>",
      kind, y, wide, 335 + wide, y + 9, *value);
}

// Two bars for each number of ours: the paper's, and ours.
std::string chart_of(const ComparedTable& table) {
  std::string bars;
  size_t y = 4, shown = 0;
  for (const ComparedNumber& n : table.numbers) {
    if (!n.ours || shown == kBars) continue;
    ++shown;
    bars += fmt::format("<text x=\"322\" y=\"{}\" text-anchor=\"end\">{}</text>", y + 14,
                        html::escape(fmt::format("{} {} {}", n.data, n.setting, n.features)));
    bars += bar("paper", n.paper, y) + bar("ours", n.ours, y + 10);
    y += 26;
  }
  if (shown == 0) return "";
  return fmt::format(
      "<svg class=\"bars\" viewBox=\"0 0 790 {0}\" width=\"790\" height=\"{0}\" role=\"img\" "
      "aria-label=\"paper and ours, in percent\">{1}</svg><p>grey: the paper; coloured: ours</p>",
      y + 4, bars);
}

std::string list_of(const char* title, const std::vector<std::string>& lines) {
  if (lines.empty()) return "";
  std::string items;
  for (const std::string& line : lines) items += fmt::format("<li>{}</li>", html::escape(line));
  return fmt::format("<details><summary>{}: {}</summary><ul>{}</ul></details>", title, lines.size(),
                     items);
}

}  // namespace

std::string compared_page(const std::string& title, const std::vector<std::string>& warnings,
                          const std::vector<ComparedTable>& tables) {
  std::string body = fmt::format("<h1>{}</h1>", html::escape(title));
  for (const std::string& warning : warnings)
    body += fmt::format("<p class=\"warning\">{}</p>", html::escape(warning));
  size_t ours = 0, all = 0;
  for (const ComparedTable& table : tables) {
    all += table.numbers.size();
    ours += size_t(std::count_if(table.numbers.begin(), table.numbers.end(),
                                 [](const ComparedNumber& n) { return n.ours.has_value(); }));
  }
  body += fmt::format("<p>{} of {} numbers were computed here.</p>", ours, all);
  for (const ComparedTable& table : tables)
    body +=
        fmt::format("<section id=\"{}\"><h2>{}</h2>{}{}{}{}</section>", html::escape(table.name),
                    html::escape(table.title), chart_of(table), table_of(table),
                    list_of("missing", table.missing), list_of("notes", table.notes));
  return html::page(title, body, kStyle);
}

}  // namespace fungi
