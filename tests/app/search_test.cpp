// SPDX-License-Identifier: Apache-2.0
// fungi pca, index and search as a user runs them. The judge of search is the store itself: a
// picture of the store, extracted again from its file, must come back first, at distance 0.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "fungi/base/random.h"
#include "fungi/checkpoint/npy.h"
#include "tests/support/command.h"
#include "tests/support/golden.h"
#include "tests/support/made_store.h"

namespace fungi {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::Outcome;
using test::run_fungi;

const std::string kModelFile = FUNGI_GOLDEN_DIR "/backbone/timm_vit/model.safetensors";
const std::string kObjectives =
    "--objectives kl dino:width=16,local_crops=2 simclr:width=8,negatives=3";

// In an order that does not depend on the file system.
std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

class Search : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* split : {"train", "test"})
      for (const char* name : {"bag", "coat", "sandal"}) {
        const fs::path target = folder_ / "pictures" / split / name;
        fs::create_directories(target);
        const auto files = files_in(fs::path(FUNGI_SOURCE_DIR "/demo/images") / split / name);
        for (size_t i = 0; i < 8; ++i) fs::copy(files.at(i), target);
      }
  }

  std::string at(const std::string& name) const { return (folder_ / name).string(); }

  void extract(const std::string& store, const std::string& more,
               const std::string& split = "train") const {
    const Outcome o = run_fungi("extract " + at("pictures/" + split) + " -m " + kModelFile +
                                " --set heads=4 -q --shard 5 -o " + at(store) + " " + more);
    ASSERT_EQ(o.status, 0) << o.err;
  }

  json search(const std::string& target, const std::string& more) const {
    const Outcome o = run_fungi("search " + at(target) + " --json " + more);
    EXPECT_EQ(o.status, 0) << o.err;
    return o.status == 0 ? json::parse(o.out) : json();
  }

  // Every third picture of the training split comes back first, at distance 0, and the others do
  // not.
  void expect_own_pictures_first(const std::string& target, const std::string& more = "") const {
    std::vector<std::string> ids;
    for (const auto& entry : fs::recursive_directory_iterator(folder_ / "pictures/train"))
      if (entry.is_regular_file())
        ids.push_back(fs::relative(entry.path(), folder_ / "pictures/train").string());
    std::sort(ids.begin(), ids.end());
    std::string images;
    for (size_t i = 0; i < ids.size(); i += 3) images += " " + at("pictures/train/" + ids[i]);
    const json found = search(target, more + " -k 3 --image" + images);
    ASSERT_EQ(found["queries"].size(), ids.size() / 3) << target;
    for (size_t q = 0; q < ids.size() / 3; ++q) {
      const json& near = found["queries"][q]["neighbours"];
      EXPECT_EQ(near[0]["id"], ids[3 * q]) << target;
      EXPECT_EQ(near[0]["distance"], 0.0) << target << ": " << ids[3 * q];
      EXPECT_EQ(near[0]["class"], ids[3 * q].substr(0, ids[3 * q].find('/')));
      EXPECT_GT(near[1]["distance"], 0.0);
      EXPECT_GE(near[2]["distance"], near[1]["distance"]);
    }
  }

  void expect_refusal(const std::string& arguments, const std::string& part, int status = 1) const {
    const Outcome o = run_fungi(arguments);
    EXPECT_EQ(o.status, status) << arguments << "\n" << o.out;
    EXPECT_NE(o.err.find(part), std::string::npos) << arguments << "\n" << o.err;
    EXPECT_EQ(o.err.find("internal error"), std::string::npos) << o.err;
  }

  test::TemporaryFolder folder_;
};

TEST_F(Search, AStoreProjectedAnewIsContinuedWithItsOwnProjection) {
  extract("kept", kObjectives + " --keep-factors");
  const Outcome o = run_fungi("project " + at("kept") + " -o " + at("projected") +
                              " --seed 7 --projection-dim 40 -q");
  ASSERT_EQ(o.status, 0) << o.err;
  expect_own_pictures_first("projected");
}

