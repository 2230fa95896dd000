// SPDX-License-Identifier: Apache-2.0
#include "fungi/feature/reopen.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "fungi/backbone/architecture_json.h"
#include "fungi/checkpoint/checkpoint.h"
#include "fungi/checkpoint/tensor_type.h"
#include "fungi/feature/comparable.h"
#include "fungi/objective/factory.h"
#include "fungi/store/half.h"
#include "fungi/store/shards.h"

namespace fungi {
namespace {

namespace fs = std::filesystem;

std::string kind_of(const std::string& objective) {
  return objective.substr(0, objective.find('_'));
}

// As make_objective() reads it, with every parameter.
std::string specification(const ObjectiveSettings& objective) {
  std::string text = objective.name;
  for (const auto& [name, value] : objective.parameters)
    text += fmt::format("{}{}={}", text.size() == objective.name.size() ? ":" : ",", name,
                        std::visit([](const auto& v) { return fmt::format("{}", v); }, value));
  return text;
}

// The specifications of all objectives of the library.
std::vector<std::string> specifications(const Settings& settings, const std::string& place,
                                        OwnObjectives own) {
  std::vector<std::string> list;
  const std::vector<std::string> ours = fungi::objective_names();
  for (const ObjectiveSettings& objective : settings.objectives) {
    const std::string& name = objective.name;
    if (std::any_of(own.begin(), own.end(), [&](const auto& o) { return o->name() == name; }))
      continue;
    if (std::find(ours.begin(), ours.end(), kind_of(name)) == ours.end())
      fail(fmt::format("the rows were made with an objective '{}', which is none of this library",
                       name),
           place, "give it in ReopenOptions::objectives, in the program that has it");
    list.push_back(specification(objective));
  }
  return list;
}

Settings settings_of(const ExtractionRecord& record) {
  return read_settings(record.manifest.spec, record.place);
}

// The files of a query: pictures or sounds. The same file may come twice: ids only name random draws here.
class QueryFiles final : public Dataset {
 public:
  QueryFiles(const std::vector<fs::path>& files, const KnowsId& known, const DatasetOptions& looks)
      : files_(files) {
    samples_ = looks.samples, seconds_ = looks.seconds;
    for (const fs::path& file : files) ids_.push_back(query_id(file, known)), labels_.push_back(-1);
  }
  std::vector<uint8_t> read(size_t i) const override { return read_sample(files_[i]); }
  fs::path file(size_t i) const override { return files_[i]; }

 private:
  const std::vector<fs::path>& files_;
};

// Texts of a query. The same may come twice, and is the same then.
class QueryTexts final : public Dataset {
 public:
  explicit QueryTexts(const std::vector<Text>& texts) : texts_(texts) {
    for (const Text& text : texts) ids_.push_back(text.utf8), labels_.push_back(-1);
  }
  std::vector<uint8_t> read(size_t i) const override {
    return {texts_[i].utf8.begin(), texts_[i].utf8.end()};
  }
  Sample decode(size_t i, std::span<const uint8_t>, const DecodeOptions&) const override {
    return texts_[i];
  }

