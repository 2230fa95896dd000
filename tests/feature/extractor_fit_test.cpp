// SPDX-License-Identifier: Apache-2.0
// What objectives are given before the first sample: which training samples, in which order, and to
// whom a state belongs that is put back.
#include <gtest/gtest.h>

#include <mutex>

#include "tests/feature/extractor_fixture.h"

namespace fungi {
namespace {

using test::Pictures;
using test::tiny;
using test::tiny_backbone;

constexpr size_t kPictures = 8;

std::vector<uint32_t> drawn() {
  return choose_support(kPictures, kPictures, ExtractorOptions().seed);
}

// Without red, but for one picture; remembers what was read.
class Marked : public Pictures {
 public:
  explicit Marked(size_t red = SIZE_MAX, size_t broken = SIZE_MAX)
      : Pictures(kPictures), red_(red), broken_(broken) {}
  Sample decode(size_t i, std::span<const uint8_t> bytes,
                const DecodeOptions& options) const override {
    {
      const std::lock_guard lock(mutex_);
      seen_.push_back(i);
    }
    if (i == broken_) fail("the file is broken", ids_[i]);
    Image image = image_of(Pictures::decode(i, bytes, options));
    for (size_t p = 0; p < image.rgb.size(); p += 3) image.rgb[p] = i == red_ ? 255 : 0;
    return image;
  }
  std::vector<size_t> seen() const { return seen_; }

 private:
  size_t red_, broken_;
  mutable std::mutex mutex_;
  mutable std::vector<size_t> seen_;
};

// One of them, alone.
class Alone : public Marked {
 public:
  explicit Alone(size_t which) : which_(which) { ids_ = {ids_[which]}, labels_ = {0}; }
  Sample decode(size_t, std::span<const uint8_t> bytes,
                const DecodeOptions& options) const override {
    return Marked::decode(which_, bytes, options);
  }

 private:
  size_t which_;
};

// The red of a picture is more than f32 can hold.
class Overflowing : public TensorSource {
 public:
  Matrix<float> get(const CanonicalTensor& tensor) const override {
    Matrix<float> values = random_.get(tensor);
    if (tensor.name == "patch_embed.weight")
      for (size_t r = 0; r < tensor.rows; ++r) std::fill_n(values.row(r), tensor.cols / 3, 3e38f);
    return values;
  }

 private:
  RandomTensors random_{1};
};

class Fit : public ::testing::Test {
 protected:
  static Architecture architecture() {
    Architecture a = tiny();
    a.preprocess.mean = {0, 0, 0}, a.preprocess.deviation = {1, 1, 1};
    return a;
  }

  Matrix<float> negatives(const Dataset& data, size_t count, unsigned threads = 2) const {
    Pool pool(threads);
    const Backbone backbone =
        Backbone::assemble(architecture(), Overflowing(), {.precision = Precision::f32}, pool);
    ExtractorOptions o;
    o.objectives = {"simclr:width=16,negatives=" + std::to_string(count)};
    Extractor extractor(backbone, std::move(o), pool);
    extractor.fit(data);
    for (NamedMatrix& m : extractor.state())
      if (m.name == "simclr-negatives") return std::move(m.values);
    return {};
  }

  // All pictures are drawn but the one left out, and `found` are the first of them.
  void expect_without(size_t left_out, const Matrix<float>& found, size_t count) const {
    const Matrix<float> all = negatives(Marked(), kPictures);
    const size_t views = all.rows() / kPictures;
    ASSERT_EQ(found.rows(), count * views);
    for (size_t i = 0; i < count; ++i) {
      const float* expected = all.row((i < left_out ? i : i + 1) * views);
      EXPECT_TRUE(std::equal(expected, expected + views * all.cols(), found.row(i * views))) << i;
    }
  }
};

TEST_F(Fit, ReadsInTheOrderOfTheDataSetAndKeepsTheOrderDrawn) {
  const Marked data;
  const Matrix<float> all = negatives(data, 5, 1);
  std::vector<size_t> expected;
  const std::vector<uint32_t> order = drawn();
  for (size_t i = 0; i < 5; ++i) expected.push_back(order[i]);
  EXPECT_FALSE(std::is_sorted(expected.begin(), expected.end()));
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(data.seen(), expected);

  const size_t views = all.rows() / 5;
  for (size_t i = 0; i < 5; ++i) {
    const Matrix<float> one = negatives(Alone(order[i]), 1);
    ASSERT_EQ(one.rows(), views);
    EXPECT_TRUE(std::equal(one.data(), one.data() + views * one.cols(), all.row(i * views))) << i;
  }
}

TEST_F(Fit, TheOneDrawnNextStandsLastWhereAnEarlierOneIsBroken) {
  for (const size_t place : {0u, 2u})
    expect_without(place, negatives(Marked(SIZE_MAX, drawn()[place]), 6), 6);
}

TEST_F(Fit, AnEmbeddingThatIsNotFiniteIsNoNegative) {
  const size_t red = drawn()[2];
  expect_without(2, negatives(Marked(red), 6), 6);
  expect_without(2, negatives(Marked(red), kPictures), kPictures - 1);  // there are no more
}

// An objective with a state of its own.
class Own : public Objective {
 public:
  explicit Own(std::string name) : name_(std::move(name)) {}
  std::string name() const override { return name_; }
  std::vector<ViewRequest> views() const override { return {ViewRequest{}}; }
  double loss_and_gradient(const Latents&, LatentGradients) const override { return 0; }
  std::vector<NamedMatrix> state() const override {
    std::vector<NamedMatrix> state;
    state.push_back({"head", Matrix<float>(1, 2)});
    return state;
  }
  void restore(const std::vector<NamedMatrix>& state) override {
    ASSERT_EQ(state.size(), 1u) << name_;
    EXPECT_EQ(state[0].name, "head") << name_;
  }

 private:
  std::string name_;
};

TEST_F(Fit, AStateBelongsToTheLongestName) {
  Pool pool(1);
  const Backbone backbone = tiny_backbone(pool);
  for (const bool longer_first : {false, true}) {
    ExtractorOptions o;
    o.objectives = {};
    o.own.push_back(std::make_unique<Own>(longer_first ? "own-more" : "own"));
    o.own.push_back(std::make_unique<Own>(longer_first ? "own" : "own-more"));
    Extractor extractor(backbone, std::move(o), pool);
    extractor.restore(extractor.state());
  }
}

}  // namespace
}  // namespace fungi
