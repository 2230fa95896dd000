// SPDX-License-Identifier: Apache-2.0
// Models from a hub that does what hubs do: redirects, breaks off, refuses, lies.
#include "fungi/hub/pull.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "fungi/hub/http_get.h"
#include "tests/hub/hub.h"
#include "tests/support/errors.h"
#include "tests/support/kills.h"

namespace fungi {
namespace {

namespace fs = std::filesystem;
using test::Hub;
using test::read_file;

constexpr const char* kCommit = "c0ffee0000000000000000000000000000000000";
constexpr const char* kOldCommit = "a1d0000000000000000000000000000000000000";

class PullTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!have_hub_session()) GTEST_SKIP() << "built without libcurl";
    hub_ = std::make_unique<Hub>();
  }
  PullOptions options() const {
    PullOptions o{.endpoint = hub_->endpoint(), .timeout = 1, .first_wait = 0.01};
    return o;
  }
  PullResult get(const std::string& model) const { return pull(model, options()); }
  // A file of 30000 bytes on which the server does something, and what became of it.
  fs::path with(const std::string& model, const std::string& trouble) {
    hub_->add_model(model, weights());
    hub_->add(model, "trouble.json", "{\"model.safetensors\": \"" + trouble + "\"}");
    return hub_->kept(folder(model)) / kCommit / "model.safetensors";
  }
  static std::string folder(std::string model) { return model.replace(model.find('/'), 1, "--"); }
  static std::string weights() {
    std::string bytes(30000, ' ');
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = char(i * 7919 >> 5);
    return bytes;
  }
  static bool left_over(const fs::path& folder) {
    for (const auto& entry : fs::recursive_directory_iterator(folder))
      if (entry.path().extension() == ".part" || entry.path().extension() == ".tmp") return true;
    return false;
  }
  std::unique_ptr<Hub> hub_;
};

TEST_F(PullTest, OneSetOfWeightsAndWhatSaysHowItIsRun) {
  hub_->add_model("plain/model");
  hub_->add("plain/model", "model.fp16.safetensors", "half");
  hub_->add("plain/model", "onnx/model.onnx", "other");
  hub_->add("plain/model", "README.md", "words");
  hub_->add("plain/model", "tokenizer.json", "{}");
  hub_->add("plain/model", "1_Pooling/config.json", "{\"pooling\": 1}");
  const PullResult first = get("plain/model");
  EXPECT_EQ(first.path, hub_->kept("plain--model") / kCommit);
  const auto there = test::contents(first.path);
  std::vector<std::string> names;
  for (const auto& [name, bytes] : there) names.push_back(name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"1_Pooling", "1_Pooling/config.json", "config.json",
                                      "model.safetensors", "pulled.json", "tokenizer.json"}));
  EXPECT_EQ(there.at("model.safetensors"), std::string(5000, 'w'));
  EXPECT_EQ(first.fetched, first.bytes);
  EXPECT_EQ(first.commit, kCommit);

  // Again: nothing but the question whether there is something newer.
  hub_->forget_log();
  const PullResult again = get("hf:plain/model");
  EXPECT_EQ(again.fetched, 0u);
  EXPECT_EQ(hub_->log().size(), 1u);
  EXPECT_EQ(test::contents(again.path), there);

  // A file that was damaged since, as far as its length tells.
  fs::resize_file(first.path / "config.json", 3);
  EXPECT_EQ(get("plain/model").fetched, there.at("config.json").size());
  EXPECT_EQ(test::contents(first.path), there);

  // Other weights beside them: then the file is what is opened.
  PullOptions other = options();
  other.weights = "model.fp16.safetensors";
  EXPECT_EQ(pull("plain/model", other).path, first.path / "model.fp16.safetensors");
  EXPECT_EQ(pulled_model("hf:plain/model"), first.path / "model.fp16.safetensors");
  other.weights = "model.onnx";
  EXPECT_ERROR("model.fp16.safetensors", pull("plain/model", other));
}

