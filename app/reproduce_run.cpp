// SPDX-License-Identifier: Apache-2.0
#include "app/reproduce_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <functional>
#include <optional>
#include <set>

#include "app/bench.h"
#include "app/progress.h"
#include "app/reproduce_slice.h"
#include "app/words.h"
#include "fungi/evaluate/protocol.h"
#include "fungi/feature/extractor.h"
#include "fungi/prompt/score.h"
#include "fungi/store/files.h"

namespace fungi::app {
namespace {

namespace fs = std::filesystem;

constexpr size_t kNeighbours = 20;  // of the paper, in every table

// Errors advise what other verbs can do about them; this one has none of their options, and its
// numbers of neighbours and shots are the paper's. `folder` holds what was computed.
Error with_own_hint(const Error& e, const fs::path& folder, const char* samples) {
  const auto advises = [&](const char* what) { return e.hint().find(what) != std::string::npos; };
  if (e.place() == "k" || e.place() == "shots")
    return Error(e.message(), e.place(),
                 fmt::format("the table asks for so many: it takes more {}", samples));
  if (advises("`validation="))
    return Error(e.message(), e.place(), "add a folder val to the data set, or more pictures");
  if (advises("`kind="))
    return Error(e.message(), e.place(),
                 "give every sample a class folder, and delete " + folder.string());
  if (advises("`prune`") || advises("`overwrite`"))
    return Error(e.message(), e.place(),
                 fmt::format("delete {}, or choose another --work", folder.string()));
  return e;
}

struct Job {
  const PaperTable& table;
  const PaperBackbone& facts;
  const Backbone& backbone;
  const PaperData& data;
  const FoundData& found;
  const RunOptions& options;
  Pool& pool;
  std::vector<std::string> notes = {};
  ProjectionKind projection = ProjectionKind::sign;
  std::set<std::string> settings = {};  // those to compute; empty: all

  // Of the stores: "train", "test", ...
  fs::path folder() const {
    fs::path in = options.work;
    if (options.limit) in /= fmt::format("limit-{}", options.limit);
    const std::string what = table.objectives.empty()
                                 ? fmt::format("{}", fmt::join(objectives_of(table), "-"))
                                 : table.name;
    return in / facts.key / data.key /
           (projection == ProjectionKind::sign ? what
                                               : fmt::format("{}-{}", what, to_string(projection)));
  }

  std::unique_ptr<Dataset> open(const FoundSplit& from, DatasetOptions wanted) const {
    wanted.split = from.split, wanted.fold = from.fold, wanted.class_names = data.classes;
    auto all = open_dataset(from.path, wanted);
    if (options.limit == 0 || options.limit >= all->size()) return all;
    return slice(std::move(all), from.path, options.limit);
  }

  const char* samples() const { return data.texts ? "texts" : data.sound ? "sounds" : "pictures"; }

  Store extract(const FoundSplit& from, const std::string& name, const fs::path& like = {}) {
    // What depends on the training store goes with it.
    try {
      return extract_to(folder() / name, from, name, like);
    } catch (const Error& e) {
      throw with_own_hint(e, like.empty() ? folder() : folder() / name, samples());
    }
  }

  Store extract_to(const fs::path& folder, const FoundSplit& from, const std::string& name,
                   const fs::path& like) {
    store::guarded([&] { fs::create_directories(folder.parent_path()); });
    ExtractorOptions o;
    o.objectives = objectives_of(table);
    o.preset = options.preset;
    o.seed = options.seed;
    o.projection = projection;
    Extractor extractor(backbone, std::move(o), pool);
    const auto dataset = open(from, extractor.data());
    StoreWriter writer(folder, extractor.spec(),
                       {.shard_size = extractor.shard_size(), .like = like});
    const std::string what = fmt::format("{} {} {}", facts.key, data.key, name);
    {
      Progress progress(what, options.quiet);
      ExtractRun run;
      run.support_progress = [&](size_t done, size_t total) {
        progress.turn_to(what + " support");
        progress.update(done, total);
      };
      run.rewrite_progress = [&](size_t done, size_t total) {
        progress.turn_to(what + " rewrite", "rows");
        progress.update(done, total);
      };
      run.progress = [&](const ExtractProgress& p) {
        progress.turn_to(what);
        progress.update(p.done, p.total, p.failed);
      };
      extract_to_store(extractor, *dataset, writer, run);
    }
    const std::vector<std::string> all = extractor.notes();
    for (size_t i = backbone.notes().size(); i < all.size(); ++i)  // those are said once
      notes.push_back(fmt::format("{} on {}, {}: {}", facts.key, data.key, name, worded(all[i])));
    return Store::open(folder);
  }

