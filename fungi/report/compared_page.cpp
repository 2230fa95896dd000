// SPDX-License-Identifier: Apache-2.0
#include "fungi/report/compared_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>

#include "fungi/report/compared_figures.h"
#include "fungi/report/html.h"

namespace fungi {
namespace {

constexpr const char* kStyle = R"css(
.warning{border-left:4px solid #c60;background:var(--panel);padding:.4rem .8rem;margin:.6rem 0}
.chips{display:flex;flex-wrap:wrap;gap:.35rem;margin:1.2rem 0 0;padding:0;list-style:none;font-size:.85rem}
.chips a{display:block;border:1px solid var(--line);border-radius:1rem;padding:.1rem .7rem;color:var(--ink);text-decoration:none}.chips a:hover{background:var(--panel)}.chips span{color:var(--soft)}
h3{font-size:1rem;margin:1rem 0 .2rem}
.pivot{margin-top:.6rem}.pivot td,.pivot th{vertical-align:top;padding-right:1.1rem}.pivot .group th{color:var(--soft);font-size:.9rem;padding-top:.7rem}.pivot small,.all small{color:var(--soft);white-space:nowrap}.pivot tbody th{white-space:nowrap}
.pivot td{line-height:1.25}
.all td:nth-child(-n+4),.all th:nth-child(-n+4){text-align:left}.all .none td{color:var(--soft)}
.later{border:1px solid var(--line);border-radius:8px;padding:.45rem .9rem;margin:.5rem 0}.later summary b{color:var(--ink);font-weight:600}.later summary span{font-size:.9rem}
details ul{margin:.4rem 0;padding-left:1.2rem}details li{margin:.15rem 0;overflow-wrap:anywhere}
)css";

std::string with_deviation(const std::optional<double>& value,
                           const std::optional<double>& deviation, int digits) {
  if (!value) return "–";
  return fmt::format("{:.{}f}{}", *value, digits,
                     deviation ? fmt::format(" ±{:.{}f}", *deviation, digits) : "");
}

std::optional<double> difference(const ComparedNumber& n) {
  if (!n.paper || !n.ours) return {};
  return *n.ours - *n.paper;
}

size_t computed(const ComparedTable& table) {
  return size_t(std::count_if(table.numbers.begin(), table.numbers.end(),
                              [](const ComparedNumber& n) { return n.ours.has_value(); }));
}

// Every number, one to a line: to be read through, or copied.
std::string all_numbers(const ComparedTable& table) {
  std::string rows;
  for (const ComparedNumber& n : table.numbers)
    rows += fmt::format(
        "<tr{}><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
        n.ours ? "" : " class=none", html::escape(n.backbone), html::escape(n.data),
        html::escape(n.setting), html::breakable(n.features),
        with_deviation(n.paper, n.paper_deviation, 1), with_deviation(n.ours, n.deviation, 2),
        difference(n) ? signed_number(*difference(n), 2) : "–");
  return fmt::format(
      "<details><summary>all {} numbers, with the paper's</summary><div class=scroll><table "
      "class=all><thead><tr><th scope=col>backbone</th><th scope=col>data</th><th "
      "scope=col>setting</th><th scope=col>features</th><th scope=col>paper</th><th "
      "scope=col>ours</th><th scope=col>difference</th></tr></thead><tbody>{}</tbody></table></div>"
      "</details>",
      table.numbers.size(), rows);
}

std::string ours_of(const ComparedNumber& n) {
  return with_deviation(n.ours, n.deviation, n.unit == "percent" ? 2 : 1);
}

std::string difference_text(const ComparedNumber& n) {
  const auto d = difference(n);
  return d ? signed_number(*d, 1) : "";
}

std::string cell(const ComparedNumber* n) {
  if (!n || !(n->ours || n->paper)) return "<td>–</td>";
  return fmt::format(
      "<td>{}{}</td>", ours_of(*n),
      n->paper ? fmt::format("<br><small>{} {}</small>",
                             with_deviation(n->paper, n->paper_deviation, 1), difference_text(*n))
               : "");
}

// What was computed, and what the paper prints beside it.
class Pivot {
 public:
  explicit Pivot(const ComparedTable& table) {
    for (const ComparedNumber& n : table.numbers)
      if (n.ours) once(sets_, n.data), once(groups_, group_of(n));
    // One column of a data set would be long and thin: then settings are columns.
    const bool by_set = sets_.size() > 1 || groups_.size() == 1;
    for (const ComparedNumber& n : table.numbers)
      if (n.ours) {
        once(columns_, by_set ? n.data : group_of(n));
        once(rows_[once(heads_, by_set ? group_of(n) : n.data)], n.features);
      }
    for (const ComparedNumber& n : table.numbers) {
      const std::string head = by_set ? group_of(n) : n.data,
                        column = by_set ? n.data : group_of(n);
      if (!n.ours && !(n.paper && n.data.starts_with("mean") && rows_.contains(place(head))))
        continue;
      once(columns_, column);
      cells_[{head, n.features, column}] = &n;
      paper_ = paper_ || n.paper;
    }
  }