TEST_F(Search, PicturesOfTheStoreComeBackFirstFromTheStoreAndFromEveryIndex) {
  extract("store", kObjectives);
  expect_own_pictures_first("store");
  expect_own_pictures_first("store", "--features kl+embedding -j 1");
  for (const std::string kind : {"exact", "hnsw", "ivf"}) {
    const Outcome built =
        run_fungi("index " + at("store") + " --kind " + kind + " -k 4 --json -o " + at(kind));
    ASSERT_EQ(built.status, 0) << built.err;
    const json facts = json::parse(built.out);
    EXPECT_EQ(facts["rows"], 24);
    EXPECT_EQ(facts["columns"], 4 * 32);
    EXPECT_GT(facts["recall"], 0.9);
    expect_own_pictures_first(kind);
    const Outcome shrunk = run_fungi("index " + at("store") + " --kind " + kind +
                                     " --features dino+embedding --pca 6 -o " + at(kind));
    ASSERT_EQ(shrunk.status, 0) << "replacing it: " << shrunk.err;
    expect_own_pictures_first(kind);
    const std::string id = files_in(folder_ / "pictures/train/bag")[0].filename().string();
    EXPECT_EQ(search(kind, "--row bag/" + id)["features"], "dino+embedding");
  }
  // An index stands alone.
  fs::rename(folder_ / "hnsw", folder_ / "moved");
  fs::remove_all(folder_ / "store");
  expect_own_pictures_first("moved");
}

TEST_F(Search, AnExactIndexAndTheStoreGiveTheSameAnswer) {
  extract("store", kObjectives);
  std::string queries = " --image";
  for (const fs::path& file : files_in(folder_ / "pictures/test/coat"))
    queries += " " + file.string();
  for (const std::string metric : {"euclidean", "cosine", "inner_product"}) {
    ASSERT_EQ(run_fungi("index " + at("store") + " --kind exact --metric " + metric + " -o " +
                        at("exact"))
                  .status,
              0);
    EXPECT_EQ(search("store", "-k 9 --metric " + metric + queries)["queries"],
              search("exact", "-k 9" + queries)["queries"])
        << metric;
  }
}

TEST_F(Search, EveryKindOfSettingIsRebuilt) {
  const char* const settings[] = {
      "--objectives none",
      "--objectives dino_b:student_temperature=0.2,width=16,local_crops=2 "
      "dino:width=16,local_crops=1 --projection factored --projection-dim 40",
      "--objectives ibot:width=16 deepcluster:prototypes=4 --preset paper",
      "--objectives kl --storage float16 --seed 18446744073709551615",
      "--objectives kl simclr:temperature=0.3,negatives=2,width=8 --preset lib --layer "
      "blocks.1.mlp.fc1 --projection gaussian --exif --allow-truncated",
      "--objectives kl --precision bf16 --projection sign_reference --keep-factors",
  };
  for (const char* setting : settings) {
    SCOPED_TRACE(setting);
    fs::remove_all(folder_ / "store");
    extract("store", setting);
    expect_own_pictures_first("store");
  }
}

TEST_F(Search, HeadsAndProjectionsOfTheUsersOwn) {
  extract("drawn", "--objectives kl");
  const NpyFile weight = NpyFile::open(folder_ / "drawn/state/kl-head-weight.npy");
  Matrix<float> other = weight.read(), projection(20, 32 * 33);
  for (size_t i = 0; i < other.rows() * other.cols(); ++i) other.data()[i] *= i % 2 ? 1.5f : -0.5f;
  const RandomStream random(3, "projection");
  for (size_t i = 0; i < 20 * 32 * 33; ++i) projection.data()[i] = float(random.normal(i));
  const Matrix<float> bias = NpyFile::open(folder_ / "drawn/state/kl-head-bias.npy").read();
  write_npz(folder_ / "heads.npz",
            {{"kl-head-weight", npy_array(other)}, {"kl-head-bias", npy_array(bias)}});
  write_npz(folder_ / "matrix.npz", {{"projection", npy_array(projection)}});
  extract("given", "--objectives kl --given " + at("heads.npz"));
  EXPECT_NE(test::read_file(folder_ / "given/kl-00000.npy"),
            test::read_file(folder_ / "drawn/kl-00000.npy"));
  expect_own_pictures_first("given");

  extract("own", "--objectives kl --projection matrix --given " + at("matrix.npz"));
  const std::string image = " --image " + files_in(folder_ / "pictures/test/bag")[0].string();
  expect_refusal("search " + at("own") + image, "--given");
  expect_own_pictures_first("own", "--given " + at("matrix.npz"));
  projection(3, 3) += 1;
  write_npz(folder_ / "matrix.npz", {{"projection", npy_array(projection)}});
  expect_refusal("search " + at("own") + image + " --given " + at("matrix.npz"),
                 "settings.gradient.projection.sha256");
}

