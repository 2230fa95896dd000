// SPDX-License-Identifier: Apache-2.0
// Whole evaluations of stores, one function each: for every combination of blocks the rows are
// loaded, shrunk by a PCA fitted on the training rows, and scored. Results hold all that the
// command line prints, and more. `finished`, if given, is called with each combination at once and
// may take out of it what need not wait for the others in memory, such as predictions.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fungi/evaluate/classify.h"
#include "fungi/evaluate/clustering.h"
#include "fungi/evaluate/combinations.h"
#include "fungi/evaluate/linear_probe.h"
#include "fungi/evaluate/pair.h"
#include "fungi/evaluate/ranking_task.h"
#include "fungi/evaluate/retrieval.h"
#include "fungi/evaluate/seeds.h"

namespace fungi {

// Which blocks, how they become columns, and what is told meanwhile. All functions are called from
// the caller's thread; what they throw ends the work.
struct CombinationOptions {
  std::string features = {};  // "embedding+kl"; empty: as `combine` says
  Combine combine = Combine::steps;
  RowOptions rows = {};
  std::function<void(const std::string&)> note = {};  // as soon as it is known; results have all
  std::function<void(const std::string& features, size_t done, size_t total)> progress = {};
};

// How many neighbours vote: 20 as in the paper, or all training rows where there are fewer and
// nothing else was asked for, which `note` then says.
struct Voters {
  size_t k = 0;
  std::string note = {};
};
Voters voters(std::optional<size_t> asked, size_t training_rows);

enum class Sampling {
  first,       // so many rows of each class, the first ones
  stratified,  // so many rows times classes, drawn as scikit-learn draws them
};
Sampling parse_sampling(const std::string& text);
// Rows of a store, ascending. Errors of first_per_class() and stratified_split().
std::vector<size_t> few_shot_rows(const Store& train, size_t shots, Sampling sampling,
                                  uint32_t seed = 42);

struct KnnProtocol {
  CombinationOptions combinations = {};
  std::optional<size_t> k = {};  // none: see voters()
  Vote vote = Vote::uniform;
  Metric metric = Metric::euclidean;
  size_t shots = 0;  // 0: all training rows
  Sampling sampling = Sampling::first;
  uint32_t sampling_seed = 42;
  bool exact_gradients = false;  // compare whole gradients by their kept factors; there is no PCA
};
struct KnnCombination {
  std::string features;
  size_t columns = 0;  // that were compared
  bool pca_applied = false, reduced = false;  // reduced: by a PCA or otherwise
  KnnScore score = {};
  double standard_error = 0;  // of score.accuracy
};
struct KnnResult {
  size_t k = 0, train_rows = 0, test_rows = 0;
  std::vector<KnnCombination> combinations = {};
  std::vector<std::string> notes = {};
};
// Errors: stores that cannot be compared, labels that are missing, those of classify() and
// few_shot_rows().
KnnResult evaluate_knn(const Store& train, const Store& test, const KnnProtocol& options,
                       Pool& pool, const std::function<void(KnnCombination&)>& finished = {});

struct LinearProtocol {
  CombinationOptions combinations = {};  // a PCA is the probe's, without the validation rows
  LinearProbeOptions probe = {};         // its pca, class_names and progress are set here
};
struct LinearCombination {
  std::string features;
  size_t columns = 0;  // that were fitted
  bool reduced = false;
  LinearProbeScore score = {};
  double standard_error = 0;  // of score.accuracy
};
struct LinearResult {
  size_t test_rows = 0;
  std::vector<LinearCombination> combinations = {};
  std::vector<std::string> notes = {};
};
// `validation`: a store that chooses the penalty, or null: a fifth of the training rows does.
LinearResult evaluate_linear(const Store& train, const Store& test, const Store* validation,
                             const LinearProtocol& options, Pool& pool,
                             const std::function<void(LinearCombination&)>& finished = {});

struct KMeansProtocol {
  CombinationOptions combinations = {};
  KMeansOptions kmeans = {};  // its clusters and progress are set here
};
struct KMeansCombination {
  std::string features;
  bool pca_applied = false, reduced = false;
  ClusteringScore score = {};
};
struct KMeansResult {
  size_t rows = 0;
  std::vector<KMeansCombination> combinations = {};
};
KMeansResult evaluate_kmeans(const Store& store, const KMeansProtocol& options, Pool& pool,
                             const std::function<void(KMeansCombination&)>& finished = {});

struct RankingProtocol {
  CombinationOptions combinations = {};
  RetrievalOptions retrieval = {};
  bool exact_gradients = false;  // as of KnnProtocol
};
struct RankingCombination {
  std::string features;
  bool pca_applied = false, reduced = false;
  std::vector<std::pair<std::string, RetrievalScore>> scores = {};  // by name of the relevance
};
struct RankingResult {
  std::vector<RankingCombination> combinations = {};
  std::vector<std::string> notes = {};
};
RankingResult evaluate_ranking(const Store& database, const Store& queries, const RankingTask& task,
                               const RankingProtocol& options, Pool& pool,
                               const std::function<void(RankingCombination&)>& finished = {});

// Linear CKA between every two of the blocks; empty: of all.
struct CkaResult {
  std::vector<std::string> blocks;
  Matrix<double> cka;  // as linear_cka() has it
};
CkaResult evaluate_cka(const Store& store, std::string_view features, Pool& pool,
                       Comm* ranks = nullptr);

}  // namespace fungi
