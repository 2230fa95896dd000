// SPDX-License-Identifier: Apache-2.0
// Blocks with several rows per sample: written, resumed, rewritten, read and exported.
#include <fmt/format.h>

#include <cstdlib>
#include <functional>
#include <nlohmann/json.hpp>

#include "fungi/checkpoint/npy.h"
#include "fungi/store/export.h"
#include "tests/store/fixture.h"

namespace fungi::test {
namespace {

constexpr size_t kWidth = 3, kRows = 4;
const StoreBlock kPatches{"patches", kWidth, kRows};

StoreSpec patch_spec(StoreType type = StoreType::float32) {
  StoreSpec spec = example_spec();
  spec.pipeline += "+patches";
  spec.blocks.insert(spec.blocks.begin() + 1, kPatches);  // between the others
  spec.type = type;
  return spec;
}

// Row r of a sample is values r·width, r·width + 1, ... of its line.
void expect_patches(const Store& store, float tolerance = 0) {
  const StoreBlock* block = find_block(store.manifest().spec.blocks, "patches");
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(*block, kPatches);
  std::vector<size_t> backwards;
  for (size_t i = store.rows(); i-- > 0;) backwards.push_back(i);
  const Matrix<float> gathered = store.gather("patches", backwards);
  ASSERT_EQ(gathered.rows(), store.rows());
  ASSERT_EQ(gathered.cols(), kRows * kWidth);
  for (size_t shard = 0; shard < store.shards(); ++shard) {
    const Store::Mapped mapped = store.map("patches", shard);
    ASSERT_EQ(mapped.rows.rows, store.first_row(shard + 1) - store.first_row(shard));
    for (size_t i = 0; i < mapped.rows.rows; ++i) {
      const size_t row = mapped.first_row + i;
      const View<const float> patches = rows_of(*block, mapped.rows.row(i));
      ASSERT_EQ(patches.rows, kRows);
      ASSERT_EQ(patches.cols, kWidth);
      for (size_t r = 0; r < kRows; ++r)
        for (size_t j = 0; j < kWidth; ++j) {
          ASSERT_NEAR(patches(r, j), example_value(store.ids()[row], 1, r * kWidth + j), tolerance);
          ASSERT_EQ(gathered(store.rows() - 1 - row, r * kWidth + j), patches(r, j));
        }
    }
  }
}

TEST(BlockRows, AreReadAsTheyWereWritten) {
  for (const StoreType type : {StoreType::float32, StoreType::float16}) {
    Folder tmp;
    Extraction run;
    run(tmp / "s", example_samples(0, 30), {.shard_size = 8}, patch_spec(type));
    const Store store = Store::open(tmp / "s");
    expect_patches(store, type == StoreType::float32 ? 0.0f : 1e-3f);
    // In the file one line for each sample, whatever its rows.
    const NpyFile file = NpyFile::open(tmp / "s/patches-00000.npy");
    EXPECT_EQ(file.cols(), kRows * kWidth);
    EXPECT_EQ(file.rows(), store.first_row(1));
  }
}

TEST(BlockRows, StandBesideNoOtherBlock) {
  Folder tmp;
  Extraction run;
  run(tmp / "s", example_samples(0, 20), {.shard_size = 8}, patch_spec());
  const Store store = Store::open(tmp / "s");
  EXPECT_EQ(names_of(store.select("all")), (std::vector<std::string>{"embedding", "kl"}));
  EXPECT_EQ(feature_names(store.manifest().spec), (std::vector<std::string>{"embedding", "kl"}));
  EXPECT_EQ(store.load().features.cols(), 8u);
  EXPECT_EQ(store.select("patches"), std::vector<StoreBlock>{kPatches});
  EXPECT_ERROR("'patches' has 4 rows per sample", store.load("embedding+patches"));
  EXPECT_ERROR("Store::gather()", store.load("patches"));
  Matrix<float> out(1, kPatches.size());
  EXPECT_ERROR("'patches' has 4 rows", store.read({kPatches}, false, std::vector<size_t>{0}, out));
  // A block made flat is not the stored one.
  EXPECT_ERROR("'patches'",
               store.read({{"patches", kPatches.size()}}, false, std::vector<size_t>{0}, out));
}

TEST(BlockRows, ARunThatWasStoppedOrRewrittenEndsAsAnUndisturbedOne) {
  const std::vector<StoreSample> all = example_samples(0, 50);
  std::vector<StoreSample> turned = all;
  std::reverse(turned.begin(), turned.end());
  Folder tmp;
  Extraction run;
  run(tmp / "whole", all, {.shard_size = 8}, patch_spec());
  run(tmp / "turned", turned, {.shard_size = 8}, patch_spec());
  const std::vector<StoreSample> some = example_samples(0, 50, 3);
  run(tmp / "some", some, {.shard_size = 8}, patch_spec());

  Extraction stopped;
  stopped.stop_within = 19;  // in the middle of a shard
  stopped(tmp / "s", all, {.shard_size = 8}, patch_spec());
  EXPECT_FALSE(stopped.totals.complete);
  run(tmp / "s", all, {.shard_size = 8}, patch_spec());
  EXPECT_GT(run.computed, 0u);
  expect_same_bytes(tmp / "whole", tmp / "s", "resumed");

  run(tmp / "s", turned, {.shard_size = 8}, patch_spec());
  EXPECT_EQ(run.computed, 0u);
  expect_same_bytes(tmp / "turned", tmp / "s", "reordered");
  expect_patches(Store::open(tmp / "s"));

  run(tmp / "s", some, {.shard_size = 8, .prune = true}, patch_spec());
  EXPECT_EQ(run.computed, 0u);
  expect_same_bytes(tmp / "some", tmp / "s", "pruned");

  run(tmp / "s", all, {.shard_size = 8}, patch_spec());
  expect_same_bytes(tmp / "whole", tmp / "s", "grown");

  fs::resize_file(tmp / "s/patches-00002.npy", fs::file_size(tmp / "s/patches-00002.npy") - 4);
  run(tmp / "s", all, {.shard_size = 8}, patch_spec());
  expect_same_bytes(tmp / "whole", tmp / "s", "cut");
}

TEST(BlockRows, OtherRowsAreOtherSettings) {
  Folder tmp;
  Extraction run;
  run(tmp / "s", example_samples(0, 20), {.shard_size = 8}, patch_spec());
  StoreSpec other = patch_spec();
  std::swap(other.blocks[1].rows, other.blocks[1].width);  // files of the same size
  EXPECT_ERROR("'blocks.patches[0]' differs: the store has 4, this run has 3",
               StoreWriter(tmp / "s", other, {.shard_size = 8}));
  StoreRows wrong;
  for (const StoreBlock& block : other.blocks) wrong.blocks.emplace_back(2, block.width);
  StoreWriter writer(tmp / "new", patch_spec(), {.shard_size = 8});
  const auto works = writer.plan(example_samples(0, 2), kClasses);
  EXPECT_ERROR("expected 2 x 12 values", writer.put(works.at(0), wrong));
}

TEST(BlockRows, AValueThatIsNotFiniteInAnyRowIsAFailure) {
  Folder tmp;
  StoreWriter writer(tmp / "s", patch_spec(), {.shard_size = 8});
  Extraction run;
  const std::vector<StoreSample> samples = example_samples(1, 3);
  const auto works = writer.plan(samples, kClasses);
  run.fails = [](const std::string&) { return false; };
  StoreRows rows = run.compute(patch_spec(), samples, works.at(0));
  rows.blocks[1](1, kPatches.size() - 1) = INFINITY;
  const auto failures = writer.put(works[0], rows);
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_EQ(failures[0].position, 1u);
  EXPECT_NE(failures[0].reason.find("'patches'"), std::string::npos);
}

TEST(BlockRows, InfoAndExportsShowThem) {
  Folder tmp;
  Extraction run;
  run(tmp / "s", example_samples(0, 30), {.shard_size = 8}, patch_spec());
  const Store store = Store::open(tmp / "s");
  const StoreInfo info = describe_store(tmp / "s");
  EXPECT_NE(to_text(info).find(fmt::format("patches [{}, 4, 3] float32", store.rows())),
            std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(to_json(info))["manifest"]["blocks"][1]["rows"], 4);
  std::vector<size_t> rows;
  for (size_t i = 0; i < store.rows(); ++i) rows.push_back(i);
  const Matrix<float> lines = store.gather("patches", rows);
  const std::string bytes(reinterpret_cast<const char*>(lines.data()),
                          lines.rows() * lines.cols() * sizeof(float));
  export_npz(store, tmp / "out.npz");
  const std::string npz = read_file(tmp / "out.npz");
  EXPECT_NE(npz.find(fmt::format("'shape': ({}, 4, 3)", store.rows())), std::string::npos);
  EXPECT_NE(npz.find(bytes), std::string::npos);
  EXPECT_NE(npz.find(fmt::format("'shape': ({}, 3)", store.rows())), std::string::npos) << "kl";
  if (!have_hdf5()) return;
  const auto files = export_hdf5(store, tmp / "h5");
  ASSERT_EQ(files.size(), 3u);
  EXPECT_NE(read_file(tmp / "h5/patches.h5").find(bytes), std::string::npos);
  if (std::system("h5dump --version >/dev/null 2>&1") != 0) return;
  const std::string dump = "h5dump -H " + (tmp / "h5/patches.h5").string() +
                           fmt::format(" | grep -q 'SIMPLE {{ ( {}, 4, 3 )'", store.rows());
  EXPECT_EQ(std::system(dump.c_str()), 0) << dump;
}

// A manifest that somebody sent.
TEST(BlockRows, ImpossibleSizesAreErrors) {
  Folder tmp;
  Extraction run;
  run(tmp / "s", example_samples(0, 20), {.shard_size = 8}, patch_spec());
  const nlohmann::json good = nlohmann::json::parse(read_file(tmp / "s/manifest.json"));
  EXPECT_EQ(good["format_version"], 2);
  const auto refused = [&](const std::function<void(nlohmann::json&)>& change) {
    nlohmann::json manifest = good;
    change(manifest);
    return error_of([&] { parse_manifest(manifest.dump(), "manifest.json"); });
  };
  EXPECT_EQ(refused([](auto&) {}), "");
  const uint64_t most = ~uint64_t{0};
  for (const auto& [rows, width] : std::vector<std::pair<nlohmann::json, nlohmann::json>>{
           {0, 3},
           {4, 0},
           {-1, 3},
           {4, -1},
           {4.0, 3},
           {"4", 3},
           {nullptr, 3},
           {most, most},
           {most, 1},
           {1, most},
           {uint64_t{1} << 32, uint64_t{1} << 32},
           {1u << 31, 1u << 31}}) {
    const std::string text = refused([&, rows = rows, width = width](auto& m) {
      m["blocks"][1]["rows"] = rows;
      m["blocks"][1]["width"] = width;
    });
    EXPECT_NE(text, "") << rows << " " << width;
  }
  EXPECT_NE(refused([](auto& m) { m["blocks"][1].erase("rows"); }).find("'rows' is missing"),
            std::string::npos);
  EXPECT_NE(refused([&](auto& m) {
              m["shards"] = {most, most};
            }).find("more rows than"),
            std::string::npos);
  // Sizes that are possible, but not those of the files.
  for (const auto& [rows, width] : {std::pair(4, 4), {5, 3}, {1 << 20, 1 << 19}}) {
    nlohmann::json manifest = good;
    manifest["blocks"][1]["rows"] = rows, manifest["blocks"][1]["width"] = width;
    write_file(tmp / "s/manifest.json", manifest.dump());
    const Store store = Store::open(tmp / "s");
    EXPECT_ERROR("patches-00000.npy", store.map("patches", 0));
  }
}

}  // namespace
}  // namespace fungi::test
