// SPDX-License-Identifier: Apache-2.0
#include "app/reproduce_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>
#include <optional>
#include <set>

#include "app/progress.h"
#include "app/words.h"
#include "fungi/evaluate/protocol.h"
#include "fungi/feature/extractor.h"
#include "fungi/store/files.h"

namespace fungi::app {
namespace {

namespace fs = std::filesystem;

constexpr size_t kShots = 5, kNeighbours = 20;  // of the paper, in every table

// Errors advise what other verbs can do about them; this one has none of their options, and its
// numbers of neighbours and shots are the paper's. `folder` holds what was computed.
Error with_own_hint(const Error& e, const fs::path& folder) {
  const auto advises = [&](const char* what) { return e.hint().find(what) != std::string::npos; };
  if (e.place() == "k" || e.place() == "shots")
    return Error(e.message(), e.place(), "the table asks for so many: it takes more samples");
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

  // Of the stores: "train", "test", ...
  fs::path folder() const {
    return fs::path(options.work) / facts.key / data.key /
           fmt::format("{}", fmt::join(objectives_of(table), "-"));
  }

  Store extract(const FoundSplit& from, const std::string& name, const fs::path& like = {}) {
    // What depends on the training store goes with it.
    try {
      return extract_to(folder() / name, from, name, like);
    } catch (const Error& e) {
      throw with_own_hint(e, like.empty() ? folder() : folder() / name);
    }
  }

  Store extract_to(const fs::path& folder, const FoundSplit& from, const std::string& name,
                   const fs::path& like) {
    store::guarded([&] { fs::create_directories(folder.parent_path()); });
    ExtractorOptions o;
    o.objectives = objectives_of(table);
    o.preset = options.preset;
    o.seed = options.seed;
    Extractor extractor(backbone, std::move(o), pool);
    DatasetOptions wanted = extractor.data();
    wanted.split = from.split, wanted.fold = from.fold;
    const auto dataset = open_dataset(from.path, wanted);
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
      if (c.backbone == facts.key && (c.data == data.key || c.data == "mean"))
        asked.emplace(c.setting, c.features);
    for (const auto& [setting, features] : asked) {
      try {
        result.percent[{setting, features}] = compute(setting, features);
      } catch (const Error& e) {
        result.reasons[{setting, features}] = worded(with_own_hint(e, folder())).what();
      }
    }
  }

  double metric(double accuracy, double mean_per_class) const {
    return 100 * (data.mean_per_class ? mean_per_class : accuracy);
  }

  CombinationOptions rows_of(const std::string& features) const {
    return {.features = features, .rows = {.pca = facts.pca}};
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
    if (table.protocol == Protocol::linear && !found.validation.empty())
      validation = extract({found.validation}, "validation", train.folder());
    result.test = test.rows(), result.failed += test.manifest().failed;
    fill(result, [&](const std::string& setting, const std::string& features) {
      const size_t shots = setting == "5-shot" ? kShots : 0;
      if (table.protocol == Protocol::linear) {
        const LinearResult scored =
            evaluate_linear(train, test, validation ? &*validation : nullptr,
                            {.combinations = rows_of(features), .probe = {.shots = shots}}, pool);
        const LinearProbeScore& score = scored.combinations[0].score;
        return metric(score.accuracy, score.mean_per_class);
      }
      const KnnResult scored = evaluate_knn(
          train, test, {.combinations = rows_of(features), .k = kNeighbours, .shots = shots}, pool);
      const KnnScore& score = scored.combinations[0].score;
      return metric(score.accuracy, score.mean_per_class);
    });
    return result;
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
  RunResult result = data.retrieval ? job.retrieval() : job.classification();
  result.notes = std::move(job.notes);
  return result;
}

}  // namespace fungi::app