 private:
  const std::vector<Text>& texts_;
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
  const Settings settings = settings_of(record);
  ExtractorOptions looks;
  looks.objectives = specifications(settings, record.place, own);
  looks.preset = settings.preset;
  BackboneOptions o = backbone_for(looks, {.precision = settings.precision});
  for (const auto& objective : own) {
    o.tokens |= objective->wants_tokens();
    o.word_head |= objective->wants_word_head();
  }
  if (settings.gradient) o.layer = settings.gradient->layer;
  o.mha_input_as_activation = settings.gradient && settings.gradient->norm1_as_input;
  for (const GradientSettings& layer : settings.layers) {
    o.layers.push_back(layer.layer);
    o.mha_input_as_activation |= layer.norm1_as_input;
  }
  o.clip_with_gelu = o.text_by_first_token = false;  // where they took effect, it is stated
  for (const auto& [key, value] : settings.stated) o.stated_facts[key] = value;
  return o;
}

ExtractorOptions extractor_options(const ExtractionRecord& record,
                                   std::vector<std::unique_ptr<Objective>> own) {
  const Settings settings = settings_of(record);
  ExtractorOptions o;
  o.objectives = specifications(settings, record.place, own);
  o.preset = settings.preset;
  o.seed = settings.seed;
  o.decode = decode_options(settings.input);
  o.text = text_options(settings.input);
  o.sound = sound_options(settings.input);
  if (settings.gradient || !settings.layers.empty()) {
    const ProjectionSettings& p =
        (settings.gradient ? *settings.gradient : settings.layers.front()).projection;
    o.projection = p.kind, o.projection_rows = p.rows;
    if (p.seed != settings.seed) o.projection_seed = p.seed;
  }
  const std::vector<StoreBlock>& blocks = record.manifest.spec.blocks;
  o.keep_factors = std::any_of(blocks.begin(), blocks.end(),
                               [](const StoreBlock& b) { return !factors_of(b.name).empty(); });
  for (const StoreBlock& b : blocks)
    if (b.name != "embedding" && is_feature(b)) o.gradient_weight = b.weight;
  for (const NamedMatrix& m : record.state) o.given.push_back({m.name, m.values.copy()});
  o.own = std::move(own);
  return o;
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

// A store keeps the sum of a projection matrix of the user's own, not the matrix.
void require_same_matrix(const ExtractionRecord& record, const Settings& rebuilt) {
  const Settings stored = settings_of(record);
  if (!stored.gradient || !rebuilt.gradient) return;
  const std::string &expected = stored.gradient->projection.matrix_sha256,
                    &given = rebuilt.gradient->projection.matrix_sha256;
  if (!expected.empty() && expected != given)
    fail(fmt::format("the matrix given is another one than that of {}: "
                     "settings.gradient.projection.sha256 is {} there, {} here",
                     record.place, expected, given),
         "projection", "give the file that the rows were extracted with (`given`)");
}

}  // namespace

struct Reopened::State {
  Extractor extractor;
  StoreSpec spec;
};

namespace {

Backbone open_model(const ExtractionRecord& record, ReopenOptions& options, Pool& pool) {
  if (options.backbone) {
    const StoreSpec& spec = record.manifest.spec;
    if (const std::string found = options.backbone->sha256(); found != spec.model_sha256)
      fail(fmt::format("these are the weights of another model: expected sha256 {}, found {}",
                       spec.model_sha256, found),
           record.place, "share the Backbone of a Reopened of the same model");
    return std::move(*options.backbone);
  }
  const fs::path model =
      options.model.empty() ? fs::path(record.manifest.spec.model_path) : options.model;
  require_same_model(record, model);
  BackboneOptions o = backbone_options(record, options.objectives);
  const Architecture was = parse_architecture(record.manifest.spec.architecture, record.place);
  for (auto& [fact, value] : stated_facts(settings_of(record).input, was))
    if (fact == "size" || fact == "family")
      o.stated_facts.emplace(fact, value);
    else
      o.stated_facts[fact] = value;
  return Backbone::open(model, o, pool);
}

}  // namespace

Reopened::Reopened(const ExtractionRecord& record, Pool& pool, ReopenOptions options) {
  const StoreSpec& spec = record.manifest.spec;
  for (const auto& objective : options.objectives)
    if (!objective) fail("expected an objective, found none", "ReopenOptions::objectives");
  const auto gradient = settings_of(record).gradient;
  if (gradient && gradient->projection.kind == ProjectionKind::matrix &&
      options.projection_matrix.empty())
    fail("the rows were projected with a matrix of your own, which the store does not keep",
         record.place, "give the file with `given`");
  const Backbone backbone = open_model(record, options, pool);
  ExtractorOptions own = extractor_options(record, std::move(options.objectives));
  own.modality = std::move(options.modality);
  own.projection_matrix = std::move(options.projection_matrix);
  state_ = std::make_unique<State>(State{Extractor(backbone, std::move(own), pool), spec});
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
  require_same_matrix(record, extractor.settings());
  require_same_features(
      spec, rebuilt, record.place,
      "this version reads the settings in another way: use the one that made the rows, or "
      "extract again");
}

Reopened::Reopened(Reopened&&) noexcept = default;
Reopened::~Reopened() = default;

const Backbone& Reopened::backbone() const { return state_->extractor.backbone(); }
Extractor& Reopened::extractor() { return state_->extractor; }

Matrix<float> Reopened::rows(const std::vector<fs::path>& files,
                             const std::vector<StoreBlock>& blocks, const KnowsId& known,
                             std::vector<StoreFailure>* failures) {
  std::vector<StoreFailure> found;
  Matrix<float> out = rows(QueryFiles(files, known, state_->extractor.data()), blocks, &found);
  for (StoreFailure& f : found) {
    if (f.hint.empty()) f.hint = "give a whole file of a format that this build reads";
    if (!failures) fail(f.reason, files[f.position].string(), f.hint);
    failures->push_back(std::move(f));
  }
  return out;
}

Matrix<float> Reopened::rows(const std::vector<Text>& texts, const std::vector<StoreBlock>& blocks,
                             std::vector<StoreFailure>* failures) {
  return rows(QueryTexts(texts), blocks, failures);
}

Matrix<float> Reopened::rows(const Dataset& samples, const std::vector<StoreBlock>& blocks,
                             std::vector<StoreFailure>* failures) {
  require_side_by_side(blocks, "features");
  std::vector<size_t> all(samples.size());
  for (size_t i = 0; i < all.size(); ++i) all[i] = i;
  StoreRows computed = state_->extractor.extract(samples, all);
  const auto refuse = [&](StoreFailure f) {
    if (!failures) fail(f.reason, samples.id(f.position), f.hint);
    failures->push_back(std::move(f));
  };
  for (StoreFailure& f : computed.failures) refuse(std::move(f));
  const size_t width = total_width(blocks);
  size_t column = 0;
  Matrix<float> out(all.size(), width);
  for (const StoreBlock& b : blocks) {
    const auto& known_blocks = state_->spec.blocks;
    const StoreBlock* at = find_block(known_blocks, b.name);
    if (!at || !at->same_floats(b))
      fail(fmt::format("the extractor makes no block '{}' of {} columns", b.name, b.width),
           "features");
    const Matrix<float>& from = computed.blocks[size_t(at - known_blocks.data())];
    const View<float> part(out.data() + column, out.rows(), b.width, out.cols());
    for (size_t i = 0; i < all.size(); ++i) std::copy_n(from.row(i), b.width, part.row(i));
    round_to(state_->spec.type, part);
    store::unit_rows(part, float(b.weight));
    column += b.width;
  }
  for (size_t i = 0; i < all.size(); ++i)
    if (!std::all_of(out.row(i), out.row(i) + width, [](float v) { return std::isfinite(v); })) {
      refuse({i, "forward", "the features of this sample are not finite",
              "leave it out, or use another precision"});
      std::fill_n(out.row(i), width, 0.0f);
    }
  return out;
}

}  // namespace fungi
