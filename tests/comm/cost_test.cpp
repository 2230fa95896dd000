// SPDX-License-Identifier: Apache-2.0
// The cost model says what is known otherwise, and names what cannot work at all.
#include "fungi/feature/cost.h"

#include <gtest/gtest.h>

namespace fungi::test {
namespace {

TEST(Cost, FlopsAreThoseOfThePublishedNetwork) {
  // timm counts 17.6 billion multiplications for ViT-B/16 at 224 pixels, and 1.26 for ViT-Ti/16.
  EXPECT_NEAR(forward_flops(named_architecture("vit_base_patch16_224")) / 2e9, 17.6, 0.3);
  EXPECT_NEAR(forward_flops(named_architecture("vit_tiny_patch16_224")) / 2e9, 1.26, 0.05);
}

PlannedRun run_of(double samples, const std::vector<std::string>& objectives) {
  return planned_run({.samples = samples}, "vit_base_patch16_224", objectives);
}

TEST(Cost, ViewsAndColumnsAreThoseOfAnExtraction) {
  const PlannedRun run = run_of(1e6, {"kl", "dino", "simclr"});
  EXPECT_EQ(run.views, 62u);
  EXPECT_EQ(run.columns, 4 * 768u);
  EXPECT_EQ(run_of(1e6, {}).views, 1u);
}

TEST(Cost, MoreCoresHelpUntilSomethingElseHolds) {
  const PlannedRun run = run_of(1e6, {"kl"});
  const auto seconds = [&](size_t cores) {
    return plan_run(run, {.cores = cores}).steps[1].seconds;
  };
  EXPECT_NEAR(seconds(1) / seconds(16), 16, 0.01);
  EXPECT_LT(seconds(64) / seconds(65536), 1024);  // the disk does not grow
  EXPECT_EQ(plan_run(run, {.cores = 1}).steps[1].limit, "cores");
  EXPECT_EQ(plan_run(run, {.cores = 1 << 20}).steps[1].limit, "reading of samples");
}

TEST(Cost, MemoryOfAHostShrinksWithTheHosts) {
  const auto memory = [&](size_t hosts, const std::string& name) {
    for (const PlannedStep& step : plan_run(run_of(1e8, {"kl"}), {.cores = 64 * hosts}).steps)
      if (step.name == name) return step.memory_gb;
    return 0.0;
  };
  for (const char* name : {"knn", "kmeans", "linear", "retrieve"})
    EXPECT_NEAR(memory(4, name) / memory(8, name), 2, 0.1) << name;
  EXPECT_EQ(memory(16, "linear"), memory(64, "linear"));  // it has 16 parts
  EXPECT_EQ(memory(4, "pca"), memory(8, "pca"));  // some blocks of rows, wherever
}

TEST(Cost, WhatCannotWorkIsNamedFirst) {
  PlannedRun run = run_of(1e8, {"kl"});
  run.shard_size = 64;
  const RunPlan plan = plan_run(run, {.cores = 4096});
  EXPECT_NE(plan.bottleneck.find("more than 100000 shards"), std::string::npos) << plan.bottleneck;
  run.shard_size = 0;
  EXPECT_EQ(plan_run(run, {.cores = 4096}).shard_size, 1000u);
  const RunPlan small = plan_run(run_of(1e9, {"kl"}), {.cores = 4096, .memory_gb = 64});
  EXPECT_NE(small.bottleneck.find("list: "), std::string::npos) << small.bottleneck;
}

}  // namespace
}  // namespace fungi::test
