// SPDX-License-Identifier: Apache-2.0
// One backbone on one data set with masks, as a table of segmentations wants it.
#include "app/reproduce_segment.h"

#include <fmt/format.h>

#include <set>

#include "app/progress.h"
#include "app/reproduce_job.h"
#include "app/reproduce_slice.h"
#include "app/words.h"
#include "fungi/segment/protocol.h"

namespace fungi::app {
namespace {

namespace fs = std::filesystem;
using Role = MaskDatasetOptions::Role;

constexpr size_t kSide = 512;

// The paper's numbers of pictures; of other data the same share.
size_t pictures_of(const std::string& share, size_t count) {
  return std::max<size_t>(1,
                          (count + (share == "1/128" ? 64 : 32)) / (share == "1/128" ? 128 : 64));
}

RunResult run_seed(const PaperTable& table, const PaperBackbone& facts, const fs::path& model,
                   const PaperData& data, const FoundData& found, const RunOptions& options,
                   Pool& pool) {
  const auto train = open_masks(found.train, Role::train, options),
             test = open_masks(found.test, Role::test, options);
  RunResult result{.train = train->size(), .test = test->size()};
  const std::string what = fmt::format("{} {}", facts.key, data.key);
  Progress progress(what, options.quiet);
  const SegmentHooks hooks{
      .progress = [&](const std::string& stage, size_t done, size_t total, size_t failed) {
        progress.turn_to(what + " " + stage, stage == "index" ? "steps" : "pictures");
        progress.update(done, total, failed);
      }};
  train->find_classes();
  test->use_classes(*train);
  const fs::path folder = stores_folder(table, facts, data, options, ProjectionKind::sign);
  for (const std::string& setting : segment_settings(table, facts, data)) try {
      const std::string name = setting.starts_with("1/") ? "few" + setting.substr(2) : setting;
      const auto segmenter = Segmenter::build(open_patch_features(facts, model, options, pool),
                                              *train, folder / name / "bank",
                                              segment_options(setting, train->size()), pool, hooks);
      const SegmentationResult scored =
          test_segmentation(*segmenter, *test, folder / name, {.write_masks = false}, pool, hooks);
      for (size_t kind = 0; kind < scored.kinds.size(); ++kind)
        result.values[{setting, scored.kinds[kind]}] = {100 * scored.scores[kind].miou};
      result.failed = std::max(result.failed, segmenter->failed().size() + scored.failed.size());
    } catch (const Error& e) {
      for (const char* features : {"embedding", "fungi"})
        result.reasons[{setting, features}] = worded(e).what();
    }
  return result;
}

}  // namespace

std::set<std::string> segment_settings(const PaperTable& table, const PaperBackbone& facts,
                                       const PaperData& data) {
  std::set<std::string> settings;
  for (const PaperCell& c : cells_of(table))
    if (c.backbone == facts.key && c.data == data.key) settings.insert(c.setting);
  return settings;
}

SegmentOptions segment_options(const std::string& setting, size_t pictures) {
  if (setting.starts_with("1/")) {
    SegmentOptions few = SegmentOptions::few_shot();
    few.images = pictures_of(setting, pictures);
    return few;
  }
  SegmentOptions all;
  all.memory = std::stoul(setting);
  return all;
}

PatchFeatures open_patch_features(const PaperBackbone& facts, const fs::path& model,
                                  const RunOptions& options, Pool& pool) {
  PatchFeatureOptions features{.height = kSide, .width = kSide, .preset = options.preset};
  features.projection = ProjectionKind::sign;
  features.seed = options.seed;
  BackboneOptions backbone;
  backbone.precision = options.precision;
  backbone.stated_facts = facts.facts;
  return PatchFeatures::open(model, std::move(features), pool, std::move(backbone));
}

std::unique_ptr<MaskDataset> open_masks(const FoundSplit& from, Role role,
                                        const RunOptions& options) {
  auto all = open_mask_dataset(from.path, {.role = role});
  return options.limit && options.limit < all->size()
             ? slice(std::move(all), from.path, options.limit)
             : std::move(all);
}

RunResult run_segmentation(const PaperTable& table, const PaperBackbone& facts,
                           const fs::path& model, const PaperData& data, const FoundData& found,
                           const RunOptions& options, Pool& pool) {
  return over_seeds(seeds_of(table, options), options, [&](const RunOptions& own) {
    return run_seed(table, facts, model, data, found, own, pool);
  });
}

}  // namespace fungi::app
