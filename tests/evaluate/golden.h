// SPDX-License-Identifier: Apache-2.0
// What scikit-learn, scipy and numpy said (tests/golden/make_evaluate.py).
#pragma once

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "fungi/base/matrix.h"
#include "fungi/checkpoint/npy.h"

namespace fungi {

inline std::string golden_path(const std::string& name) {
  return std::string(FUNGI_GOLDEN_DIR) + "/evaluate/" + name;
}
inline Matrix<float> golden_matrix(const std::string& name) {
  return NpyFile::open(golden_path(name + ".npy")).read();
}
inline nlohmann::json golden_json(const char* topic) {
  return nlohmann::json::parse(std::ifstream(golden_path("golden.json")))[topic];
}
inline std::vector<int64_t> integers(const nlohmann::json& json) {
  return json.get<std::vector<int64_t>>();
}

}  // namespace fungi
