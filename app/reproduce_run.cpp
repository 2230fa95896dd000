// SPDX-License-Identifier: Apache-2.0
#include "app/reproduce_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <optional>
#include <set>

#include "app/reproduce_job.h"
#include "app/words.h"
#include "fungi/evaluate/cka.h"
#include "fungi/evaluate/metrics.h"
#include "fungi/evaluate/protocol.h"
#include "fungi/prompt/score.h"

namespace fungi::app {
namespace {

namespace fs = std::filesystem;

constexpr size_t kNeighbours = 20;  // of the paper, in every table

// "5-shot", and of texts "few-shot": how many; others: 0, which is all.
size_t shots_of(const std::string& setting, const PaperData& data) {
  if (setting == "few-shot") return data.shots;
  if (!setting.ends_with("-shot")) return 0;
  size_t shots = 0;
  std::from_chars(setting.data(), setting.data() + setting.size(), shots);
  return shots == 5 ? data.shots : shots;
}

// Computes what a table asks of a backbone on a data set.
struct Evaluation {
  Job& job;
  const std::set<std::string> settings = {};  // those to compute; empty: all

  using Compute = std::function<double(const std::string& setting, const std::string& features)>;

  // Each setting and features once; a mean asks for each of its data sets. What cannot be computed
  // (five shots where a class has four rows) costs no other.
  void fill(RunResult& result, const Compute& compute,
            const std::function<void(const PaperCell&)>& fill_many = {}) const {
    std::set<CellKey> asked;
    for (const PaperCell& c : cells_of(job.table)) {
      if (c.backbone != job.facts.key || !(c.data == job.data.key || is_mean(c.data)) ||
          !(settings.empty() || settings.contains(c.setting)) ||
          !asked.emplace(c.setting, c.features).second)
        continue;
      try {
        if (c.many())
          fill_many(c);
        else
          result.values[{c.setting, c.features}] = {compute(c.setting, c.features)};
      } catch (const Error& e) {
        result.reasons[{c.setting, c.features}] = worded(job.with_own_hint(e, job.folder())).what();
      }
    }
  }

  double metric(double accuracy, double mean_per_class) const {
    return 100 * (job.data.mean_per_class ? mean_per_class : accuracy);
  }

  CombinationOptions rows_of(const std::string& features, const std::string& setting = "") const {
    const bool pca = setting != "no-pca" && !projection_settings().contains(setting);
    RowOptions rows{.pca = pca ? job.facts.pca : 0, .seed = job.options.seed};
    if (constexpr std::string_view kReduced = "reduced-"; setting.starts_with(kReduced))
      rows.reduce = parse_reduce(setting.substr(kReduced.size()));
    return {.features = features, .rows = rows};
  }

  // Classes of a slice have fewer rows than a table wants. No more vote than a class has: if all
  // rows did, the neighbours would not matter.
  void suit_slice(const Store& train, KnnProtocol& o) const {
    if (!job.options.limit) return;
    std::map<int64_t, size_t> of_class;
    for (const int64_t label : train.labels()) ++of_class[label];
    if (o.shots)
      for (const auto& [label, count] : of_class) o.shots = std::min(o.shots, count);
    const size_t of_each = o.shots ? o.shots : train.rows() / std::max<size_t>(1, of_class.size());
    o.k = std::min(*o.k, std::max<size_t>(1, of_each));
  }

  KnnResult neighbours(const Store& train, const Store& test, const std::string& setting,
                       const std::string& features) const {
    KnnProtocol o{.combinations = rows_of(features, setting),
                  .k = kNeighbours,
                  .shots = shots_of(setting, job.data),
                  .sampling = job.data.texts ? Sampling::stratified : Sampling::first};
    suit_slice(train, o);
    return evaluate_knn(train, test, o, job.pool);
  }

  // The cell's numbers, which are known only now.
  void many(RunResult& result, const PaperCell& c, const Store& train, const Store& test) const {
    std::vector<CellKey>& all = result.many[{c.setting, c.features}];
    if (c.setting != "*") {  // features of each layer
      for (const std::string& block : feature_names(train.manifest().spec)) {
        if (!block.starts_with(c.features.substr(0, c.features.size() - 1))) continue;
        const KnnScore score = neighbours(train, test, c.setting, block).combinations[0].score;
        all.emplace_back(c.setting, block);
        result.values[all.back()] = {metric(score.accuracy, score.mean_per_class)};
      }
      return;
    }
    const KnnScore score = neighbours(train, test, "full", c.features).combinations[0].score;
    for (const ClassAccuracy& one :
         accuracy_by_class(score.votes.predicted, pair_labels(train, test).test)) {
      const bool known = size_t(one.label) < train.classes().size();
      all.emplace_back(known ? train.classes()[size_t(one.label)] : std::to_string(one.label),
                       c.features);
      result.values[all.back()] = {100 * double(one.correct) / double(one.total)};
    }
  }

  void alignment(RunResult& result, const Store& store) const {
    fill(result, [&](const std::string&, const std::string& pair) {
      const size_t sign = pair.find('~');
      return 100 * linear_cka(store, {pair.substr(0, sign), pair.substr(sign + 1)}, job.pool)(0, 1);
    });
  }

