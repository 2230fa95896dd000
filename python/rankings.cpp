// SPDX-License-Identifier: Apache-2.0
// retrieve and cka.
#include <limits>

#include "python/evaluate.h"

namespace fungi::python {
namespace {

nb::list retrieve_of(const Store& database, const Store& queries, const std::string& truth,
                     Combined c, const std::string& metric, bool exact_gradients,
                     nb::object progress) {
  Watch watch(std::move(progress));
  std::vector<std::string> early;  // they are part of the result, too
  const RankingProtocol protocol{.combinations = combinations_of(c, watch, early),
                                 .retrieval = {.metric = parse_metric(metric)},
                                 .exact_gradients = exact_gradients};
  RankingResult result;
  watch.run([&] {
    Pool pool(threads_or_default(c.threads));
    const RankingTask task = truth.empty() ? same_class_task(database, queries)
                                           : read_task(truth, database, queries);
    result = evaluate_ranking(database, queries, task, protocol, pool);
  });
  nb::list list;
  for (RankingCombination& one : result.combinations)
    for (auto& [name, score] : one.scores) {
      nb::dict d;
      d["features"] = one.features;
      d["relevance"] = name;
      d["map"] = score.map;
      d["precision_at"] = protocol.retrieval.precision_at;
      d["precision"] = score.precision;
      d["queries"] = score.queries;
      d["queries_left_out"] = score.left_out;
      d["notes"] = worded_list(result.notes);
      d["pca_applied"] = one.pca_applied;
      d["reduced"] = one.reduced;
      std::vector<double> each;
      for (const auto& query : score.by_query)
        each.push_back(query ? query->average_precision
                             : std::numeric_limits<double>::quiet_NaN());
      d["average_precision"] = to_numpy(std::move(each));
      list.append(d);
    }
  return list;
}

nb::tuple cka_of(const Store& store, const std::string& features, unsigned threads) {
  Watch watch;
  CkaResult result;
  watch.run([&] {
    Pool pool(threads_or_default(threads));
    result = evaluate_cka(store, features, pool);
  });
  return nb::make_tuple(to_list(result.blocks), to_numpy(std::move(result.cka)));
}

}  // namespace

void add_rankings(nb::module_& m) {
  m.def("retrieve", retrieve_of, nb::arg("database"), nb::arg("queries"), nb::arg("truth"),
        nb::arg("combined"), nb::arg("metric"), nb::arg("exact_gradients"),
        nb::arg("progress").none());
  m.def("cka", cka_of, nb::arg("store"), nb::arg("features"), nb::arg("threads"));
}

}  // namespace fungi::python
