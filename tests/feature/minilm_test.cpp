// SPDX-License-Identifier: Apache-2.0
// The real all-MiniLM-L6-v2 beside sentence-transformers (tests/golden/make_minilm.py), from text
// to vector: tokeniser, length, pooling and unit length as its folder says.
#include <gtest/gtest.h>

#include <fstream>

#include "fungi/feature/extractor.h"
#include "fungi/input/dataset.h"
#include "tests/support/data.h"
#include "tests/support/golden.h"

namespace fungi {
namespace {

namespace fs = std::filesystem;

TEST(MiniLm, VectorsAreThoseOfSentenceTransformers) {
  const fs::path model = test::data_folder() / "weights/all-MiniLM-L6-v2";
  if (!fs::exists(model)) GTEST_SKIP() << test::missing_data(model);
  const std::string golden = FUNGI_GOLDEN_DIR "/feature/minilm";
  std::vector<std::string> ids;
  std::vector<Text> texts;
  std::ifstream file(golden + ".txt");
  for (std::string line; std::getline(file, line);) {
    ids.push_back(std::to_string(ids.size()));
    texts.push_back({line});
  }
  const golden::Array truth = golden::load(golden + ".npy");
  ASSERT_EQ(truth.shape, (std::vector<size_t>{texts.size(), 384}));
  const auto data = memory_dataset(ids, std::move(texts));
  Pool pool(2);
  for (const auto& [precision, cosine, length] :
       {std::tuple(Precision::f32, 0.999999, 1e-6), {Precision::bf16, 0.9995, 1e-6}}) {
    ExtractorOptions options;
    options.objectives.clear();
    Extractor extractor =
        Extractor::open(model, std::move(options), pool, {.precision = precision});
    EXPECT_EQ(extractor.backbone().architecture().pooling, Pooling::mean_all);
    std::vector<size_t> all(ids.size());
    for (size_t i = 0; i < all.size(); ++i) all[i] = i;
    const StoreRows rows = extractor.extract(*data, all);
    ASSERT_TRUE(rows.failures.empty());
    for (size_t i = 0; i < all.size(); ++i) {
      std::vector<float> expected(truth.values.begin() + ptrdiff_t(i * 384),
                                  truth.values.begin() + ptrdiff_t((i + 1) * 384));
      const float* row = rows.blocks[0].row(i);
      EXPECT_GE(golden::cosine(row, expected.data(), 384), cosine) << i;
      double square = 0;
      for (size_t j = 0; j < 384; ++j) square += double(row[j]) * row[j];
      EXPECT_NEAR(std::sqrt(square), 1, length) << i;
    }
  }
}

}  // namespace
}  // namespace fungi
