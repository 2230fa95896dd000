// SPDX-License-Identifier: Apache-2.0
// knn, linear and kmeans: whole evaluations of stores.
#include "python/evaluate.h"

namespace fungi::python {

CombinationOptions combinations_of(const Combined& c, Watch& watch,
                                   std::vector<std::string>& notes) {
  return {.features = c.features,
          .combine = c.all ? Combine::all : Combine::steps,
          .rows = {.pca = c.pca,
                   .memory_limit = c.memory ? c.memory : default_memory_limit(),
                   .reduce = parse_reduce(c.reduce),
                   .seed = c.seed.value_or(RowOptions{}.seed)},
          .note = [&notes](const std::string& note) { notes.push_back(note); },
          .progress = [&watch](const std::string&, size_t done,
                               size_t total) { watch.report_or_end("evaluate", done, total); }};
}

namespace {

nb::dict knn_of(const Store& train, const Store& test, Combined c, std::optional<size_t> k,
                const std::string& vote, const std::string& metric, size_t shots,
                const std::string& sampling, bool exact_gradients, nb::object progress) {
  Watch watch(std::move(progress));
  std::vector<std::string> notes;
  const KnnProtocol protocol{.combinations = combinations_of(c, watch, notes),
                             .k = k,
                             .vote = vote == "uniform" ? Vote::uniform : Vote::distance,
                             .metric = parse_metric(metric),
                             .shots = shots,
                             .sampling = parse_sampling(sampling),
                             .sampling_seed = c.seed.value_or(KnnProtocol{}.sampling_seed),
                             .exact_gradients = exact_gradients};
  KnnResult result;
  watch.run([&] {
    Pool pool(threads_or_default(c.threads));
    result = evaluate_knn(train, test, protocol, pool);
  });
  nb::list list;
  for (KnnCombination& one : result.combinations) {
    nb::dict d;
    d["features"] = one.features;
    d["accuracy"] = one.score.accuracy;
    d["mean_per_class_accuracy"] = one.score.mean_per_class;
    d["standard_error"] = one.standard_error;
    d["auc"] = one.score.auc ? nb::object(nb::float_(*one.score.auc)) : nb::none();
    d["columns"] = one.columns;
    d["pca_applied"] = one.pca_applied;
    d["reduced"] = one.reduced;
    d["k"] = result.k;
    d["train_rows"] = result.train_rows;
    d["test_rows"] = result.test_rows;
    d["predicted"] = to_numpy(std::move(one.score.votes.predicted));
    list.append(d);
  }
  nb::dict out;
  out["scores"] = list;
  out["notes"] = worded_list(notes);
  return out;
}

nb::dict linear_of(const Store& train, const Store& test, const Store* validation, Combined c,
                   std::vector<double> lambdas, size_t shots, nb::object progress) {
  Watch watch(std::move(progress));
  std::vector<std::string> notes;
  LinearProtocol protocol{.combinations = combinations_of(c, watch, notes)};
  if (!lambdas.empty()) protocol.probe.lambdas = std::move(lambdas);
  protocol.probe.shots = shots;
  if (c.seed) protocol.probe.seed = *c.seed;
  LinearResult result;
  watch.run([&] {
    Pool pool(threads_or_default(c.threads));
    result = evaluate_linear(train, test, validation, protocol, pool);
  });
  nb::list list;
  for (LinearCombination& one : result.combinations) {
    nb::dict d;
    d["features"] = one.features;
    d["accuracy"] = one.score.accuracy;
    d["standard_error"] = one.standard_error;
    d["mean_per_class_accuracy"] = one.score.mean_per_class;
    d["columns"] = one.columns;
    d["train_rows"] = one.score.fitted_rows;
    d["test_rows"] = result.test_rows;
    d["lambda_"] = one.score.lambda;
    d["validation"] = one.score.validation;
    d["pca_applied"] = one.score.pca_applied;
    d["reduced"] = one.reduced;
    d["converged"] = one.score.model.converged;
    d["predicted"] = to_numpy(std::move(one.score.predicted));
    d["weights"] = to_numpy(std::move(one.score.model.weights));
    list.append(d);
  }
  nb::dict out;
  out["scores"] = list;
  out["notes"] = worded_list(notes);
  return out;
}

nb::dict kmeans_of(const Store& store, Combined c, std::optional<uint64_t> seed,
                   nb::object progress) {
  Watch watch(std::move(progress));
  std::vector<std::string> notes;
  KMeansProtocol protocol{.combinations = combinations_of(c, watch, notes)};
  if (seed) protocol.kmeans.seed = *seed;
  if (c.seed) protocol.kmeans.seed = *c.seed;
  KMeansResult result;
  watch.run([&] {
    Pool pool(threads_or_default(c.threads));
    result = evaluate_kmeans(store, protocol, pool);
  });
  nb::list list;
  for (KMeansCombination& one : result.combinations) {
    nb::dict d;
    d["features"] = one.features;
    d["overlap"] = one.score.overlap.accuracy;
    d["clusters"] = one.score.overlap.cluster_sizes.size();
    d["rows"] = result.rows;
    d["pca_applied"] = one.pca_applied;
    d["reduced"] = one.reduced;
    d["assignment"] = to_numpy(std::move(one.score.kmeans.assignment));
    d["label_of_cluster"] = to_numpy(std::move(one.score.overlap.label_of_cluster));
    d["centres"] = to_numpy(std::move(one.score.kmeans.centres));
    list.append(d);
  }
  nb::dict out;
  out["scores"] = list;
  out["notes"] = worded_list(notes);
  return out;
}

nb::dict weighted(const WeightedFeatures& f) {
  nb::dict d;
  d["features"] = f.features;
  d["accuracy"] = f.accuracy;
  d["gain"] = f.gain;
  d["gain_error"] = f.gain_error;
  return d;
}

nb::dict stable(const StableFeatures& f) {
  nb::dict d;
  d["features"] = f.features;
  d["agreed"] = f.agreed;
  d["disputed"] = f.disputed;
  d["gain"] = f.gain;
  d["gain_error"] = f.gain_error;
  return d;
}

nb::dict choose_stable_of(const Store& train, const Store& draw, const std::string& features,
                          std::vector<double> weights, size_t k, size_t most_rows, uint64_t seed,
                          unsigned threads, nb::object progress) {
  Watch watch(std::move(progress));
  ChooseOptions options{.features = features,
                        .k = k,
                        .most_rows = most_rows,
                        .seed = seed,
                        .progress = watch.ending_reporter("choose")};
  if (!weights.empty()) options.weights = std::move(weights);
  StableChoice choice;
  watch.run([&] {
    Pool pool(threads_or_default(threads));
    choice = choose_stable_features(train, draw, options, pool);
  });
  nb::list best;
  for (const StableFeatures& f : choice.best_of_blocks) best.append(stable(f));
  nb::dict d;
  d["rows"] = choice.rows;
  d["k"] = choice.k;
  d["chosen"] = stable(choice.chosen);
  d["best_of_blocks"] = best;
  d["notes"] = worded_list(choice.notes);
  return d;
}

nb::dict choose_of(const Store& train, const std::string& features, std::vector<double> weights,
                   size_t k, size_t folds, size_t most_rows, uint64_t seed, unsigned threads,
                   nb::object progress) {
  Watch watch(std::move(progress));
  ChooseOptions options{.features = features,
                        .k = k,
                        .folds = folds,
                        .most_rows = most_rows,
                        .seed = seed,
                        .progress = watch.ending_reporter("choose")};
  if (!weights.empty()) options.weights = std::move(weights);
  Choice choice;
  watch.run([&] {
    Pool pool(threads_or_default(threads));
    choice = choose_features(train, options, pool);
  });
  nb::list best;
  for (const WeightedFeatures& f : choice.best_of_blocks) best.append(weighted(f));
  nb::dict d;
  d["rows"] = choice.rows;
  d["k"] = choice.k;
  d["first"] = weighted(choice.first);
  d["chosen"] = weighted(choice.chosen);
  d["equal"] = choice.equal.features.empty() ? nb::object(nb::none()) : weighted(choice.equal);
  d["expected_accuracy"] = choice.expected;
  d["expected_gain"] = choice.expected_gain;
  d["expected_error"] = choice.expected_error;
  d["best_of_blocks"] = best;
  d["notes"] = worded_list(choice.notes);
  return d;
}

}  // namespace

void add_evaluations(nb::module_& m) {
  nb::class_<Combined>(m, "Combined")
      .def(nb::init<std::string, bool, size_t, size_t, unsigned, std::string,
                    std::optional<uint32_t>>(),
           nb::arg("features"), nb::arg("all_combinations"), nb::arg("pca"), nb::arg("memory"),
           nb::arg("threads"), nb::arg("reduce"), nb::arg("seed").none());
  m.def("check_seeds", [](const std::vector<uint32_t>& seeds, bool stores, bool draws,
                          const std::string& hint) {
    check_seeds(seeds, {.stores = stores, .draws = draws, .hint = hint.c_str()});
  });
  m.def("names_seed", [](const std::string& path) { return names_seed(path); });
  m.def("with_seed",
        [](const std::string& path, uint32_t seed) { return with_seed(path, seed); });
  m.def("spread_of", [](const std::vector<double>& values) {
    const Spread spread = spread_of(values);
    return nb::make_tuple(spread.mean, spread.deviation);
  });
  m.def("knn", knn_of, nb::arg("train"), nb::arg("test"), nb::arg("combined"),
        nb::arg("k").none(), nb::arg("vote"), nb::arg("metric"), nb::arg("shots"),
        nb::arg("sampling"), nb::arg("exact_gradients"), nb::arg("progress").none());
  m.def("linear", linear_of, nb::arg("train"), nb::arg("test"), nb::arg("validation").none(),
        nb::arg("combined"), nb::arg("lambdas"), nb::arg("shots"), nb::arg("progress").none());
  m.def("kmeans", kmeans_of, nb::arg("store"), nb::arg("combined"), nb::arg("seed").none(),
        nb::arg("progress").none());
  m.def("choose", choose_of, nb::arg("train"), nb::arg("features"), nb::arg("weights"),
        nb::arg("k"), nb::arg("folds"), nb::arg("most_rows"), nb::arg("seed"), nb::arg("threads"),
        nb::arg("progress").none());
  m.def("choose_stable", choose_stable_of, nb::arg("train"), nb::arg("draw"), nb::arg("features"),
        nb::arg("weights"), nb::arg("k"), nb::arg("most_rows"), nb::arg("seed"), nb::arg("threads"),
        nb::arg("progress").none());
}

}  // namespace fungi::python
