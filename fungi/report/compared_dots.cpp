// SPDX-License-Identifier: Apache-2.0
#include "fungi/report/compared_dots.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "fungi/report/compared_figures.h"
#include "fungi/report/html.h"

namespace fungi {
namespace {

constexpr double kLeft = 130, kRight = 290, kTop = 6, kRow = 24;

void widen(const ComparedNumber& n, double& low, double& high) {
  for (const auto& [value, deviation] :
       {std::pair(n.ours, n.deviation), std::pair(n.paper, n.paper_deviation)}) {
    if (!value) continue;
    low = std::min(low, *value - deviation.value_or(0));
    high = std::max(high, *value + deviation.value_or(0));
  }
}

struct Axis {
  double low, high;
  bool powers;  // of ten
  double at(double value) const {
    const double share = powers ? std::log(std::max(value, low) / low) / std::log(high / low)
                                : (value - low) / (high - low);
    return kLeft + (kRight - kLeft) * std::clamp(share, 0.0, 1.0);
  }
  std::vector<double> ticks() const {
    std::vector<double> out;
    const double step = html::tick_step(1.5 * (high - low));
    if (powers)
      for (double v = low; v <= high * 1.001; v *= 10) out.push_back(v);
    else
      for (double v = step * std::ceil(low / step); v <= high; v += step) out.push_back(v);
    return out;
  }
};

Axis axis_of(const std::vector<const ComparedNumber*>& numbers, double span) {
  double low = 1e300, high = -1e300;
  for (const ComparedNumber* n : numbers) widen(*n, low, high);
  if (numbers[0]->unit != "percent")
    return {std::pow(10, std::floor(std::log10(std::max(low, 1e-3)))),
            std::pow(10, std::ceil(std::log10(std::max(high, 1e-2)) + 1e-9)), true};
  constexpr double kLeast = 2, kMargin = 1.12;
  const double wide = std::max({span, high - low, kLeast}) * kMargin, middle = (low + high) / 2;
  return {middle - wide / 2, middle + wide / 2, false};
}

std::string number(double value) {
  return fmt::format(fmt::runtime(value >= 1000 ? "{:.0f}" : "{:.1f}"), value);
}

std::string row(const ComparedNumber& n, const Axis& axis, double y) {
  std::string out = fmt::format("<text x={} y={:.1f} text-anchor=end>{}</text>", kLeft - 10, y + 4,
                                html::escape(short_features(n.features)));
  const double x = axis.at(*n.ours);
  if (n.paper) {
    const double there = axis.at(*n.paper);
    out += fmt::format("<path class=to d=\"M{:.1f} {:.1f}H{:.1f}\"/>", there, y, x);
    if (n.paper_deviation)
      out += fmt::format("<path class=to d=\"M{:.1f} {:.1f}H{:.1f}\"/>",
                         axis.at(*n.paper - *n.paper_deviation), y + 5,
                         axis.at(*n.paper + *n.paper_deviation));
    out += fmt::format("<path class=paper d=\"M{:.1f} {:.1f}l5.5 5.5 -5.5 5.5 -5.5 -5.5z\"/>",
                       there, y - 5.5);
  }
  if (n.deviation)
    out += fmt::format("<path class=error d=\"M{:.1f} {:.1f}H{:.1f}m0 -4v8M{:.1f} {:.1f}v8\"/>",
                       axis.at(*n.ours - *n.deviation), y, axis.at(*n.ours + *n.deviation),
                       axis.at(*n.ours - *n.deviation), y - 4);
  out += fmt::format("<circle class=ours cx={:.1f} cy={:.1f} r=5 />", x, y);
  return out + fmt::format("<text x=358 y={:.1f} text-anchor=end>{}{}</text>", y + 4,
                           number(*n.ours),
                           n.deviation ? fmt::format("±{:.1f}", *n.deviation) : "");
}

}  // namespace

double span_of(const std::vector<const ComparedNumber*>& numbers) {
  double low = 1e300, high = -1e300;
  for (const ComparedNumber* n : numbers) widen(*n, low, high);
  return high - low;
}

std::string dot_chart(const std::string& title, const std::vector<const ComparedNumber*>& numbers,
                      double span) {
  const Axis axis = axis_of(numbers, span);
  const double bottom = kTop + kRow * double(numbers.size());
  std::string drawing;
  for (const double v : axis.ticks())
    drawing += fmt::format(
        "<path class=grid d=\"M{0:.1f} {1}V{2:.1f}\"/><text class=soft x={0:.1f} y={3:.1f} "
        "text-anchor=middle>{4:g}</text>",
        axis.at(v), kTop, bottom, bottom + 15, std::round(v * 1e6) / 1e6);
  if (numbers[0]->features == "embedding" && numbers[0]->unit == "percent")
    drawing += fmt::format("<path class=from d=\"M{:.1f} {}V{:.1f}\"/>", axis.at(*numbers[0]->ours),
                           kTop, bottom);
  for (size_t i = 0; i < numbers.size(); ++i)
    drawing += row(*numbers[i], axis, kTop + kRow * (double(i) + 0.5));
  return fmt::format(
      "<figure><figcaption>{0}</figcaption><svg class=fig viewBox=\"0 0 360 {1:.0f}\" role=img "
      "aria-label=\"{0}, {2}; the numbers are in the table below\">{3}</svg></figure>",
      html::escape(title), bottom + 20, numbers[0]->unit, drawing);
}

std::string dot_keys(const ComparedTable& table) {
  bool paper = false, embedding = false, deviation = false;
  for (const ComparedNumber& n : table.numbers) {
    if (!n.ours) continue;
    paper = paper || n.paper;
    embedding = embedding || (n.features == "embedding" && n.unit == "percent");
    deviation = deviation || n.deviation;
  }
  const auto key = [](const char* mark, const char* what) {
    return fmt::format("<svg class=fig aria-hidden=true viewBox=\"0 0 16 16\">{}</svg>{}", mark,
                       what);
  };
  std::string out = "<p class=keys>" + key("<circle class=ours cx=8 cy=8 r=5 />", "ours");
  if (paper)
    out += key("<path class=paper d=\"M8 2.5l5.5 5.5 -5.5 5.5 -5.5 -5.5z\"/>", "the paper");
  if (embedding) out += key("<path class=from d=\"M8 0v16\"/>", "our embedding");
  if (deviation)
    out += key("<path class=error d=\"M1 8h14m0 -4v8M1 4v8\"/>", "deviation over seeds");
  return out + "</p>";
}

}  // namespace fungi
