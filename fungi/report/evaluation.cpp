// SPDX-License-Identifier: Apache-2.0
#include "fungi/report/evaluation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "fungi/base/error.h"
#include "fungi/evaluate/combinations.h"
#include "fungi/evaluate/pair.h"
#include "fungi/search/knn.h"

namespace fungi::report {
namespace {

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

Evaluation evaluate(const Store& train, const Store& test, const ReportOptions& o, Pool& pool) {
  Evaluation e;
  e.blocks = feature_names(train.manifest().spec);
  e.train = {train.ids(), train.labels()};
  e.test = {test.ids(), align_labels(train.classes(), test)};
  number_classes(train.classes(), e);
  search::check_neighbours(o.k, train.rows());
  const std::vector<std::string> steps = combinations(e.blocks, Combine::steps),
                                 shown = combinations(e.blocks, Combine::overview);
  RowOptions rows_of{.pca = o.pca, .memory_limit = o.memory_limit, .reduce = o.reduce};
  if (!o.draws.empty()) rows_of.seed = o.draws[0].seed;
  for (const std::string& features : shown) {
    const PairRows rows = load_pair(train, test, features, rows_of, pool);
    Result r;
    r.features = features;
    r.blocks = size_t(std::count(features.begin(), features.end(), '+')) + 1;
    const bool end = features == shown.front() || features == shown.back();
    r.step = end || (steps != shown && features == steps[r.blocks - 1]);
    r.neighbours = knn(rows.train, rows.test, o.k, pool);
    r.score = score_votes(vote(r.neighbours, e.train.labels), e.train.labels, e.test.labels);
    if (!end) r.neighbours = {};
    e.results.push_back(std::move(r));
  }
  return e;
}

OverDraws evaluate_draws(const Evaluation& first, const ReportOptions& o, Pool& pool) {
  OverDraws over;
  over.accuracy.resize(first.results.size());
  over.change.resize(first.results.size());
  for (const ReportDraw& draw : o.draws) {
    ReportOptions one = o;
    one.draws = {draw};
    std::optional<Evaluation> other;
    if (&draw != &o.draws[0]) {
      other = evaluate(Store::open(draw.train), Store::open(draw.test), one, pool);
      if (other->blocks != first.blocks)
        fail(fmt::format("its blocks are not those of {}", o.draws[0].train.string()),
             draw.train.string(), "extract the stores in the same way, but for the seed");
    }
    const Evaluation& e = other ? *other : first;
    for (size_t c = 0; c < e.results.size(); ++c) {
      over.accuracy[c].push_back(e.results[c].score.accuracy);
      over.change[c].push_back(e.results[c].score.accuracy - e.plain().score.accuracy);
    }
  }
  return over;
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