TEST_F(Search, RowsById) {
  extract("store", "--objectives kl");
  ASSERT_EQ(run_fungi("index " + at("store") + " --kind ivf --lists 4 -o " + at("ivf")).status, 0);
  const std::string id =
      "sandal/" + files_in(folder_ / "pictures/train/sandal")[0].filename().string();
  for (const std::string target : {"store", "ivf"}) {
    const json found = search(target, "-k 100 --row " + id);
    EXPECT_EQ(found["queries"][0]["row"], id);
    EXPECT_EQ(found["queries"][0]["neighbours"].size(), 24u) << "all there are";
    EXPECT_EQ(found["queries"][0]["neighbours"][0]["id"], id);
    EXPECT_EQ(found["queries"][0]["neighbours"][0]["distance"], 0.0);
    EXPECT_EQ(found["queries"][0]["neighbours"][0]["label"], 2);
  }
  const Outcome table = run_fungi("search " + at("store") + " -k 2 --row " + id);
  EXPECT_NE(table.out.find(id), std::string::npos);
  EXPECT_NE(table.out.find("0.000000"), std::string::npos);
}

// Rows without structure, of which a poor graph and short lists find some neighbours only.
class MadeSearch : public Search {
 protected:
  static constexpr size_t kRows = 1000;
  void SetUp() override {
    std::vector<test::MadeRow> rows;
    for (size_t i = 0; i < kRows; ++i) {
      const RandomStream random(4, "search rows", i);
      rows.push_back({std::to_string(i), -1, {{}}});
      for (size_t c = 0; c < 12; ++c) rows[i].blocks[0].push_back(float(random.normal(c)));
    }
    test::write_made_store(folder_ / "store", rows, {});
  }
  double recall(const std::string& more) const {  // builds the index "made", too
    const Outcome o =
        run_fungi("index " + at("store") + " --json -j 2 -o " + at("made") + " " + more);
    EXPECT_EQ(o.status, 0) << o.err;
    return json::parse(o.out)["recall"];
  }
  json answers(const std::string& target, const std::string& more = "") const {
    std::string rows;
    for (size_t i = 0; i < 40; ++i) rows += " " + std::to_string(25 * i);
    return search(target, "-k 10 " + more + " --row" + rows)["queries"];
  }
};

TEST_F(MadeSearch, OptionsOfAnIndexReachIt) {
  const std::string hnsw = "--kind hnsw --links 4 --build-effort 60 --sample 300 ";
  const double good = recall(hnsw + "--effort 300");
  EXPECT_EQ(NpyFile::open(folder_ / "made/links.npy").cols(), 1 + 2 * 4u);
  EXPECT_NE(answers("made", "--effort 10"), answers("made", "--effort 300"));
  const double poor = recall(hnsw + "--effort 10"),
               hasty = recall("--kind hnsw --links 4 --build-effort 4 --sample 300 --effort 10");
  EXPECT_LT(poor + 0.05, good);
  EXPECT_LT(hasty + 0.05, poor);
  const std::string ivf = "--kind ivf --lists 50 --sample ";
  EXPECT_EQ(recall(ivf + "300 --probes 50"), 1);
  EXPECT_EQ(NpyFile::open(folder_ / "made/centres.npy").rows(), 50u);
  const double all = recall(ivf + "1000 --probes 1"), some = recall(ivf + "3 --probes 1");
  EXPECT_LT(all, 0.9);
  EXPECT_NE(some, all);
  EXPECT_NEAR(some * 30, std::round(some * 30), 1e-9) << "of three rows with ten neighbours each";
  EXPECT_EQ(answers("made", "--probes 50"), answers("store"));
  EXPECT_NE(answers("made", "--probes 1"), answers("store"));
}

