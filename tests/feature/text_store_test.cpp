// SPDX-License-Identifier: Apache-2.0
// A list of texts that grows and is edited, and the store that follows it: only what is new or
// another text is computed.
#include <gtest/gtest.h>

#include "fungi/feature/extract_run.h"
#include "tests/support/errors.h"
#include "tests/support/folder.h"
#include "tests/support/tables.h"

namespace fungi {
namespace {

namespace fs = std::filesystem;

// Bytes of a text as the backbone's words. What is tested is what becomes of texts on their way.
class ByteViews final : public ViewMaker {
 public:
  void open(const Sample& sample, uint32_t) override { bytes_ = std::get<Text>(sample).utf8; }
  void write(size_t, InputBuffer& out) override {
    const View<float> rows = out.add_embedded(bytes_.size(), 16);
    for (size_t r = 0; r < rows.rows; ++r)
      for (size_t c = 0; c < rows.cols; ++c) rows(r, c) = float(bytes_[r] % (c + 2));
  }

 private:
  std::string bytes_;
};

class ByteModality final : public Modality {
 public:
  SampleKind kind() const override { return SampleKind::text; }
  size_t views(const ViewPlan&) const override { return 1; }
  std::unique_ptr<ViewMaker> maker(const ViewPlan&) const override {
    return std::make_unique<ByteViews>();
  }
  InputSettings settings(const DecodeOptions&) const override {
    return OwnSettings{{{"name", "bytes"}}};
  }
};

class TextStoreTest : public ::testing::Test {
 protected:
  // What a repeated command would do; how many samples were computed.
  size_t extract(const std::string& content, const char* store = "store") {
    const auto data =
        open_dataset(folder_.write("list.tsv", content), {.samples = SampleKind::text});
    ExtractorOptions options;
    options.objectives = {"kl:width=16"};
    options.modality = std::make_shared<ByteModality>();
    Extractor extractor = Extractor::open(FUNGI_GOLDEN_DIR "/backbone/bert", std::move(options),
                                          pool_, {.precision = Precision::f32});
    StoreWriter writer(folder_ / store, extractor.spec());
    size_t computed = 0;
    ExtractRun run;
    run.progress = [&](const ExtractProgress& p) { computed = p.saved; };
    extract_to_store(extractor, *data, writer, run);
    return computed;
  }

  Pool pool_{2};
  test::TemporaryFolder folder_;
};

const std::string kFirst =
    "label\ttext\nham\tsee you soon\nspam\twin a prize now\nham\tcaf\xe9 at six\nspam\tcall us\n";

TEST_F(TextStoreTest, ALongerFileContinuesTheStore) {
  EXPECT_EQ(extract(kFirst), 4u);
  const Store store = Store::open(folder_ / "store");
  EXPECT_EQ(store.ids(), (std::vector<std::string>{"2", "3", "5"}));
  ASSERT_EQ(store.failed().size(), 1u);
  EXPECT_EQ(store.failed()[0].id, "4");
  EXPECT_EQ(store.failed()[0].reason,
            "line 4: expected UTF-8, found the byte 0xe9 behind 3 others");
  EXPECT_EQ(extract(kFirst), 0u);
  const std::string longer = kFirst + "ham\tdinner is ready\nspam\tcheap watches\n";
  EXPECT_EQ(extract(longer), 2u);
  EXPECT_EQ(extract(longer, "at once"), 6u);
  EXPECT_EQ(test::contents(folder_ / "store"), test::contents(folder_ / "at once"));
  EXPECT_ERROR("holds 2 samples that are not among the 4 asked for", extract(kFirst));
}

TEST_F(TextStoreTest, AnEditedLineIsComputedAgain) {
  extract(kFirst);
  std::string edited = kFirst;
  edited.replace(edited.find("soon"), 4, "late");
  EXPECT_EQ(extract(edited), 1u);
  edited.replace(edited.find("spam"), 4, "ham");
  EXPECT_EQ(extract(edited), 0u) << "another label is no other text";
  edited.replace(edited.find('\xe9'), 1, "\xc3\xa9");
  EXPECT_EQ(extract(edited), 1u) << "what failed is another text now";
  EXPECT_EQ(Store::open(folder_ / "store").rows(), 4u);
  EXPECT_EQ(extract(edited, "at once"), 4u);
  EXPECT_EQ(test::contents(folder_ / "store"), test::contents(folder_ / "at once"));
}

}  // namespace
}  // namespace fungi
