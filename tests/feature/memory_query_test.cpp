// SPDX-License-Identifier: Apache-2.0
// Pictures that no file holds, asked about in a store: their rows are those of the same pictures in
// files.
#include <gtest/gtest.h>

#include "fungi/feature/reopen.h"
#include "tests/store/fixture.h"
#include "tests/support/golden.h"

namespace fungi::test {
namespace {

TEST(MemoryQuery, GivesTheRowsOfTheStoreAndOfFiles) {
  Pool pool(2);
  const Folder tmp;
  const fs::path pictures = FUNGI_GOLDEN_DIR "/input/images";
  const std::vector<std::string> names{"rgb8.png", "filtered.png"};
  for (const std::string& name : names) {
    fs::create_directories(tmp / "pictures");
    fs::copy_file(pictures / name, tmp / "pictures" / name);
  }
  const auto data = open_dataset(tmp / "pictures");
  const Backbone backbone = Backbone::open(FUNGI_GOLDEN_DIR "/backbone/timm_vit/model.safetensors",
                                           {.stated_facts = {{"heads", "4"}}}, pool);
  Extractor extractor(backbone, ExtractorOptions{.objectives = {"kl", "dino"}}, pool);
  {
    StoreWriter writer(tmp / "s", extractor.spec());
    extract_to_store(extractor, *data, writer);
  }
  const Store store = Store::open(tmp / "s");
  ASSERT_EQ(store.rows(), 2u);
  Reopened reopened(extraction_record(store), pool);
  const std::vector<StoreBlock> blocks = store.select("dino+embedding");
  std::vector<Image> images;
  std::vector<fs::path> files;
  for (const std::string& id : store.ids()) {
    files.push_back(tmp / "pictures" / id);
    images.push_back(read_image(files.back()));
  }
  const Matrix<float> expected = reopened.rows(files, blocks, knows_ids_of(store)),
                      rows = reopened.rows(*memory_dataset(store.ids(), images), blocks);
  Matrix<float> stored(2, total_width(blocks));
  store.read(blocks, true, 0, stored);
  for (const View<const float> other : {expected.view(), std::as_const(stored).view()})
    EXPECT_TRUE(std::equal(rows.data(), rows.data() + rows.rows() * rows.cols(), other.data));

  // What cannot be used is named by its id, or told.
  images[1] = {5000, 1, std::vector<uint8_t>(5000 * 3)};  // no eye sees anything in it
  const auto odd = memory_dataset({"whole", "thread"}, images);
  EXPECT_ERROR("thread: ", reopened.rows(*odd, blocks));
  std::vector<StoreFailure> failures;
  const Matrix<float> some = reopened.rows(*odd, blocks, &failures);
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_EQ(failures[0].position, 1u);
  EXPECT_EQ(some(1, 0), 0.0f);
  EXPECT_NE(some(0, 0), 0.0f);
  EXPECT_ERROR("gone.png", reopened.rows({tmp / "gone.png"}, blocks, knows_ids_of(store)));
}

TEST(MemoryQuery, AChangedPictureIsExtractedAgain) {
  const auto keys = [](uint8_t value, size_t width) {
    const auto data = memory_dataset({"a"}, {{width, 12 / width, std::vector<uint8_t>(36, value)}});
    return store_samples(*data).at(0).key;
  };
  EXPECT_EQ(keys(3, 4), keys(3, 4));
  EXPECT_NE(keys(3, 4), keys(4, 4));
  EXPECT_NE(keys(3, 4), keys(3, 6)) << "the same pixels in another shape";
}

}  // namespace
}  // namespace fungi::test
