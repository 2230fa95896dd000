// SPDX-License-Identifier: Apache-2.0
// Pictures with masks, in a fixed order with stable ids. Opening reads names only; a picture and
// its mask are read on demand and checked against each other. Everything const is safe to call from
// several threads.
//
// One of your own derives from MaskDataset, fills ids_ and class_names_ (or count_), and overrides
// image() and mask().
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fungi/input/image.h"
#include "fungi/input/mask.h"

namespace fungi {

enum class MaskLayout {
  automatic,  // told by the folders that are there
  folders,    // images/ beside masks/, files of the same name but for the extension
  voc,        // Pascal VOC: JPEGImages, SegmentationClassAug or SegmentationClass, and the lists of
              // ImageSets/Segmentation
  ade20k,     // images/SPLIT beside annotations/SPLIT
  camvid,     // SPLIT beside SPLITannot; or images/ beside labels/, whose names end in _P
  list,       // a CSV or TSV file of picture and mask, relative to the file
};
const char* to_string(MaskLayout layout);
MaskLayout parse_mask_layout(std::string_view name);  // throws Error naming the choices

struct MaskDatasetOptions {
  MaskLayout layout = MaskLayout::automatic;
  // Of VOC the name of a list (train, trainaug, val), of ADE20K and CamVid the name of a folder, of
  // folders one that holds images/ and masks/. Empty: see `role`.
  std::string split = {};
  enum class Role { train, test } role = Role::train;  // which split an empty one means
  // Number of a class = its place in this list. Empty: what the layout knows (VOC, ADE20K, CamVid),
  // else as many classes as the masks show.
  std::vector<std::string> class_names = {};
  // Pixels of this value count nowhere: as class 0 in what is remembered, not at all in what is
  // measured. Negative: none. Default: 255, or what the layout says.
  std::optional<int> ignore = {};
};

class MaskDataset {
 public:
  virtual ~MaskDataset() = default;
  MaskDataset(const MaskDataset&) = delete;
  MaskDataset& operator=(const MaskDataset&) = delete;

  size_t size() const noexcept { return ids_.size(); }
  const std::string& id(size_t i) const;  // Error where there is no such pair
  // Empty where the layout has none.
  const std::vector<std::string>& class_names() const noexcept { return class_names_; }
  size_t classes() const noexcept { return count_; }  // 0: unknown until find_classes()
  int ignore() const noexcept { return ignore_; }
  // A class whose pixels are remembered as any other's but not measured: ADE20K's 0, "other".
  std::optional<uint8_t> unmeasured() const noexcept { return unmeasured_; }
  const std::vector<std::string>& notes() const noexcept { return notes_; }

  virtual Image image(size_t i) const = 0;
  virtual Mask mask(size_t i) const = 0;

  struct Pair {
    Image image;
    Mask mask;
  };
  // Both, once they are known to belong together: Error where their sizes differ, and on a value
  // that is no class, naming the value and its place.
  Pair pair(size_t i) const;

  // Where the number of classes is unknown: goes through all masks, and counts up to the largest
  // value. A mask that cannot be read is passed over: it fails again, with its reason, when it is
  // wanted. Error where no mask can be read, or none shows a class.
  void find_classes(const std::function<void(size_t done, size_t total)>& progress = {});
  // Of a test set: those of its training set. Error where both have names and these differ.
  void use_classes(const MaskDataset& train);

 protected:
  MaskDataset() = default;
  // Checks what every one promises: at least one pair, no id twice, at most 256 classes. Called
  // last by each opener.
  void finish(const std::filesystem::path& place);

  std::vector<std::string> ids_;
  std::vector<std::string> class_names_;
  std::vector<std::string> notes_;
  size_t count_ = 0;
  int ignore_ = 255;
  std::optional<uint8_t> unmeasured_;
};

std::unique_ptr<MaskDataset> open_mask_dataset(const std::filesystem::path& path,
                                               const MaskDatasetOptions& options = {});

// One name per line. Error naming the file where there is none, more than 256, or one twice.
std::vector<std::string> read_class_names(const std::filesystem::path& file);

// Error where a value of the mask is neither a class nor ignored.
void check_mask(const Mask& mask, size_t classes, int ignore, const std::string& place);

}  // namespace fungi
