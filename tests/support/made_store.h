// SPDX-License-Identifier: Apache-2.0
// Small stores of made-up rows, written without a model.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "fungi/store/writer.h"

namespace fungi::test {

struct MadeRow {
  std::string id;
  int64_t label = -1;
  std::vector<std::vector<float>> blocks;  // as many as there are names
};

inline void write_made_store(const std::filesystem::path& folder, const std::vector<MadeRow>& rows,
                             const std::vector<std::string>& classes,
                             const std::vector<std::string>& names = {"embedding"}) {
  StoreSpec spec;
  spec.precision = "f32";
  spec.settings = R"({"seed": 42})";
  spec.architecture = "{}";
  std::vector<StoreSample> samples;
  for (const MadeRow& row : rows) samples.push_back({row.id, row.label});
  for (size_t b = 0; b < names.size(); ++b) {
    spec.pipeline += (b ? "+" : "") + names[b];
    spec.blocks.push_back({names[b], rows.at(0).blocks[b].size()});
  }
  StoreWriter writer(folder, spec);
  for (const StoreWork& work : writer.plan(samples, classes)) {
    StoreRows out;
    for (const StoreBlock& block : spec.blocks)
      out.blocks.emplace_back(work.samples.size(), block.size());
    for (size_t p = 0; p < work.samples.size(); ++p)
      for (size_t b = 0; b < names.size(); ++b) {
        const std::vector<float>& values = rows[work.samples[p]].blocks[b];
        std::copy(values.begin(), values.end(), out.blocks[b].row(p));
      }
    writer.put(work, out);
  }
  writer.finish();
}

}  // namespace fungi::test
