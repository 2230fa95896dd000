// SPDX-License-Identifier: Apache-2.0
// fungi pca TRAIN [STORE...] --dim N -o FOLDER: a PCA fitted on the first store, and the rows of
// all of them through it as .npy.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "app/features.h"
#include "app/ranks.h"
#include "fungi/retrieve/pca_folder.h"

namespace fungi::app {
namespace {

struct Arguments {
  std::vector<std::string> stores;
  std::string apply, out;
  PcaFolderOptions pca;
  ThreadsOption threads;
  bool json = false;
};

int run(Arguments& a) {
  Pool pool(a.threads.count());
  a.pca.apply = a.apply;
  const PcaFolder made = write_pca_folder({a.stores.begin(), a.stores.end()}, a.out, a.pca, pool);
  const Reduction& reduction = made.reduction;
  nlohmann::json files = nlohmann::json::array();
  std::vector<std::vector<std::string>> table;
  for (const PcaFolder::Vectors& one : made.files) {
    files.push_back({{"store", one.store.string()},
                     {"file", one.file.string()},
                     {"rows", one.rows},
                     {"columns", reduction.output_width()}});
    table.push_back(
        {one.file.string(), std::to_string(one.rows), std::to_string(reduction.output_width())});
  }
  const size_t fitted_rows = reduction.pca()->fitted_rows();
  if (a.json) {
    const nlohmann::json out{{"features", reduction.features()},
                             {"input_columns", reduction.input_width()},
                             {"dim", reduction.output_width()},
                             {"fitted_rows", fitted_rows},
                             {"explained_variance_share", made.explained_share},
                             {"files", files}};
    print_json(out);
  } else {
    print_table({"file", "rows", "columns"}, table);
    fmt::print("{}: {} columns to {}, fitted on {} rows; {} % of the variance kept\n",
               reduction.features(), reduction.input_width(), reduction.output_width(), fitted_rows,
               percent(made.explained_share));
  }
  return kOk;
}

}  // namespace

Verb add_pca(CLI::App& parent, CLI::App*& self) {
  self = parent.add_subcommand(
      "pca", "Fit a PCA on a store and write the rows of stores through it as .npy");
  auto a = std::make_shared<Arguments>();
  self->add_option("stores", a->stores, "Stores; the PCA is fitted on the first one")->required();
  self->add_option("-o,--output", a->out,
                   "Folder for the PCA and one .npy per store, named after it; an older one is "
                   "replaced")
      ->required()
      ->type_name("FOLDER");
  auto* features = self->add_option("--features", a->pca.features,
                                    "Blocks joined with +, e.g. embedding+kl; default: all");
  auto* dim =
      self->add_option("--dim", a->pca.dim, "Columns to shrink to: fewer than rows and columns")
          ->capture_default_str()
          ->type_name(kCount);
  self->add_option("--apply", a->apply, "Use the PCA of this folder instead of fitting one")
      ->excludes(features)
      ->excludes(dim);
  a->threads.add_to(*self);
  self->add_flag("--json", a->json, "Print JSON");
  return [a] {
    return on_equal_ranks([a](Comm* ranks) {
      a->pca.ranks = ranks;
      return run(*a);
    });
  };
}

}  // namespace fungi::app
