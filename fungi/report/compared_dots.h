// SPDX-License-Identifier: Apache-2.0
// Ours and the paper's number of each features on one axis. Internal to this room.
#pragma once

#include <string>
#include <vector>

#include "fungi/report/compared_page.h"

namespace fungi {

// How far the numbers of a chart lie apart, deviations included.
double span_of(const std::vector<const ComparedNumber*>& numbers);
// `span`: at least so much of the axis is shown. Rates have an axis of powers of ten.
std::string dot_chart(const std::string& title, const std::vector<const ComparedNumber*>& numbers,
                      double span);
// What the marks of such charts are.
std::string dot_keys(const ComparedTable& table);

}  // namespace fungi
