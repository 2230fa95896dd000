// SPDX-License-Identifier: Apache-2.0
// The numbers of a store: blocks and state as .npy files, read, written and checked.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "fungi/base/error.h"
#include "fungi/base/random.h"
#include "fungi/base/unit_rows.h"
#include "fungi/checkpoint/npy.h"
#include "fungi/store/half.h"
#include "fungi/store/shards.h"
#include "fungi/store/text.h"

namespace fungi::store {

std::string block_bytes(View<const float> rows, StoreType type) {
  const bool half = type == StoreType::float16;
  std::string bytes = npy_header(half ? "<f2" : "<f4", {rows.rows, rows.cols});
  std::vector<uint16_t> halves(half ? rows.cols : 0);
  for (size_t i = 0; i < rows.rows; ++i) {
    const void* data = rows.row(i);
    if (half) {
      std::transform(rows.row(i), rows.row(i) + rows.cols, halves.begin(), half_from_float);
      data = halves.data();
    }
    bytes.append(static_cast<const char*>(data), rows.cols * (half ? 2 : 4));
  }
  return bytes;
}

namespace {

StoreType type_of(const NpyFile& file) {
  if (file.shape().size() == 2 && file.descr() == "<f4") return StoreType::float32;
  if (file.shape().size() == 2 && file.descr() == "<f2") return StoreType::float16;
  fail(fmt::format("expected rows of '<f4' or '<f2', found {} dimensions of '{}'",
                   file.shape().size(), file.descr()),
       file.path());
}

}  // namespace

size_t unit_rows(View<float> rows, float weight) {
  const std::vector<double> norms = fungi::normalise_rows(rows, rows);
  if (weight != 1)
    for (size_t i = 0; i < rows.rows; ++i)
      for (size_t j = 0; j < rows.cols; ++j) rows(i, j) *= weight;
  const auto finite = [](double norm) { return std::isfinite(norm); };
  return size_t(std::find_if_not(norms.begin(), norms.end(), finite) - norms.begin());
}

BlockFile open_block(const Path& path) {
  auto file = std::make_shared<NpyFile>(NpyFile::open(path));
  if (type_of(*file) == StoreType::float32) {
    const View<const float> values = file->view<float>();
    return {StoreType::float32, values, std::move(file)};
  }
  auto values = std::make_shared<const Matrix<float>>(file->read());
  return {StoreType::float16, *values, values};
}

bool cannot_be_opened(const Error& error) {
  return error.message().starts_with("cannot be opened");
}

bool shard_is_whole(const Path& folder, const StoreSpec& spec, size_t shard, size_t rows) {
  for (const StoreBlock& block : spec.blocks) {
    const Path path = folder / block_file(block.name, shard);
    if (!std::filesystem::exists(path)) return false;
    try {
      const NpyFile file = NpyFile::open(path);
      if (file.rows() != rows || file.cols() != block.size() || type_of(file) != spec.type) {
        return false;
      }
    } catch (const Error& e) {
      if (cannot_be_opened(e)) throw;
      return false;  // cut short, or something else altogether: not whole
    }
  }
  return true;
}

Matrix<float> read_state(const Path& folder, const StoreState& state) {
  constexpr char kHint[] = "restore this file, or write its folder again with `overwrite`";
  const Path path = folder / state_file(state.name);
  std::error_code unknown;  // then it cannot be opened, which says why
  if (!std::filesystem::exists(path, unknown) && !unknown)
    fail("the file is missing", path.string(), kHint);
  const std::string checksum = fmt::format("{:016x}", fnv1a64(read_text(path)));
  if (checksum != state.checksum) {
    fail(fmt::format("expected the checksum {}, found {}: the file was changed", state.checksum,
                     checksum),
         path.string(), kHint);
  }
  const BlockFile file = open_block(path);
  if (file.values.rows != state.rows || file.values.cols != state.cols) {
    fail(fmt::format("expected {} x {} values, found {} x {}", state.rows, state.cols,
                     file.values.rows, file.values.cols),
         path.string(), kHint);
  }
  Matrix<float> values(state.rows, state.cols);
  std::copy_n(file.values.data, state.rows * state.cols, values.data());
  return values;
}

}  // namespace fungi::store