TEST_F(PullTest, ATokenStaysWithItsHost) {
  hub_->add_model("gated/model");
  EXPECT_ERROR("grant access", get("gated/model"));
  EXPECT_ERROR("no such model, or it is private", get("private/model"));
  ::setenv("HF_TOKEN", "hf_bad", 1);
  const std::string refused = test::error_of([&] { get("gated/model"); });
  EXPECT_NE(refused.find("this token"), std::string::npos) << refused;
  EXPECT_EQ(refused.find("hf_bad"), std::string::npos)
      << "a careless server repeats it: " << refused;
  ::unsetenv("HF_TOKEN");
  hub_->forget_log();
  ::setenv("HF_TOKEN", "hf_good", 1);
  EXPECT_EQ(read_file(get("gated/model").path / "model.safetensors"), std::string(5000, 'w'));
  size_t shown = 0, elsewhere = 0;
  for (const Hub::Asked& one : hub_->log()) {
    if (one.second) {
      ++elsewhere;
      EXPECT_EQ(one.token, "") << one.what;
    } else {
      shown += one.token == "Bearer hf_good";
    }
  }
  EXPECT_GE(shown, 3u);
  EXPECT_EQ(elsewhere, 1u);

  // Without encryption, to another machine (through a proxy that is this one): not at all.
  hub_->forget_log();
  ::setenv("http_proxy", hub_->endpoint().c_str(), 1);
  PullOptions o = options();
  o.endpoint = "http://hub.test";
  std::vector<std::string> notes;
  o.note = [&](const std::string& note) { notes.push_back(note); };
  hub_->add_model("plain/model");
  fs::remove_all(hub_->kept("plain--model"));
  EXPECT_EQ(pull("plain/model", o).commit, kCommit);
  ::unsetenv("http_proxy");
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("no token is sent"), std::string::npos);
  for (const Hub::Asked& one : hub_->log()) EXPECT_EQ(one.token, "");
  EXPECT_TRUE(hub_->log()[0].what.starts_with("http://hub.test/")) << "not through the proxy";

  // The one that the hub's tools keep is the hub's alone; a mirror does not get it.
  ::unsetenv("HF_TOKEN");
  fs::create_directories(hub_->home() / ".cache/huggingface");
  std::ofstream(hub_->home() / ".cache/huggingface/token") << "hf_good\n";
  hub_->forget_log();
  EXPECT_ERROR("no such model", get("private/model"));
  EXPECT_EQ(hub_->log()[0].token, "");
}

TEST_F(PullTest, GoesOnWhereItBrokeOff) {
  for (const char* trouble : {"cut", "no ranges", "busy", "wrong once", "stall", "no blobs"}) {
    std::string model = std::string("bad/") + trouble;
    std::replace(model.begin(), model.end(), ' ', '-');
    const fs::path file = with(model, trouble);
    hub_->forget_log();
    EXPECT_EQ(pull(model, options()).stopped, false) << trouble;
    EXPECT_EQ(read_file(file), weights()) << trouble;
    EXPECT_FALSE(left_over(hub_->home())) << trouble;
    size_t ranges = 0;
    for (const Hub::Asked& one : hub_->log()) ranges += one.range != "" && one.second;
    if (trouble == std::string("cut")) {
      EXPECT_EQ(ranges, 3u);
    }
  }
}

TEST_F(PullTest, WhatIsNotWhatItShouldBeIsNotKept) {
  const std::pair<const char*, const char*> troubles[] = {{"wrong", "expected the sum"},
                                                          {"grows", "found more"},
                                                          {"other etag", "it is changing"},
                                                          {"other commit", "expected revision"}};
  for (const auto& [trouble, said] : troubles) {
    std::string model = std::string("bad/") + trouble;
    std::replace(model.begin(), model.end(), ' ', '-');
    const fs::path file = with(model, trouble);
    EXPECT_ERROR(said, get(model));
    EXPECT_FALSE(fs::exists(file)) << trouble;
    EXPECT_FALSE(left_over(hub_->home())) << trouble;
    EXPECT_ERROR("was not pulled", pulled_model("hf:" + model));
  }
  // One that ends too early, again and again: an error, and what came stays for the next time.
  const fs::path file = with("bad/short", "short");
  EXPECT_ERROR("ends before", get("bad/short"));
  EXPECT_EQ(fs::file_size(file.string() + ".part"), 15000u);
  hub_->add("bad/short", "trouble.json", "{}");
  EXPECT_EQ(get("bad/short").fetched, 15000u);
  EXPECT_EQ(read_file(file), weights());
}

TEST_F(PullTest, NamesThatLeaveTheFolderAreRefused) {
  hub_->add_model("evil/names");
  for (const char* name :
       {"../../x.json", "/etc/x", "a/../../x", "a//b", "..", "a\\\\b", "", "a\\nb"}) {
    hub_->add("evil/names", "names.json", std::string("[\"") + name + "\"]");
    EXPECT_ERROR("outside the folder", get("evil/names"));
  }
  hub_->add("evil/names", "names.json", "[]");
  hub_->add("evil/shards", "model.safetensors.index.json",
            R"({"weight_map": {"a": "../../../../secret"}})");
  EXPECT_ERROR("does not have", get("evil/shards"));
  for (const char* name : {"../x", "a/b/c", "a/..", "-a/b", "a/b@../../x", "a/b@", "", "a/.b",
                           "a b/c", "a/b--c", "a/b@x/../y"})
    EXPECT_ERROR("expected", get(name));
  for (const auto& entry : fs::recursive_directory_iterator(hub_->home()))
    EXPECT_NE(entry.path().filename(), "x.json");
}

