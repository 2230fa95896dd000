// SPDX-License-Identifier: Apache-2.0
#include "fungi/report/compared_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "fungi/evaluate/layers.h"
#include "fungi/report/compared_dots.h"
#include "fungi/report/html.h"

namespace fungi {
namespace {

using Numbers = std::vector<const ComparedNumber*>;

size_t place_in(std::vector<std::string>& names, const std::string& name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return size_t(found - names.begin());
  names.push_back(name);
  return names.size() - 1;
}

// Groups in the order of their first number of ours.
template <class Name>
std::vector<std::pair<std::string, Numbers>> grouped(const ComparedTable& table, const Name& name) {
  std::vector<std::string> names;
  std::vector<std::pair<std::string, Numbers>> groups;
  for (const ComparedNumber& n : table.numbers) {
    if (!n.ours) continue;
    const std::string own = name(n);
    const size_t at = place_in(names, own);
    if (at == groups.size()) groups.push_back({own, {}});
    groups[at].second.push_back(&n);
  }
  return groups;
}

std::string grid(const std::vector<std::string>& figures) {
  constexpr size_t kShown = 12;
  std::string shown, folded;
  for (size_t i = 0; i < figures.size(); ++i) (i < kShown ? shown : folded) += figures[i];
  std::string out = figures.empty() ? "" : fmt::format("<div class=figs>{}</div>", shown);
  if (!folded.empty())
    out +=
        fmt::format("<details><summary>{} more charts</summary><div class=figs>{}</div></details>",
                    figures.size() - kShown, folded);
  return out;
}

std::string dots(const ComparedTable& table, bool with_backbone) {
  const auto groups =
      grouped(table, [&](const ComparedNumber& n) { return place_of(n, with_backbone); });
  double span = 0;  // the same in all charts: so steps can be compared
  for (const auto& [name, numbers] : groups)
    if (numbers[0]->unit == "percent") span = std::max(span, span_of(numbers));
  std::vector<std::string> figures;
  for (const auto& [name, numbers] : groups) figures.push_back(dot_chart(name, numbers, span));
  return grid(figures);
}

// A chart of each data set, backbone and unit; `over` and `line` say what of a number is where.
template <class Over, class Of>
std::string lines(const ComparedTable& table, bool with_backbone, const std::string& x_label,
                  const Over& over, const Of& line) {
  std::string out;
  for (const auto& [name, numbers] : grouped(table, [&](const ComparedNumber& n) {
         ComparedNumber plain = n;
         plain.setting = "full";
         return place_of(plain, with_backbone);
       })) {
    std::vector<std::string> x, names;
    for (const ComparedNumber* n : numbers) place_in(x, over(*n)), place_in(names, line(*n));
    std::vector<html::Line> all;
    for (const std::string& one : names) {
      html::Line drawn{one, std::vector<double>(x.size(), NAN)};
      for (const ComparedNumber* n : numbers)
        if (line(*n) == one) drawn.y[place_in(x, over(*n))] = *n->ours;
      if (std::none_of(drawn.y.begin(), drawn.y.end(), [](double y) { return std::isnan(y); }))
        all.push_back(std::move(drawn));
    }
    if (all.empty() || x.size() < 2) continue;
    const bool rate = numbers[0]->unit != "percent";
    out += fmt::format("<h3>{}</h3>{}", html::escape(name),
                       html::line_chart(x, all, x_label, rate ? "per second" : "accuracy, percent",
                                        all.size() == 1 ? 1 : 0));
  }
  return out;
}

std::string layers(const ComparedTable& table, bool with_backbone) {
  std::string out;
  for (const auto& [name, numbers] :
       grouped(table, [&](const ComparedNumber& n) { return place_of(n, with_backbone); })) {
    std::vector<std::pair<std::string, double>> values;
    std::optional<double> embedding;
    for (const ComparedNumber* n : numbers) {
      if (n->features == "embedding") embedding = n->ours;
      values.emplace_back(n->features, *n->ours);
    }
    const std::vector<LayerCurve> curves = layer_curves(values);
    if (curves.empty()) continue;
    std::vector<std::string> x;
    for (const size_t block : curves[0].blocks) x.push_back(std::to_string(block));
    std::vector<html::Line> all;
    if (embedding) all.push_back({"embedding", std::vector<double>(x.size(), *embedding)});
    for (const LayerCurve& curve : curves)
      if (curve.blocks == curves[0].blocks)
        all.push_back({curve.objective + " of " + curve.part, curve.values});
    out += fmt::format("<h3>{}</h3>{}", html::escape(name),
                       html::line_chart(x, all, "block", "accuracy, percent"));
  }
  return out;
}

std::string pairs(const ComparedTable& table, bool with_backbone) {
  std::vector<std::string> figures;
  for (const auto& [name, numbers] :
       grouped(table, [&](const ComparedNumber& n) { return place_of(n, with_backbone); })) {
    std::vector<std::string> blocks;
    std::map<std::pair<size_t, size_t>, double> values;
    bool alignment = false;
    for (const ComparedNumber* n : numbers) {
      const size_t sign = n->features.find_first_of("+~");
      const size_t i = place_in(blocks, n->features.substr(0, sign)),
                   j = sign == std::string::npos ? i
                                                 : place_in(blocks, n->features.substr(sign + 1));
      alignment = alignment || (sign != std::string::npos && n->features[sign] == '~');
      values[{i, j}] = values[{j, i}] = *n->ours;
    }
    double low = alignment ? 0 : 1e9, high = alignment ? 100 : -1e9;
    for (const auto& [place, value] : values)
      low = std::min(low, value), high = std::max(high, value);
    constexpr double kLeft = 88, kTop = 26, kWide = 360;
    const double cell = (kWide - kLeft) / double(blocks.size()), tall = std::min(cell, 56.0);
    std::string drawing;
    for (size_t i = 0; i < blocks.size(); ++i) {
      drawing += fmt::format(
          "<text x={0} y={1:.1f} text-anchor=end>{2}</text><text x={3:.1f} y=17 "
          "text-anchor=middle>{2}</text>",
          kLeft - 8, kTop + tall * (double(i) + 0.5) + 4, html::escape(blocks[i]),
          kLeft + cell * (double(i) + 0.5));
      for (size_t j = 0; j < blocks.size(); ++j) {
        const auto found = values.find({i, j});
        if (found == values.end() && !(alignment && i == j)) continue;
        const double value = found == values.end() ? 100 : found->second;
        drawing += fmt::format(
            "<rect class=cell x={:.1f} y={:.1f} width={:.1f} height={:.1f} fill-opacity={:.2f} "
            "/><text x={:.1f} y={:.1f} text-anchor=middle>{:.1f}</text>",
            kLeft + cell * double(j), kTop + tall * double(i), cell, tall,
            0.06 + 0.6 * (value - low) / std::max(high - low, 1e-9),
            kLeft + cell * (double(j) + 0.5), kTop + tall * (double(i) + 0.5) + 4, value);
      }
    }
    figures.push_back(fmt::format(
        "<figure class=square><figcaption>{0}</figcaption><svg class=fig viewBox=\"0 0 360 "
        "{1:.0f}\" "
        "role=img aria-label=\"{0}: {2} by {2} squares, the numbers in them\">{3}</svg></figure>",
        html::escape(name), kTop + tall * double(blocks.size()) + 4, blocks.size(), drawing));
  }
  return grid(figures);
}

struct Change {
  std::string name;
  double points;
};

std::string named(const std::vector<Change>& changes) {
  std::string out;
  for (const Change& c : changes)
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", html::escape(c.name),
                       signed_number(c.points, 0));
  return out;
}

// A bar of each class, those that gained most first.
std::string change_chart(const std::string& title, std::vector<Change> changes) {
  std::stable_sort(changes.begin(), changes.end(),
                   [](const Change& x, const Change& y) { return x.points > y.points; });
  constexpr double kLeft = 40, kWide = 316, kTop = 10, kHigh = 170;
  const double high = std::max(10.0, changes.front().points),
               low = std::min(-10.0, changes.back().points), step = html::tick_step(high - low);
  const auto py = [&](double v) { return kTop + kHigh * (high - v) / (high - low); };
  const double wide = kWide / double(changes.size());
  std::string drawing;
  for (double y = step * std::ceil(low / step); y <= high + 1e-9; y += step)
    drawing += fmt::format(
        "<path class={} d=\"M{} {:.1f}h{}\"/><text class=soft x={} y={:.1f} "
        "text-anchor=end>{}</text>",
        std::abs(y) < 1e-9 ? "axis" : "grid", kLeft, py(y), kWide, kLeft - 6, py(y) + 4,
        signed_number(y, 0));
  size_t gained = 0, lost = 0;
  for (size_t i = 0; i < changes.size(); ++i) {
    const double v = changes[i].points;
    gained += v > 0, lost += v < 0;
    drawing += fmt::format(
        "<rect class={} x={:.2f} y={:.2f} width={:.2f} height={:.2f}><title>{} "
        "{}</title></rect>",
        v > 0   ? "gain"
        : v < 0 ? "loss"
                : "same",
        kLeft + wide * double(i) + wide * 0.08, std::min(py(v), py(0)) - (v == 0 ? 1 : 0),
        wide * 0.84, std::max(std::abs(py(v) - py(0)), v == 0 ? 2.0 : 0.5),
        html::escape(changes[i].name), signed_number(v, 1));
  }
  constexpr size_t kNamed = 3;
  const size_t up = std::min(kNamed, gained), down = std::min(kNamed, lost);
  const std::vector<Change> best(changes.begin(), changes.begin() + ptrdiff_t(up)),
      worst(changes.rbegin(), changes.rbegin() + ptrdiff_t(down));
  return fmt::format(
      "<figure><figcaption>{0}</figcaption><svg class=fig viewBox=\"0 0 360 188\" role=img "
      "aria-label=\"{0}: points of accuracy of {1} classes\">{2}</svg><p class=note>points of "
      "accuracy, a bar for each class: {3} gain, {4} lose{5}{6}</p></figure>",
      html::escape(title), changes.size(), drawing, gained, lost,
      best.empty() ? "" : "; most: " + named(best),
      worst.empty() ? "" : "; least: " + named(worst));
}

std::string classes(const ComparedTable& table, bool with_backbone) {
  std::vector<std::string> figures;
  for (const auto& [name, numbers] : grouped(table, [&](const ComparedNumber& n) {
         ComparedNumber plain = n;
         plain.setting = "full";
         return place_of(plain, with_backbone);
       })) {
    const std::string first = numbers.front()->features, last = numbers.back()->features;
    std::map<std::string, double> before;
    for (const ComparedNumber* n : numbers)
      if (n->features == first) before[n->setting] = *n->ours;
    std::vector<Change> changes;
    for (const ComparedNumber* n : numbers)
      if (n->features == last && first != last && before.contains(n->setting))
        changes.push_back({n->setting, *n->ours - before[n->setting]});
    if (changes.empty()) continue;
    figures.push_back(
        change_chart(fmt::format("{}: {}", name, short_features(last)), std::move(changes)));
  }
  return grid(figures);
}

// What all names begin with, up to its last `sign`.
std::string common_start(const ComparedTable& table, char sign) {
  std::string start;
  for (const ComparedNumber& n : table.numbers) {
    const std::string own = n.features.substr(0, n.features.find(sign) + 1);
    if (start.empty()) start = own;
    if (own != start || !n.features.starts_with(start)) return "";
  }
  return start;
}

}  // namespace

