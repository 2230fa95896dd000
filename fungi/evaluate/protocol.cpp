// SPDX-License-Identifier: Apache-2.0
#include "fungi/evaluate/protocol.h"

#include <fmt/format.h>

#include <algorithm>

#include "fungi/base/error.h"
#include "fungi/evaluate/cka.h"
#include "fungi/evaluate/fewshot.h"
#include "fungi/evaluate/metrics.h"
#include "fungi/evaluate/shared_rows.h"
#include "fungi/feature/feature_rows.h"
#include "fungi/retrieve/gradient_search.h"

namespace fungi {
namespace {

std::vector<std::string> chosen_combinations(const Store& store, const CombinationOptions& o) {
  if (!o.features.empty()) return {o.features};
  return combinations(feature_names(store.manifest().spec), o.combine);
}

void add_note(std::vector<std::string>& notes, const std::string& note,
              const CombinationOptions& o) {
  if (note.empty()) return;
  if (o.note) o.note(note);
  notes.push_back(note);
}

std::function<void(size_t, size_t)> progress_of(const std::string& features,
                                                const CombinationOptions& o) {
  if (!o.progress) return {};
  return [&o, features](size_t done, size_t total) { o.progress(features, done, total); };
}

template <class Combination>
void add(std::vector<Combination>& list, Combination one,
         const std::function<void(Combination&)>& finished) {
  list.push_back(std::move(one));
  if (finished) finished(list.back());
}

}  // namespace

Voters voters(std::optional<size_t> asked, size_t training_rows) {
  constexpr size_t kUsual = 20;
  if (asked) return {*asked};
  if (kUsual <= training_rows || training_rows == 0) return {kUsual};
  return {training_rows,
          fmt::format("{} training rows are fewer than the usual {} neighbours: all of them vote; "
                      "`k` says otherwise",
                      training_rows, kUsual)};
}

Sampling parse_sampling(const std::string& text) {
  if (text == "first") return Sampling::first;
  if (text == "stratified") return Sampling::stratified;
  fail(fmt::format("there is no sampling '{}'", text), "`sampling`",
       "choose one of: first, stratified");
}

std::vector<size_t> few_shot_rows(const Store& train, size_t shots, Sampling sampling,
                                  uint32_t seed) {
  const std::vector<int64_t>& labels = train.labels();
  if (sampling == Sampling::first) return first_per_class(labels, shots, train.classes());
  const size_t drawn = shots * classes_of(labels).count();
  std::vector<size_t> rows = stratified_split(labels, drawn, seed, train.classes()).first;
  std::sort(rows.begin(), rows.end());
  return rows;
}

KnnResult evaluate_knn(const Store& train, const Store& test, const KnnProtocol& o, Pool& pool,
                       const std::function<void(KnnCombination&)>& finished) {
  require_labels(train);
  std::vector<size_t> rows;  // of the training store; empty: all
  if (o.shots) rows = few_shot_rows(train, o.shots, o.sampling, o.sampling_seed);
  KnnResult result;
  result.train_rows = o.shots ? rows.size() : train.rows();
  const Voters usual = voters(o.k, result.train_rows);
  result.k = usual.k;
  add_note(result.notes, usual.note, o.combinations);
  const ClassifyOptions options{.k = result.k, .vote = o.vote, .metric = o.metric};
  PairLabels labels;
  for (const std::string& features : chosen_combinations(train, o.combinations)) {
    require_comparable(train, test, features, !o.exact_gradients);
    if (result.combinations.empty()) {
      labels = pair_labels(train, test, rows);
      result.test_rows = labels.test.size();
      add_note(result.notes, note_unknown_classes(labels.train, labels.test), o.combinations);
    }
    KnnCombination one{.features = features};
    if (o.exact_gradients) {
      const GradientSearch search(train, test, features, pool,
                                  {.metric = o.metric, .database_rows = rows});
      one.columns = search.columns();
      one.score = classify({search.rows(), search.queries()}, labels.train, labels.test, options,
                           [&] { return search.knn(options.k, pool); });
    } else if (o.combinations.rows.ranks) {
      SharedKnn shared = classify_on_ranks(train, test, features, labels, options,
                                           o.combinations.rows, pool, rows);
      one.columns = shared.columns;
      one.pca_applied = shared.pca_applied, one.reduced = shared.reduced;
      one.score = std::move(shared.score);
    } else {
      const PairRows pair = load_pair(train, test, features, o.combinations.rows, pool, rows);
      one.columns = pair.train.cols();
      one.pca_applied = pair.pca_applied, one.reduced = pair.reduced;
      one.score = classify(pair.train, labels.train, pair.test, labels.test, options, pool);
    }
    one.standard_error = standard_error(one.score.accuracy, result.test_rows);
    add(result.combinations, std::move(one), finished);
  }
  return result;
}

namespace {

struct LinearStores {
  const Store &train, &test;
  const Store* validation;
  const std::string& features;
  const PairLabels& labels;
  const std::vector<int64_t>& held_labels;
};

// Returns the width of the rows, before a PCA of the probe's own.
size_t probe_stores(const LinearStores& s, const RowOptions& how, const LinearProbeOptions& probe,
                    Pool& pool, LinearProbeScore& score) {
  if (how.ranks) {
    const std::optional<ColumnMap> map = fit_map(s.train, s.train.select(s.features), how, pool);
    const auto rows = [&](const Store& store, Labels labels) {
      return shared_rows(store, s.features, map, labels, pool);
    };
    const ProbeRows train = rows(s.train, s.labels.train);
    score = linear_probe(
        train, s.validation ? std::optional(rows(*s.validation, s.held_labels)) : std::nullopt,
        rows(s.test, s.labels.test), probe, pool);
    return train.width;
  }
  const PairRows pair = load_pair(s.train, s.test, s.features, how, pool);
  ScratchMatrix held;
  if (s.validation) {
    const std::vector<StoreBlock> blocks = s.validation->select(s.features);
    held = load_rows(*s.validation, blocks, fit_map(*s.validation, blocks, how, pool),
                     how.memory_limit, pool);
  }
  score = linear_probe(
      {pair.train, s.labels.train},
      s.validation ? std::optional(LabelledRows{held, s.held_labels}) : std::nullopt,
      LabelledRows{pair.test, s.labels.test}, probe, pool);
  return pair.train.cols();
}

}  // namespace

LinearResult evaluate_linear(const Store& train, const Store& test, const Store* validation,
                             const LinearProtocol& o, Pool& pool,
                             const std::function<void(LinearCombination&)>& finished) {
  RowOptions how = o.combinations.rows;  // a PCA is fitted by the probe, without its validation
  if (how.reduce == Reduce::pca) how.pca = 0;
  LinearResult result;
  PairLabels labels;
  for (const std::string& features : chosen_combinations(train, o.combinations)) {
    require_comparable(train, test, features, true);
    if (result.combinations.empty()) {
      labels = pair_labels(train, test);
      result.test_rows = labels.test.size();
      add_note(result.notes, note_unknown_classes(labels.train, labels.test), o.combinations);
    }
    std::vector<int64_t> held_labels;
    if (validation) {
      require_comparable(train, *validation, features, true);
      held_labels = pair_labels(train, *validation).test;
    }
    LinearProbeOptions probe = o.probe;
    probe.pca = how.reduce == Reduce::pca ? o.combinations.rows.pca : 0;
    probe.class_names = train.classes();
    probe.progress = progress_of(features, o.combinations);
    probe.ranks = how.ranks;
    const LinearStores stores{train, test, validation, features, labels, held_labels};
    LinearCombination one{.features = features};
    const size_t width = probe_stores(stores, how, probe, pool, one.score);
    one.columns = one.score.pca_applied ? probe.pca : width;
    one.reduced = one.score.pca_applied || width < total_width(train.select(features));
    one.standard_error = standard_error(one.score.accuracy, result.test_rows);
    if (const SoftmaxModel& model = one.score.model; !model.converged)
      add_note(result.notes,
               fmt::format(
                   "{}: the fit with lambda {:g} did not converge in {} steps: its loss {:.6g} may "
                   "be {:.2g} above the smallest; use a larger `lambda`",
                   features, one.score.lambda, model.iterations, model.objective, model.gap),
               o.combinations);
    add(result.combinations, std::move(one), finished);
  }
  return result;
}

KMeansResult evaluate_kmeans(const Store& store, const KMeansProtocol& o, Pool& pool,
                             const std::function<void(KMeansCombination&)>& finished) {
  require_labels(store);
  KMeansResult result{.rows = store.rows()};
  const RowOptions& how = o.combinations.rows;
  for (const std::string& features : chosen_combinations(store, o.combinations)) {
    const std::vector<StoreBlock> blocks = store.select(features);
    const std::optional<ColumnMap> map = fit_map(store, blocks, how, pool);
    KMeansOptions options = o.kmeans;
    options.progress = progress_of(features, o.combinations);
    const auto clustered = [&] {
      if (how.ranks) return cluster_on_ranks(store, blocks, map, options, how, pool);
      const ScratchMatrix rows = load_rows(store, blocks, map, how.memory_limit, pool);
      return evaluate_clustering(rows, store.labels(), options, pool);
    };
    add(result.combinations,
        {features, map && map->is_pca(), map.has_value(), clustered()}, finished);
  }
  return result;
}

RankingResult evaluate_ranking(const Store& database, const Store& queries, const RankingTask& task,
                               const RankingProtocol& o, Pool& pool,
                               const std::function<void(RankingCombination&)>& finished) {
  RankingResult result;
  for (const std::string& note : task.notes) add_note(result.notes, note, o.combinations);
  for (const std::string& features : chosen_combinations(database, o.combinations)) {
    RankingCombination one{.features = features};
    const auto score_all = [&](const auto& score) {
      for (const auto& [name, relevance] : task.relevances)
        one.scores.emplace_back(name, score(relevance));
    };
    if (o.exact_gradients) {
      require_comparable(database, queries, features, false);
      const GradientSearch search(database, queries, features, pool,
                                  {.metric = o.retrieval.metric,
                                   .database_rows = task.rows.database,
                                   .query_rows = task.rows.queries});
      const auto keys = [&](size_t first, View<double> out) { search.keys(first, out, pool); };
      score_all([&](const RelevanceOf& relevance) {
        return evaluate_retrieval(search.rows(), search.queries(), keys, relevance, o.retrieval,
                                  pool);
      });
    } else if (o.combinations.rows.ranks) {
      require_comparable(database, queries, features, true);
      SharedRanking shared = rank_on_ranks(database, queries, features, task, o.retrieval,
                                           o.combinations.rows, pool);
      one.pca_applied = shared.pca_applied, one.reduced = shared.reduced;
      one.scores = std::move(shared.scores);
    } else {
      const PairRows rows = load_pair(database, queries, features, o.combinations.rows, pool,
                                      task.rows.database, task.rows.queries);
      one.pca_applied = rows.pca_applied, one.reduced = rows.reduced;
      score_all([&](const RelevanceOf& relevance) {
        return evaluate_retrieval(rows.train, rows.test, relevance, o.retrieval, pool);
      });
    }
    add(result.combinations, std::move(one), finished);
  }
  return result;
}

CkaResult evaluate_cka(const Store& store, std::string_view features, Pool& pool, Comm* ranks) {
  const std::vector<std::string> blocks = names_of(store.select(features));
  return {blocks, linear_cka(store, blocks, pool, size_t{64} << 20, ranks)};
}

}  // namespace fungi
