// SPDX-License-Identifier: Apache-2.0
// Reading golden .npy files in tests, on purpose without the library's own reader: an oracle should
// not share the code it judges.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <stdexcept>
#include <string>
#include <vector>

namespace fungi::golden {

// The models of tests/golden/backbone.
inline std::vector<std::string> backbones() {
  namespace fs = std::filesystem;
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(FUNGI_GOLDEN_DIR "/backbone"))
    if (fs::exists(entry.path() / "facts.json")) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

struct Array {
  std::vector<size_t> shape;
  std::vector<double> values;  // any numeric type widens exactly, but for i64 beyond 2^53
  size_t rows() const { return shape.empty() ? 1 : shape[0]; }
  size_t cols() const { return values.size() / rows(); }
  std::vector<float> floats() const { return {values.begin(), values.end()}; }
};

template <class T>
std::vector<double> widen(const char* bytes, size_t count) {
  std::vector<T> raw(count);
  std::memcpy(raw.data(), bytes, count * sizeof(T));
  return {raw.begin(), raw.end()};
}

inline Array load(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("missing golden file " + path);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  const size_t header = size_t(uint8_t(bytes.at(8))) + 256 * size_t(uint8_t(bytes.at(9)));
  const std::string text = bytes.substr(10, header);
  std::smatch m;
  Array a;
  if (!std::regex_search(text, m, std::regex("'shape': \\(([^)]*)\\)")))
    throw std::runtime_error("bad header in " + path);
  const std::string dims = m[1];
  size_t count = 1;
  const std::regex number("\\d+");
  for (std::sregex_iterator i(dims.begin(), dims.end(), number), end; i != end; ++i) {
    a.shape.push_back(std::stoul(i->str()));
    count *= a.shape.back();
  }
  if (text.find("'fortran_order': True") != std::string::npos)
    throw std::runtime_error("Fortran order in " + path);
  const char* data = bytes.data() + 10 + header;
  if (text.find("'<f4'") != std::string::npos)
    a.values = widen<float>(data, count);
  else if (text.find("'<f8'") != std::string::npos)
    a.values = widen<double>(data, count);
  else if (text.find("'<i8'") != std::string::npos)
    a.values = widen<int64_t>(data, count);
  else if (text.find("'<i4'") != std::string::npos)
    a.values = widen<int32_t>(data, count);
  else if (text.find("'|u1'") != std::string::npos)
    a.values = widen<uint8_t>(data, count);
  else
    throw std::runtime_error("unknown type in " + path);
  return a;
}

// ‖x − y‖ / ‖y‖
template <class X, class Y>
double relative_error(const X* x, const Y* y, size_t n) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < n; ++i) {
    const double d = double(x[i]) - double(y[i]);
    difference += d * d, norm += double(y[i]) * double(y[i]);
  }
  return std::sqrt(difference / (norm > 0 ? norm : 1));
}

template <class X, class Y>
double cosine(const X* x, const Y* y, size_t n) {
  double xy = 0, xx = 0, yy = 0;
  for (size_t i = 0; i < n; ++i)
    xy += double(x[i]) * double(y[i]), xx += double(x[i]) * double(x[i]),
        yy += double(y[i]) * double(y[i]);
  return xy / std::sqrt(xx * yy);
}

}  // namespace fungi::golden
