// SPDX-License-Identifier: Apache-2.0
#include "fungi/report/html.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace fungi::html {
namespace {

constexpr const char* kStyle = R"(
:root{--ink:#1d2129;--soft:#667085;--line:#e4e7ec;--blue:#2f6fde;--good:#1a8a4a;--bad:#c7372f}
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);max-width:62rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.7rem;margin:0 0 .2rem}h2{font-size:1.15rem;margin:2.2rem 0 .6rem;border-bottom:1px solid var(--line);padding-bottom:.25rem}
p.note,figcaption{color:var(--soft);font-size:.88rem}table{border-collapse:collapse;font-variant-numeric:tabular-nums}
td,th{padding:.25rem .8rem .25rem 0;text-align:right;border-bottom:1px solid var(--line)}td:first-child,th:first-child{text-align:left}
.row{display:flex;align-items:center;gap:.3rem;margin:.25rem 0;flex-wrap:nowrap}.row .who{width:6.5rem;color:var(--soft);font-size:.85rem;flex:none}
img.p{width:52px;height:52px;object-fit:cover;border:3px solid var(--line);border-radius:4px}img.good{border-color:var(--good)}img.bad{border-color:var(--bad)}
.query{margin:0 0 1rem;page-break-inside:avoid}.two{display:flex;gap:2rem;flex-wrap:wrap}svg text{font:12px system-ui,sans-serif;fill:var(--ink)}
pre{background:#f7f8fa;padding:.8rem;border-radius:6px;white-space:pre-wrap;font-size:.8rem}@media print{body{margin:0;max-width:none}}
)";

std::string colour(size_t i) { return fmt::format("hsl({} 65% 48%)", (i * 137) % 360); }

const char* media_type(std::span<const uint8_t> f) {
  if (f.size() > 3 && f[0] == 0x89) return "image/png";
  if (f.size() > 11 && f[0] == 'R') return "image/webp";
  return "image/jpeg";
}

}  // namespace

std::string escape(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '&') out += "&amp;";
    else if (c == '<') out += "&lt;";
    else if (c == '>') out += "&gt;";
    else if (c == '"') out += "&quot;";
    else out += c;
  }
  return out;
}

