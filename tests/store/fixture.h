// SPDX-License-Identifier: Apache-2.0
// A make-believe extraction for the tests of the store: rows that are a pure function of the sample
// id, some samples that always fail, and whole folders compared byte by byte.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "fungi/base/error.h"
#include "fungi/base/random.h"
#include "fungi/store/writer.h"
#include "tests/support/errors.h"
#include "tests/support/folder.h"

namespace fungi::test {

namespace fs = std::filesystem;

struct Folder : TemporaryFolder {
  Folder() : TemporaryFolder(place_in_memory()) {}  // these tests write thousands of flushed files
};

inline void expect_same_bytes(const fs::path& expected, const fs::path& found,
                              const std::string& what) {
  const auto a = contents(expected), b = contents(found);
  for (const auto& [name, bytes] : a) {
    ASSERT_TRUE(b.contains(name)) << what << ": " << name << " is missing";
    ASSERT_TRUE(b.at(name) == bytes) << what << ": " << name << " differs:\n" << b.at(name);
  }
  for (const auto& [name, bytes] : b) ASSERT_TRUE(a.contains(name)) << what << ": extra " << name;
}

inline StoreSpec example_spec() {
  StoreSpec spec;
  spec.pipeline = "embedding+kl";
  spec.precision = "f32";
  spec.settings = R"({"seed": 1, "kl": {"temperature": 15}})";
  spec.model_path = "models/tiny.safetensors";
  spec.model_sha256 = "00ff";
  spec.architecture = R"({"width": 5})";
  spec.blocks = {{"embedding", 5}, {"kl", 3}};
  spec.isa = "generic";
  return spec;
}

// Samples "a/0000", "b/0001", ... named so that a longer data set inserts samples everywhere.
inline std::vector<StoreSample> example_samples(size_t from, size_t to, size_t step = 1) {
  std::vector<StoreSample> samples;
  for (size_t i = from; i < to; i += step) {
    std::string number = std::to_string(i);
    number.insert(0, 4 - number.size(), '0');
    samples.push_back({"images/" + number + ".jpg", static_cast<int64_t>(i % 3), ""});
  }
  return samples;
}

inline const std::vector<std::string> kClasses = {"ant", "bee", "cat"};

inline bool always_fails(const std::string& id) { return fnv1a64(id) % 7 == 0; }

inline float example_value(const std::string& id, size_t block, size_t column) {
  const double u = RandomStream(block, id).uniform(column);
  return static_cast<float>(2 * u - 1);
}

struct Extraction {
  size_t computed = 0;              // samples
  size_t stop_after = size_t(-1);   // shards; then finish() as after Ctrl-C
  size_t stop_within = size_t(-1);  // samples: the shard with the last of them has holes
  bool backwards = false;           // put the last shard first
  std::function<bool(const std::string&)> fails = always_fails;
  StoreTotals totals;

  StoreRows compute(const StoreSpec& spec, const std::vector<StoreSample>& samples,
                    const StoreWork& work) {
    StoreRows rows;
    for (const StoreBlock& block : spec.blocks) {
      rows.blocks.emplace_back(work.samples.size(), block.size());
    }
    const bool last = computed + work.samples.size() > stop_within;
    for (size_t p = 0; p < work.samples.size(); ++p) {
      if (last && (p % 2 == 0 || computed == stop_within)) {
        rows.undone.push_back(p);
        continue;
      }
      ++computed;
      const std::string& id = samples[work.samples[p]].id;
      if (fails(id)) {
        rows.failures.push_back({p, "decode", "the file '" + id + "' ends early"});
        continue;
      }
      for (size_t b = 0; b < spec.blocks.size(); ++b) {
        for (size_t j = 0; j < spec.blocks[b].size(); ++j) {
          rows.blocks[b](p, j) = example_value(id, b, j);
        }
      }
    }
    return rows;
  }

  void operator()(const fs::path& folder, std::vector<StoreSample> samples,
                  StoreOptions options = {.shard_size = 8}, StoreSpec spec = example_spec()) {
    computed = 0;
    StoreWriter writer(folder, spec, std::move(options));
    if (!writer.has_state("kl-head")) {
      Matrix<float> head(2, 3);
      head(1, 2) = 0.5f;
      writer.put_state("kl-head", head);
    }
    std::vector<StoreWork> works = writer.plan(samples, kClasses);
    if (backwards) std::reverse(works.begin(), works.end());
    for (size_t w = 0; w < works.size() && w < stop_after; ++w) {
      const StoreRows rows = compute(spec, samples, works[w]);
      writer.put(works[w], rows);
      if (!rows.undone.empty()) break;
    }
    totals = writer.finish();
  }
};

}  // namespace fungi::test