  // Computes each setting and features that the table asks of this backbone; a mean asks for each
  // of its data sets. What cannot be computed (five shots where a class has four rows) costs no
  // other.
  void fill(RunResult& result,
            const std::function<double(const std::string& setting, const std::string& features)>&
                compute) const {
    std::set<std::pair<std::string, std::string>> asked;
    for (const PaperCell& c : cells_of(table))
      if (c.backbone == facts.key && (c.data == data.key || c.data == "mean") &&
          (settings.empty() || settings.contains(c.setting)))
        asked.emplace(c.setting, c.features);
    for (const auto& [setting, features] : asked) {
      try {
        result.percent[{setting, features}] = compute(setting, features);
      } catch (const Error& e) {
        result.reasons[{setting, features}] = worded(with_own_hint(e, folder(), samples())).what();
      }
    }
  }

  // A slice may have fewer rows than vote.
  size_t voting(size_t rows) const {
    return options.limit ? std::min<size_t>(kNeighbours, rows) : kNeighbours;
  }

  double metric(double accuracy, double mean_per_class) const {
    return 100 * (data.mean_per_class ? mean_per_class : accuracy);
  }

  CombinationOptions rows_of(const std::string& features, const std::string& setting = "") const {
    const bool pca = setting != "no-pca" && !projections().contains(setting);
    RowOptions rows{.pca = pca ? facts.pca : 0, .seed = options.seed};
    if (constexpr std::string_view kReduced = "reduced-"; setting.starts_with(kReduced))
      rows.reduce = parse_reduce(setting.substr(kReduced.size()));
    return {.features = features, .rows = rows};
  }

  // Settings that are another projection, each with stores of its own.
  static const std::map<std::string, ProjectionKind>& projections() {
    static const std::map<std::string, ProjectionKind> kinds = {
        {"binary", ProjectionKind::sign},
        {"gaussian", ProjectionKind::gaussian},
        {"sparse", ProjectionKind::sparse}};
    return kinds;
  }

  RunResult classification() {
    const Store train = extract(found.train, "train");
    RunResult result{.train = train.rows(), .failed = train.manifest().failed};
    if (table.protocol == Protocol::clusters) {
      fill(result, [&](const std::string&, const std::string& features) {
        const KMeansResult scored =
            evaluate_kmeans(train, {.combinations = rows_of(features)}, pool);
        return 100 * scored.combinations[0].score.overlap.accuracy;
      });
      return result;
    }
    const Store test = extract(found.test, "test", train.folder());
    std::optional<Store> validation;
    if (table.protocol == Protocol::linear && !found.validation.path.empty())
      validation = extract(found.validation, "validation", train.folder());
    result.test = test.rows(), result.failed += test.manifest().failed;
    if (table.protocol == Protocol::icl) {
      replies(result, train, test);
      return result;
    }
    fill(result, [&](const std::string& setting, const std::string& features) {
      const size_t shots = setting == "5-shot" || setting == "few-shot" ? data.shots : 0;
      if (table.protocol == Protocol::linear) {
        const LinearResult scored = evaluate_linear(
            train, test, validation ? &*validation : nullptr,
            {.combinations = rows_of(features, setting), .probe = {.shots = shots}}, pool);
        const LinearProbeScore& score = scored.combinations[0].score;
        return metric(score.accuracy, score.mean_per_class);
      }
      const KnnResult scored =
          evaluate_knn(train, test,
                       {.combinations = rows_of(features, setting),
                        .k = voting(train.rows()),
                        .shots = shots,
                        .sampling = data.texts ? Sampling::stratified : Sampling::first},
                       pool);
      const KnnScore& score = scored.combinations[0].score;
      return metric(score.accuracy, score.mean_per_class);
    });
    return result;
  }