TEST_F(PullTest, Shards) {
  hub_->add("two/shards", "config.json", "{}");
  for (const char* name : {"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors",
                           "model-00003-of-00002.safetensors"})
    hub_->add("two/shards", name, std::string(3000, name[10]));
  hub_->add("two/shards", "model.safetensors.index.json",
            R"({"weight_map": {"a": "model-00001-of-00002.safetensors",
                               "b": "model-00002-of-00002.safetensors"}})");
  const PullResult result = get("two/shards");
  EXPECT_EQ(result.files.size(), 4u);
  EXPECT_TRUE(fs::exists(result.path / "model-00002-of-00002.safetensors"));
  EXPECT_FALSE(fs::exists(result.path / "model-00003-of-00002.safetensors"));
}

TEST_F(PullTest, WhatTheHubSaysIsSaid) {
  hub_->add_model("plain/model");
  EXPECT_ERROR("there is no such model", get("no/model"));
  EXPECT_ERROR("there is no revision 'v9'", get("plain/model@v9"));
  EXPECT_ERROR("the hub is busy (status 429", get("busy/always"));
  EXPECT_ERROR("no JSON", get("odd/html"));
  EXPECT_ERROR("redirects in a circle", get("odd/endless"));
  EXPECT_ERROR("none of http", get("odd/file"));
  hub_->add("empty/model", "README.md", "no weights");
  EXPECT_ERROR("no weights that can be read", get("empty/model"));
  hub_->add("busy/once", "model.safetensors", "w");
  EXPECT_EQ(get("busy/once").commit, kCommit);
  hub_->add("busy/broken", "model.safetensors", "w");
  EXPECT_EQ(get("busy/broken").commit, kCommit);
  EXPECT_EQ(get("old/name").commit, kCommit) << "a model that was renamed";
  PullOptions o = options();
  o.endpoint = "http://127.0.0.1:1";
  o.tries = 2;
  EXPECT_ERROR("repeat the command", pull("plain/model", o));
  for (const char* address : {"ftp://x", "http://name:secret@x", "http://x?y", "x y", "http://"}) {
    o.endpoint = address;
    const std::string said = test::error_of([&] { pull("plain/model", o); });
    EXPECT_NE(said.find("expected the address"), std::string::npos) << address << said;
    EXPECT_EQ(said.find("secret"), std::string::npos);
  }
}

TEST_F(PullTest, RevisionsStandSideBySideAndShareFiles) {
  hub_->add_model("plain/model", weights());
  get("plain/model");
  for (const char* revision : {"v1", "refs/pr/1"}) {
    const PullResult old = get(std::string("plain/model@") + revision);
    EXPECT_EQ(old.commit, kOldCommit);
    EXPECT_EQ(old.fetched, 0u) << "the same files are there";
    EXPECT_EQ(pulled_model(std::string("hf:plain/model@") + revision),
              hub_->kept("plain--model") / kOldCommit);
  }
  hub_->forget_log();
  EXPECT_EQ(get(std::string("plain/model@") + kOldCommit).fetched, 0u);
  EXPECT_FALSE(hub_->was_asked()) << "a commit never changes";
}

// The cache of the hub's own tools, in its layout.
void fill_python_cache(const fs::path& hub, const std::string& sum) {
  const fs::path model = hub / "models--plain--model", snapshot = model / "snapshots" / kCommit;
  test::write_file(model / "blobs" / sum, std::string(5000, 'w'));
  test::write_file(model / "refs/main", kCommit);
  fs::create_directories(snapshot);
  fs::create_symlink("../../blobs/" + sum, snapshot / "model.safetensors");
  test::write_file(snapshot / "config.json", "{\"model_type\": \"vit\"}");
}

