// SPDX-License-Identifier: Apache-2.0
#include "app/reproduce_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

#include "app/progress.h"
#include "app/reproduce_job.h"
#include "app/reproduce_segment.h"
#include "app/words.h"
#include "fungi/base/random.h"
#include "fungi/kernel/kernel.h"
#include "fungi/objective/factory.h"

namespace fungi::app {
namespace {

constexpr const char* kPatches = "by patches";

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Of a sample, as the extractor schedules them: views that objectives share count once.
size_t views_of(const PaperTable& table, const PaperData& data, Preset preset) {
  const SampleKind kind = data.texts   ? SampleKind::text
                          : data.sound ? SampleKind::sound
                                       : SampleKind::image;
  const Architecture usual = named_architecture("vit_base_patch16_224");
  const auto pictures = modality_for(usual, preset);
  std::vector<std::pair<ViewPlan, std::string>> seen;
  size_t views = 1;  // the embedding's own
  for (const std::string& specification : objectives_of(table))
    for (const ViewRequest& request :
         make_objective(specification, {usual.embedding_width, usual.width, 42, preset, kind})
             ->views()) {
      const ViewPlan plan = simplest(request.plan);
      const std::pair one(plan, is_random(plan) ? request.draw : "");
      if (std::holds_alternative<WholeView>(plan) ||
          std::find(seen.begin(), seen.end(), one) != seen.end())
        continue;
      seen.push_back(one);
      views += kind == SampleKind::image ? pictures->views(plan)
                                         : view_counts(plan, specification).all();
    }
  return views;
}

// Of one forward pass of a picture of that side, or of a usual text or sound: of a model that is
// not there, its width tells the rest.
double gflop_of(const PaperBackbone& model, double side) {
  const std::map<size_t, double> depths{{512, 6}, {1024, 24}, {1280, 32}};
  const auto depth = depths.find(model.width);
  const double w = double(model.width), patches = side / double(model.patch),
               tokens = model.dialect == "ssast" ? 258
                        : model.patch            ? patches * patches + 1
                                                 : 32;
  return (depth == depths.end() ? 12 : depth->second) * tokens * (24 * w * w + 4 * tokens * w) /
         1e9;
}

// 1 480 092
std::string grouped(size_t number) {
  std::string digits = std::to_string(number);
  for (size_t at = digits.size(); at > 3;) digits.insert(at -= 3, " ");
  return digits;
}

size_t limited(size_t samples, const RunOptions& options) {
  return options.limit ? std::min(samples, options.limit) : samples;
}

// Each picture for the training and the test; the memory of few looks at them several times.
size_t segment_passes(const std::string& setting, size_t train, size_t test) {
  constexpr size_t kSupportPictures = 64;
  const SegmentOptions o = segment_options(setting, train);
  const size_t remembered = o.images ? o.images : train;
  return std::min(kSupportPictures, remembered) + remembered * o.epochs + test;
}

}  // namespace

Cost& Cost::operator+=(const Cost& more) {
  samples += more.samples, passes += more.passes, seconds += more.seconds;
  return *this;
}

std::string Cost::text() const {
  return fmt::format("{} samples, {} forward passes{}", grouped(samples), grouped(passes),
                     seconds > 0 ? ", about " + human_seconds(seconds) : "");
}

Cost sum_of(const std::vector<PlannedPair>& pairs) {
  Cost all;
  for (const PlannedPair& pair : pairs) all += pair.cost;
  return all;
}

Cost cost_of(const Absent& absent, const std::vector<PlannedPair>& missing,
             const Findings& findings) {
  Cost cost;
  for (const PlannedPair& pair : missing)
    if (absent.kind == "checkpoint"
            ? pair.backbone == absent.key
            : pair.data == absent.key && findings.checkpoints.contains(pair.backbone))
      cost += pair.cost;
  return cost;
}

// How fast this machine is in networks: most of its products' ceiling, measured for a moment. The
// share is that of whole features, with views, losses and projection.
double Planner::gflops() {
  constexpr double kShare = 0.6;
  if (gflops_ == 0) {
    const Isa isa = best_isa();
    const Precision precision = options_.precision.value_or(kernel::fastest_precision(isa));
    gflops_ = kShare *
              kernel::measure_peak_gflops(kernel::kernel_for(isa, precision), pool_.threads(), 0.2);
  }
  return gflops_;
}

double Planner::new_share(const PaperTable& table, const PlannedPair& pair) {
  size_t all = 0, fresh = 0;
  for (const uint64_t seed : seeds_of(table, options_)) {
    RunOptions own = options_;
    own.seed = seed;
    for (const ProjectionKind kind : projections_of(table)) {
      const auto folder =
          stores_folder(table, paper_backbone(pair.backbone), paper_data(pair.data), own, kind);
      const bool patches = table.protocol == Protocol::segmentation;
      ++all, fresh += seen_.insert(folder.string() + (patches ? table.name : "")).second;
    }
  }
  return double(fresh) / double(all);
}

void Planner::account(const PaperTable& table, PlannedPair& pair, Cost& total) {
  const double share = new_share(table, pair);
  pair.shared = share == 0;
  if (pair.shared) return;
  total += {.samples = pair.cost.samples,
            .passes = size_t(share * double(pair.cost.passes)),
            .seconds = share * pair.cost.seconds};
}

const Backbone& Planner::opened(const PaperTable& table, const PaperBackbone& facts,
                                const std::filesystem::path& path, const PaperData& data) {
  const std::string as = fmt::format(
      "{}\n{}\n{}\n{}\n{}", facts.key, path.string(), fmt::join(objectives_of(table), " "),
      fmt::join(table.layers, " "), data.facts.empty() ? "" : data.key);
  if (as != opened_as_) {
    backbone_.reset();
    backbone_ = open_backbone(table, facts, path, &data, options_, pool_);
    opened_as_ = as;
  }
  return *backbone_;
}

Cost Planner::cost_of_pair(const PaperTable& table, const PaperBackbone& facts,
                           const std::filesystem::path& path, const PaperData& data,
                           const FoundData& found) {
  const auto splits = splits_of(table, data, found);
  const double times = double(seeds_of(table, options_).size() * projections_of(table).size());
  const std::string features =
      stores_folder(table, facts, data, options_, ProjectionKind::sign).string() +
      fmt::format("\n{}", splits.size());
  if (!known_.contains(features)) {
    const Backbone& backbone = opened(table, facts, path, data);
    const Job job{table, facts, backbone, data, found, options_, pool_};
    const Extractor extractor(backbone, job.extractor(), pool_);
    Cost cost;
    std::unique_ptr<Dataset> some;
    for (const auto& [name, split] : splits) {
      auto set = job.open(*split, extractor.data());
      cost.samples += set->size();
      if (!some) some = std::move(set);
    }
    cost.passes = cost.samples * extractor.views_per_sample();
    double& each =
        seconds_per_view_[path.string() + "\n" + data.key + (table.layers.empty() ? "" : "*")];
    if (each == 0) {  // KL is one view with everything that a view needs
      ExtractorOptions one = job.extractor();
      one.objectives = {"kl"};
      Extractor tried(backbone, std::move(one), pool_);
      std::vector<size_t> rows(std::min<size_t>(some->size(), 4 * pool_.threads()));
      std::iota(rows.begin(), rows.end(), size_t{0});
      tried.extract(*some, std::span(rows).first(1));  // warm
      const auto start = Clock::now();
      tried.extract(*some, rows);
      each = seconds_since(start) / double(rows.size());
    }
    cost.seconds = double(cost.passes) * each;
    known_[features] = cost;
  }
  const Cost& one = known_.at(features);
  return {
      .samples = one.samples, .passes = size_t(times) * one.passes, .seconds = times * one.seconds};
}

// Of a model that is there as it was measured, of another by its arithmetic.
double Planner::seconds_per_view(const PaperBackbone& facts, const Findings& findings, bool masks) {
  if (const auto there = findings.checkpoints.find(facts.key); there != findings.checkpoints.end())
    for (const auto& [what, seconds] : seconds_per_view_)
      if (what.starts_with(there->second.string() + "\n") && what.ends_with(kPatches) == masks)
        return seconds;
  return gflop_of(facts, masks ? 512 : 224) / gflops();
}

Cost Planner::cost_of_segmentation(const PaperTable& table, const PaperBackbone& facts,
                                   const std::filesystem::path& path, const PaperData& data,
                                   const FoundData& found) {
  using Role = MaskDatasetOptions::Role;
  const auto train = open_masks(found.train, Role::train, options_),
             test = open_masks(found.test, Role::test, options_);
  Cost cost{.samples = train->size() + test->size()};
  for (const std::string& setting : segment_settings(table, facts, data))
    cost.passes += segment_passes(setting, train->size(), test->size());
  cost.passes *= seeds_of(table, options_).size();
  double& each = seconds_per_view_[path.string() + "\n" + kPatches];
  if (each == 0) {  // a picture for each thread
    PatchFeatures features = open_patch_features(facts, path, options_, pool_);
    if (features.wants_support()) {
      Matrix<float> support(features.support_rows(), features.embedding_width());
      const RandomStream random(7, "plan");
      for (size_t i = 0; i < support.rows() * support.cols(); ++i)
        support.data()[i] = float(random.normal(i) / std::sqrt(double(support.cols())));
      features.set_support(std::move(support), pool_);
    }
    Matrix<float> pixels(1, features.pixel_count());
    features.views().whole(train->image(0), {pixels.data(), pixels.cols()});
    const std::vector<std::string> ids{train->id(0)};
    const auto start = Clock::now();
    pool_.parallel_for(pool_.threads(), 1, [&](size_t, size_t, unsigned) {
      PatchScratch scratch;
      Matrix<float> rows(features.patches(), features.width());
      features.features(pixels, ids, scratch, rows);
    });
    each = seconds_since(start) / double(pool_.threads());
  }
  cost.seconds = double(cost.passes) * each;
  return cost;
}

std::vector<PlannedPair> Planner::there(const PaperTable& table, const Findings& findings) {
  std::vector<PlannedPair> list;
  for (const auto& [key, path] : findings.checkpoints)
    for (const auto& [data, found] : findings.data) {
      PlannedPair pair{.backbone = key, .data = data, .cost = {}, .trouble = {}};
      try {
        pair.cost =
            (table.protocol == Protocol::segmentation)
                ? cost_of_segmentation(table, paper_backbone(key), path, paper_data(data), found)
                : cost_of_pair(table, paper_backbone(key), path, paper_data(data), found);
        account(table, pair, total_);
      } catch (const Error& e) {
        pair.trouble = worded(e).what();
      }
      list.push_back(std::move(pair));
    }
  return list;
}

std::vector<PlannedPair> Planner::missing(const PaperTable& table, const Findings& findings) {
  std::vector<PlannedPair> list;
  const bool masks = table.protocol == Protocol::segmentation;
  std::set<std::pair<std::string, std::string>> asked;
  const auto take = [&](const std::string& backbone, const std::string& key) {
    const PaperData& data = paper_data(key);
    if ((findings.checkpoints.contains(backbone) && findings.data.contains(key)) ||
        !asked.emplace(backbone, key).second)
      return;
    const PaperBackbone& facts = paper_backbone(backbone);
    PlannedPair pair{.backbone = backbone, .data = key, .there = false, .cost = {}, .trouble = {}};
    const size_t train = limited(data.train, options_);
    const bool tested = table.protocol != Protocol::clusters && table.protocol != Protocol::cka;
    pair.cost.samples = train + (tested ? limited(data.test, options_) : 0);
    if (masks)
      for (const std::string& setting : segment_settings(table, facts, data))
        pair.cost.passes += segment_passes(setting, train, limited(data.test, options_));
    else
      pair.cost.passes =
          pair.cost.samples * views_of(table, data, options_.preset) * projections_of(table).size();
    pair.cost.passes *= seeds_of(table, options_).size();
    pair.cost.seconds = double(pair.cost.passes) * seconds_per_view(facts, findings, masks);
    account(table, pair, total_missing_);
    list.push_back(std::move(pair));
  };
  const std::vector<std::string> all = data_sets_of(table);
  for (const PaperCell& c : cells_of(table)) {
    if (is_mean(c.data))
      for (const std::string& data : all) take(c.backbone, data);
    else if (c.data != kMachine)
      take(c.backbone, c.data);
  }
  return list;
}

}  // namespace fungi::app