TEST_F(Search, ClearRefusals) {
  fs::create_directories(folder_ / "model");
  fs::copy(kModelFile, folder_ / "model/model.safetensors");
  const Outcome made = run_fungi("extract " + at("pictures/train") + " -m " + at("model") +
                                 " --set heads=4 -q -o " + at("store") + " " + kObjectives);
  ASSERT_EQ(made.status, 0) << made.err;
  ASSERT_EQ(run_fungi("index " + at("store") + " -o " + at("index")).status, 0);
  const std::string image = " --image " + files_in(folder_ / "pictures/test/bag")[0].string();
  for (const std::string target : {"store", "index"}) {
    const std::string command = "search " + at(target);
    expect_refusal(command, "--image, --audio, --text or --row", 2);
    expect_refusal(command + " --row bag/nobody.png", "bag/nobody.png");
    expect_refusal(command + " --image " + at("nobody.png"), "nobody.png");
    expect_refusal(command + " --image " + kModelFile, "model.safetensors");
    expect_refusal(command + image + " --features nothing", "nothing");
    expect_refusal(command + image + " -m " FUNGI_GOLDEN_DIR "/backbone/dino/model.pth", "sha256");
    expect_refusal(command + image + " -m " + at("elsewhere"), "-m");
  }
  // One that cannot be answered costs no other.
  std::ofstream(folder_ / "broken.png") << "no picture";
  for (const char* target : {"store", "index"}) {
    const std::string command = "search " + at(target) + " -k 2 --metric euclidean";
    const Outcome alone = run_fungi(command + image + " --json"),
                  beside = run_fungi(command + " --image " + at("broken.png") + image.substr(8) +
                                     " --row bag/nobody.png --json");
    EXPECT_EQ(beside.status, 3) << beside.err;
    for (const char* bad : {"broken.png", "bag/nobody.png"})
      EXPECT_NE(beside.err.find(bad), std::string::npos) << beside.err;
    const json queries = json::parse(beside.out)["queries"];
    ASSERT_EQ(queries.size(), 3u);
    EXPECT_TRUE(queries[0].contains("error") && queries[2].contains("error"));
    EXPECT_EQ(queries[1], json::parse(alone.out)["queries"][0]);
    const Outcome none = run_fungi(command + " --row bag/nobody.png coat/nobody.png --json");
    EXPECT_EQ(none.status, 1);
    EXPECT_EQ(json::parse(none.out)["queries"].size(), 2u);
    EXPECT_NE(none.err.find("coat/nobody.png"), std::string::npos) << none.err;
  }
  expect_refusal("search " + at("index") + " --metric cosine --row x", "cosine");
  expect_refusal("search " + at("store") + " --probes 3 --row x", "--probes");
  expect_refusal("search " + at("pictures") + " --row x", "feature store");
  expect_refusal("index " + at("store") + " -o " + at("pictures"), "other files");
  expect_refusal("index " + at("store") + " -o " + at("store"), "other files");
  ASSERT_EQ(run_fungi("pca " + at("store") + " --dim 4 -o " + at("reduced")).status, 0);
  expect_refusal("index " + at("store") + " -o " + at("reduced"), "other files");
  expect_refusal("pca " + at("store") + " --dim 4 -o " + at("store"), "holds a store");
  expect_refusal("pca " + at("store") + " --dim 4 -o " + at("index"), "an index");
  expect_refusal("index " + at("store") + " --pca 24 -o " + at("other"), "24 rows");
  EXPECT_FALSE(fs::exists(folder_ / "other"));
  fs::rename(folder_ / "model", folder_ / "gone");
  for (const std::string target : {"store", "index"}) {
    expect_refusal("search " + at(target) + image, "-m");
    EXPECT_EQ(run_fungi("search " + at(target) + image + " -m " + at("gone")).status, 0);
    fs::remove(folder_ / target / "state/simclr-negatives.npy");
    expect_refusal("search " + at(target) + image + " -m " + at("gone"), "simclr-negatives");
  }
}

