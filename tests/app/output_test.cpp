// SPDX-License-Identifier: Apache-2.0
// What verbs write, and where: exports, pages, answers about rows.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "fungi/base/random.h"
#include "fungi/store/export.h"
#include "tests/support/command.h"
#include "tests/support/idx.h"
#include "tests/support/made_store.h"

namespace fungi {
namespace {

namespace fs = std::filesystem;
using test::MadeRow;
using test::Outcome;
using test::run_fungi;

class Output : public testing::Test {
 protected:
  std::string at(const std::string& name) const { return (folder_ / name).string(); }
  void write(const std::string& name, const std::vector<MadeRow>& rows) const {
    test::write_made_store(folder_ / name, rows, {"x", "y"});
  }
  void expect_refusal(const std::string& command, const std::string& part, int status = 1) const {
    const Outcome o = run_fungi(command);
    EXPECT_EQ(o.status, status) << command << o.out << o.err;
    EXPECT_NE(o.err.find(part), std::string::npos) << o.err;
  }
  test::TemporaryFolder folder_;
};

TEST_F(Output, ExportsAreCalledWhatTheyAre) {
  write("s", {{"a", 0, {{1, 0}}}, {"b", 1, {{0, 1}}}});
  expect_refusal("export " + at("s") + " " + at("x.h5"), "give a folder and --format hdf5", 2);
  expect_refusal("export " + at("s") + " " + at("x.hdf5") + " --format hdf5", "give a folder", 2);
  expect_refusal("export " + at("s") + " " + at("x.npz") + " --format hdf5", ".npz", 2);
  const auto before = test::contents(folder_ / "s");
  for (const std::string out : {"s/x.npz", "s/new/x.npz", "s/../s/x.npz"})
    expect_refusal("export " + at("s") + " " + at(out), "in the store itself");
  expect_refusal("export " + at("s") + " " + at("s") + " --format hdf5", "in the store itself");
  fs::copy(folder_ / "s", folder_ / "another", fs::copy_options::recursive);
  const auto another = test::contents(folder_ / "another");
  for (const char* out : {"another/rows-00000.jsonl", "another/state/x.npz"})
    expect_refusal("export " + at("s") + " " + at(out), "in a store or an index");
  EXPECT_EQ(test::contents(folder_ / "another"), another);
  for (const char* name : {"--split ../s/x", "--layer-name .", "--layer-name a/b"})
    expect_refusal("export " + at("s") + " " + at("h") + " --format hdf5 " + name, "'/'", 2);
  EXPECT_EQ(test::contents(folder_ / "s"), before);
  EXPECT_EQ(run_fungi("export " + at("s") + " " + at("s.npz")).status, 0);
}

TEST_F(Output, Hdf5NamesGradientsAfterTheirLayer) {
  if (!have_hdf5())
    GTEST_SKIP() << "this build has no HDF5: install libhdf5-dev and configure again";
  test::write_idx(folder_ / "data", 3);
  const Outcome o = run_fungi("extract " + at("data") +
                              " -m " FUNGI_GOLDEN_DIR
                              "/backbone/timm_vit/model.safetensors --set "
                              "heads=4 --objectives kl:width=8 --layer blocks.-1.mlp.fc2 -o " +
                              at("s"));
  ASSERT_EQ(o.status, 0) << o.err;
  const auto names = [&](const std::string& option) {
    EXPECT_EQ(run_fungi("export " + at("s") + " " + at("h") + " --format hdf5" + option).status, 0);
    const std::string file = test::read_file(folder_ / "h/kl.h5");
    std::set<std::string> found;
    for (const char* name : {"attn_proj", "mlp_fc2"})
      if (file.find(name) != std::string::npos) found.insert(name);
    return found;
  };
  EXPECT_EQ(names(""), std::set<std::string>{"mlp_fc2"});
  EXPECT_EQ(names(" --layer-name attn_proj"), std::set<std::string>{"attn_proj"});
}

TEST_F(Output, Hdf5FilesOfAnotherStoreAreNamed) {
  if (!have_hdf5())
    GTEST_SKIP() << "this build has no HDF5: install libhdf5-dev and configure again";
  write("s", {{"a", 0, {{1, 0}}}, {"b", 1, {{0, 1}}}});
  fs::create_directory(folder_ / "h");
  for (const char* name : {"dino.h5", "train-kl.h5", "train-embeddings.h5", "notes.txt"})
    std::ofstream(folder_ / "h" / name) << "older";
  const auto noted = [&](const std::string& option) {
    const Outcome o = run_fungi("export " + at("s") + " " + at("h") + " --format hdf5" + option);
    EXPECT_EQ(o.status, 0) << o.err;
    std::set<std::string> found;
    for (const char* name : {"/dino.h5", "/train-kl.h5", "embeddings.h5", "notes.txt"})
      if (o.err.find(name) != std::string::npos) found.insert(name);
    return found;
  };
  EXPECT_EQ(noted(""), std::set<std::string>{"/dino.h5"});
  EXPECT_EQ(noted(" --split train"), std::set<std::string>{"/train-kl.h5"});
  EXPECT_EQ(noted(" --split test"), std::set<std::string>{});
  EXPECT_EQ(test::read_file(folder_ / "h/dino.h5"), "older");
}

TEST_F(Output, AStoreHoldsItsOwnFilesAlone) {
  write("s", {{"a", 0, {{1, 0}}}, {"b", 1, {{0, 1}}}, {"c", 0, {{1, 1}}}});
  fs::create_directory(folder_ / "s" / "sub");
  const auto before = test::contents(folder_ / "s");
  for (const std::string& command :
       {"project " + at("s") + " -o " + at("s/sub/p"), "index " + at("s") + " -o " + at("s/sub/i"),
        "pca " + at("s") + " --dim 1 -o " + at("s/sub/p"),
        "report " + at("s") + " " + at("s") + " -k 1 -o " + at("s/r.html")})
    expect_refusal(command, "in the store itself");
  const Outcome here = run_fungi("export . e.npz", "cd '" + at("s") + "' &&");
  EXPECT_EQ(here.status, 1);
  EXPECT_NE(here.err.find("in the store itself"), std::string::npos) << here.err;
  EXPECT_EQ(test::contents(folder_ / "s"), before);
}

TEST_F(Output, ALinkToAnOutputStaysALink) {
  write("s", {{"a", 0, {{1, 0}}}, {"b", 1, {{0, 1}}}, {"c", 0, {{1, 1}}}});
  for (const char* name : {"x.npz", "r.html"}) fs::create_symlink(at("far-") + name, at(name));
  ASSERT_EQ(run_fungi("export " + at("s") + " " + at("x.npz")).status, 0);
  ASSERT_EQ(run_fungi("report " + at("s") + " " + at("s") + " -k 1 -o " + at("r.html")).status, 0);
  for (const char* name : {"x.npz", "r.html"}) {
    EXPECT_TRUE(fs::is_symlink(at(name)));
    EXPECT_TRUE(fs::is_regular_file(at("far-") + name));
  }
}

// The HDF5 library cannot close what it could not write, and tried again at the end.
TEST_F(Output, AFullDiskEndsAnHdf5ExportOnce) {
  if (!have_hdf5())
    GTEST_SKIP() << "this build has no HDF5: install libhdf5-dev and configure again";
  std::vector<MadeRow> rows;
  for (int i = 0; i < 2000; ++i) rows.push_back({"row-" + std::to_string(i), i % 2, {{1, 0}}});
  write("s", rows);
  ASSERT_EQ(run_fungi("export " + at("s") + " " + at("whole") + " --format hdf5").status, 0);
  const auto whole = test::contents(folder_ / "whole");
  for (size_t blocks = 1; blocks < 400; blocks += blocks < 50 ? 13 : 7) {  // of 512 bytes
    fs::remove_all(folder_ / "h");
    const Outcome o = run_fungi("export " + at("s") + " " + at("h") + " --format hdf5",
                                fmt::format("ulimit -f {};", blocks));
    if (o.status == 0) {  // what waited in the library's memory was not lost unseen
      EXPECT_EQ(test::contents(folder_ / "h"), whole) << blocks;
      continue;
    }
    EXPECT_EQ(o.status, 1) << o.err;
    EXPECT_EQ(o.err.find("infinite loop"), std::string::npos) << o.err;
    EXPECT_NE(o.err.find("embeddings.h5: "), std::string::npos) << o.err;
    EXPECT_TRUE(fs::is_empty(folder_ / "h"));
  }
}

TEST_F(Output, APageThatCannotBeWrittenIsRefusedBeforeTheWork) {
  write("a", {{"a", 0, {{1, 0}}}, {"b", 1, {{0, 1}}}, {"c", 0, {{1, 1}}}, {"d", 1, {{0, 2}}}});
  std::ofstream(folder_ / "old.html") << "old";
  const std::string report = "report " + at("a") + " " + at("a") + " -k 1 -o ";
  expect_refusal(report + at("nowhere/page.html"), "No such file or directory");
  fs::create_directory(folder_ / "folder");
  expect_refusal(report + at("folder"), "found a folder");
  const Outcome full = run_fungi(report + at("old.html"), "ulimit -f 1;");
  EXPECT_EQ(full.status, 1);
  EXPECT_NE(full.err.find("File too large"), std::string::npos) << full.err;
  EXPECT_EQ(test::read_file(folder_ / "old.html"), "old");
  EXPECT_EQ(run_fungi(report + at("old.html")).status, 0);
  EXPECT_NE(test::read_file(folder_ / "old.html").find("</html>"), std::string::npos);
}

TEST_F(Output, ARowComesBeforeItsCopies) {
  write("s", {{"a", 0, {{1, 0}}}, {"b", 0, {{1, 0}}}, {"c", 0, {{1, 0}}}, {"d", 1, {{0, 1}}}});
  ASSERT_EQ(run_fungi("index " + at("s") + " --kind exact --pca 0 -o " + at("i")).status, 0);
  for (const char* target : {"s", "i"})
    for (const char* k : {"1", "2", "4"})
      for (const std::string id : {"a", "b", "c", "d"}) {
        const Outcome o = run_fungi("search " + at(target) + " --json -k " + k + " --row " + id);
        ASSERT_EQ(o.status, 0) << o.err;
        const auto near = nlohmann::json::parse(o.out)["queries"][0]["neighbours"];
        EXPECT_EQ(near[0]["id"], id) << target << k;
        std::set<std::string> ids;
        for (const auto& n : near) ids.insert(n["id"].get<std::string>());
        EXPECT_EQ(ids.size(), near.size()) << "each once";
      }
}

// A graph of few links that were chosen hastily does not find all of these rows.
TEST_F(Output, ARowComesFirstWhereItsIndexMissesIt) {
  std::vector<MadeRow> rows;
  std::string asked;
  for (size_t i = 0; i < 1000; ++i) {
    const RandomStream random(4, "search rows", i);
    rows.push_back({std::to_string(i), 0, {{}}});
    for (size_t c = 0; c < 12; ++c)  // five directions
      rows[i].blocks[0].push_back(float(random.uniform(c) - 0.5 + 0.1 * double(i % 5)));
    if (i % 25 == 0) asked += " " + std::to_string(i);
  }
  write("s", rows);
  for (const std::string metric : {"euclidean", "cosine"}) {
    ASSERT_EQ(run_fungi("index " + at("s") + " --links 4 --build-effort 4 --pca 0 -o " + at("i") +
                        " --metric " + metric)
                  .status,
              0);
    const Outcome o = run_fungi("search " + at("i") + " --effort 10 --json -k 10 --row" + asked);
    ASSERT_EQ(o.status, 0) << o.err;
    const auto queries = nlohmann::json::parse(o.out)["queries"];
    ASSERT_EQ(queries.size(), 40u);
    for (const auto& query : queries) {
      const auto& near = query["neighbours"];
      std::set<std::string> ids;
      for (const auto& n : near) ids.insert(n["id"].get<std::string>());
      EXPECT_EQ(ids.size(), 10u) << "each once";
      EXPECT_EQ(near[0]["id"], query["row"]);
      if (metric == "euclidean")
        EXPECT_EQ(near[0]["distance"], 0);
      else
        EXPECT_NEAR(near[0]["similarity"], 1, 1e-6);
    }
  }
}

TEST_F(Output, AnIndexThatDoesNotFitOnTheDiskLeavesNoFolder) {
  std::vector<MadeRow> rows;
  for (size_t i = 0; i < 500; ++i)
    rows.push_back({std::to_string(i), 0, {{1, float(i), float(i % 7)}}});
  write("s", rows);
  fs::create_directory(folder_ / "mine");
  for (const std::string name : {"new", "mine"}) {
    const Outcome o = run_fungi("index " + at("s") + " --pca 0 -o " + at(name), "ulimit -f 2;");
    EXPECT_EQ(o.status, 1) << o.err;
    EXPECT_EQ(fs::exists(folder_ / name), name == "mine") << "what was there stays";
  }
  EXPECT_TRUE(fs::is_empty(folder_ / "mine"));
}

TEST_F(Output, ARowWithoutLabelIsNamed) {
  write("s", {{"a", 0, {{1, 0}}}, {"loose", -1, {{1, 1}}}, {"d", 1, {{0, 1}}}});
  write("t", {{"a", 0, {{1, 0}}}, {"d", 1, {{0, 1}}}});
  for (const std::string& command :
       {"knn " + at("s") + " " + at("t") + " -k 1", "knn " + at("t") + " " + at("s") + " -k 1",
        "linear " + at("s") + " " + at("t"), "kmeans " + at("s"),
        "report " + at("s") + " " + at("t") + " -k 1 -o " + at("r.html")}) {
    expect_refusal(command, "e.g. 'loose'");
    expect_refusal(command, "--kind classes and --prune");
  }
  EXPECT_FALSE(fs::exists(folder_ / "r.html"));
  EXPECT_EQ(run_fungi("retrieve " + at("t") + " " + at("s")).status, 0) << "right for nobody";
  EXPECT_EQ(run_fungi("retrieve " + at("s") + " " + at("t")).status, 0) << "a distractor";
  write("none", {{"a", -1, {{1, 0}}}, {"d", -1, {{0, 1}}}});
  expect_refusal("retrieve " + at("t") + " " + at("none"), "label");
  for (const std::string verb : {"knn s t --metric", "retrieve s t --metric",
                                 "index s -o i --metric", "search s --row a --metric"})
    expect_refusal(verb + " hamming", "euclidean", 2);
}

}  // namespace
}  // namespace fungi