  std::string html() const { return columns_.size() == 1 ? three_columns() : square(); }

 private:
  static size_t once(std::vector<std::string>& list, const std::string& name) {
    const auto at = std::find(list.begin(), list.end(), name);
    if (at != list.end()) return size_t(at - list.begin());
    list.push_back(name);
    return list.size() - 1;
  }
  size_t place(const std::string& head) const {
    return size_t(std::find(heads_.begin(), heads_.end(), head) - heads_.begin());
  }
  static std::string group_of(const ComparedNumber& n) {
    return n.backbone + (n.setting == "full" ? "" : ", " + n.setting);
  }

  std::string table(const std::string& caption, const std::vector<std::string>& columns,
                    const std::function<std::string(const std::string& head,
                                                    const std::string& features)>& cells) const {
    std::string head, body;
    for (const std::string& column : columns)
      head += fmt::format("<th scope=col>{}</th>", html::escape(column));
    for (size_t i = 0; i < heads_.size(); ++i) {
      body += fmt::format("<tr class=group><th scope=colgroup colspan={}>{}</th></tr>",
                          columns.size() + 1, html::escape(heads_[i]));
      for (const std::string& one : rows_.at(i))
        body += fmt::format("<tr><th scope=row>{}</th>{}</tr>", html::escape(short_features(one)),
                            cells(heads_[i], one));
    }
    return fmt::format(
        "<div class=scroll><table class=pivot>{}<thead><tr><th scope=col>features</th>{}</tr>"
        "</thead><tbody>{}</tbody></table></div>",
        caption.empty() ? "" : fmt::format("<caption>{}</caption>", caption), head, body);
  }

  std::string square() const {
    return table(paper_ ? "ours; below it the paper's number, and the difference" : "", columns_,
                 [&](const std::string& head, const std::string& features) {
                   std::string cells;
                   for (const std::string& column : columns_) {
                     const auto found = cells_.find({head, features, column});
                     cells += cell(found == cells_.end() ? nullptr : found->second);
                   }
                   return cells;
                 });
  }

  std::string three_columns() const {
    std::vector<std::string> columns{"ours"};
    if (paper_) columns = {"ours", "paper", "difference"};
    return table("", columns, [&](const std::string& head, const std::string& features) {
      const ComparedNumber& n = *cells_.at({head, features, columns_[0]});
      std::string cells = fmt::format("<td>{}</td>", ours_of(n));
      if (paper_)
        cells += fmt::format("<td>{}</td><td>{}</td>",
                             with_deviation(n.paper, n.paper_deviation, 1), difference_text(n));
      return cells;
    });
  }