  void clusters(RunResult& result, const Store& store) const {
    fill(result, [&](const std::string&, const std::string& features) {
      KMeansProtocol o{.combinations = rows_of(features)};
      if (!job.options.seeds.empty()) o.kmeans.seed = job.options.seed;
      return 100 * evaluate_kmeans(store, o, job.pool).combinations[0].score.overlap.accuracy;
    });
  }

  RunResult classification() const {
    const Store train = job.extract(job.found.train, "train");
    RunResult result{.train = train.rows(), .failed = train.manifest().failed};
    if (job.table.protocol == Protocol::clusters || job.table.protocol == Protocol::cka) {
      job.table.protocol == Protocol::cka ? alignment(result, train) : clusters(result, train);
      return result;
    }
    const Store test = job.extract(job.found.test, "test", train.folder());
    std::optional<Store> validation;
    if (job.table.protocol == Protocol::linear && !job.found.validation.path.empty())
      validation = job.extract(job.found.validation, "validation", train.folder());
    result.test = test.rows(), result.failed += test.manifest().failed;
    if (job.table.protocol == Protocol::icl) {
      replies(result, train, test);
      return result;
    }
    fill(
        result,
        [&](const std::string& setting, const std::string& features) {
          if (job.table.protocol == Protocol::linear) {
            const LinearResult scored =
                evaluate_linear(train, test, validation ? &*validation : nullptr,
                                {.combinations = rows_of(features, setting),
                                 .probe = {.shots = shots_of(setting, job.data)}},
                                job.pool);
            const LinearProbeScore& score = scored.combinations[0].score;
            return metric(score.accuracy, score.mean_per_class);
          }
          const KnnScore score = neighbours(train, test, setting, features).combinations[0].score;
          return metric(score.accuracy, score.mean_per_class);
        },
        [&](const PaperCell& c) { many(result, c, train, test); });
    return result;
  }

  // The replies of a language model that somebody has asked, or how to ask one.
  void replies(RunResult& result, const Store& train, const Store& test) const {
    const FoundData& found = job.found;
    const auto file = [&](const char* what, const std::string& features) {
      return job.folder() / fmt::format("{}-{}.jsonl", what, features);
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
    for (const auto& [what, how] : result.waiting) result.values.erase(what);
  }

  // The folder holds database and queries; the ground truth says which picture is which.
  RunResult retrieval() const {
    const Store store = job.extract(job.found.train, "all");
    const RankingTask all = read_task(job.truth(), store, store);
    RunResult result{.train = all.rows.database.size(),
                     .test = all.rows.queries.size(),
                     .failed = store.manifest().failed};
    fill(result, [&](const std::string& setting, const std::string& features) {
      RankingTask asked = all;
      std::erase_if(asked.relevances, [&](const auto& one) { return one.first != setting; });
      const RankingResult scored =
          evaluate_ranking(store, store, asked, {.combinations = rows_of(features)}, job.pool);
      return 100 * scored.combinations[0].scores[0].second.map;
    });
    return result;
  }
};

}  // namespace

std::vector<uint64_t> seeds_of(const PaperTable& table, const RunOptions& options) {
  if (!options.seeds.empty()) return options.seeds;
  if (!wants_seeds(table)) return {options.seed};
  return {options.seed, options.seed + 1, options.seed + 2};
}

RunResult over_seeds(const std::vector<uint64_t>& seeds, const RunOptions& options,
                     const std::function<RunResult(const RunOptions&)>& run) {
  RunResult all;
  for (const uint64_t seed : seeds) {
    RunOptions own = options;
    own.seed = seed;
    RunResult one = run(own);
    for (const auto& [key, values] : one.values)
      all.values[key].insert(all.values[key].end(), values.begin(), values.end());
    all.many.merge(one.many), all.reasons.merge(one.reasons), all.waiting.merge(one.waiting);
    all.train = one.train, all.test = one.test, all.failed = std::max(all.failed, one.failed);
    for (const std::string& note : one.notes)
      if (std::find(all.notes.begin(), all.notes.end(), note) == all.notes.end())
        all.notes.push_back(note);
  }
  // A mean of some of the seeds would be none of those asked for.
  std::erase_if(all.values, [&](const auto& one) { return one.second.size() != seeds.size(); });
  return all;
}

RunResult run_pair(const PaperTable& table, const PaperBackbone& facts, const Backbone& backbone,
                   const PaperData& data, const FoundData& found, const RunOptions& options,
                   Pool& pool) {
  return over_seeds(seeds_of(table, options), options, [&](const RunOptions& own) {
    Job job{table, facts, backbone, data, found, own, pool};
    RunResult all;
    const std::vector<ProjectionKind> kinds = projections_of(table);
    for (const ProjectionKind kind : kinds) {
      job.projection = kind;
      std::set<std::string> settings;  // of this projection, where there are several
      for (const auto& [setting, its] : projection_settings())
        if (its == kind && kinds.size() > 1) settings.insert(setting);
      const Evaluation evaluation{job, settings};
      RunResult one = data.retrieval ? evaluation.retrieval() : evaluation.classification();
      all.values.merge(one.values), all.many.merge(one.many), all.reasons.merge(one.reasons);
      all.waiting.merge(one.waiting);
      all.train = one.train, all.test = one.test, all.failed += one.failed;
    }
    all.notes = std::move(job.notes);
    return all;
  });
}

}  // namespace fungi::app
