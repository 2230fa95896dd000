// SPDX-License-Identifier: Apache-2.0
// fungi project as a user runs it: the bytes of an extraction with that projection, resumed after
// kills, refusals.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/command.h"
#include "tests/support/extract.h"
#include "tests/support/idx.h"
#include "tests/support/kills.h"

namespace fungi {
namespace {

namespace fs = std::filesystem;
using test::extract;
using test::Outcome;
using test::run_fungi;
using test::write_idx;

std::string project(const fs::path& from, const fs::path& to, const std::string& more = "") {
  return "project " + from.string() + " -j 2 -o " + to.string() + " " + more;
}

// The manifest as a value, and `notes` apart: it says where a projected store comes from.
std::map<std::string, std::string> comparable(const fs::path& store,
                                              nlohmann::json* notes = nullptr) {
  auto files = test::contents(store);
  auto manifest = nlohmann::json::parse(files.at("manifest.json"));
  if (notes) *notes = manifest["notes"];
  manifest.erase("notes");
  files["manifest.json"] = manifest.dump(1);
  return files;
}

void expect_same(const fs::path& found, const fs::path& expected, const std::string& what) {
  const auto x = comparable(found), y = comparable(expected);
  for (const auto& [name, bytes] : y) {
    ASSERT_TRUE(x.contains(name)) << what << ": no " << name;
    EXPECT_TRUE(x.at(name) == bytes) << what << ": " << name << " differs"
                                     << (name.ends_with("json") ? "\n" + x.at(name) + bytes : "");
  }
  EXPECT_EQ(x.size(), y.size()) << what;
}

TEST(Project, GivesTheBytesOfAnExtraction) {
  const test::TemporaryFolder folder;
  write_idx(folder / "data", 10);
  ASSERT_EQ(run_fungi(extract(folder / "data", folder / "kept", "--keep-factors")).status, 0);
  for (const std::string settings :
       {"", "--projection sign --projection-dim 77", "--projection gaussian --projection-dim 40",
        "--projection sparse --projection-dim 33", "--projection factored --projection-dim 300",
        "--projection sign_reference --projection-dim 16", "--keep-factors --projection-dim 5"}) {
    fs::remove_all(folder / "extracted");
    fs::remove_all(folder / "projected");
    ASSERT_EQ(run_fungi(extract(folder / "data", folder / "extracted", settings)).status, 0)
        << settings;
    const Outcome run = run_fungi(project(folder / "kept", folder / "projected", settings));
    ASSERT_EQ(run.status, 0) << run.err;
    expect_same(folder / "projected", folder / "extracted", settings);
    nlohmann::json notes;
    comparable(folder / "projected", &notes);
    EXPECT_TRUE(notes["projected_from"].contains("produced_by")) << notes;
  }
  // A projected store is a store like any other: the extraction finds nothing left to do.
  const Outcome again = run_fungi(
      extract(folder / "data", folder / "projected", "--keep-factors --projection-dim 5 --json"));
  ASSERT_EQ(again.status, 0) << again.err;
  EXPECT_EQ(nlohmann::json::parse(again.out)["computed"], 0);
}

TEST(Project, AMatrixOfTheUsersOwnIsToldFromAnother) {
  const test::TemporaryFolder folder;
  write_idx(folder / "data", 5);
  // Two matrices [3, 32 · 33] as .npz would need zip: safetensors is a header and the numbers.
  for (const float start : {0.5f, 2.0f}) {
    std::vector<float> values(3 * 32 * 33);
    for (size_t i = 0; i < values.size(); ++i) values[i] = float((i * 37 + 11) % 101) / 50 - start;
    const std::string header =
        R"({"projection":{"dtype":"F32","shape":[3,1056],"data_offsets":[0,)" +
        std::to_string(values.size() * 4) + "]}}";
    std::string bytes;
    for (int i = 0; i < 8; ++i) bytes += char(header.size() >> (8 * i) & 255);
    bytes += header + std::string(reinterpret_cast<const char*>(values.data()), values.size() * 4);
    std::ofstream(folder / (start == 0.5f ? "a.safetensors" : "b.safetensors"), std::ios::binary)
        << bytes;
  }
  const std::string a = "--projection matrix --given " + (folder / "a.safetensors").string(),
                    b = "--projection matrix --given " + (folder / "b.safetensors").string();
  ASSERT_EQ(run_fungi(extract(folder / "data", folder / "kept", "--keep-factors")).status, 0);
  ASSERT_EQ(run_fungi(extract(folder / "data", folder / "extracted", a)).status, 0);
  const Outcome run = run_fungi(project(folder / "kept", folder / "projected", a));
  ASSERT_EQ(run.status, 0) << run.err;
  expect_same(folder / "projected", folder / "extracted", "matrix");
  const Outcome other = run_fungi(project(folder / "kept", folder / "projected", b));
  EXPECT_EQ(other.status, 1);
  EXPECT_NE(other.err.find("sha256"), std::string::npos) << other.err;
  EXPECT_EQ(run_fungi(project(folder / "kept", folder / "none", "--projection matrix")).status, 2);
}

TEST(Project, FailedSamplesStayRecorded) {
  const test::TemporaryFolder folder;
  for (const char* name : {"a", "b"}) {
    fs::create_directories(folder / "data" / name);
    for (const auto& entry : fs::directory_iterator(FUNGI_GOLDEN_DIR "/input/images"))
      if (entry.path().extension() == ".jpg" && entry.file_size() < 20000)
        fs::copy(entry.path(), folder / "data" / name);
    std::ofstream(folder / "data" / name / "0-empty.jpg");
    std::ofstream(folder / "data" / name / "zz-text.png") << "this is no picture";
  }
  ASSERT_EQ(
      run_fungi(extract(folder / "data", folder / "kept", "--keep-factors", "--objectives kl "))
          .status,
      3);
  ASSERT_EQ(run_fungi(extract(folder / "data", folder / "extracted", "--projection-dim 9",
                              "--objectives kl "))
                .status,
            3);
  const Outcome run =
      run_fungi(project(folder / "kept", folder / "projected", "--projection-dim 9 --json"));
  ASSERT_EQ(run.status, 3) << run.err;
  EXPECT_GE(nlohmann::json::parse(run.out)["failed"], 4);
  expect_same(folder / "projected", folder / "extracted", "with failures");
}

TEST(Project, AnotherSeedIsAnotherProjectionAndIsWrittenDown) {
  const test::TemporaryFolder folder;
  write_idx(folder / "train", 8);
  write_idx(folder / "test", 5, 2);
  ASSERT_EQ(run_fungi(extract(folder / "train", folder / "a", "--keep-factors")).status, 0);
  ASSERT_EQ(run_fungi(extract(folder / "test", folder / "b",
                              "--keep-factors --like " + (folder / "a").string()))
                .status,
            0);
  for (const char* name : {"a", "b"})
    ASSERT_EQ(
        run_fungi(project(folder / name, folder / (std::string(name) + "7"), "--seed 7")).status,
        0);
  const auto settings =
      nlohmann::json::parse(test::read_file(folder / "a7/manifest.json"))["settings"];
  EXPECT_EQ(settings["gradient"]["projection"]["seed"], 7);
  EXPECT_EQ(settings["seed"], 42) << "heads and crops are those of the extraction";
  EXPECT_EQ(test::read_file(folder / "a7/embedding-00000.npy"),
            test::read_file(folder / "a/embedding-00000.npy"));
  EXPECT_NE(test::read_file(folder / "a7/kl-00000.npy"),
            test::read_file(folder / "a/kl-00000.npy"));
  const auto knn = [&](const char* train, const char* test) {
    return run_fungi("knn " + (folder / train).string() + " " + (folder / test).string() + " -k 2");
  };
  EXPECT_EQ(knn("a7", "b7").status, 0);
  const Outcome mixed = knn("a7", "b");
  EXPECT_EQ(mixed.status, 1) << "gradients of two projections cannot be compared";
  EXPECT_NE(mixed.err.find("seed"), std::string::npos) << mixed.err;
}

TEST(Project, KilledAtRandomMomentsEndsWithTheSameBytes) {
  const test::TemporaryFolder folder;
  write_idx(folder / "data", 24);
  ASSERT_EQ(run_fungi(extract(folder / "data", folder / "kept", "--keep-factors")).status, 0);
  test::expect_kills_leave_no_trace(folder, [&](const fs::path& store) {
    return project(folder / "kept", store, "--projection-dim 3000");
  });
}

// What `fungi project --json` says.
nlohmann::json projected(const fs::path& from, const fs::path& to, int status = 0,
                         const std::string& more = "") {
  const Outcome run = run_fungi(project(from, to, "--projection-dim 9 --json" + more));
  EXPECT_EQ(run.status, status) << run.err;
  return nlohmann::json::parse(run.out);
}

TEST(Project, FollowsASourceWhosePicturesChangedUnderTheSameNames) {
  const test::TemporaryFolder folder;
  const std::string kl = "--objectives kl ";
  write_idx(folder / "data", 10);
  ASSERT_EQ(run_fungi(extract(folder / "data", folder / "kept", "--keep-factors", kl)).status, 0);
  EXPECT_EQ(projected(folder / "kept", folder / "p")["computed"], 10);
  EXPECT_EQ(projected(folder / "kept", folder / "p")["computed"], 0);
  const fs::path images = folder / "data/train-images-idx3-ubyte";
  std::string bytes = test::read_file(images);
  for (size_t p = 0; p < 400; ++p) bytes[16 + 5 * 400 + p] ^= 85;  // the picture number 5
  std::ofstream(images, std::ios::binary) << bytes;
  ASSERT_EQ(
      run_fungi(extract(folder / "data", folder / "kept", "--keep-factors --overwrite", kl)).status,
      0);
  EXPECT_EQ(projected(folder / "kept", folder / "p")["computed"], 1);
  ASSERT_EQ(projected(folder / "kept", folder / "fresh")["computed"], 10);
  EXPECT_EQ(test::contents(folder / "p"), test::contents(folder / "fresh"));
  write_idx(folder / "data", 14);  // number 5 is as it was
  ASSERT_EQ(
      run_fungi(extract(folder / "data", folder / "kept", "--keep-factors --overwrite", kl)).status,
      0);
  EXPECT_EQ(projected(folder / "kept", folder / "p")["computed"], 5);
}

TEST(Project, FollowsASourceThatWasMendedOrPruned) {
  const test::TemporaryFolder folder;
  const std::string kl = "--objectives kl ", keep = "--keep-factors ";
  const fs::path images = FUNGI_GOLDEN_DIR "/input/images";
  fs::create_directory(folder / "data");
  for (const char* name : {"filtered.png", "grey.jpg", "rgb8.png", "grey8.png", "exif_1.jpg"})
    fs::copy(images / name, folder / "data" / name);
  // Two failures of the size of a whole picture: nothing but the content tells that it was mended.
  for (const char* name : {"bad.jpg", "worse.jpg"})
    std::ofstream(folder / "data" / name) << std::string(fs::file_size(images / "grey.jpg"), 'x');
  ASSERT_EQ(run_fungi(extract(folder / "data", folder / "kept", keep, kl)).status, 3);
  EXPECT_EQ(projected(folder / "kept", folder / "p", 3)["failed"], 2);
  const auto before = test::contents(folder / "p");
  EXPECT_EQ(projected(folder / "kept", folder / "p", 3)["computed"], 0) << "as failed as before";
  EXPECT_EQ(test::contents(folder / "p"), before);

  fs::copy(images / "grey.jpg", folder / "data/bad.jpg", fs::copy_options::overwrite_existing);
  ASSERT_EQ(
      run_fungi(extract(folder / "data", folder / "kept", keep + "--retry-failed", kl)).status, 3);
  const nlohmann::json mended = projected(folder / "kept", folder / "p", 3);
  EXPECT_EQ(mended["rows"], 6);
  EXPECT_EQ(mended["computed"], 1);
  fs::remove(folder / "data/rgb8.png");
  ASSERT_EQ(run_fungi(extract(folder / "data", folder / "kept", keep + "--prune", kl)).status, 3);
  const auto whole = test::contents(folder / "p");
  const Outcome refused = run_fungi(project(folder / "kept", folder / "p", "--projection-dim 9"));
  EXPECT_EQ(refused.status, 1) << "a slip of the hand must not cost rows";
  EXPECT_NE(refused.err.find("rgb8.png"), std::string::npos) << refused.err;
  EXPECT_NE(refused.err.find("--prune"), std::string::npos) << refused.err;
  EXPECT_EQ(test::contents(folder / "p"), whole);
  const nlohmann::json pruned = projected(folder / "kept", folder / "p", 3, " --prune");
  EXPECT_EQ(pruned["dropped"], 1);
  EXPECT_EQ(pruned["computed"], 0);
  ASSERT_EQ(projected(folder / "kept", folder / "fresh", 3)["rows"], 5);
  EXPECT_EQ(test::contents(folder / "p"), test::contents(folder / "fresh"));
}

TEST(Project, ADamagedSourceDoesNotCostTheOldStore) {
  const test::TemporaryFolder folder;
  write_idx(folder / "data", 6);
  ASSERT_EQ(
      run_fungi(extract(folder / "data", folder / "kept", "--keep-factors", "--objectives kl "))
          .status,
      0);
  projected(folder / "kept", folder / "p");
  const auto before = test::contents(folder / "p");
  for (const char* name : {"state/kl-head-weight.npy", "kl_factors_a-00001.npy",
                           "kl_factors_b-00000.npy", "embedding-00001.npy"}) {
    fs::rename(folder / "kept" / name, folder / "away");
    const Outcome refused = run_fungi(project(folder / "kept", folder / "p", "--overwrite"));
    fs::rename(folder / "away", folder / "kept" / name);
    EXPECT_EQ(refused.status, 1);
    EXPECT_NE(refused.err.find(name), std::string::npos) << refused.err;
    EXPECT_EQ(test::contents(folder / "p"), before) << name;
  }
}

TEST(Project, ClearRefusals) {
  const test::TemporaryFolder folder;
  write_idx(folder / "data", 4);
  ASSERT_EQ(run_fungi(extract(folder / "data", folder / "plain")).status, 0);
  ASSERT_EQ(run_fungi(extract(folder / "data", folder / "kept", "--keep-factors")).status, 0);
  ASSERT_EQ(run_fungi(extract(folder / "data", folder / "bare", "", "--objectives none ")).status,
            0);
  const auto refused = [&](const std::string& from, const std::string& to, const std::string& more,
                           const std::string& word, int status = 1) {
    const Outcome o = run_fungi(project(folder / from, folder / to, more));
    EXPECT_EQ(o.status, status) << from << " " << more;
    EXPECT_NE(o.err.find(word), std::string::npos) << o.err;
  };
  refused("plain", "new", "", "--keep-factors");
  refused("bare", "new", "", "no gradient");
  refused("kept", "kept", "--projection-dim 5", "another folder");
  refused("kept", "new", "--projection triangular", "gaussian", 2);
  EXPECT_FALSE(fs::exists(folder / "new"));
  ASSERT_EQ(run_fungi(project(folder / "kept", folder / "new", "--projection-dim 5")).status, 0);
  refused("kept", "new", "--projection-dim 6", "rows");
  EXPECT_EQ(
      run_fungi(project(folder / "kept", folder / "new", "--projection-dim 6 --overwrite")).status,
      0);
}

}  // namespace
}  // namespace fungi
