// SPDX-License-Identifier: Apache-2.0
// What the world does to a store: a second writer, a full disk, a folder that is none or holds
// something else, other settings, a run that follows another store, damaged files.
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "fungi/base/descriptor.h"
#include "fungi/store/store.h"
#include "tests/store/fixture.h"

namespace fungi::test {
namespace {

TEST(StoreTrouble, SecondWriterIsRefused) {
  Folder tmp;
  {
    StoreWriter first(tmp / "s", example_spec());
    EXPECT_ERROR("another run is writing", StoreWriter(tmp / "s", example_spec()));
  }
  EXPECT_NO_THROW(StoreWriter(tmp / "s", example_spec()));
}

TEST(StoreTrouble, FolderThatIsNone) {
  Folder tmp;
  write_file(tmp / "file", "x");
  EXPECT_ERROR("expected a folder, found a file", StoreWriter(tmp / "file", example_spec()));
  EXPECT_ERROR("Not a directory", StoreWriter(tmp / "file/s", example_spec()));
  const fs::path long_name = tmp / std::string(300, 'x');
  EXPECT_ERROR("File name too long", StoreWriter(long_name, example_spec()));
  EXPECT_ERROR("File name too long", Store::open(long_name));
  EXPECT_FALSE(is_store(long_name));
  fs::create_directory(tmp / "photos");
  write_file(tmp / "photos/a.jpg", "x");
  for (bool overwrite : {false, true}) {
    EXPECT_ERROR("the folder holds 'a.jpg' and no manifest.json",
                 StoreWriter(tmp / "photos", example_spec(), {.overwrite = overwrite}));
    EXPECT_FALSE(fs::exists(tmp / "photos/.lock")) << "nothing is left behind";
  }
  write_file(tmp / "photos/manifest.json", R"({"name": "an app"})");
  EXPECT_ERROR("not the manifest of a feature store",
               StoreWriter(tmp / "photos", example_spec(), {.overwrite = true}));
  EXPECT_EQ(read_file(tmp / "photos/a.jpg"), "x");
  EXPECT_FALSE(fs::exists(tmp / "photos/.lock"));
  EXPECT_FALSE(is_store(tmp / "photos"));
}

TEST(StoreTrouble, FilesOfOthersInsideAStoreAreLeftAlone) {
  Folder tmp;
  Extraction run;
  run(tmp / "s", example_samples(0, 20));
  for (const char* name : {"notes.tmp", "pca-00001.npy", "umap-00001.npy.tmp", "update-x"}) {
    write_file(tmp / "s" / name, "mine");
  }
  write_file(tmp / "s/kl-00001.npy.tmp", "a leftover");
  run(tmp / "s", example_samples(0, 30, 3), {.shard_size = 8, .prune = true});
  run(tmp / "s", example_samples(0, 30), {.shard_size = 8, .overwrite = true});
  for (const char* name : {"notes.tmp", "pca-00001.npy", "umap-00001.npy.tmp", "update-x"}) {
    EXPECT_EQ(read_file(tmp / "s" / name), "mine") << name;
  }
  EXPECT_FALSE(fs::exists(tmp / "s/kl-00001.npy.tmp"));
  fs::create_directory(tmp / "other");
  write_file(tmp / "other/work.tmp", "mine");
  EXPECT_ERROR("the folder holds 'work.tmp'", StoreWriter(tmp / "other", example_spec()));
}

// Extracts in a child whose files may not grow beyond `bytes`, then without limits, and compares.
void expect_limit_survived(rlim_t bytes) {
  Folder tmp;
  Extraction whole;
  whole(tmp / "expected", example_samples(0, 200), {.shard_size = 32});
  int report[2];
  ASSERT_EQ(::pipe(report), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{bytes, bytes};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    Extraction run;
    const std::string text =
        error_of([&] { run(tmp / "s", example_samples(0, 200), {.shard_size = 32}); });
    const ssize_t written = ::write(report[1], text.data(), text.size());
    ::_exit(written == static_cast<ssize_t>(text.size()) ? 0 : 1);
  }
  ::close(report[1]);
  char text[1024] = {};
  EXPECT_GT(::read(report[0], text, sizeof text - 1), 0);
  ::close(report[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_NE(std::string(text).find("File too large"), std::string::npos) << text;
  EXPECT_NE(std::string(text).find((tmp / "s").string()), std::string::npos) << text;
  for (const auto& [name, bytes_there] : contents(tmp / "s")) {
    EXPECT_FALSE(name.ends_with(".tmp")) << name;
  }
  Extraction again;
  again(tmp / "s", example_samples(0, 200), {.shard_size = 32});
  expect_same_bytes(tmp / "expected", tmp / "s", "after the limit");
}

TEST(StoreTrouble, FileSizeLimitNamesTheFileAndLosesNothing) {
  expect_limit_survived(600);   // not even the first block fits
  expect_limit_survived(1500);  // the rows file does not fit
}

class SmallDisk {
 public:
  explicit SmallDisk(fs::path path) : path_(std::move(path)) {
    fs::create_directory(path_);
    mounted_ = ::mount("none", path_.c_str(), "tmpfs", 0, "size=64k") == 0;
  }
  ~SmallDisk() {
    if (mounted_) ::umount(path_.c_str());
  }
  bool mounted() const { return mounted_; }

 private:
  fs::path path_;
  bool mounted_ = false;
};

TEST(StoreTrouble, FullDisk) {
  Folder tmp;
  const fs::path disk = tmp / "disk";
  const SmallDisk small(disk);
  if (!small.mounted())
    GTEST_SKIP() << "a full disk is played on a small tmpfs, which only root may mount";
  Extraction whole;
  whole(tmp / "expected", example_samples(0, 400));
  Extraction run;
  const std::string text = error_of([&] { run(disk / "s", example_samples(0, 400)); });
  EXPECT_NE(text.find("No space left on device"), std::string::npos) << text;
  const size_t done = run.computed;
  fs::copy(disk / "s", tmp / "s", fs::copy_options::recursive);
  run(tmp / "s", example_samples(0, 400));
  EXPECT_LT(run.computed, 400u);
  EXPECT_GE(run.computed + done, 400u);
  expect_same_bytes(tmp / "expected", tmp / "s", "after the disk was full");
}

// A block file that is away for a while, or cannot be opened, must not cost what stands beside it.
TEST(StoreTrouble, NothingIsForgottenBeforeARefusal) {
  Folder tmp;
  Extraction run;
  run(tmp / "s", example_samples(0, 40));
  const auto whole = contents(tmp / "s");
  fs::rename(tmp / "s/kl-00001.npy", tmp / "away");
  EXPECT_ERROR("not among", run(tmp / "s", example_samples(1, 40)));
  fs::rename(tmp / "away", tmp / "s/kl-00001.npy");
  EXPECT_EQ(contents(tmp / "s"), whole);

  fs::rename(tmp / "s/kl-00001.npy", tmp / "away");
  {  // open() refuses a socket, whoever asks
    const Descriptor socket{::socket(AF_UNIX, SOCK_STREAM, 0)},
        folder{::open((tmp / "s").c_str(), O_RDONLY | O_DIRECTORY)};
    sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
    // Such an address has room for 107 bytes, whatever the length of the folder's own name.
    const std::string name = fmt::format("/proc/self/fd/{}/kl-00001.npy", folder.number);
    ASSERT_LT(name.size(), sizeof address.sun_path);
    name.copy(address.sun_path, name.size());
    ASSERT_EQ(::bind(socket.number, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  EXPECT_ERROR("cannot be opened", run(tmp / "s", example_samples(0, 40)));
  fs::rename(tmp / "away", tmp / "s/kl-00001.npy");
  EXPECT_EQ(contents(tmp / "s"), whole);
}

TEST(StoreTrouble, PutMayBeTriedAgain) {
  Folder tmp;
  Extraction whole;
  whole(tmp / "expected", example_samples(0, 40));
  bool broken = true;
  auto refuse = [&](const char* step) {
    if (broken && std::string_view(step).ends_with("rows-00001.jsonl")) fail("no");
  };
  StoreWriter writer(tmp / "s", example_spec(), {.shard_size = 8, .on_step = refuse});
  Matrix<float> head(2, 3);
  head(1, 2) = 0.5f;
  writer.put_state("kl-head", head);
  const auto samples = example_samples(0, 40);
  Extraction run;
  for (const StoreWork& work : writer.plan(samples, kClasses)) {
    const StoreRows rows = run.compute(example_spec(), samples, work);
    if (work.shard == 1) {
      EXPECT_ERROR("no", writer.put(work, rows));
      broken = false;
    }
    writer.put(work, rows);
  }
  EXPECT_TRUE(writer.finish().complete);
  expect_same_bytes(tmp / "expected", tmp / "s", "tried again");
}

TEST(StoreTrouble, OtherSettingsAreRefusedByName) {
  Folder tmp;
  Extraction run;
  run(tmp / "s", example_samples(0, 20));
  const auto before = contents(tmp / "s");
  auto with = [&](const std::function<void(StoreSpec&)>& change) {
    StoreSpec spec = example_spec();
    change(spec);
    return error_of([&] { StoreWriter writer(tmp / "s", spec, {.shard_size = 8}); });
  };
  auto expect = [&](const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
    EXPECT_NE(text.find("`overwrite`"), std::string::npos) << text;
  };
  expect(with([](StoreSpec& s) { s.settings = R"({"seed": 1, "kl": {"temperature": 10}})"; }),
         "'settings.kl.temperature' differs: the store has 15, this run has 10");
  expect(with([](StoreSpec& s) { s.settings = R"({"kl": {"temperature": 15}})"; }),
         "'settings.seed' differs: the store has 1, this run has nothing");
  expect(with([](StoreSpec& s) { s.settings = R"({"seed":1,"kl":{"temperature":15},"x":[1]})"; }),
         "'settings.x' differs: the store has nothing, this run has [1]");
  expect(with([](StoreSpec& s) { s.precision = "bf16"; }), "'precision' differs");
  expect(with([](StoreSpec& s) { s.model_sha256 = "11"; }), "'model.sha256' differs");
  expect(with([](StoreSpec& s) { s.type = StoreType::float16; }), "'type' differs");
  expect(with([](StoreSpec& s) { s.blocks[1].width = 4; }), "'blocks.kl' differs");
  expect(with([](StoreSpec& s) { s.blocks.push_back({"dino", 3}); }), "'blocks.dino' differs");
  EXPECT_EQ(contents(tmp / "s"), before);
  // Another order of keys, another spelling of a number, another place of the model: the same
  // features.
  EXPECT_EQ(with([](StoreSpec& s) {
              s.settings = R"({"kl": {"temperature": 15.0}, "seed": 1})";
              s.model_path = "elsewhere/tiny.safetensors";
              s.notes = R"({"why": "moved"})";
            }),
            "");
}

TEST(StoreTrouble, OverwriteStartsAgain) {
  Folder tmp;
  Extraction run;
  run(tmp / "s", example_samples(0, 60));
  StoreSpec spec = example_spec();
  spec.settings = R"({"seed": 2})";
  spec.blocks = {{"dino", 2}};
  run(tmp / "s", example_samples(0, 20), {.shard_size = 8, .overwrite = true}, spec);
  EXPECT_EQ(run.computed, 20u);
  Extraction fresh;
  fresh(tmp / "fresh", example_samples(0, 20), {.shard_size = 8}, spec);
  expect_same_bytes(tmp / "fresh", tmp / "s", "overwritten");
}

TEST(StoreTrouble, OriginsOfAllRunsAreWrittenDown) {
  Folder tmp;
  Extraction run;
  run(tmp / "s", example_samples(0, 20));
  StoreSpec spec = example_spec();
  spec.isa = "avx2";
  run(tmp / "s", example_samples(0, 20), {.shard_size = 8}, spec);  // computes nothing
  EXPECT_EQ(describe_store(tmp / "s").manifest.origins.size(), 1u);
  run(tmp / "s", example_samples(0, 30), {.shard_size = 8}, spec);
  const auto origins = describe_store(tmp / "s").manifest.origins;
  ASSERT_EQ(origins.size(), 2u);
  EXPECT_EQ(origins[0].isa, "generic");
  EXPECT_EQ(origins[1].isa, "avx2");
}

TEST(StoreTrouble, LikeTakesStateAndRefusesOtherSettings) {
  Folder tmp;
  Extraction run;
  run(tmp / "train", example_samples(0, 20));
  const StoreOptions like{.shard_size = 8, .like = tmp / "train"};
  {
    StoreWriter writer(tmp / "test", example_spec(), like);
    EXPECT_TRUE(writer.has_state("kl-head"));
    EXPECT_EQ(writer.state("kl-head")(1, 2), 0.5f);
    Matrix<float> other(2, 3);
    EXPECT_ERROR("the state 'kl-head' differs", writer.put_state("kl-head", other));
    EXPECT_ERROR("the state 'negatives' is new", writer.put_state("negatives", other));
  }
  run(tmp / "test", example_samples(100, 120), like);
  run(tmp / "test", example_samples(100, 130), like);
  EXPECT_EQ(read_file(tmp / "test/state/kl-head.npy"), read_file(tmp / "train/state/kl-head.npy"));

  StoreSpec spec = example_spec();
  spec.settings = R"({"seed": 1, "kl": {"temperature": 7}})";
  EXPECT_ERROR("'settings.kl.temperature' differs: the store has 15, this run has 7",
               StoreWriter(tmp / "other", spec, like));
  EXPECT_FALSE(fs::exists(tmp / "other"));

  // A store that began with other state cannot follow.
  {
    StoreWriter writer(tmp / "own", example_spec(), {.shard_size = 8});
    writer.put_state("kl-head", Matrix<float>(2, 3));
    writer.plan(example_samples(0, 4), kClasses);
  }
  EXPECT_ERROR("the state 'kl-head' differs from that of",
               StoreWriter(tmp / "own", example_spec(), like));
  EXPECT_ERROR("expected a feature store to follow",
               StoreWriter(tmp / "x", example_spec(), {.like = tmp / "none"}));
}

TEST(StoreTrouble, LikeKeepsTheNumbersOfClasses) {
  Folder tmp;
  Extraction run;
  run.fails = [](const std::string&) { return false; };
  run(tmp / "train", example_samples(0, 6));
  const std::vector<StoreSample> samples = {{"w", 0}, {"x", 1}, {"y", 2}, {"z", -1}};
  const auto labels = [&](const std::string& name, std::vector<std::string> classes,
                          bool like = true) {
    StoreWriter writer(tmp / name, example_spec(),
                       {.shard_size = 8, .like = like ? tmp / "train" : fs::path()});
    for (const StoreWork& work : writer.plan(samples, std::move(classes)))
      writer.put(work, run.compute(example_spec(), samples, work));
    writer.finish();
    const Store store = Store::open(tmp / name);
    return std::pair(store.labels(), store.classes());
  };
  // "cat" is 2 there; "bat" and "dog" are new.
  const std::vector<std::string> all = {"ant", "bee", "cat", "bat", "dog"};
  for (int repeated = 0; repeated < 3; ++repeated) {  // at last without --like
    const auto [numbers, names] = labels("test", {"bat", "cat", "dog"}, repeated < 2);
    EXPECT_EQ(numbers, (std::vector<int64_t>{3, 2, 4, -1}));
    EXPECT_EQ(names, all);
  }
  const auto [bare, none] = labels("numbers", {});
  EXPECT_EQ(bare, (std::vector<int64_t>{0, 1, 2, -1})) << "bare numbers stay as they are";
  EXPECT_TRUE(none.empty());
}

TEST(StoreTrouble, AStoreDoesNotFollowItself) {
  Folder tmp;
  Extraction run;
  run(tmp / "s", example_samples(0, 10));
  const auto before = contents(tmp / "s");
  for (const bool overwrite : {false, true})
    EXPECT_ERROR("cannot follow itself",
                 run(tmp / "s", example_samples(0, 10),
                     {.shard_size = 8, .overwrite = overwrite, .like = tmp / "s"}));
  EXPECT_EQ(contents(tmp / "s"), before);
}

TEST(StoreTrouble, ChangedStateIsFound) {
  Folder tmp;
  Extraction run;
  run(tmp / "s", example_samples(0, 20));
  std::string bytes = read_file(tmp / "s/state/kl-head.npy");
  bytes.back() ^= 1;
  write_file(tmp / "s/state/kl-head.npy", bytes);
  EXPECT_ERROR("the file was changed", Store::open(tmp / "s").state("kl-head"));
  EXPECT_ERROR("there is no state 'x'", Store::open(tmp / "s").state("x"));
  EXPECT_ERROR("the file was changed", StoreWriter(tmp / "t", example_spec(), {.like = tmp / "s"}));
}

TEST(StoreTrouble, StateOfARunThatDiedBeforePlanningIsForgotten) {
  Folder tmp;
  {
    StoreWriter writer(tmp / "s", example_spec());
    writer.put_state("kl-head", Matrix<float>(2, 3));
    writer.put_state("old", Matrix<float>(1, 1));
  }
  StoreSpec spec = example_spec();  // nothing is there yet, so that other settings are welcome
  spec.settings = R"({"seed": 3})";
  Extraction run, fresh;
  run(tmp / "s", example_samples(0, 20), {.shard_size = 8}, spec);
  fresh(tmp / "fresh", example_samples(0, 20), {.shard_size = 8}, spec);
  expect_same_bytes(tmp / "fresh", tmp / "s", "state put twice");
}

}  // namespace
}  // namespace fungi::test