  std::vector<std::string> sets_, groups_, heads_, columns_;
  std::map<size_t, std::vector<std::string>> rows_;  // features below each head
  std::map<std::array<std::string, 3>, const ComparedNumber*> cells_;
  bool paper_ = false;
};

std::string missing_list(const ComparedTable& table) {
  std::string items;
  for (const ComparedMissing& m : table.missing)
    items += fmt::format("<li><b>{}</b>: {}{}</li>", html::escape(m.what), html::escape(m.reason),
                         m.cost.empty() ? "" : fmt::format("<br><small>{}</small>", m.cost));
  return "<ul>" + items + "</ul>";
}

std::string fold(const std::string& summary, const std::string& inside) {
  return fmt::format("<details><summary>{}</summary>{}</details>", summary, inside);
}

std::string notes_of(const ComparedTable& table) {
  if (table.notes.empty()) return "";
  std::string items;
  for (const std::string& note : table.notes)
    items += fmt::format("<li>{}</li>", html::escape(note));
  return fold(fmt::format("notes: {}", table.notes.size()), "<ul>" + items + "</ul>");
}

std::string section(const ComparedTable& table) {
  const std::string figures = figures_of(table);
  std::string out = fmt::format("<section id=\"{}\"><h2>{}</h2>{}", html::escape(table.name),
                                html::escape(table.title), figures);
  if (table.figure == ComparedFigure::dots || figures.empty()) out += Pivot(table).html();
  if (!table.missing.empty())
    out += fold(fmt::format("missing: {} of {} numbers{}", table.numbers.size() - computed(table),
                            table.numbers.size(), table.cost.empty() ? "" : "; " + table.cost),
                missing_list(table));
  return out + all_numbers(table) + notes_of(table) + "</section>";
}

std::string later(const ComparedTable& table) {
  std::string costs;
  if (!table.planned.empty()) costs += "<br><span>to compute here: " + table.planned + "</span>";
  if (!table.cost.empty()) costs += "<br><span>missing: " + table.cost + "</span>";
  return fmt::format(
      "<details class=later id=\"{}\"><summary><b>{}</b> <span>{} numbers</span>{}</summary>{}{}{}"
      "</details>",
      html::escape(table.name), html::escape(table.title), table.numbers.size(), costs,
      missing_list(table), all_numbers(table), notes_of(table));
}

std::string tile(const std::string& value, const std::string& what) {
  return fmt::format("<li><strong>{}</strong><span>{}</span></li>", value, what);
}

// "20 samples, 40 forward passes, about 3 min": the time is the number that is looked for.
std::string cost_tile(const std::string& cost, const std::string& what) {
  if (cost.empty()) return "";
  constexpr std::string_view kTime = ", about ";
  const size_t at = cost.rfind(kTime);
  return at == std::string::npos
             ? tile("–", what + ": " + cost)
             : tile(cost.substr(at + kTime.size()),
                    fmt::format("{}, on this machine: {}", what, cost.substr(0, at)));
}

std::string tiles(const ComparedPage& page) {
  size_t ours = 0, all = 0, begun = 0, compared = 0;
  double apart = 0;
  for (const ComparedTable& table : page.tables) {
    all += table.numbers.size(), ours += computed(table), begun += computed(table) > 0;
    for (const ComparedNumber& n : table.numbers)
      if (const auto d = difference(n); d && n.unit == "percent") apart += std::abs(*d), ++compared;
  }
  std::string out = tile(fmt::format("{} of {}", ours, all), "numbers computed here") +
                    tile(fmt::format("{} of {}", begun, page.tables.size()),
                         "tables and figures with a number of ours");
  // Of a rehearsal, or of another model, it would mean nothing.
  if (compared && page.warnings.empty())
    out += tile(fmt::format("{:.1f} points", apart / double(compared)),
                fmt::format("from the paper in the mean of {} numbers", compared));
  out += cost_tile(page.planned, "would take what is there");
  out += cost_tile(page.cost, "would take what is missing");
  return "<ul class=tiles>" + out + "</ul>";
}

}  // namespace

std::string compared_page(const ComparedPage& page) {
  std::string body = fmt::format("<h1>{}</h1>", html::escape(page.title));
  for (const std::string& warning : page.warnings)
    body += fmt::format("<p class=warning>{}</p>", html::escape(warning));
  body += tiles(page);
  std::string chips, sections, rest;
  for (const ComparedTable& table : page.tables) {
    const size_t ours = computed(table);
    if (ours)
      chips += fmt::format("<li><a href=\"#{0}\">{0} <span>{1}/{2}</span></a></li>",
                           html::escape(table.name), ours, table.numbers.size());
    (ours ? sections : rest) += ours ? section(table) : later(table);
  }
  if (!chips.empty()) body += fmt::format("<nav><ul class=chips>{}</ul></nav>", chips);
  body += sections;
  if (!rest.empty()) body += "<h2>Not computed yet</h2>" + rest;
  return html::page(page.title, body, fmt::format("{}{}", kFigureStyle, kStyle));
}

}  // namespace fungi
