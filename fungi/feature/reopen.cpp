// SPDX-License-Identifier: Apache-2.0
#include "fungi/feature/reopen.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "fungi/checkpoint/checkpoint.h"
#include "fungi/checkpoint/tensor_type.h"
#include "fungi/objective/factory.h"
#include "fungi/store/half.h"
#include "fungi/store/shards.h"

namespace fungi {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Calls read(settings); what it does not find there is an Error.
template <class Read>
auto from_settings(const ExtractionRecord& record, const Read& read) {
  try {
    return read(json::parse(record.manifest.spec.settings));
  } catch (const json::exception& e) {
    fail(fmt::format("the settings do not say how the rows were made: {}", e.what()), record.place,
         "only stores that `extract` wrote, or with the settings of Extractor::spec(), can be "
         "continued; extract again");
  }
}

// The objectives in the order of the blocks: "embedding+kl+dino" without the first.
std::vector<std::string> objectives_of(const StoreManifest& manifest) {
  std::vector<std::string> names = split_features(manifest.spec.pipeline);
  names.erase(names.begin());
  return names;
}

std::string kind_of(const std::string& objective) {
  return objective.substr(0, objective.find('_'));
}

// As make_objective() reads it, with every parameter.
std::string specification(const std::string& name, const json& parameters) {
  std::string text = name;
  for (const auto& [key, value] : parameters.items())
    text += fmt::format(
        "{}{}={}", text.size() == name.size() ? ":" : ",", key,
        value.is_string() ? value.get<std::string>() : fmt::format("{}", value.get<double>()));
  return text;
}

// The specifications of all objectives of the library.
std::vector<std::string> specifications(const ExtractionRecord& record, const json& settings,
                                        OwnObjectives own) {
  std::vector<std::string> list;
  const std::vector<std::string> ours = fungi::objective_names();
  for (const std::string& name : objectives_of(record.manifest)) {
    if (std::any_of(own.begin(), own.end(), [&](const auto& o) { return o->name() == name; }))
      continue;
    if (std::find(ours.begin(), ours.end(), kind_of(name)) == ours.end())
      fail(fmt::format("the rows were made with an objective '{}', which is none of this library",
                       name),
           record.place, "give it in ReopenOptions::objectives, in the program that has it");
    list.push_back(specification(name, settings.at("objectives").at(name)));
  }
  return list;
}

// The picture files of a query. The same file may come twice: ids only name random draws here.
class QueryFiles final : public Dataset {
 public:
  QueryFiles(const std::vector<fs::path>& files, const KnowsId& known) : files_(files) {
    for (const fs::path& file : files) ids_.push_back(query_id(file, known)), labels_.push_back(-1);
  }
  std::vector<uint8_t> read(size_t i) const override { return read_file_bytes(files_[i]); }

 private:
  const std::vector<fs::path>& files_;
};

// What the store's number type leaves of the rows.
void round_to(StoreType type, View<float> rows) {
  if (type == StoreType::float32) return;
  for (size_t i = 0; i < rows.rows; ++i)
    for (size_t j = 0; j < rows.cols; ++j) {
      const uint16_t half = half_from_float(rows(i, j));
      to_floats(DType::f16, reinterpret_cast<const std::byte*>(&half), 1, &rows(i, j));
    }
}

}  // namespace

ExtractionRecord extraction_record(const Store& store) {
  return extraction_record(store.manifest(), store.folder());
}

ExtractionRecord extraction_record(StoreManifest manifest, const fs::path& folder) {
  ExtractionRecord record{std::move(manifest), {}, folder.string()};
  for (const StoreState& s : record.manifest.state)
    record.state.push_back({s.name, store::read_state(folder, s)});
  return record;
}

BackboneOptions backbone_options(const ExtractionRecord& record, OwnObjectives own) {
  return from_settings(record, [&](const json& settings) {
    BackboneOptions o;
    o.precision = parse_precision(record.manifest.spec.precision, record.place);
    o = backbone_for(specifications(record, settings, own),
                     parse_preset(settings.at("preset").get<std::string>()), std::move(o));
    if (!objectives_of(record.manifest).empty()) o.layer = settings.at("layer").get<std::string>();
    for (const auto& objective : own) o.tokens = o.tokens || objective->wants_tokens();
    o.mha_input_as_activation = settings.value("layer_input", "") == "norm1";
    o.clip_with_gelu = false;  // where it took effect, it is stated
    if (settings.contains("stated"))
      for (const auto& [key, value] : settings.at("stated").items())
        o.stated_facts[key] = value.get<std::string>();
    return o;
  });
}

