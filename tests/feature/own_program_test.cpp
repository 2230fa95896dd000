// SPDX-License-Identifier: Apache-2.0
// The library as a program of one's own uses it: data sets, names, matrices and labels that nobody
// else has looked at.
#include <gtest/gtest.h>

#include <cmath>

#include "fungi/feature/project_store.h"
#include "fungi/feature/reduction.h"
#include "tests/feature/extractor_fixture.h"
#include "tests/store/fixture.h"
#include "tests/support/factor_store.h"
#include "tests/support/made_store.h"

namespace fungi::test {
namespace {

class Own : public Objective {
 public:
  explicit Own(std::string name) : name_(std::move(name)) {}
  std::string name() const override { return name_; }
  std::vector<ViewRequest> views() const override { return {request}; }
  std::vector<Parameter> parameters() const override { return given; }
  double loss_and_gradient(const Latents& latents, LatentGradients gradients) const override {
    for (size_t j = 0; j < latents.pooled.cols; ++j) gradients.pooled(0, j) = latents.pooled(0, j);
    return 0;
  }
  ViewRequest request;
  std::vector<Parameter> given;

 private:
  std::string name_;
};

// Pictures whose labels, keys and readiness to be read a test chooses.
struct Shelf final : Pictures {
  using Dataset::labels_;
  using Pictures::Pictures;
  std::string key(size_t i) const override { return keys.empty() ? "" : keys.at(i); }
  std::vector<uint8_t> read(size_t i) const override {
    if (i == 1 && refuse) refuse();
    return {};
  }
  std::vector<std::string> keys;
  std::function<void()> refuse;
};

struct OwnProgram : testing::Test {
  Pool pool{2};
  Backbone backbone = tiny_backbone(pool);
  Folder tmp;
  Extractor extractor{backbone, ExtractorOptions{.objectives = {"kl"}}, pool};
  Extractor with(std::unique_ptr<Own> objective) {
    ExtractorOptions o;
    o.objectives = {"kl"};
    o.own.push_back(std::move(objective));
    return Extractor(backbone, std::move(o), pool);
  }
  std::string refused(std::unique_ptr<Own> objective) {
    return error_of([&] { with(std::move(objective)); });
  }
};

TEST_F(OwnProgram, NamesOfObjectivesAreCheckedWhenTheyAreAdded) {
  EXPECT_NE(refused(nullptr).find("expected an objective"), std::string::npos);
  for (const char* name : {"", "../x y", "x\xff", "7th", "a-1", "rows", "failed", "embedding",
                           "x_factors_a", "kl_factors_b", "kl"})
    EXPECT_NE(refused(std::make_unique<Own>(name)), "") << name;
  EXPECT_NO_THROW(StoreWriter(tmp / "s", with(std::make_unique<Own>("own-loss_2")).spec()));
}

TEST_F(OwnProgram, ParametersThatAreNoTextAreAnError) {
  auto objective = std::make_unique<Own>("own");
  objective->given = {{"file", "caf\xe9"}};
  EXPECT_ERROR("use UTF-8", with(std::move(objective)).spec());
}

TEST_F(OwnProgram, SharesOfHiddenTokensLieBetweenZeroAndOne) {
  for (const double ratio : {double(NAN), 7.0, -3.0, 1.0001}) {
    auto objective = std::make_unique<Own>("own");
    objective->request.masked_views = 1, objective->request.mask_ratio = ratio;
    EXPECT_NE(refused(std::move(objective)).find("from 0 to 1"), std::string::npos) << ratio;
  }
}

TEST_F(OwnProgram, AMatrixThatWouldNotBeUsedIsAnError) {
  ExtractorOptions options{.objectives = {"kl"}};
  options.projection_matrix = Matrix<float>(3, 5);
  EXPECT_ERROR("a matrix is given, but the projection is 'sign'",
               Extractor(backbone, std::move(options), pool));
  write_factor_store(tmp / "s", 5, 1);
  ReprojectOptions other{.kind = ProjectionKind::gaussian};
  other.matrix = Matrix<float>(3, 5);
  EXPECT_ERROR("a matrix is given, but the projection is 'gaussian'",
               project_store(Store::open(tmp / "s"), tmp / "p", std::move(other), pool));
  EXPECT_FALSE(fs::exists(tmp / "p"));
}

TEST_F(OwnProgram, LabelsWithoutAClassAreAnError) {
  Shelf pictures(3);
  for (const int label : {2, -2}) {
    pictures.labels_[1] = label;
    EXPECT_ERROR("of sample 'picture-1' has no class: there are 2 classes",
                 extract_to_memory(extractor, pictures));
  }
  pictures.labels_[1] = -1;
  EXPECT_EQ(extract_to_memory(extractor, pictures).labels, (std::vector<int64_t>{0, -1, 0}));
}

TEST_F(OwnProgram, FeaturesInMemoryDoNotNeedTheModelsFile) {
  const std::string model = FUNGI_GOLDEN_DIR "/backbone/timm_vit/model.safetensors";
  fs::copy_file(model, tmp / "m.safetensors");
  const Backbone own =
      Backbone::open(tmp / "m.safetensors", {.stated_facts = {{"heads", "4"}}}, pool);
  Extractor from_file(own, ExtractorOptions{.objectives = {"kl"}, .keep_factors = true}, pool);
  fs::remove(tmp / "m.safetensors");
  const FeatureSet set = extract_to_memory(from_file, Pictures(2));
  EXPECT_EQ(set.features.rows(), 2u);
  EXPECT_EQ(set.blocks.size(), 2u) << "without factors";
}

TEST_F(OwnProgram, AnotherKeyIsAnotherPicture) {
  Shelf pictures(4);
  pictures.keys = {"a", "b", "c", "d"};
  const auto computed = [&] {
    StoreWriter writer(tmp / "s", extractor.spec());
    extractor.settle(writer, pictures);
    const std::vector<StoreWork> plan =
        writer.plan(store_samples(pictures), pictures.class_names());
    run_plan(extractor, pictures, writer, plan);
    return plan.empty() ? std::vector<size_t>{} : plan[0].samples;
  };
  EXPECT_EQ(computed(), range(4));
  EXPECT_EQ(computed(), range(0));
  pictures.keys[2] = "changed";
  EXPECT_EQ(computed(), std::vector<size_t>{2});
  EXPECT_EQ(Store::open(tmp / "s").load().ids.size(), 4u);
  pictures.keys.clear();
  EXPECT_EQ(computed(), range(0)) << "nothing is known: the rows stay";
}

// A key may take a look at a far disk.
TEST_F(OwnProgram, OnlyTheFirstAreAskedForTheirKeysUnderALimit) {
  Shelf pictures(4);
  pictures.keys = {"a", "b"};  // to ask for another one is an error
  EXPECT_EQ(store_samples(pictures, 2).size(), 2u);
  EXPECT_EQ(store_samples(pictures, 2)[1].key, "b");
  pictures.keys = {"a", "b", "c", "d"};
  EXPECT_EQ(store_samples(pictures, 9).size(), 4u);
  EXPECT_EQ(store_samples(pictures).size(), 4u);
}

TEST_F(OwnProgram, WhatADataSetThrowsEndsTheSampleOrTheRun) {
  Shelf pictures(3);
  const auto run = [&] { return extractor.extract(pictures, range(3)).failures.size(); };
  pictures.refuse = [] { fail("no such picture", "shelf"); };
  EXPECT_EQ(run(), 1u);
  pictures.refuse = [] { throw std::bad_alloc(); };
  EXPECT_EQ(run(), 1u);
  pictures.refuse = [] { throw Exhausted("too many open files", "shelf"); };
  EXPECT_THROW(run(), Exhausted);
  pictures.refuse = [] { throw std::runtime_error("the network is gone"); };
  EXPECT_THROW(run(), std::runtime_error);
  pictures.refuse = nullptr;
  EXPECT_EQ(run(), 0u) << "the extractor is as before";
}

TEST_F(OwnProgram, AReductionTakesRowsOfItsOwnWidthOnly) {
  write_made_store(tmp / "s", {{"a", 0, {{1, 2}, {3}}}}, {"class"}, {"embedding", "kl"});
  const Reduction reduction = Reduction::fit(Store::open(tmp / "s"), "embedding", 0, pool);
  EXPECT_ERROR("expected 2 columns (embedding), found 3",
               reduction.apply(Matrix<float>(1, 3), pool));
  EXPECT_EQ(reduction.apply(Matrix<float>(1, 2), pool).cols(), 2u);
}

TEST_F(OwnProgram, AShardIsPutAsItWasPlanned) {
  StoreWriter writer(tmp / "s", example_spec(), {.shard_size = 8});
  const std::vector<StoreSample> samples = example_samples(0, 12);
  const StoreWork planned = writer.plan(samples, kClasses).at(0);
  Extraction run;
  const auto put = [&](std::vector<size_t> changed) {
    const StoreRows rows = run.compute(example_spec(), samples, planned);
    writer.put({planned.shard, std::move(changed)}, rows);
  };
  EXPECT_ERROR("not those that plan() asked for", put({0, 1, 2, 3, 4, 5, 6, size_t(1) << 40}));
  EXPECT_ERROR("not those that plan() asked for", put({0, 1, 2, 3, 4, 5, 6, 8}));
  EXPECT_ERROR("not those that plan() asked for", put({1, 0, 2, 3, 4, 5, 6, 7}));
  EXPECT_NO_THROW(put(planned.samples));
}

}  // namespace
}  // namespace fungi::test
