// SPDX-License-Identifier: Apache-2.0
#include "fungi/segment/memory.h"

#include <fmt/format.h>

#include <chrono>

#include "fungi/base/random.h"
#include "fungi/base/unit_rows.h"
#include "fungi/segment/patch_labels.h"

namespace fungi::segment {
namespace {

constexpr std::chrono::seconds kBetweenSaves{5};
constexpr size_t kPicturesPerThread = 4;  // at once

// What is drawn for a picture in one epoch depends on these alone.
std::string name_in_epoch(const std::string& id, size_t epoch) {
  return epoch ? fmt::format("{}#{}", id, epoch) : id;
}

struct Remembered {
  Matrix<float> tokens, features, labels;
};

Remembered remember(const Memory& memory, size_t picture, size_t epoch, bool gradients,
                    Worker& worker) {
  const PatchFeatures& features = memory.features;
  const MaskDataset::Pair pair = memory.train.pair(picture);
  const std::string name = name_in_epoch(memory.train.id(picture), epoch);
  const RandomStream random(features.options().seed, "segment memory", fnv1a64(name));
  const PictureViews::Train draw =
      PictureViews::draw(pair.image.width, pair.image.height, uint32_t(random.bits(0)));
  worker.views.train(pair.image, draw, std::span(worker.pixels.row(0), features.pixel_count()));
  const Window part{draw.crop.left, draw.crop.top, draw.crop.width, draw.crop.height};
  const Mask mask =
      resize_mask(pair.mask, part, features.options().width, features.options().height);
  const Matrix<float> labels = patch_labels(mask, features.grid_h(), features.grid_w(),
                                            memory.train.classes(), memory.train.ignore());
  std::vector<float> uniform(features.patches());
  for (size_t p = 0; p < uniform.size(); ++p)
    uniform[p] = float(random.bits(1 + p) >> 40) * 0x1p-24f;
  const std::vector<uint32_t> kept = sample_patches(labels, uniform, memory.keep);
  const std::vector<size_t> chosen(kept.begin(), kept.end());
  Remembered out{.labels = gather(labels, chosen)};
  if (!gradients) {
    Matrix<float> tokens(features.patches(), features.embedding_width());
    features.embed(worker.pixels, worker.scratch, tokens);
    out.tokens = gather(tokens, chosen);
    return out;
  }
  Matrix<float> all(features.patches(), features.width());
  features.features(worker.pixels, std::span(&name, 1), worker.scratch, all);
  out.features = gather(all, chosen);
  out.tokens = tokens_of(out.features, features.embedding_width());
  return out;
}

}  // namespace

Worker::Worker(const PatchFeatures& features)
    : views(features.views()), pixels(1, features.pixel_count()) {}

std::vector<Worker> crew(const PatchFeatures& features, Pool& pool) {
  std::vector<Worker> workers;
  for (unsigned i = 0; i < pool.threads(); ++i) workers.emplace_back(features);
  return workers;
}

std::vector<std::optional<BankFailure>> each_picture(
    size_t count, std::span<Worker> workers, Pool& pool,
    const std::function<std::string(size_t)>& id,
    const std::function<void(size_t, Worker&)>& body) {
  std::vector<std::optional<BankFailure>> failures(count);
  pool.parallel_for(count, 1, [&](size_t i, size_t, unsigned worker) {
    try {
      body(i, workers[worker]);
    } catch (const Exhausted&) {
      throw;
    } catch (const Error& error) {
      failures[i] = {id(i), error.message(), error.hint()};
    } catch (const std::bad_alloc&) {
      failures[i] = {id(i), "not enough memory", "use fewer threads, or a smaller picture"};
    }
  });
  return failures;
}

Matrix<float> tokens_of(View<const float> features, size_t embedding_width) {
  Matrix<float> tokens(features.rows, embedding_width);
  View<const float> first = features;
  first.cols = embedding_width;
  normalise_rows(first, tokens);
  return tokens;
}

bool fill(BankWriter* tokens, BankWriter* features, const Memory& memory, const std::string& stage,
          Pool& pool, const SegmentHooks& hooks) {
  std::vector<BankWriter*> banks;
  for (BankWriter* bank : {tokens, features})
    if (bank) banks.push_back(bank);
  std::vector<Worker> workers = crew(memory.features, pool);
  const size_t pictures = memory.pictures.size(), total = pictures * memory.epochs;
  const size_t together = kPicturesPerThread * pool.threads();
  size_t begin = total, failed = 0;
  for (const BankWriter* bank : banks) {
    begin = std::min(begin, bank->steps());
    failed = bank->failed().size();
  }
  auto saved = std::chrono::steady_clock::now();
  const auto save = [&] {
    for (BankWriter* bank : banks) bank->save();
    saved = std::chrono::steady_clock::now();
  };
  for (size_t first = begin; first < total; first += together) {
    if (hooks.progress) hooks.progress(stage, first, total, failed);
    if (hooks.stopped()) {
      save();
      return false;
    }
    const size_t count = std::min(together, total - first);
    std::vector<Remembered> found(count);
    const auto picture = [&](size_t i) { return memory.pictures[(first + i) % pictures]; };
    const auto failures = each_picture(
        count, workers, pool, [&](size_t i) { return memory.train.id(picture(i)); },
        [&](size_t i, Worker& worker) {
          found[i] = remember(memory, picture(i), (first + i) / pictures, features, worker);
        });
    for (size_t i = 0; i < count; ++i) {
      failed += failures[i].has_value();
      for (BankWriter* bank : banks)
        if (bank->steps() > first + i)
          continue;  // it was here before
        else if (failures[i])
          bank->add_failed(*failures[i]);
        else
          bank->add(bank == tokens ? found[i].tokens : found[i].features, found[i].labels);
    }
    if (std::chrono::steady_clock::now() - saved > kBetweenSaves) save();
  }
  if (hooks.progress) hooks.progress(stage, total, total, failed);
  for (BankWriter* bank : banks) bank->finish();
  return true;
}

}  // namespace fungi::segment
