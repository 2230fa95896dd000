// SPDX-License-Identifier: Apache-2.0
#include "fungi/retrieve/pca_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "fungi/base/error.h"
#include "fungi/comm/comm.h"
#include "fungi/retrieve/feature_index.h"
#include "fungi/retrieve/outside.h"
#include "fungi/store/files.h"

namespace fungi {
namespace {

namespace fs = std::filesystem;

// The last name of a store's path, whatever the path looks like ("train/", "..").
std::string file_name(const fs::path& store) {
  const fs::path path = fs::absolute(store).lexically_normal();
  return (path.has_filename() ? path : path.parent_path()).filename().string() + ".npy";
}

// There while a folder is being written. Not the name that an index has for it: neither may take
// the other for its own.
constexpr char kUnfinished[] = "unfinished-pca";

// Files of an older PCA are replaced; any other is somebody's own. `vectors` are the files that
// will be written; others of the older one would not fit the new one.
void require_free(const fs::path& out, const std::set<std::string>& vectors, bool same_pca) {
  constexpr char kHint[] = "write to a new or empty folder, or to one that `pca` wrote";
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

}  // namespace

PcaFolder write_pca_folder(const std::vector<fs::path>& stores, const fs::path& out,
                           const PcaFolderOptions& o, Pool& pool) {
  std::set<std::string> names;
  for (const fs::path& store : stores)
    if (!names.insert(file_name(store)).second)
      fail(fmt::format("two stores would be written to the same file '{}'", file_name(store)),
           store.string(), "give one of them with `apply` and another folder");
  std::error_code unknown;
  const bool same_pca = fs::equivalent(o.apply, out, unknown);
  require_free(out, names, same_pca);  // fitting may take long
  std::vector<Store> opened;
  for (const fs::path& store : stores) {
    opened.push_back(Store::open(store));
    require_outside(opened.back(), out);
  }
  if (opened.empty()) fail("expected a store to fit on, found none", "stores");
  PcaFolder result{.reduction = o.apply.empty() ? Reduction::fit(opened[0], o.features, o.dim, pool,
                                                               o.ranks)
                                                : Reduction::open(o.apply)};
  const Reduction& reduction = result.reduction;
  if (!reduction.pca())
    fail("no PCA was saved here", o.apply.string(), "give the folder that `pca` wrote");
  for (const Store& store : opened) reduction.require_fits(store);  // before anything is written
  if (o.ranks && !o.ranks->first()) return result;  // one of them writes
  store::guarded([&] { fs::create_directories(out); });
  const store::Lock lock(out / kUnfinished);
  try {
    require_free(out, names, same_pca);  // another run may have been here meanwhile
  } catch (const Error&) {
    if (is_reduction(out)) fs::remove(out / kUnfinished, unknown);
    throw;
  }
  if (!same_pca) reduction.save(out);  // its only copy is not put at risk
  for (size_t i = 0; i < stores.size(); ++i) {
    result.files.push_back({stores[i], out / file_name(stores[i]), opened[i].rows()});
    write_vectors(reduction, opened[i], result.files.back().file, pool);
  }
  store::guarded([&] { fs::remove(out / kUnfinished); });
  const Pca& pca = *reduction.pca();
  double kept = 0;
  for (float v : pca.explained_variance()) kept += v;
  result.explained_share = pca.total_variance() > 0 ? kept / pca.total_variance() : 1;
  return result;
}

}  // namespace fungi
