// SPDX-License-Identifier: Apache-2.0
#include "app/reproduce_job.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "app/progress.h"
#include "app/reproduce_slice.h"
#include "app/words.h"
#include "fungi/base/atomic_file.h"
#include "fungi/store/files.h"

namespace fungi::app {

namespace fs = std::filesystem;

fs::path work_folder(const RunOptions& options) {
  fs::path in = options.work;
  if (options.limit) in /= fmt::format("limit-{}", options.limit);
  return in;
}

fs::path stores_folder(const PaperTable& table, const PaperBackbone& facts, const PaperData& data,
                       const RunOptions& options, ProjectionKind projection) {
  constexpr uint64_t kUsualSeed = 42;
  const std::vector<std::string> objectives = objectives_of(table);
  const bool plain = table.layers.empty() &&
                     std::none_of(objectives.begin(), objectives.end(),
                                  [](const auto& o) { return o.find(':') != std::string::npos; });
  std::string name = plain ? fmt::format("{}", fmt::join(objectives, "-")) : table.name;
  if (projection != ProjectionKind::sign) name += fmt::format("-{}", to_string(projection));
  if (options.seed != kUsualSeed) name += fmt::format("-seed{}", options.seed);
  return work_folder(options) / facts.key / data.key / name;
}

const std::map<std::string, ProjectionKind>& projection_settings() {
  static const std::map<std::string, ProjectionKind> kinds = {
      {"binary", ProjectionKind::sign},
      {"gaussian", ProjectionKind::gaussian},
      {"sparse", ProjectionKind::sparse}};
  return kinds;
}

std::vector<ProjectionKind> projections_of(const PaperTable& table) {
  std::vector<ProjectionKind> kinds;
  for (const auto& [setting, kind] : projection_settings())
    for (const PaperCell& c : cells_of(table))
      if (c.setting == setting && (kinds.empty() || kinds.back() != kind)) kinds.push_back(kind);
  if (kinds.empty()) kinds = {ProjectionKind::sign};
  return kinds;
}

std::vector<std::pair<std::string, const FoundSplit*>> splits_of(const PaperTable& table,
                                                                 const PaperData& data,
                                                                 const FoundData& found) {
  if (data.retrieval) return {{"all", &found.train}};
  std::vector<std::pair<std::string, const FoundSplit*>> splits{{"train", &found.train}};
  if (table.protocol == Protocol::clusters || table.protocol == Protocol::cka) return splits;
  splits.emplace_back("test", &found.test);
  if (table.protocol == Protocol::linear && !found.validation.path.empty())
    splits.emplace_back("validation", &found.validation);
  return splits;
}

Backbone open_backbone(const PaperTable& table, const PaperBackbone& facts, const fs::path& path,
                       const PaperData* data, const RunOptions& run, Pool& pool) {
  BackboneOptions o;
  o.precision = run.precision;
  o.layers = table.layers;
  o.stated_facts = facts.facts;
  if (data) o.stated_facts.insert(data->facts.begin(), data->facts.end());
  if (run.preset == Preset::paper)
    o.stated_facts.erase("activation");  // the preset has its own: backbone_for()
  ExtractorOptions looks;
  looks.objectives = objectives_of(table), looks.preset = run.preset;
  return Backbone::open(path, backbone_for(looks, std::move(o)), pool);
}

fs::path Job::folder() const { return stores_folder(table, facts, data, options, projection); }

// Errors advise what other verbs can do about them; this one has none of their options, and its
// numbers of neighbours and shots are the paper's.
Error Job::with_own_hint(const Error& e, const fs::path& computed) const {
  const auto advises = [&](const char* what) { return e.hint().find(what) != std::string::npos; };
  if (e.place() == "k" || e.place() == "shots")
    return Error(
        e.message(), e.place(),
        fmt::format("the table asks for so many: it takes more {}", data.texts   ? "texts"
                                                                    : data.sound ? "sounds"
                                                                                 : "pictures"));
  if (advises("`validation="))
    return Error(e.message(), e.place(), "add a folder val to the data set, or more pictures");
  if (advises("`kind="))
    return Error(e.message(), e.place(),
                 "give every sample a class folder, and delete " + computed.string());
  if (advises("`prune`") || advises("`overwrite`"))
    return Error(e.message(), e.place(),
                 fmt::format("delete {}, or choose another --work", computed.string()));
  return e;
}

std::unique_ptr<Dataset> Job::open(const FoundSplit& from, DatasetOptions wanted) const {
  wanted.split = from.split, wanted.fold = from.fold, wanted.class_names = data.classes;
  auto all = open_dataset(from.path, wanted);
  if (options.limit == 0 || options.limit >= all->size()) return all;
  if (data.retrieval) {
    const RevisitedTruth some = slice_truth(read_revisited(found.truth), options.limit);
    std::vector<std::string> names = some.database;
    names.insert(names.end(), some.queries.begin(), some.queries.end());
    return slice(std::move(all), from.path, names);
  }
  return slice(std::move(all), from.path, options.limit);
}

fs::path Job::truth() const {
  if (!options.limit) return found.truth;
  const fs::path own = folder() / "gnd.json";
  write_file_atomically(own, to_json(slice_truth(read_revisited(found.truth), options.limit)));
  return own;
}

ExtractorOptions Job::extractor() const {
  ExtractorOptions o;
  o.objectives = objectives_of(table);
  o.preset = options.preset;
  o.seed = options.seed;
  o.projection = projection;
  return o;
}

Store Job::extract(const FoundSplit& from, const std::string& name, const fs::path& like) {
  // What depends on the training store goes with it.
  try {
    return extract_to(folder() / name, from, name, like);
  } catch (const Error& e) {
    throw with_own_hint(e, like.empty() ? folder() : folder() / name);
  }
}

Store Job::extract_to(const fs::path& to, const FoundSplit& from, const std::string& name,
                      const fs::path& like) {
  store::guarded([&] { fs::create_directories(to.parent_path()); });
  Extractor extractor(backbone, this->extractor(), pool);
  const auto dataset = open(from, extractor.data());
  StoreWriter writer(to, extractor.spec(), {.shard_size = extractor.shard_size(), .like = like});
  const std::string what = fmt::format("{} {} {}", facts.key, data.key, name);
  {
    Progress progress(what, options.quiet);
    ExtractRun run;
    run.support_progress = [&](size_t done, size_t total) {
      progress.turn_to(what + " support");
      progress.update(done, total);
    };
    run.rewrite_progress = [&](size_t done, size_t total) {
      progress.turn_to(what + " rewrite", "rows");
      progress.update(done, total);
    };
    run.progress = [&](const ExtractProgress& p) {
      progress.turn_to(what);
      progress.update(p.done, p.total, p.failed);
    };
    extract_to_store(extractor, *dataset, writer, run);
  }
  const std::vector<std::string> all = extractor.notes();
  for (size_t i = backbone.notes().size(); i < all.size(); ++i)  // those are said once
    notes.push_back(fmt::format("{} on {}, {}: {}", facts.key, data.key, name, worded(all[i])));
  return Store::open(to);
}

}  // namespace fungi::app
