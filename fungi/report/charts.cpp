// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "fungi/report/html.h"

namespace fungi::html {
namespace {

// A line too short to see, whose round or square caps are the mark; of length zero it would be lost
// in print.
constexpr const char* kDot = "h.1";

// Hues as far apart as the number of classes allows.
int hue(size_t label, size_t count) {
  return count <= 12 ? int(360 * label / std::max<size_t>(count, 1)) : int(label * 137 % 360);
}

}  // namespace

double tick_step(double range) {
  const double rough = std::max(range, 1e-9) / 5,
               power = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= rough) return factor * power;
  return 10 * power;
}

std::string bar_cell(double value, double low, double high, std::string_view css_class) {
  low = std::min(low, 0.0);
  const double scale = 100 / std::max(high - low, 1e-9),
               from = (std::min(value, 0.0) - low) * scale, zero = -low * scale;
  return fmt::format(
      "<td class=\"bar {}\" aria-hidden=true><i style=\"left:{:.1f}%;width:{:.1f}%\"></i>{}</td>",
      css_class, from, std::abs(value) * scale,
      low < 0 ? fmt::format("<b style=\"left:{:.1f}%\"></b>", zero) : "");
}

std::string heat_table(const std::vector<std::string>& names, View<const double> values) {
  std::string out = "<div class=scroll><table class=heat><thead><tr><td></td>";
  for (const std::string& name : names) out += fmt::format("<th scope=col>{}</th>", escape(name));
  out += "</tr></thead><tbody>";
  for (size_t i = 0; i < names.size(); ++i) {
    out += fmt::format("<tr><th scope=row>{}</th>", escape(names[i]));
    for (size_t j = 0; j < names.size(); ++j)
      out += fmt::format("<td style=\"--v:{0:.3f}\">{0:.2f}</td>", values(i, j));
    out += "</tr>";
  }
  return out + "</tbody></table></div>";
}

std::string line_chart(const std::vector<std::string>& x, const std::vector<Line>& lines,
                       std::string_view x_label, std::string_view y_label, size_t first_style) {
  constexpr double kWidth = 560, kHeight = 240, kLeft = 56, kTop = 14;
  double low = 1e300, high = -1e300;
  for (const Line& l : lines)
    for (const double y : l.y) low = std::min(low, y), high = std::max(high, y);
  // Values that hardly differ, e.g. all 100, still need an axis: one point of it, within 0 and 100.
  if (constexpr double kLeast = 1; high - low < kLeast) {
    low = std::clamp((low + high - kLeast) / 2, 0.0, 100 - kLeast);
    high = low + kLeast;
  }
  const double step = tick_step(high - low);
  low = step * std::floor(low / step), high = std::max(step * std::ceil(high / step), low + step);
  const auto px = [&](size_t i) {
    return kLeft + (x.size() > 1 ? kWidth * double(i) / double(x.size() - 1) : kWidth / 2);
  };
  const auto py = [&](double y) { return kTop + kHeight * (high - y) / (high - low); };

  std::string drawing, keys, head, rows;
  for (double y = low; y < high + step / 2; y += step)
    drawing += fmt::format(
        "<path class=grid d=\"M{} {:.1f}h{}\"/><text x=\"{}\" y=\"{:.1f}\" "
        "text-anchor=end>{:g}</text>",
        kLeft, py(y), kWidth, kLeft - 10, py(y) + 5, std::round(y * 1e6) / 1e6);
  for (size_t i = 0; i < x.size(); ++i) {
    drawing += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=middle>{}</text>", px(i),
                           kTop + kHeight + 22, escape(x[i]));
    head += fmt::format("<th scope=col>{}</th>", escape(x[i]));
  }
  for (size_t l = 0; l < lines.size(); ++l) {
    std::string line, dots, cells;
    for (size_t i = 0; i < lines[l].y.size(); ++i) {
      line += fmt::format("{}{:.1f} {:.1f}", i ? "L" : "M", px(i), py(lines[l].y[i]));
      dots += fmt::format("M{:.1f} {:.1f}{}", px(i), py(lines[l].y[i]), kDot);
      cells += fmt::format("<td>{:.1f}</td>", lines[l].y[i]);
    }
    drawing +=
        fmt::format("<path class=\"line s{0}\" d=\"{1}\"/><path class=\"mark s{0}\" d=\"{2}\"/>",
                    l + first_style, line, dots);
    const std::string key = fmt::format(
        "<svg class=key aria-hidden=true viewBox=\"0 0 32 10\"><path class=\"line s{0}\" d=\"M2 "
        "5h28\"/><path class=\"mark s{0}\" d=\"M16 5{1}\"/></svg>",
        l + first_style, kDot);
    rows += fmt::format("<tr><th scope=row>{}{}</th>{}</tr>", key, breakable(lines[l].name), cells);
  }
  return fmt::format(
      "<figure><svg class=chart viewBox=\"0 0 640 310\" role=img aria-label=\"{} against {}; the "
      "numbers are in the table below\">{}<text x=\"{}\" y=\"{}\" "
      "text-anchor=middle>{}</text></svg></figure>"
      "<div class=scroll><table><caption>{}</caption><thead><tr><th "
      "scope=col>{}</th>{}</tr></thead><tbody>{}</tbody></table></div>",
      escape(y_label), escape(x_label), drawing, kLeft + kWidth / 2, kTop + kHeight + 50,
      escape(x_label), escape(y_label), escape(x_label), head, rows);
}

std::string scatter(View<const float> points, std::span<const int64_t> classes,
                    const std::vector<std::string>& names, std::string_view description) {
  constexpr double kSize = 1000, kMargin = 30;
  float low[2] = {1e30f, 1e30f}, high[2] = {-1e30f, -1e30f};
  for (size_t i = 0; i < points.rows; ++i)
    for (size_t c = 0; c < 2; ++c)
      low[c] = std::min(low[c], points(i, c)), high[c] = std::max(high[c], points(i, c));
  const auto at = [&](size_t i, size_t c) {
    return int(kMargin + (kSize - 2 * kMargin) * double(points(i, c) - low[c]) /
                             double(std::max(high[c] - low[c], 1e-9f)));
  };
  std::vector<std::string> dots(names.size());
  for (size_t i = 0; i < points.rows; ++i)
    if (classes[i] >= 0)
      dots.at(size_t(classes[i])) += fmt::format("M{} {}{}", at(i, 0), at(i, 1), kDot);
  std::string out = fmt::format(
      "<svg class=dots viewBox=\"0 0 1000 1000\" role=img aria-label=\"{}\">", escape(description));
  for (size_t c = 0; c < dots.size(); ++c)
    if (!dots[c].empty())
      out += fmt::format("<path data-of={} style=\"--h:{}\" d=\"{}\"><title>{}</title></path>", c,
                         hue(c, dots.size()), dots[c], escape(names[c]));
  return out + "</svg>";
}

std::string legend(const std::vector<std::string>& names) {
  std::string out = "<p class=legend>";
  for (size_t c = 0; c < names.size(); ++c)
    out += fmt::format(
        "<button type=button data-class={} aria-pressed=false style=\"--h:{}\">{}</button> ", c,
        hue(c, names.size()), escape(names[c]));
  return out + "</p>";
}

}  // namespace fungi::html