ExtractorOptions extractor_options(const ExtractionRecord& record, OwnObjectives own) {
  return from_settings(record, [&](const json& settings) {
    ExtractorOptions o;
    o.objectives = specifications(record, settings, own);
    o.preset = parse_preset(settings.at("preset").get<std::string>());
    o.seed = settings.at("seed").get<uint64_t>();
    o.decode.exif_orientation = settings.at("exif_orientation").get<bool>();
    o.decode.allow_truncated = settings.at("allow_truncated").get<bool>();
    if (!objectives_of(record.manifest).empty()) {
      o.projection = parse_projection(settings.at("projection").at("kind").get<std::string>());
      o.projection_rows = settings.at("projection").at("rows").get<size_t>();
      if (settings.at("projection").contains("seed"))
        o.projection_seed = settings.at("projection").at("seed").get<uint64_t>();
    }
    o.keep_factors =
        feature_names(record.manifest.spec).size() < record.manifest.spec.blocks.size();
    if (own.empty())
      for (const NamedMatrix& m : record.state) o.given.push_back({m.name, m.values.copy()});
    return o;
  });
}

KnowsId knows_ids_of(const Store& store) {
  auto ids =
      std::make_shared<std::unordered_set<std::string>>(store.ids().begin(), store.ids().end());
  return [ids](std::string_view id) { return ids->contains(std::string(id)); };
}

std::string query_id(const fs::path& file, const KnowsId& known) {
  if (known(file.string())) return file.string();
  std::error_code ignored;  // then the path as it is
  std::string end = fs::absolute(file, ignored).lexically_normal().string();
  while (!end.empty()) {
    if (known(end)) return end;
    const size_t slash = end.find('/');
    end.erase(0, slash == std::string::npos ? end.size() : slash + 1);
  }
  return file.filename().string();
}

// Before anything is built of it: another architecture would fail in ways that do not name the
// reason.
void require_same_model(const ExtractionRecord& record, const fs::path& model) {
  const StoreSpec& spec = record.manifest.spec;
  if (spec.model_sha256.empty())
    fail("the rows were made with weights that came from no file", record.place,
         "build the Extractor in the program that has them, and use restore()");
  std::error_code ignored;  // then it is not there for us
  if (!fs::exists(model, ignored))
    fail(fmt::format("there is no such file; the rows of {} were made with this model (sha256 {})",
                     record.place, spec.model_sha256),
         model.string(), "say where it is with `model`");
  if (const std::string found = Checkpoint::open(model).sha256(); found != spec.model_sha256)
    fail(fmt::format("this is another model than that of {}: expected sha256 {}, found {}",
                     record.place, spec.model_sha256, found),
         model.string(), "say with `model` where the model of the rows is");
}

namespace {

// A file's name and the config.json beside it may have told the evaluation transform, and that it
// is a DINO; the same file may lie elsewhere now.
BackboneOptions with_transform(const ExtractionRecord& record, BackboneOptions o) {
  return from_settings(record, [&](const json& settings) {
    const json& p = settings.at("preprocess");
    const auto colours = [&](const char* key) {
      return fmt::format("{}", fmt::join(p.at(key).get<std::array<float, 3>>(), ","));
    };
    o.stated_facts["mean"] = colours("mean"), o.stated_facts["std"] = colours("std");
    o.stated_facts["resize"] = std::to_string(p.at("resize").get<size_t>());
    o.stated_facts["interpolation"] = p.at("filter").get<std::string>();
    o.stated_facts["squash"] = p.value("squash", false) ? "yes" : "no";
    o.stated_facts["crop"] = p.value("crop", "even");
    const json facts = json::parse(record.manifest.spec.architecture);
    const std::string family = facts.value("family", "");
    if (family == "dinov2" && facts.value("dialect", "") == "huggingface")  // its crop decides
      o.stated_facts.emplace("size", std::to_string(p.at("size").get<size_t>()));
    if (family == "dino" || family == "vit") o.stated_facts.emplace("family", family);
    return o;
  });
}

// A store keeps the sum of a projection matrix of the user's own, not the matrix.
void require_same_matrix(const ExtractionRecord& record, const StoreSpec& rebuilt) {
  const auto sum = [](const json& settings) {
    return settings.value("projection", json::object()).value("sha256", "");
  };
  const std::string stored = from_settings(record, sum), given = sum(json::parse(rebuilt.settings));
  if (!stored.empty() && stored != given)
    fail(fmt::format("the matrix given is another one than that of {}: settings.projection.sha256 "
                     "is {} there, {} here",
                     record.place, stored, given),
         "projection", "give the file that the rows were extracted with (`given`)");
}

}  // namespace

struct Reopened::State {
  Backbone backbone;
  Extractor extractor;
  StoreSpec spec;

