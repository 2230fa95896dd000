// SPDX-License-Identifier: Apache-2.0
// In-context segmentation (SPEC 5.10): a memory of patches of pictures with masks, by which every
// patch of another picture is labelled as its nearest neighbours are; by tokens alone
// ("embedding"), and with the gradients beside them ("fungi").
//
//   PatchFeatures features = PatchFeatures::open(model, {}, pool);
//   auto train = open_mask_dataset("VOC2012");
//   auto segmenter = Segmenter::build(std::move(features), *train, "out/bank", {}, pool);
//   Mask mask = segmenter->segment(read_image("picture.jpg"), pool);
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fungi/input/mask_dataset.h"
#include "fungi/segment/bank.h"
#include "fungi/segment/patch_features.h"

namespace fungi {

struct SegmentOptions {
  size_t memory = 102'400;  // rows of the memory; 0: every patch
  size_t epochs = 1;        // how often each picture is remembered, drawn anew
  size_t images = 0;        // only so many pictures, drawn at random (seed 42); 0: all
  size_t k = 30;
  double temperature = 0.02;
  BankSearchOptions search = {};
  // The paper's for few pictures: k = 90, temperature 0.1, eight epochs, every patch, 256 lists
  // searched and 1800 rows compared.
  static SegmentOptions few_shot();
};

struct SegmentHooks {
  // progress(stage, done, total, failed): pictures, rows or masks; from the caller's thread.
  std::function<void(const std::string& stage, size_t done, size_t total, size_t failed)> progress =
      {};
  // Once it is set no further picture is begun. What is done is saved: the same call goes on.
  const std::atomic<bool>* stop = nullptr;
  bool stopped() const { return stop && *stop; }
};

// The pictures that `images` of `count` ask for: the first of torch's permutation, seed 42.
std::vector<size_t> few_pictures(size_t count, size_t images);

// Const once it is there. label() and segment() use the pool, so call them from outside of it.
class Segmenter {
 public:
  // Fills the memory in `folder`, or goes on where it was stopped. Nothing: stopped again. Errors:
  // a memory of other settings; training pictures of which none can be used; fewer rows than k.
  static std::optional<Segmenter> build(PatchFeatures features, const MaskDataset& train,
                                        const std::filesystem::path& folder,
                                        const SegmentOptions& options, Pool& pool,
                                        const SegmentHooks& hooks = {});
  // A memory that is complete, with the model it was made with, or the same under another path.
  static Segmenter open(const std::filesystem::path& folder, Pool& pool,
                        const std::filesystem::path& model = {});
  Segmenter(Segmenter&&) noexcept;
  Segmenter& operator=(Segmenter&&) noexcept;
  ~Segmenter();

  const PatchFeatures& features() const;
  const SegmentOptions& options() const;
  const std::vector<std::string>& kinds() const;  // "embedding", and "fungi" with gradients
  const Bank& bank(size_t kind) const;
  size_t classes() const;
  const std::vector<std::string>& class_names() const;
  std::string class_name(size_t number) const;  // the number itself where there are no names
  // Training pictures that could not be used, of all kinds of features together.
  std::vector<BankFailure> failed() const;
  std::vector<std::string> notes() const;  // what a user should know: classes without a patch
  // What decides about labels, a JSON object.
  std::string settings() const;

  struct Labels {
    std::vector<Matrix<float>> features, shares;  // of each kind: [patches, width], [.., classes]
    std::optional<BankFailure> failure;           // then there are none
  };
  // Of several pictures at once; look(i) reads picture i and may throw Error, which is recorded.
  std::vector<Labels> label(size_t count, const std::function<Image(size_t)>& look,
                            std::span<const std::string> ids, Pool& pool) const;
  // The most likely class of each pixel of a picture of that size.
  Mask mask(View<const float> shares, size_t width, size_t height) const;
  // All in one, by the last kind. The id seeds what is drawn for the picture.
  Mask segment(const Image& image, Pool& pool, const std::string& id = "picture") const;

 private:
  struct State;
  explicit Segmenter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace fungi
