// SPDX-License-Identifier: Apache-2.0
// The pieces of a self-contained page: escaped text, pictures as data, and small SVG charts. No scripts, nothing from outside.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fungi/base/matrix.h"

namespace fungi::html {

std::string escape(std::string_view text);
std::string base64(std::span<const uint8_t> bytes);
// An <img> that carries its file; the type is told by the first bytes.
std::string picture(std::span<const uint8_t> file, std::string_view title, std::string_view css_class);

struct Bar {
  std::string label;
  double value = 0;        // may be negative; bars grow from zero
  std::string text;        // printed beside it
};
std::string bars(const std::vector<Bar>& list, double smallest, double largest);

// Values in [0, 1], dark = 1, the number printed in each cell.
std::string heat_map(const std::vector<std::string>& names, View<const double> values);

struct Line {
  std::string name;
  std::vector<double> y;   // one per x
};
std::string line_chart(const std::vector<std::string>& x, const std::vector<Line>& lines, std::string_view y_label);

// Points [n, 2] coloured by class number.
std::string scatter(View<const float> points, std::span<const int64_t> classes);

// A whole page with our style around the body.
std::string page(std::string_view title, std::string_view body);

}  // namespace fungi::html