TEST_F(Search, PcaFilesAreCentredUncorrelatedAndRepeatable) {
  extract("train", "--objectives kl");
  extract("test", "--objectives kl --like " + at("train"), "test");
  const Outcome fitted =
      run_fungi("pca " + at("train") + "/ " + at("test") + " --dim 5 --json -o " + at("reduced"));
  ASSERT_EQ(fitted.status, 0) << fitted.err;
  EXPECT_GT(json::parse(fitted.out)["explained_variance_share"], 0.3);
  const auto train = golden::load(at("reduced/train.npy")),
             other = golden::load(at("reduced/test.npy"));
  ASSERT_EQ(train.shape, (std::vector<size_t>{24, 5}));
  ASSERT_EQ(other.shape, (std::vector<size_t>{24, 5}));
  for (size_t c = 0; c < 5; ++c) {  // what makes it a PCA: centred, uncorrelated, falling
    double mean = 0;
    for (size_t i = 0; i < 24; ++i) mean += train.values[i * 5 + c] / 24;
    EXPECT_NEAR(mean, 0, 1e-6);
    double product = 0, square = 0, next = 0;
    for (size_t i = 0; c < 4 && i < 24; ++i) {
      const double* row = &train.values[i * 5 + c];
      product += row[0] * row[1], square += row[0] * row[0], next += row[1] * row[1];
    }
    EXPECT_NEAR(product, 0, 1e-5);
    EXPECT_GE(square, next);
  }
  const std::string bytes = test::read_file(folder_ / "reduced/test.npy");
  ASSERT_EQ(
      run_fungi("pca " + at("test") + " --apply " + at("reduced") + " -o " + at("later")).status,
      0);
  EXPECT_EQ(test::read_file(folder_ / "later/test.npy"), bytes);
  // Beside the PCA itself, whose only copy is not written again.
  const auto written = fs::last_write_time(folder_ / "later/pca.npz");
  ASSERT_EQ(
      run_fungi("pca " + at("train") + " --apply " + at("later") + " -o " + at("later")).status, 0);
  EXPECT_EQ(fs::last_write_time(folder_ / "later/pca.npz"), written);
  EXPECT_EQ(test::read_file(folder_ / "later/train.npy"),
            test::read_file(folder_ / "reduced/train.npy"));

  expect_refusal("pca " + at("train") + " --dim 24 -o " + at("x"), "24 rows");
  expect_refusal("pca " + at("train") + " --dim 5 --features kl+nothing -o " + at("x"), "nothing");
  expect_refusal("pca " + at("train") + " " + at("train") + "/ --dim 5 -o " + at("x"), "train.npy");
  expect_refusal("pca " + at("train") + " --apply " + at("train") + " -o " + at("x"),
                 "features.json");
  extract("seeded", "--objectives kl --seed 7", "test");
  expect_refusal("pca " + at("seeded") + " --apply " + at("reduced") + " -o " + at("x"),
                 "settings.seed");
  expect_refusal("pca " + at("train") + " --dim 5 -o " + at("train/manifest.json"),
                 "manifest.json");
  EXPECT_FALSE(fs::exists(folder_ / "x"));

  // What would be left of an older PCA has its columns, and its folder stays as it is until then.
  const auto before = test::contents(folder_ / "reduced");
  expect_refusal("pca " + at("train") + " --dim 3 -o " + at("reduced"), "test.npy");
  EXPECT_EQ(run_fungi("pca " + at("train") + " " + at("test") + " --dim 9 -o " + at("reduced"),
                      "trap '' XFSZ; ulimit -f 2;")
                .status,
            1);
  EXPECT_EQ(test::read_file(folder_ / "reduced/pca.npz"), before.at("pca.npz"));
  EXPECT_EQ(run_fungi("info " + at("reduced")).status, 0);
  // Nor does an index lose what it was to a full disk.
  ASSERT_EQ(run_fungi("index " + at("train") + " -o " + at("index")).status, 0);
  const auto index = test::contents(folder_ / "index");
  EXPECT_EQ(run_fungi("index " + at("test") + " --kind ivf --pca 0 -o " + at("index"),
                      "trap '' XFSZ; ulimit -f 2;")
                .status,
            1);
  EXPECT_EQ(test::contents(folder_ / "index"), index);
  EXPECT_EQ(run_fungi("info " + at("index")).status, 0);
  fs::create_directory(folder_ / "killed");
  std::ofstream{folder_ / "killed/unfinished"};
  expect_refusal("info " + at("killed"), "repeat the command that writes it");
  EXPECT_EQ(
      run_fungi("pca " + at("train") + " " + at("test") + " --dim 3 -o " + at("reduced")).status,
      0);
  EXPECT_EQ(golden::load(at("reduced/test.npy")).shape[1], 3u);
  EXPECT_FALSE(fs::exists(folder_ / "reduced/unfinished"));
  fs::create_directory(folder_ / "mine");
  std::ofstream(folder_ / "mine/pca.npz") << "mine";
  expect_refusal("pca " + at("train") + " --dim 3 -o " + at("mine"), "pca.npz");
  EXPECT_EQ(test::read_file(folder_ / "mine/pca.npz"), "mine");
}

}  // namespace
}  // namespace fungi
