// SPDX-License-Identifier: Apache-2.0
#include "fungi/report/evaluation.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "fungi/feature/feature_rows.h"
#include "fungi/search/knn.h"

namespace fungi::report {
namespace {

std::string joined(const std::vector<std::string>& blocks, size_t mask) {
  std::string name;
  for (size_t i = 0; i < blocks.size(); ++i)
    if (mask >> i & 1) name += (name.empty() ? "" : "+") + blocks[i];
  return name;
}

std::string first_blocks(const std::vector<std::string>& blocks, size_t count) {
  return joined(blocks, (size_t{1} << count) - 1);
}

// Labels may be any numbers, and the test rows may have some that the training rows lack: both are
// numbered anew, together.
void number_classes(const std::vector<std::string>& names, Evaluation& e) {
  classes_of(e.train.labels, "the training store");  // every row has a label, or an Error says so
  classes_of(e.test.labels, "the test store");
  std::vector<int64_t> both = e.train.labels;
  both.insert(both.end(), e.test.labels.begin(), e.test.labels.end());
  const Classes known = classes_of(both);
  for (const int64_t label : known.labels)
    e.classes.push_back(size_t(label) < names.size() ? names[size_t(label)]
                                                     : std::to_string(label));
  const auto middle = known.index.begin() + std::ptrdiff_t(e.train.labels.size());
  e.train.labels.assign(known.index.begin(), middle);
  e.test.labels.assign(middle, known.index.end());
}

}  // namespace

std::vector<std::string> combinations(const std::vector<std::string>& blocks) {
  std::vector<std::string> list;
  if (blocks.size() > kMostCombined) {
    list = blocks;
    for (size_t n = 2; n <= blocks.size(); ++n)
      list.push_back(list[n == 2 ? 0 : list.size() - 1] + "+" + blocks[n - 1]);
    return list;
  }
  for (int count = 1; count <= int(blocks.size()); ++count)
    for (size_t mask = 1; mask < size_t{1} << blocks.size(); ++mask)
      if (std::popcount(mask) == count) list.push_back(joined(blocks, mask));
  return list;
}

Evaluation evaluate(const Store& train, const Store& test, const ReportOptions& o, Pool& pool) {
  Evaluation e;
  e.blocks = feature_names(train.manifest().spec);
  e.train = {train.ids(), train.labels()};
  e.test = {test.ids(), align_labels(train.classes(), test)};
  number_classes(train.classes(), e);
  search::check_neighbours(o.k, train.rows());
  for (const std::string& features : combinations(e.blocks)) {
    const std::vector<StoreBlock> chosen = train.select(features);
    const std::optional<Pca> pca = fit_pca(train, chosen, o.pca, pool);
    const ScratchMatrix database = load_rows(train, chosen, pca, o.memory_limit, pool);
    const ScratchMatrix queries = load_rows(test, test.select(features), pca, o.memory_limit, pool);
    Result r;
    r.features = features;
    r.blocks = size_t(std::count(features.begin(), features.end(), '+')) + 1;
    r.step = features == first_blocks(e.blocks, r.blocks);
    r.neighbours = knn(database, queries, o.k, pool);
    r.score = score_votes(vote(r.neighbours, e.train.labels), e.train.labels, e.test.labels);
    if (!r.step || (r.blocks > 1 && r.blocks < e.blocks.size())) r.neighbours = {};
    e.results.push_back(std::move(r));
  }
  return e;
}

Change compare(Labels before, Labels after, Labels targets) {
  Change c;
  for (size_t i = 0; i < targets.size(); ++i) {
    const bool was = before[i] == targets[i], is = after[i] == targets[i];
    c.gained += is && !was, c.lost += was && !is;
  }
  const double n = double(targets.size());
  c.share = (double(c.gained) - double(c.lost)) / n;
  c.standard_error = std::sqrt((double(c.gained + c.lost) / n - c.share * c.share) / n);
  return c;
}

}  // namespace fungi::report
