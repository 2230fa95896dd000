// SPDX-License-Identifier: Apache-2.0
#include "fungi/feature/reduction.h"

#include <fmt/format.h>

#include <algorithm>

#include "fungi/base/atomic_file.h"
#include "fungi/base/json.h"
#include "fungi/checkpoint/npy.h"
#include "fungi/feature/comparable.h"
#include "fungi/feature/feature_rows.h"
#include "fungi/store/files.h"
#include "fungi/store/text.h"

namespace fungi {
namespace {

namespace fs = std::filesystem;
using store::Json;

constexpr int kVersion = 1;
constexpr const char *kFormat = "fungi vectors", *kDescription = "features.json",
                     *kStore = "store.json", *kPca = "pca.npz";

}  // namespace

size_t Reduction::input_width() const { return total_width(blocks_); }

std::string Reduction::features() const {
  return features_of(blocks_);
}

Reduction Reduction::fit(const Store& store, std::string_view features, size_t dim, Pool& pool,
                         Comm* ranks) {
  Reduction reduction;
  reduction.origin_ = store.manifest();
  reduction.blocks_ = store.select(features);
  if (dim == 0) return reduction;
  const size_t width = reduction.input_width();
  if (!Pca::applies(dim, store.rows(), width))
    fail(fmt::format(
             "expected more than {} rows and columns for a PCA of {}, found {} rows of {} columns",
             dim, dim, store.rows(), width),
         store.folder().string(),
         fmt::format("ask for fewer than {} columns", std::min(store.rows(), width)));
  reduction.pca_ = fit_pca(store, reduction.blocks_, dim, pool, {}, ranks);
  return reduction;
}

void Reduction::require_fits(const Store& other) const {
  require_comparable(origin_, other.manifest(), names_of(blocks_), true, other.folder().string(),
                     "extract it with `like` the store that the vectors were fitted on");
}

Matrix<float> Reduction::apply(Matrix<float> joined, Pool& pool) const {
  if (joined.cols() != input_width())
    fail(
        fmt::format("expected {} columns ({}), found {}", input_width(), features(), joined.cols()),
        "rows", "join the blocks that the vectors are made of: Reduction::blocks()");
  return pca_ ? pca_->transform(joined, pool) : std::move(joined);
}

void Reduction::each_part(const Store& store, Pool& pool,
                          const std::function<void(size_t, View<const float>)>& visit) const {
  if (!visit) fail("expected a function to visit, found none", "Reduction::each_part");
  require_fits(store);
  each_joined_part(store, blocks_, [&](size_t first, Matrix<float> part) {
    visit(first, apply(std::move(part), pool));
  });
}

void Reduction::save(const fs::path& folder) const {
  const fs::path waiting = folder / (std::string(kPca) + ".new");
  store::guarded([&] { fs::create_directories(folder); });
  if (pca_) pca_->save(waiting);  // a full disk costs an older one nothing
  store::guarded([&] {
    fs::remove(folder / kDescription);  // it comes last: a folder with it is whole
    if (pca_)
      fs::rename(waiting, folder / kPca);
    else
      fs::remove(folder / kPca);
  });
  write_file_atomically(folder / kStore, to_json(origin_));
  const Json description{{"format", kFormat},
                         {"version", kVersion},
                         {"features", features()},
                         {"columns", output_width()},
                         {"pca", pca_.has_value()}};
  write_file_atomically(folder / kDescription, store::dump(description, 1) + "\n");
}

bool is_reduction(const fs::path& folder) {
  std::error_code unknown;
  if (!fs::is_regular_file(folder / kDescription, unknown)) return false;
  const Json json = parse_json(store::read_text(folder / kDescription));
  return json.is_object() && json.value("format", Json()) == kFormat;
}

Reduction Reduction::open(const fs::path& folder) {
  const std::string place = (folder / kDescription).string();
  std::error_code why;
  const bool there = fs::exists(folder / kDescription, why);
  if (why)
    fail("cannot be looked at: " + why.message(), place, "check the path and its permissions");
  if (!there)
    fail("there is no features.json: no PCA or index of a store was saved here", folder.string(),
         "give the folder that `pca` or `index` wrote");
  const Json json = store::parse(store::read_text(folder / kDescription), place);
  const auto damaged = [&](const std::string& what) { fail(what, place, "make it again"); };
  if (!json.is_object() || json.value("format", Json()) != kFormat)
    damaged("this does not describe vectors of a store");
  if (json.value("version", Json()) != kVersion)
    damaged(fmt::format("expected version {}", kVersion));
  const Json features = json.value("features", Json()), pca = json.value("pca", Json());
  if (!features.is_string() || !pca.is_boolean())
    damaged("expected the fields 'features' and 'pca'");
  Reduction reduction;
  reduction.origin_ = parse_manifest(store::read_text(folder / kStore), (folder / kStore).string());
  for (const std::string& part : split_features(features.get_ref<const std::string&>())) {
    const auto [weight, name] = split_weight(part, place);
    const StoreBlock* block = find_block(reduction.origin_.spec.blocks, name);
    if (!block) damaged(fmt::format("the store has no block '{}'", name));
    reduction.blocks_.push_back(*block);
    reduction.blocks_.back().weight = weight.value_or(1);
  }
  if (pca.get<bool>()) reduction.pca_ = Pca::load(folder / kPca);
  if (reduction.pca_ && reduction.pca_->input_width() != reduction.input_width())
    fail(fmt::format("expected a PCA of {} columns, found one of {}", reduction.input_width(),
                     reduction.pca_->input_width()),
         (folder / kPca).string(), "make it again");
  return reduction;
}

void write_vectors(const Reduction& reduction, const Store& store, const fs::path& npy,
                   Pool& pool) {
  AtomicFile file(npy);
  const std::string header = npy_header("<f4", {store.rows(), reduction.output_width()});
  file.write(std::as_bytes(std::span(header)));
  reduction.each_part(store, pool, [&](size_t, View<const float> part) {
    file.write(std::as_bytes(std::span(part.data, part.rows * part.cols)));
  });
  file.finish();
}

}  // namespace fungi