  // The replies of a language model that somebody has asked, or how to ask one.
  void replies(RunResult& result, const Store& train, const Store& test) const {
    const auto file = [&](const char* what, const std::string& features) {
      return folder() / fmt::format("{}-{}.jsonl", what, features);
    };
    fill(result, [&](const std::string& setting, const std::string& features) -> double {
      std::string why = "a language model has to be asked";
      if (fs::exists(file("replies", features))) {
        const PromptScore score = score_replies(train, test, label_names(train, found.label_names),
                                                file("replies", features));
        if (score.all.answered() == score.all.rows) return 100 * score.accuracy;
        why = fmt::format("{} of {} texts have no answer", score.all.rows - score.all.answered(),
                          score.all.rows);
      }
      result.waiting[{setting, features}] = fmt::format(
          "{}; when all are there repeat this command: fungi prompts {} {} "
          "--train-data {} --test-data {}{} --features {} -k {} -o {} --replies {} --model "
          "gpt-4o-mini --endpoint URL",
          why, train.folder().string(), test.folder().string(), found.train.path.string(),
          found.test.path.string(),
          found.label_names.empty() ? "" : " --label-names " + found.label_names.string(), features,
          kNeighbours, file("prompts", features).string(), file("replies", features).string());
      return NAN;
    });
    for (const auto& [what, how] : result.waiting) result.percent.erase(what);
  }

  // The folder holds database and queries; the ground truth says which picture is which.
  RunResult retrieval() {
    const Store store = extract(found.train, "all");
    const RankingTask all = read_task(found.truth, store, store);
    RunResult result{.train = all.rows.database.size(),
                     .test = all.rows.queries.size(),
                     .failed = store.manifest().failed};
    fill(result, [&](const std::string& setting, const std::string& features) {
      RankingTask asked = all;
      std::erase_if(asked.relevances, [&](const auto& one) { return one.first != setting; });
      const RankingResult scored =
          evaluate_ranking(store, store, asked, {.combinations = rows_of(features)}, pool);
      return 100 * scored.combinations[0].scores[0].second.map;
    });
    return result;
  }
};

}  // namespace

RunResult run_pair(const PaperTable& table, const PaperBackbone& facts, const Backbone& backbone,
                   const PaperData& data, const FoundData& found, const RunOptions& options,
                   Pool& pool) {
  Job job{table, facts, backbone, data, found, options, pool};
  std::set<std::string> kinds;
  for (const PaperCell& c : cells_of(table))
    if (Job::projections().contains(c.setting)) kinds.insert(c.setting);
  if (kinds.empty()) {
    RunResult result = data.retrieval ? job.retrieval() : job.classification();
    result.notes = std::move(job.notes);
    return result;
  }
  RunResult all;
  for (const std::string& kind : kinds) {
    job.projection = Job::projections().at(kind), job.settings = {kind};
    RunResult one = job.classification();
    all.percent.merge(one.percent), all.reasons.merge(one.reasons);
    all.train = one.train, all.test = one.test, all.failed += one.failed;
  }
  all.notes = std::move(job.notes);
  return all;
}

PlannedRun plan_pair(const PaperTable& table, const PaperBackbone& facts, const Backbone& backbone,
                     const PaperData& data, const FoundData& found, const RunOptions& options,
                     double& seconds_per_view, Pool& pool) {
  const Job job{table, facts, backbone, data, found, options, pool};
  ExtractorOptions o;
  o.objectives = objectives_of(table);
  o.preset = options.preset;
  Extractor extractor(backbone, std::move(o), pool);
  PlannedRun plan{facts.key, data.key, 0, extractor.views_per_sample()};
  std::vector<const FoundSplit*> splits{&found.train};
  if (!data.retrieval && table.protocol != Protocol::clusters) splits.push_back(&found.test);
  if (table.protocol == Protocol::linear && !found.validation.path.empty())
    splits.push_back(&found.validation);
  for (const FoundSplit* split : splits) plan.samples += job.open(*split, extractor.data())->size();
  if (seconds_per_view == 0 && !data.sound && !data.texts)
    seconds_per_view = 1 / bench_backbone(backbone, false, 8, 1, pool).samples_per_second;
  plan.seconds = double(plan.samples * plan.views) * seconds_per_view;
  return plan;
}

}  // namespace fungi::app
