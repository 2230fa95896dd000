// SPDX-License-Identifier: Apache-2.0
// fungi pca TRAIN [STORE...] --dim N -o FOLDER: a PCA fitted on the first store, and the rows of
// all of them through it as .npy.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>

#include "app/features.h"
#include "fungi/feature/reduction.h"
#include "fungi/retrieve/feature_index.h"
#include "fungi/store/files.h"

namespace fungi::app {
namespace {

namespace fs = std::filesystem;

struct Arguments {
  std::vector<std::string> stores;
  std::string features, apply, out;
  size_t dim = 512;
  ThreadsOption threads;
  bool json = false;
};

// The last name of a store's path, whatever the path looks like ("train/", "..").
std::string file_name(const std::string& store) {
  const fs::path path = fs::absolute(store).lexically_normal();
  return (path.has_filename() ? path : path.parent_path()).filename().string() + ".npy";
}

// There while a folder is being written. Not the name that an index has for it: neither may take
// the other for its own.
constexpr char kUnfinished[] = "unfinished-pca";

// Files of an older PCA are replaced; any other is somebody's own. `vectors` are the files that
// will be written; others of the older one would not fit the new one.
void require_free(const fs::path& out, const std::set<std::string>& vectors, bool same_pca) {
  constexpr char kHint[] = "write to a new or empty folder, or to one that 'fungi pca' wrote";
  std::error_code error;
  if (!fs::exists(out, error)) return;
  if (!fs::is_directory(out, error)) fail("expected a folder, found a file", out.string(), kHint);
  if (is_store(out) || is_index(out))
    fail("the folder holds a store or an index", out.string(), kHint);
  const bool older = is_reduction(out) || fs::exists(out / kUnfinished, error);
  for (auto it = fs::directory_iterator(out, error); !error && it != fs::directory_iterator();
       it.increment(error)) {
    std::string name = it->path().filename().string();
    if (name.ends_with(".tmp")) name.resize(name.size() - 4);
    const bool own = std::find(std::begin(kReductionFiles), std::end(kReductionFiles), name) !=
                         std::end(kReductionFiles) ||
                     name == kUnfinished;
    if (!older || !(own || name.ends_with(".npy")))
      fail(fmt::format("the folder holds other files than those of a PCA: '{}'",
                       it->path().filename().string()),
           out.string(), kHint);
    if (!own && !same_pca && !vectors.contains(name))
      fail(fmt::format("the folder holds '{}', vectors of the PCA that would be replaced", name),
           out.string(), "name its store, too, remove the file, or write to another folder");
  }
  if (error) fail("cannot be read: " + error.message(), out.string(), "check its permissions");
}

int run(const Arguments& a) {
  Pool pool(a.threads.count());
  std::set<std::string> names;
  for (const std::string& store : a.stores)
    if (!names.insert(file_name(store)).second)
      fail(fmt::format("two stores would be written to the same file '{}'", file_name(store)),
           store, "give one of them with --apply and another folder");
  std::error_code unknown;
  const bool same_pca = fs::equivalent(a.apply, a.out, unknown);
  require_free(a.out, names, same_pca);  // fitting may take long
  std::vector<Store> stores;
  for (const std::string& store : a.stores) {
    stores.push_back(Store::open(store));
    require_outside(stores.back(), a.out);
  }
  const Reduction reduction = a.apply.empty() ? Reduction::fit(stores[0], a.features, a.dim, pool)
                                              : Reduction::open(a.apply);
  if (!reduction.pca())
    fail("no PCA was saved here", a.apply, "give the folder that 'fungi pca' wrote");
  for (const Store& store : stores) reduction.require_fits(store);  // before anything is written
  store::guarded([&] { fs::create_directories(a.out); });
  const store::Lock lock(fs::path(a.out) / kUnfinished);
  try {
    require_free(a.out, names, same_pca);  // another run may have been here meanwhile
  } catch (const Error&) {
    if (is_reduction(a.out)) fs::remove(fs::path(a.out) / kUnfinished, unknown);
    throw;
  }
  if (!same_pca) reduction.save(a.out);  // its only copy is not put at risk

  const Pca& pca = *reduction.pca();
  double kept = 0;
  for (float v : pca.explained_variance()) kept += v;
  const double share = pca.total_variance() > 0 ? kept / pca.total_variance() : 1;
  nlohmann::json files = nlohmann::json::array();
  std::vector<std::vector<std::string>> table;
  for (size_t i = 0; i < stores.size(); ++i) {
    const fs::path file = fs::path(a.out) / file_name(a.stores[i]);
    write_vectors(reduction, stores[i], file, pool);
    files.push_back({{"store", a.stores[i]},
                     {"file", file.string()},
                     {"rows", stores[i].rows()},
                     {"columns", reduction.output_width()}});
    table.push_back({file.string(), std::to_string(stores[i].rows()),
                     std::to_string(reduction.output_width())});
  }
  store::guarded([&] { fs::remove(fs::path(a.out) / kUnfinished); });
  if (a.json) {
    const nlohmann::json out{
        {"features", reduction.features()},  {"input_columns", reduction.input_width()},
        {"dim", reduction.output_width()},   {"fitted_rows", pca.fitted_rows()},
        {"explained_variance_share", share}, {"files", files}};
    print_json(out);
  } else {
    print_table({"file", "rows", "columns"}, table);
    fmt::print("{}: {} columns to {}, fitted on {} rows; {} % of the variance kept\n",
               reduction.features(), reduction.input_width(), reduction.output_width(),
               pca.fitted_rows(), percent(share));
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
  auto* features = self->add_option("--features", a->features,
                                    "Blocks joined with +, e.g. embedding+kl; default: all");
  auto* dim = self->add_option("--dim", a->dim, "Columns to shrink to: fewer than rows and columns")
                  ->capture_default_str()
                  ->type_name(kCount);
  self->add_option("--apply", a->apply, "Use the PCA of this folder instead of fitting one")
      ->excludes(features)
      ->excludes(dim);
  a->threads.add_to(*self);
  self->add_flag("--json", a->json, "Print JSON");
  return [a] { return run(*a); };
}

}  // namespace fungi::app
