// SPDX-License-Identifier: Apache-2.0
// What an objective wants to look at, said in plain numbers: objectives state it, view makers obey
// it, and neither knows the other. A closed set of alternatives, each of one kind of sample.
#pragma once

#include <cstddef>
#include <string>
#include <variant>

namespace fungi {

// What a sample is. The model decides it: a data set is read as what the model looks at.
enum class SampleKind { image, text, sound, own };
const char* to_string(SampleKind kind);  // "image", "text", "sound", "own"

// The sample as the model's own evaluation shows it: one view, of any kind of sample.
struct WholeView {
  bool operator==(const WholeView&) const = default;
};

// With which channel means and deviations the pixels of a view are normalised.
enum class ImageStatistics {
  model,        // the backbone's own
  imagenet,     // ImageNet's, whatever the backbone expects
  deepcluster,  // ImageNet's with 0.228 instead of 0.229 as the first deviation (SPEC 2.5)
};

// The evaluation view of an image, or one that deviates from it; as it stands here, a WholeView.
struct WholeImage {
  ImageStatistics statistics = ImageStatistics::model;
  bool squash = false;  // ignores the aspect ratio (preset `lib`)
  bool operator==(const WholeImage&) const = default;
};

// What is done to a random crop besides.
enum class ImageAugmentation {
  none,
  dino,  // flip, colours, grey, blur, solarisation, as DINO was trained (view/augmentation.h)
};

// Random resized crops: the global ones first.
struct ImageCrops {
  // Share of the picture that a crop covers.
  struct Area {
    float low, high;
    bool operator==(const Area&) const = default;
  };
  size_t global_crops = 2, local_crops = 10;
  Area global_area{0.25f, 1.0f}, local_area{0.05f, 0.25f};
  size_t local_size = 0;  // side of the local crops in pixels, below the model's; 0: the model's
  bool bilinear = false;  // resized with the triangle filter instead of the cubic one
  ImageStatistics statistics = ImageStatistics::model;
  ImageAugmentation augmentation = ImageAugmentation::none;
  bool operator==(const ImageCrops&) const = default;
};

// Overlapping square patches of the whole image, row-major (SPEC 2.3.1).
struct ImagePatches {
  size_t patch_count = 4;   // a perfect square: the patch side is size / sqrt(patch_count)
  size_t stride_scale = 6;  // stride = floor(patch side / stride_scale)
  size_t patch_size = 0;    // each is enlarged to so many pixels, below the model's; 0: the model's
  ImageStatistics statistics = ImageStatistics::model;
  bool operator==(const ImagePatches&) const = default;
};

// A text with some of its words left out, in several draws: those that show most of it first. Each
// is a share of its words; how they are chosen is told in view/word_deletion.h.
struct WordDeletions {
  enum class Rule {
    counted,      // so many of them, but 1 at least and 10 at most: the paper's experiments
    independent,  // each by itself: the paper's text
  };
  size_t global_views = 12, local_views = 0;
  double global_share = 0.1, local_share = 0.3;
  Rule rule = Rule::counted;
  bool operator==(const WordDeletions&) const = default;
};

// A text with some of its tokens hidden, which are to be guessed (Latents::hidden_words). The views
// of a text hide others of them in turn, all of them once before any twice: so many in each, but 1
// at least.
struct HiddenWords {
  enum class Rule {
    mixed,      // as BERT was trained: of ten that are to be guessed eight are the mask token, one
                // is any word, one stays
    mask_only,  // each is the mask token
  };
  size_t views = 4;
  double share = 0.15;
  Rule rule = Rule::mixed;
  bool operator==(const HiddenWords&) const = default;
};

// A sound with noise and rolled along time, in several draws: rows x + U·u/10, where U has a
// uniform number for each of theirs and u is one for all (SPEC 5.7). An objective that compares
// global with local views finds them alike.
struct SoundShifts {
  // By how many rows a view is rolled: from -shift on, with or without the last of them.
  enum class Rule {
    experiments,  // to shift - 1: the paper's experiments
    symmetric,    // to shift: the paper's text
  };
  size_t global_views = 16, local_views = 0;
  double noise = 0.1;  // the most that is added to a row, in units of the logarithm
  size_t shift = 10;   // rows
  Rule rule = Rule::experiments;
  bool operator==(const SoundShifts&) const = default;
};

using ViewPlan = std::variant<WholeView, WholeImage, ImageCrops, ImagePatches, WordDeletions,
                              HiddenWords, SoundShifts>;

// The simplest plan of the same views: a WholeImage that deviates in nothing is a WholeView.
ViewPlan simplest(const ViewPlan& plan);

// The side in pixels that a view of a picture has; 0: what the model reads, as of all other samples.
size_t view_side(const ViewPlan& plan, size_t view);

// Whether the views of a sample depend on a draw.
bool is_random(const ViewPlan& plan);

// Of plans in which some views show much of a sample, and others a part: how many of which.
struct ViewCounts {
  size_t global, local;
  size_t all() const { return global + local; }
};
// Error for a plan whose views are all of one sort. `place` names the objective.
ViewCounts view_counts(const ViewPlan& plan, const std::string& place);
// The same plan with so many global views and no others. Those that both have are the same where
// their requests draw by the same name.
ViewPlan global_views(ViewPlan plan, size_t count, const std::string& place);

}  // namespace fungi