std::string base64(std::span<const uint8_t> bytes) {
  static constexpr char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    for (size_t k = 0; k < 3; ++k) group = group << 8 | (i + k < bytes.size() ? bytes[i + k] : 0);
    for (size_t k = 0; k < 4; ++k) out += i + k <= bytes.size() ? digits[group >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

std::string picture(std::span<const uint8_t> file, std::string_view title, std::string_view css_class) {
  return fmt::format("<img class=\"p {}\" alt=\"{}\" title=\"{}\" src=\"data:{};base64,{}\">", css_class, escape(title), escape(title), media_type(file), base64(file));
}

std::string bars(const std::vector<Bar>& list, double smallest, double largest) {
  constexpr double kLeft = 190, kWidth = 460, kRow = 24;
  const double low = std::min(smallest, 0.0), scale = kWidth / std::max(largest - low, 1e-9), zero = kLeft - low * scale;
  std::string out = fmt::format("<svg width=\"760\" height=\"{:.0f}\" role=\"img\">", kRow * double(list.size()) + 6);
  for (size_t i = 0; i < list.size(); ++i) {
    const double y = 4 + kRow * double(i), x = zero + std::min(list[i].value, 0.0) * scale, w = std::abs(list[i].value) * scale;
    out += fmt::format("<text x=\"{:.0f}\" y=\"{:.0f}\" text-anchor=\"end\">{}</text>", kLeft - 8, y + 14, escape(list[i].label));
    out += fmt::format("<rect x=\"{:.1f}\" y=\"{:.0f}\" width=\"{:.1f}\" height=\"16\" rx=\"2\" fill=\"{}\"/>", x, y + 1, w, list[i].value < 0 ? "#c7372f" : "#2f6fde");
    out += fmt::format("<text x=\"{:.0f}\" y=\"{:.0f}\">{}</text>", zero + std::max(list[i].value, 0.0) * scale + 6, y + 14, escape(list[i].text));
  }
  return out + "</svg>";
}

std::string heat_map(const std::vector<std::string>& names, View<const double> values) {
  constexpr double kCell = 62, kLeft = 90;
  const double size = kLeft + kCell * double(names.size());
  std::string out = fmt::format("<svg width=\"{:.0f}\" height=\"{:.0f}\" role=\"img\">", size, size - kLeft + 26);
  for (size_t i = 0; i < names.size(); ++i) {
    const double at = kCell * double(i);
    out += fmt::format("<text x=\"{:.0f}\" y=\"{:.0f}\" text-anchor=\"end\">{}</text>", kLeft - 8, 24 + at + kCell / 2 + 4, escape(names[i]));
    out += fmt::format("<text x=\"{:.0f}\" y=\"14\" text-anchor=\"middle\">{}</text>", kLeft + at + kCell / 2, escape(names[i]));
    for (size_t j = 0; j < names.size(); ++j) {
      const double v = values(i, j), x = kLeft + kCell * double(j);
      out += fmt::format("<rect x=\"{:.0f}\" y=\"{:.0f}\" width=\"{:.0f}\" height=\"{:.0f}\" fill=\"hsl(215 70% {:.0f}%)\"/>", x, 24 + at, kCell - 2, kCell - 2, 96 - 58 * v);
      out += fmt::format("<text x=\"{:.0f}\" y=\"{:.0f}\" text-anchor=\"middle\" style=\"fill:{}\">{:.2f}</text>", x + kCell / 2, 24 + at + kCell / 2 + 4, v > 0.55 ? "#fff" : "#1d2129", v);
    }
  }
  return out + "</svg>";
}

std::string line_chart(const std::vector<std::string>& x, const std::vector<Line>& lines, std::string_view y_label) {
  constexpr double kWidth = 560, kHeight = 260, kLeft = 50, kTop = 12;
  double low = 1e300, high = -1e300;
  for (const Line& l : lines)
    for (double y : l.y) low = std::min(low, y), high = std::max(high, y);
  const double margin = std::max((high - low) * 0.1, 1e-6);
  low -= margin, high += margin;
  auto px = [&](size_t i) { return kLeft + (x.size() > 1 ? kWidth * double(i) / double(x.size() - 1) : kWidth / 2); };
  auto py = [&](double y) { return kTop + kHeight * (high - y) / (high - low); };
  std::string out = fmt::format("<svg width=\"780\" height=\"{:.0f}\" role=\"img\">", kHeight + 52);
  for (int g = 0; g <= 4; ++g) {
    const double y = low + (high - low) * g / 4;
    out += fmt::format("<line x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\" stroke=\"#e4e7ec\"/><text x=\"{3}\" y=\"{4:.1f}\" text-anchor=\"end\">{5:.1f}</text>", kLeft, kLeft + kWidth, py(y), kLeft - 6, py(y) + 4, y);
  }
  for (size_t i = 0; i < x.size(); ++i) out += fmt::format("<text x=\"{:.1f}\" y=\"{:.0f}\" text-anchor=\"middle\">{}</text>", px(i), kTop + kHeight + 18, escape(x[i]));
  for (size_t l = 0; l < lines.size(); ++l) {
    std::string points;
    for (size_t i = 0; i < lines[l].y.size(); ++i) points += fmt::format("{:.1f},{:.1f} ", px(i), py(lines[l].y[i]));
    out += fmt::format("<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"2\" points=\"{}\"/>", colour(l), points);
    out += fmt::format("<text x=\"{:.0f}\" y=\"{:.1f}\" style=\"fill:{}\">{}</text>", kLeft + kWidth + 8, kTop + 14 + 18 * double(l), colour(l), escape(lines[l].name));
  }
  return out + fmt::format("<text x=\"{}\" y=\"{:.0f}\">{}</text></svg>", kLeft, kTop + kHeight + 38, escape(y_label));
}

std::string scatter(View<const float> points, std::span<const int64_t> classes) {
  constexpr double kSize = 330;
  float low[2] = {1e30f, 1e30f}, high[2] = {-1e30f, -1e30f};
  for (size_t i = 0; i < points.rows; ++i)
    for (size_t c = 0; c < 2; ++c) low[c] = std::min(low[c], points(i, c)), high[c] = std::max(high[c], points(i, c));
  std::string out = fmt::format("<svg width=\"{0:.0f}\" height=\"{0:.0f}\" role=\"img\" style=\"border:1px solid #e4e7ec\">", kSize);
  for (size_t i = 0; i < points.rows; ++i) {
    const double x = 8 + (kSize - 16) * (points(i, 0) - low[0]) / std::max(high[0] - low[0], 1e-9f), y = 8 + (kSize - 16) * (points(i, 1) - low[1]) / std::max(high[1] - low[1], 1e-9f);
    out += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.4\" fill=\"{}\" fill-opacity=\".75\"/>", x, y, classes[i] < 0 ? "#999" : colour(size_t(classes[i])));
  }
  return out + "</svg>";
}

std::string page(std::string_view title, std::string_view body) {
  return fmt::format("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\"><link rel=\"icon\" href=\"data:,\"><title>{}</title><style>{}</style></head>\n<body>{}</body></html>\n", escape(title), kStyle, body);
}

}  // namespace fungi::html