std::string signed_number(double value, int digits) {
  const std::string size = fmt::format("{:.{}f}", std::abs(value), digits);
  if (std::stod(size) == 0) return size;
  return (value < 0 ? "−" : "+") + size;
}

std::string short_features(const std::string& features) {
  constexpr std::string_view kEmbedding = "embedding";
  const bool beside = features.starts_with("embedding+");
  return beside ? features.substr(kEmbedding.size()) : features;
}

std::string place_of(const ComparedNumber& n, bool with_backbone) {
  std::string out = n.unit == "percent" ? n.data : n.data + ", " + n.unit;
  if (n.unit != "percent") return with_backbone ? out + ", " + n.backbone : out;
  if (n.setting != "full") out += ", " + n.setting;
  if (with_backbone) out += ", " + n.backbone;
  return out;
}

std::string figures_of(const ComparedTable& table) {
  std::set<std::string> backbones;
  for (const ComparedNumber& n : table.numbers)
    if (n.ours) backbones.insert(n.backbone);
  const bool several = backbones.size() > 1;
  switch (table.figure) {
    case ComparedFigure::dots: {
      const std::string charts = dots(table, several);
      return charts.empty() ? "" : dot_keys(table) + charts;
    }
    case ComparedFigure::over_settings:
      return lines(
          table, several, "training samples of each class",
          [](const ComparedNumber& n) { return n.setting.substr(0, n.setting.find('-')); },
          [](const ComparedNumber& n) { return n.features; });
    case ComparedFigure::over_features: {
      const std::string start = common_start(table, '_');
      return lines(
          table, several,
          start.empty() ? "features" : start.substr(0, start.size() - 1) + ": views",
          [&](const ComparedNumber& n) { return n.features.substr(start.size()); },
          [](const ComparedNumber& n) { return n.setting == "full" ? "accuracy" : n.setting; });
    }
    case ComparedFigure::layers:
      return layers(table, several);
    case ComparedFigure::pairs:
      return pairs(table, several);
    case ComparedFigure::classes:
      return classes(table, several);
  }
  return "";
}

}  // namespace fungi
