// SPDX-License-Identifier: Apache-2.0
// A run may die at any moment: before every single change on disk, in the middle of a file, or by
// kill -9 at random. The same command then ends with the bytes of an undisturbed run, and what was
// readable before stays readable.
#include <signal.h>
#include <sys/wait.h>

#include <chrono>
#include <thread>

#include "fungi/store/store.h"
#include "tests/store/fixture.h"

namespace fungi::test {
namespace {

constexpr int kStopped = 7, kFinished = 0, kThrew = 9;

// Runs `action` in a child process and gives its exit status (kThrew when it throws), or -1 when a
// signal ended it.
int in_child(const std::function<void()>& action) {
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      action();
    } catch (...) {
      ::_exit(kThrew);
    }
    ::_exit(kFinished);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

struct Scenario {
  const char* name;
  std::function<void(const fs::path&)> before;  // what the folder holds already
  std::function<void(const fs::path&, StoreOptions)> command;
  bool readable;  // a complete store is there before, and must be at every moment
};

// Every row must hold the numbers of its own id, whatever mixture of old and new files it is read
// from.
void expect_rows_belong_to_ids(const fs::path& folder, const std::string& what) {
  const FeatureSet set = Store::open(folder).load("embedding+kl", false);
  for (size_t i = 0; i < set.ids.size(); ++i) {
    for (size_t j = 0; j < 8; ++j) {
      const float expected = example_value(set.ids[i], j < 5 ? 0 : 1, j < 5 ? j : j - 5);
      ASSERT_EQ(set.features(i, j), expected) << what << ": " << set.ids[i];
    }
  }
}

bool never(const std::string&) { return false; }

std::vector<Scenario> scenarios() {
  auto extract = [](size_t from, size_t to, size_t step) {
    return [=](const fs::path& folder, StoreOptions options) {
      options.shard_size = 8;
      Extraction run;
      run(folder, example_samples(from, to, step), std::move(options));
    };
  };
  auto stopped_first = [=](const fs::path& folder, const StoreOptions& options) {
    Extraction run;
    run.stop_within = 13;
    StoreOptions same = options;
    same.shard_size = 8;
    run(folder, example_samples(0, 30), std::move(same));
    extract(0, 30, 1)(folder, options);
  };
  auto first = [=](size_t from, size_t to, size_t step) {
    return [=](const fs::path& folder) { extract(from, to, step)(folder, {}); };
  };
  return {
      {"new", [](const fs::path&) {}, extract(0, 30, 1), false},
      {"grown in between", first(0, 30, 2), extract(0, 30, 1), true},
      {"grown at the end", first(0, 16, 1), extract(0, 30, 1), true},
      {"new, stopped within a shard", [](const fs::path&) {}, stopped_first, false},
      {"grown, stopped within a shard", first(0, 30, 2), stopped_first, true},
      {"pruned", first(0, 30, 1),
       [=](const fs::path& folder, StoreOptions options) {
         options.prune = true;
         extract(5, 30, 2)(folder, std::move(options));
       },
       true},
      {"moved, stopped between shards", first(0, 30, 1),
       [](const fs::path& folder, StoreOptions options) {
         options.shard_size = 11;
         for (const size_t shards : {size_t(1), size_t(-1)}) {
           Extraction run;
           run.stop_after = shards;
           run(folder, example_samples(0, 30), options);
         }
       },
       true},
      {"retried", first(0, 30, 1),
       [](const fs::path& folder, StoreOptions options) {
         options.shard_size = 8;
         options.retry_failed = true;
         Extraction run;
         run.fails = never;
         run(folder, example_samples(0, 30), std::move(options));
       },
       true},
      {"overwritten", first(0, 30, 2),
       [](const fs::path& folder, StoreOptions options) {
         options.shard_size = 8;
         options.overwrite = true;
         StoreSpec spec = example_spec();
         spec.settings = R"({"seed": 2})";
         spec.blocks[1] = {"dino", 4};
         Extraction run;
         run(folder, example_samples(0, 30), std::move(options), spec);
       },
       false},
  };
}

TEST(StoreCrash, AtEveryStepThenRepeated) {
  for (const Scenario& scenario : scenarios()) {
    Folder tmp;
    scenario.before(tmp / "expected");
    size_t steps = 0;
    scenario.command(tmp / "expected", {.on_step = [&](const char*) { ++steps; }});
    ASSERT_GT(steps, 5u) << scenario.name;
    scenario.before(tmp / "start");
    for (size_t attempt = 0; attempt < 2 * steps; ++attempt) {
      const size_t stop = attempt / 2;
      const bool inside = attempt % 2 == 1;  // in the middle of writing the file, not before it
      const std::string what = std::string(scenario.name) + ", step " + std::to_string(stop);
      const fs::path folder = tmp / "s";
      fs::remove_all(folder);
      if (fs::exists(tmp / "start")) fs::copy(tmp / "start", folder, fs::copy_options::recursive);
      size_t step = 0;
      auto stop_here = [&](const char* text) {
        if (step++ != stop) return;
        const std::string_view verb(text);
        if (inside && verb.starts_with("write ")) {
          write_file(std::string(verb.substr(6)) + ".tmp", "half a f");
        }
        if (inside && verb.starts_with("append ")) {
          std::ofstream(std::string(verb.substr(7)), std::ios::app) << R"({"id":"ima)";
        }
        ::_exit(kStopped);
      };
      ASSERT_EQ(in_child([&] { scenario.command(folder, {.on_step = stop_here}); }), kStopped);
      if (scenario.readable) expect_rows_belong_to_ids(folder, what);
      scenario.command(folder, {});
      expect_same_bytes(tmp / "expected", folder, what);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(StoreCrash, EveryStepDiesOnceOverAndOver) {
  // Each attempt gets a little further than the last, or at least not less far, and dies.
  Folder tmp;
  Extraction whole;
  whole(tmp / "expected", example_samples(0, 60));
  whole(tmp / "s", example_samples(0, 60, 2));
  int status = kStopped;
  size_t attempts = 0;
  while (status == kStopped && attempts < 500) {
    size_t left = 6;
    auto stop = [&](const char*) {
      if (left-- == 0) ::_exit(kStopped);
    };
    status = in_child([&] {
      Extraction run;
      run(tmp / "s", example_samples(0, 60), {.shard_size = 8, .on_step = stop});
    });
    ++attempts;
  }
  EXPECT_EQ(status, kFinished);
  EXPECT_GT(attempts, 3u);
  expect_same_bytes(tmp / "expected", tmp / "s", "after many deaths");
}

TEST(StoreCrash, KilledAtRandomMoments) {
  Folder tmp;
  Extraction whole;
  whole(tmp / "expected", example_samples(0, 200));
  whole(tmp / "start", example_samples(0, 200, 3));
  size_t killed = 0;
  for (uint64_t round = 0; round < 20; ++round) {
    const fs::path folder = tmp / "s";
    fs::remove_all(folder);
    if (round % 2 == 1) fs::copy(tmp / "start", folder, fs::copy_options::recursive);
    const double moment = RandomStream(11, "kill").uniform(round);
    const pid_t child = ::fork();
    if (child == 0) {
      Extraction slow;
      auto pause = [](const char*) { std::this_thread::sleep_for(std::chrono::microseconds(300)); };
      slow(folder, example_samples(0, 200), {.shard_size = 8, .on_step = pause});
      ::_exit(kFinished);
    }
    std::this_thread::sleep_for(std::chrono::microseconds(static_cast<int>(1000 + 30000 * moment)));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    killed += WIFSIGNALED(status) ? 1 : 0;
    Extraction again;
    again(folder, example_samples(0, 200));
    expect_same_bytes(tmp / "expected", folder, "round " + std::to_string(round));
  }
  EXPECT_GT(killed, 5u);
}

}  // namespace
}  // namespace fungi::test