  State(const fs::path& model, const ExtractionRecord& record, ExtractorOptions options,
        std::vector<std::unique_ptr<Objective>> own, Pool& pool)
      : backbone(
            Backbone::open(model, with_transform(record, backbone_options(record, own)), pool)),
        extractor(backbone, std::move(options), pool),
        spec(record.manifest.spec) {
    if (own.empty()) return;
    for (auto& objective : own) extractor.add(std::move(objective));
    extractor.restore(record.state);
  }
};

Reopened::Reopened(const ExtractionRecord& record, Pool& pool, ReopenOptions options) {
  const StoreSpec& spec = record.manifest.spec;
  for (const auto& objective : options.objectives)
    if (!objective) fail("expected an objective, found none", "ReopenOptions::objectives");
  ExtractorOptions own = extractor_options(record, options.objectives);
  if (own.projection == ProjectionKind::matrix) {
    if (options.projection_matrix.empty())
      fail("the rows were projected with a matrix of your own, which the store does not keep",
           record.place, "give the file with `given`");
    own.projection_matrix = std::move(options.projection_matrix);
  }
  const fs::path model = options.model.empty() ? fs::path(spec.model_path) : options.model;
  require_same_model(record, model);
  state_ =
      std::make_unique<State>(model, record, std::move(own), std::move(options.objectives), pool);
  Extractor& extractor = state_->extractor;
  for (const NamedMatrix& m : extractor.state())
    if (std::none_of(record.state.begin(), record.state.end(),
                     [&](const NamedMatrix& s) { return s.name == m.name; }))
      fail(fmt::format("the state '{}' that the rows were made with is not there", m.name),
           record.place,
           "extract again; a program of yours must call extract_to_store() or Extractor::settle()");
  if (!extractor.ready())
    fail("the negatives or clusters that the rows were made with are not there", record.place,
         "extract again");
  StoreSpec rebuilt = extractor.spec();
  rebuilt.type = spec.type;
  require_same_matrix(record, rebuilt);
  require_same(spec, rebuilt, record.place,
               "this version reads the settings in another way: use the one that made the rows, or "
               "extract again");
}

Reopened::Reopened(Reopened&&) noexcept = default;
Reopened::~Reopened() = default;

const Backbone& Reopened::backbone() const { return state_->backbone; }
Extractor& Reopened::extractor() { return state_->extractor; }

Matrix<float> Reopened::rows(const std::vector<fs::path>& files,
                             const std::vector<StoreBlock>& blocks, const KnowsId& known,
                             std::vector<StoreFailure>* failures) {
  std::vector<StoreFailure> found;
  Matrix<float> out = rows(QueryFiles(files, known), blocks, &found);
  for (StoreFailure& f : found) {
    if (f.hint.empty()) f.hint = "give a whole JPEG, PNG or WebP file";
    if (!failures) fail(f.reason, files[f.position].string(), f.hint);
    failures->push_back(std::move(f));
  }
  return out;
}

Matrix<float> Reopened::rows(const Dataset& pictures, const std::vector<StoreBlock>& blocks,
                             std::vector<StoreFailure>* failures) {
  std::vector<size_t> all(pictures.size());
  for (size_t i = 0; i < all.size(); ++i) all[i] = i;
  StoreRows computed = state_->extractor.extract(pictures, all);
  const auto refuse = [&](StoreFailure f) {
    if (!failures) fail(f.reason, pictures.id(f.position), f.hint);
    failures->push_back(std::move(f));
  };
  for (StoreFailure& f : computed.failures) refuse(std::move(f));
  const size_t width = total_width(blocks);
  size_t column = 0;
  Matrix<float> out(all.size(), width);
  for (const StoreBlock& b : blocks) {
    const auto& known_blocks = state_->spec.blocks;
    const StoreBlock* at = find_block(known_blocks, b.name);
    if (!at || at->width != b.width)
      fail(fmt::format("the extractor makes no block '{}' of {} columns", b.name, b.width),
           "features");
    const Matrix<float>& from = computed.blocks[size_t(at - known_blocks.data())];
    const View<float> part(out.data() + column, out.rows(), b.width, out.cols());
    for (size_t i = 0; i < all.size(); ++i) std::copy_n(from.row(i), b.width, part.row(i));
    round_to(state_->spec.type, part);
    store::normalise_rows(part);
    column += b.width;
  }
  for (size_t i = 0; i < all.size(); ++i)
    if (!std::all_of(out.row(i), out.row(i) + width, [](float v) { return std::isfinite(v); })) {
      refuse({i, "forward", "the features of this picture are not finite",
              "leave it out, or use another precision"});
      std::fill_n(out.row(i), width, 0.0f);
    }
  return out;
}

}  // namespace fungi
