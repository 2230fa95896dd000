// SPDX-License-Identifier: Apache-2.0
// The pieces of a self-contained page: escaped text, pictures as data, charts. Numbers stand in
// real tables, with bars as decoration, so that they can be read aloud, copied and printed. Colours
// come from the style sheet (page.cpp), which knows light, dark and paper. Internal to this room.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fungi/base/matrix.h"

namespace fungi::html {

// For text and quoted attributes. Bytes that are no UTF-8 become U+FFFD: file names may hold any.
std::string escape(std::string_view text);
// The same, and lines may break after each "+": names of combinations are long.
std::string breakable(std::string_view text);

// A cell with a bar from zero to the value, on an axis from min(low, 0) to high.
std::string bar_cell(double value, double low, double high, std::string_view css_class = "");

// Values in [0, 1], darker = larger, the number printed in each cell.
std::string heat_table(const std::vector<std::string>& names, View<const double> values);

// A round number so that at most five steps cover the range.
double tick_step(double range);

struct Line {
  std::string name;
  std::vector<double> y;  // one per x
};
// The chart of percentages (five lines at most have styles; the first of them is that of what
// others are compared with) and the same numbers as a table.
std::string line_chart(const std::vector<std::string>& x, const std::vector<Line>& lines,
                       std::string_view x_label, std::string_view y_label, size_t first_style = 0);

// Points [n, 2], all those of a class one path; negative classes are left out. `names` of the
// classes are shown on hovering.
std::string scatter(View<const float> points, std::span<const int64_t> classes,
                    const std::vector<std::string>& names, std::string_view description);
// The colours of scatter(), one button per class; the page's script lets it pick out a class.
std::string legend(const std::vector<std::string>& names);

// A whole page with our style and script around the body; more of both for what a page has alone.
std::string page(std::string_view title, std::string_view body, std::string_view style = "",
                 std::string_view script = "");

}  // namespace fungi::html
