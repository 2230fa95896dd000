// SPDX-License-Identifier: Apache-2.0
#include "fungi/segment/segmenter.h"

#include <fmt/format.h>

#include <numeric>

#include "fungi/base/atomic_file.h"
#include "fungi/base/error.h"
#include "fungi/base/random.h"
#include "fungi/segment/memory.h"
#include "fungi/segment/patch_labels.h"
#include "fungi/segment/predict.h"
#include "fungi/segment/segmenter_json.h"

namespace fungi {

using namespace segment;

SegmentOptions SegmentOptions::few_shot() {
  SegmentOptions o;
  o.memory = 0;
  o.epochs = 8;
  o.k = 90;
  o.temperature = 0.1;
  o.search.probes = 256;
  o.search.rerank = 1800;
  return o;
}

std::vector<size_t> few_pictures(size_t count, size_t images) {
  std::vector<size_t> all(count);
  std::iota(all.begin(), all.end(), 0);
  if (images == 0) return all;
  if (images > count)
    fail(fmt::format("asked for {} of {} pictures", images, count), "`images`",
         "ask for fewer, or leave it out for all of them");
  const std::vector<uint32_t> order = TorchRandom(42).permutation(uint32_t(count));
  return {order.begin(), order.begin() + ptrdiff_t(images)};
}

namespace {

constexpr const char *kEmbedding = "embedding", *kFungi = "fungi", *kSupport = "support";
constexpr size_t kSupportPictures = 64;

struct Stopped {};

}  // namespace

struct Segmenter::State {
  explicit State(PatchFeatures f) : features(std::move(f)) {}
  PatchFeatures features;
  SegmentOptions options;
  std::vector<std::string> kinds;
  std::vector<Bank> banks;
  std::vector<std::string> class_names;
  size_t classes = 0;

  void add(const char* kind, const std::filesystem::path& folder, Pool& pool,
           const SegmentHooks& hooks);
  void take_support(const std::filesystem::path& folder, Pool& pool);
};

void Segmenter::State::add(const char* kind, const std::filesystem::path& folder, Pool& pool,
                           const SegmentHooks& hooks) {
  Bank bank = Bank::open(folder / kind);
  if (options.k == 0 || options.k > bank.rows())
    fail(fmt::format("asked for {} neighbours among the {} rows of the memory", options.k,
                     bank.rows()),
         folder.string(), "ask for fewer with `k`, or remember more pictures");
  bank.prepare(options.search, pool, [&](size_t done, size_t total) {
    if (hooks.stopped()) throw Stopped();
    if (hooks.progress) hooks.progress("index", done, total, 0);
  });
  kinds.emplace_back(kind);
  banks.push_back(std::move(bank));
}

// Spread over all of its rows.
void Segmenter::State::take_support(const std::filesystem::path& folder, Pool& pool) {
  if (!features.wants_support()) return;
  const Bank bank = Bank::open(folder / kSupport);
  const View<const float> rows = bank.features();
  const size_t count = std::min(features.support_rows(), rows.rows);
  std::vector<size_t> some(count);
  for (size_t i = 0; i < count; ++i) some[i] = i * rows.rows / count;
  features.set_support(gather(rows, some), pool);
}

namespace {

// Fills what is not there yet. False: stopped.
class Filling {
 public:
  Filling(const std::filesystem::path& folder, Pool& pool, const SegmentHooks& hooks)
      : folder_(folder), pool_(pool), hooks_(hooks) {}

  // Tokens of a few pictures: patches of others, from which each patch is told apart.
  bool support(const Memory& all) {
    const PatchFeatures& f = all.features;
    if (!f.wants_support()) return true;
    const size_t count = std::min(kSupportPictures, all.pictures.size());
    std::vector<size_t> some(count);
    for (size_t i = 0; i < count; ++i) some[i] = all.pictures[i * all.pictures.size() / count];
    const size_t keep = std::min((f.support_rows() + count - 1) / count, f.patches());
    const Memory few{f, all.train, std::move(some), 1, keep};
    const auto writer = begin(kSupport, few, false);
    return !writer || fill(writer.get(), nullptr, few, "support", pool_, hooks_);
  }

  bool memory(const Memory& all) {
    const auto tokens = begin(kEmbedding, all, false);
    const auto features = all.features.gradients() ? begin(kFungi, all, true) : nullptr;
    return (!tokens && !features) ||
           fill(tokens.get(), features.get(), all, "memory", pool_, hooks_);
  }

