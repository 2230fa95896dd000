// SPDX-License-Identifier: Apache-2.0
// fungi index STORE -o INDEX: a searchable folder, and how much of the exact answer it finds.
#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "app/features.h"
#include "app/progress.h"
#include "fungi/retrieve/feature_index.h"

namespace fungi::app {
namespace {

struct Arguments {
  std::string store, out, kind = "hnsw", metric = "euclidean";
  FeatureIndexOptions index;
  SearchOptions search;
  size_t k = 10, sample = 1000;
  ThreadsOption threads;
  bool json = false;
};

uintmax_t folder_bytes(const std::filesystem::path& folder) {
  uintmax_t bytes = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) bytes += entry.file_size();
  return bytes;
}

int run(Arguments a) {
  using Clock = std::chrono::steady_clock;
  const auto seconds_since = [](Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  a.index.index.kind = parse_index_kind(a.kind);
  a.index.index.metric = parse_metric(a.metric);
  const Store store = Store::open(a.store);
  FeatureIndex::require_can_save(a.out);
  require_outside(store, a.out);
  Pool pool(a.threads.count());
  const auto start = Clock::now();
  a.index.index.progress = Progress::of_long_work("index", a.json);
  const FeatureIndex built = FeatureIndex::build(store, a.index, pool);
  a.index.index.progress = {};  // ends its line
  built.save(a.out);
  const double build_seconds = seconds_since(start);
  const size_t rows = store.rows(), k = std::min(a.k, rows - 1), sample = std::min(a.sample, rows);
  const auto measuring = Clock::now();
  const double recall = built.recall(k, sample, pool, a.search);
  const double recall_seconds = seconds_since(measuring);
  const Reduction& reduction = built.reduction();
  const uintmax_t bytes = folder_bytes(a.out);
  if (a.json) {
    const nlohmann::json out{{"index", a.out},
                             {"store", a.store},
                             {"kind", a.kind},
                             {"metric", a.metric},
                             {"features", reduction.features()},
                             {"rows", rows},
                             {"columns", reduction.output_width()},
                             {"pca", a.index.pca},
                             {"k", k},
                             {"sample", sample},
                             {"recall", recall},
                             {"build_seconds", build_seconds},
                             {"recall_seconds", recall_seconds},
                             {"bytes", bytes}};
    print_json(out);
  } else {
    fmt::print(
        "{}: {} index of {} rows, {} columns of {}{}, {}\nbuilt in {}, {}\n", shown(a.out), a.kind,
        rows, reduction.output_width(), reduction.features(), reduction.pca() ? " after PCA" : "",
        a.metric,
        build_seconds < 10 ? fmt::format("{:.2f} s", build_seconds) : human_seconds(build_seconds),
        human_bytes(double(bytes)));
    if (built.index().kind() == IndexKind::exact)
      fmt::print("every row is compared: nothing is missed\n");
    else
      fmt::print(
          "recall@{} {:.4f}: the share of true neighbours found, over {} rows as queries, "
          "themselves left out\n",
          k, recall, sample);
  }
  return kOk;
}

}  // namespace

Verb add_index(CLI::App& parent, CLI::App*& self) {
  self = parent.add_subcommand("index", "Build a search index of a store and measure its recall");
  auto a = std::make_shared<Arguments>();
  self->add_option("store", a->store, "Store to be searched")->required();
  self->add_option("-o,--output", a->out, "The index: a folder; an older index there is replaced")
      ->required()
      ->type_name("INDEX");
  self->add_option("--kind", a->kind, "exact, hnsw (a graph) or ivf (lists around centres)")
      ->capture_default_str()
      ->check(CLI::IsMember({"exact", "hnsw", "ivf"}));
  self->add_option("--features", a->index.features,
                   "Blocks joined with +, e.g. embedding+kl; default: all");
  self->add_option("--pca", a->index.pca,
                   "Shrink to so many columns, fewer than rows and columns; 0 = never")
      ->capture_default_str();
  self->add_option("--metric", a->metric, "euclidean, inner_product or cosine")
      ->capture_default_str()
      ->check(metric_name());
  self->add_option("--links", a->index.index.links, "hnsw: links per row")
      ->capture_default_str()
      ->check(CLI::Range(2u, 1000u));
  self->add_option("--build-effort", a->index.index.build_effort,
                   "hnsw: candidates looked at per inserted row")
      ->capture_default_str();
  self->add_option("--lists", a->index.index.lists, "ivf: lists; 0 = 4 times the root of the rows")
      ->capture_default_str();
  self->add_option("--seed", a->index.index.seed, "Seed of levels and centres")
      ->capture_default_str();
  self->add_option("-k", a->k, "Neighbours for the recall")
      ->capture_default_str()
      ->type_name(kCount);
  self->add_option("--sample", a->sample, "Rows that are queries for the recall")
      ->capture_default_str()
      ->type_name(kCount);
  self->add_option("--effort", a->search.effort,
                   "hnsw: candidates kept in the recall's searches; 0 = 4 times k, at least 64")
      ->capture_default_str();
  self->add_option("--probes", a->search.probes,
                   "ivf: lists looked into in the recall's searches; 0 = a sixteenth, at least 8")
      ->capture_default_str();
  a->threads.add_to(*self);
  self->add_flag("--json", a->json, "Print JSON");
  self->parse_complete_callback([a, self] {
    if (a->kind == "exact" && self->get_option("--seed")->count() > 0)
      throw CLI::ValidationError("--seed", "the kind 'exact' draws nothing: leave it out");
    for (const auto& [kind, options] :
         {std::pair("hnsw", std::vector{"--links", "--build-effort", "--effort"}),
          std::pair("ivf", std::vector{"--lists", "--probes"})})
      for (const char* option : options)
        if (a->kind != kind && self->get_option(option)->count() > 0)
          throw CLI::ValidationError(
              option, fmt::format("is a setting of --kind {}; --kind {} has none like it: leave it "
                                  "out, or build that kind",
                                  kind, a->kind));
  });
  return [a] { return run(*a); };
}

}  // namespace fungi::app