TEST_F(PullTest, WhatPythonFetchedIsNotFetchedTwice) {
  // sha256 of 5000 times 'w'
  constexpr const char* kSum = "4d3ce487907df7c82875b924d841f0a3d576492e4d589b734abbd71d966151a8";
  const fs::path theirs = hub_->home() / "python/hub";
  ::setenv("HF_HOME", (hub_->home() / "python").c_str(), 1);
  hub_->add_model("plain/model");
  EXPECT_ERROR("`offline`", pull("plain/model", {.offline = true}));
  EXPECT_ERROR("`pull=plain/model`", pulled_model("hf:plain/model"));
  fill_python_cache(theirs, kSum);
  const auto before = test::contents(theirs);
  EXPECT_EQ(pulled_model("hf:plain/model"), theirs / "models--plain--model/snapshots" / kCommit);
  EXPECT_FALSE(hub_->was_asked());

  const PullResult mixed = get("plain/model");
  EXPECT_EQ(mixed.fetched, 21u) << "config.json, whose sum is not told there";
  hub_->forget_log();
  fs::remove_all(hub_->home() / ".cache");
  const PullResult offline = pull("plain/model", {.offline = true});
  EXPECT_FALSE(hub_->was_asked());
  EXPECT_EQ(offline.fetched, 0u);
  EXPECT_EQ(pulled_model("hf:plain/model"), hub_->kept("plain--model") / kCommit);
  EXPECT_EQ(pull("plain/model", {.offline = true}).fetched, 0u);
  EXPECT_EQ(test::contents(theirs), before) << "it is read, and nothing else";

  // A damaged blob there is of no use, and does no harm.
  fs::remove_all(hub_->home() / ".cache");
  fs::remove(theirs / "models--plain--model/blobs" / kSum);
  test::write_file(theirs / "models--plain--model/blobs" / kSum, std::string(5000, 'x'));
  EXPECT_ERROR("damaged", pull("plain/model", {.offline = true}));
  EXPECT_EQ(get("plain/model").fetched, 5000u);
}

TEST_F(PullTest, TheVerb) {
  const std::string at = " --endpoint " + hub_->endpoint() + " ";
  hub_->add_model("slow/model", std::string(400000, 's'));
  hub_->add("slow/model", "trouble.json", "{\"model.safetensors\": \"slow\"}");
  const fs::path part = hub_->kept("slow--model") / kCommit / "model.safetensors.part";
  const std::string command = "pull slow/model" + at;
  // Killed once bytes have come.
  const pid_t child = ::fork();
  if (child == 0) {
    ::execl(FUNGI_BINARY, "fungi", "pull", "slow/model", "--endpoint", hub_->endpoint().c_str(),
            nullptr);
    ::_exit(127);
  }
  std::error_code none;
  for (size_t i = 0; i < 2000 && (!fs::exists(part) || fs::file_size(part, none) < 8000); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  ::kill(child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status)) << "it was done before";
  const auto came = fs::file_size(part);
  EXPECT_GE(came, 8000u);
  EXPECT_LT(came, 400000u);
  // Ctrl-C, too, keeps what came.
  const auto stopped = test::run_fungi(command, "timeout --preserve-status -s INT 0.7");
  EXPECT_EQ(stopped.status, 130) << stopped.err;
  EXPECT_GT(fs::file_size(part), came);
  const auto kept = fs::file_size(part);
  hub_->forget_log();
  const auto whole = test::run_fungi(command + "--json");
  ASSERT_EQ(whole.status, 0) << whole.err;
  const auto said = nlohmann::json::parse(whole.out);
  EXPECT_EQ(said["fetched"], 400000 - kept);
  EXPECT_EQ(said["complete"], true);
  bool ranged = false;
  for (const Hub::Asked& one : hub_->log())
    ranged |= one.range == "bytes=" + std::to_string(kept) + "-";
  EXPECT_TRUE(ranged);
  EXPECT_EQ(read_file(fs::path(said["path"].get<std::string>()) / "model.safetensors"),
            std::string(400000, 's'));

  // A model that was pulled is one, for every verb; one that was not is never fetched.
  hub_->add("real/model", "config.json", read_file("demo/config.json"));
  hub_->add("real/model", "model.safetensors", read_file("demo/model.safetensors"));
  hub_->forget_log();
  for (const char* verb : {"inspect hf:real/model", "bench -m hf:real/model --seconds 0.1",
                           "extract demo/images/test -m hf:real/model -o unused --dry-run"}) {
    const auto refused = test::run_fungi(verb);
    EXPECT_EQ(refused.status, 1);
    EXPECT_NE(refused.err.find("'fungi pull real/model'"), std::string::npos) << refused.err;
  }
  EXPECT_FALSE(hub_->was_asked());
  const auto pulled = test::run_fungi("pull real/model" + at);
  ASSERT_EQ(pulled.status, 0) << pulled.err;
  EXPECT_NE(pulled.out.find("-m hf:real/model"), std::string::npos) << pulled.out;
  const auto inspected = test::run_fungi("inspect hf:real/model --json");
  ASSERT_EQ(inspected.status, 0) << inspected.err;
  EXPECT_EQ(nlohmann::json::parse(inspected.out)["tensors"],
            nlohmann::json::parse(test::run_fungi("inspect demo --json").out)["tensors"]);
}

}  // namespace
}  // namespace fungi