 private:
  // Nothing where the bank is complete.
  std::unique_ptr<BankWriter> begin(const char* name, const Memory& memory, bool gradients) const {
    const PatchFeatures& f = memory.features;
    const BankSpec spec{.width = gradients ? f.width() : f.embedding_width(),
                        .classes = memory.train.classes(),
                        .settings = bank_settings(f, memory.train, memory.pictures, memory.epochs,
                                                  memory.keep, gradients)
                                        .dump()};
    if (Bank::is_there(folder_ / name, spec)) return nullptr;
    return std::make_unique<BankWriter>(folder_ / name, spec);
  }

  const std::filesystem::path& folder_;
  Pool& pool_;
  const SegmentHooks& hooks_;
};

}  // namespace

std::optional<Segmenter> Segmenter::build(PatchFeatures features, const MaskDataset& train,
                                          const std::filesystem::path& folder,
                                          const SegmentOptions& options, Pool& pool,
                                          const SegmentHooks& hooks) try {
  if (train.classes() == 0)
    fail("the number of classes is unknown", "masks", "name the classes, or call find_classes()");
  if (options.epochs == 0 || !(options.temperature > 0))
    fail(fmt::format("expected at least one epoch and a positive temperature, found {} and {}",
                     options.epochs, options.temperature),
         "segmentation", "");
  auto state = std::make_unique<State>(std::move(features));
  State& s = *state;
  s.options = options;
  s.classes = train.classes();
  s.class_names = train.class_names();
  Memory memory{s.features, train, few_pictures(train.size(), options.images), options.epochs, 0};
  memory.keep = options.memory ? patches_per_picture(options.memory, memory.pictures.size(),
                                                     options.epochs, s.features.patches())
                               : s.features.patches();
  Filling filling(folder, pool, hooks);
  if (!filling.support(memory)) return {};
  s.take_support(folder, pool);
  if (!filling.memory(memory)) return {};
  s.add(kEmbedding, folder, pool, hooks);
  if (s.features.gradients()) s.add(kFungi, folder, pool, hooks);
  write_file_atomically(folder / kSegmentFile,
                        std::string_view(to_json(s.features, options, train).dump(2) + "\n"));
  return Segmenter(std::move(state));
} catch (const Stopped&) {
  return {};
}

Segmenter Segmenter::open(const std::filesystem::path& folder, Pool& pool,
                          const std::filesystem::path& model) {
  Description d = read_description(folder);
  if (d.own_state)
    fail("the memory was made with heads or a projection of its user's own, which it does not hold",
         folder.string(), "build it again without them");
  const std::filesystem::path path = model.empty() ? d.model : model;
  std::error_code unknown;
  if (!std::filesystem::exists(path, unknown))
    fail("the model of the memory is no longer there", path.string(), "say where it is: `model`");
  PatchFeatures features = PatchFeatures::open(path, std::move(d.features), pool, d.backbone);
  if (const std::string found = features.backbone().sha256(); found != d.sha256)
    fail(fmt::format("expected the model of sha256 {}, found {}", d.sha256, found), path.string(),
         "say where the memory's own model is: `model`");
  auto state = std::make_unique<State>(std::move(features));
  state->options = d.options;
  state->class_names = std::move(d.class_names);
  state->classes = d.classes;
  state->add(kEmbedding, folder, pool, {});
  if (state->features.gradients()) {
    state->take_support(folder, pool);
    state->add(kFungi, folder, pool, {});
  }
  for (const Bank& bank : state->banks)
    if (bank.spec().classes != d.classes)
      fail(fmt::format("expected banks of {} classes, found {}", d.classes, bank.spec().classes),
           folder.string(), "make the memory again");
  return Segmenter(std::move(state));
}

Segmenter::Segmenter(std::unique_ptr<State> state) : state_(std::move(state)) {}
Segmenter::Segmenter(Segmenter&&) noexcept = default;
Segmenter& Segmenter::operator=(Segmenter&&) noexcept = default;
Segmenter::~Segmenter() = default;

const PatchFeatures& Segmenter::features() const { return state_->features; }
const SegmentOptions& Segmenter::options() const { return state_->options; }
const std::vector<std::string>& Segmenter::kinds() const { return state_->kinds; }
const Bank& Segmenter::bank(size_t kind) const { return state_->banks.at(kind); }
size_t Segmenter::classes() const { return state_->classes; }
const std::vector<std::string>& Segmenter::class_names() const { return state_->class_names; }

std::string Segmenter::class_name(size_t number) const {
  return number < state_->class_names.size() ? state_->class_names[number] : std::to_string(number);
}

std::vector<BankFailure> Segmenter::failed() const {
  std::vector<BankFailure> all;
  for (const Bank& bank : state_->banks)
    for (const BankFailure& f : bank.failed())
      if (std::none_of(all.begin(), all.end(), [&](const auto& a) { return a.id == f.id; }))
        all.push_back(f);
  return all;
}

std::vector<std::string> Segmenter::notes() const {
  const std::vector<double> shares = state_->banks[0].class_shares();
  std::vector<std::string> missing, notes;
  for (size_t c = 0; c < shares.size(); ++c)
    if (shares[c] == 0) missing.push_back(class_name(c));
  const size_t there = shares.size() - missing.size();
  if (there == 1)
    notes.push_back(fmt::format(
        "the training masks show one class only: every pixel of every picture becomes it"));
  else if (!missing.empty())
    notes.push_back(fmt::format(
        "{} of {} classes are in no training picture and are never found: "
        "{}{}",
        missing.size(), shares.size(), missing[0],
        missing.size() > 1 ? ", " + missing[1] + (missing.size() > 2 ? ", ..." : "") : ""));
  return notes;
}

std::string Segmenter::settings() const {
  Json out = options_json(state_->options);
  for (size_t kind = 0; kind < state_->kinds.size(); ++kind) {
    out[state_->kinds[kind]] = Json::parse(bank(kind).spec().settings);
    out[state_->kinds[kind]]["rows"] = bank(kind).rows();
  }
  out["classes"] = state_->classes;
  return out.dump();
}

std::vector<Segmenter::Labels> Segmenter::label(size_t count,
                                                const std::function<Image(size_t)>& look,
                                                std::span<const std::string> ids,
                                                Pool& pool) const {
  FUNGI_ASSERT(ids.size() == count);
  const State& s = *state_;
  const PatchFeatures& f = s.features;
  std::vector<Labels> out(count);
  std::vector<Worker> workers = crew(f, pool);
  const auto failures = each_picture(
      count, workers, pool, [&](size_t i) { return ids[i]; },
      [&](size_t i, Worker& worker) {
        const Image image = look(i);
        worker.views.whole(image, std::span(worker.pixels.row(0), f.pixel_count()));
        Matrix<float> rows(f.patches(), f.width());
        f.features(worker.pixels, ids.subspan(i, 1), worker.scratch, rows);
        if (f.gradients()) out[i].features.push_back(tokens_of(rows, f.embedding_width()));
        out[i].features.push_back(std::move(rows));
      });
  for (size_t i = 0; i < count; ++i)
    if (failures[i]) out[i] = {.failure = failures[i]};
  for (size_t kind = 0; kind < s.kinds.size(); ++kind) {
    const Bank& bank = s.banks[kind];
    Matrix<float> queries(count * f.patches(), bank.spec().width);
    for (size_t i = 0; i < count; ++i)
      if (!out[i].failure)
        std::copy_n(out[i].features[kind].data(), f.patches() * queries.cols(),
                    queries.row(i * f.patches()));
    const Neighbours near = bank.search(queries, s.options.k, pool);
    pool.parallel_for(count, 1, [&](size_t i, size_t, unsigned) {
      if (out[i].failure) return;
      Matrix<float> shares(f.patches(), s.classes);
      std::vector<double> weights(s.options.k), sum(s.classes);
      for (size_t p = 0; p < f.patches(); ++p) {
        const size_t q = i * f.patches() + p;
        attention({near.value.row(q), s.options.k}, s.options.temperature, weights);
        std::fill(sum.begin(), sum.end(), 0);
        for (size_t b = 0; b < s.options.k; ++b) bank.add_label(near.index(q, b), weights[b], sum);
        for (size_t c = 0; c < s.classes; ++c) shares(p, c) = float(sum[c]);
      }
      out[i].shares.push_back(std::move(shares));
    });
  }
  return out;
}

Mask Segmenter::mask(View<const float> shares, size_t width, size_t height) const {
  return most_likely(shares, state_->features.grid_h(), state_->features.grid_w(), width, height);
}

Mask Segmenter::segment(const Image& image, Pool& pool, const std::string& id) const {
  std::vector<Labels> found = label(
      1, [&](size_t) { return image; }, std::span(&id, 1), pool);
  if (found[0].failure) fail(found[0].failure->reason, id, found[0].failure->hint);
  return mask(found[0].shares.back(), image.width, image.height);
}

}  // namespace fungi
