// SPDX-License-Identifier: Apache-2.0
// What every *_names.cpp file uses to recognise a checkpoint: where its block tensors lie, what its
// config.json says and what the user stated. Each dialect is one function from a NameReader to a
// Reading.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fungi/backbone/tensors.h"

namespace fungi {

class NameReader {
 public:
  NameReader(const Checkpoint& checkpoint, const StatedFacts& stated_facts)
      : checkpoint_(checkpoint), overrides_(stated_facts) {}

  // Finds the one prefix P for which P + anchor (and P + also, when given) are tensors; false when
  // there is none. Of several, the trained teacher or encoder is preferred; otherwise Error naming
  // them (override: prefix).
  bool find_prefix(std::string_view anchor, std::string_view also = "");

  const Checkpoint& checkpoint() const { return checkpoint_; }
  std::string full(std::string_view name) const { return prefix_ + std::string(name); }
  bool has(std::string_view name) const { return checkpoint_.find(full(name)) != nullptr; }
  size_t dimension(std::string_view name,
                   size_t axis) const;  // Error when there is no such tensor or axis
  size_t count(std::string_view name) const;
  size_t count_blocks(std::string_view before,
                      std::string_view after) const;  // before + N + after exists for N = 0, 1, ...

  std::optional<std::string> stated(const std::string& key) const;  // by the user
  std::optional<std::string> config_text(
      const char* pointer) const;  // JSON pointers into config.json
  std::optional<double> config_number(const char* pointer) const;

 private:
  const Checkpoint& checkpoint_;
  const StatedFacts& overrides_;
  std::string prefix_;
};

// Canonical name → tensor of the file, one line each.
class RecipeWriter {
 public:
  explicit RecipeWriter(const NameReader& names) : names_(names) {}
  // canonical.weight and, where the file has one, canonical.bias
  void affine(const std::string& canonical, const std::string& file);
  void stacked(const std::string& canonical, const std::vector<std::string>& files, bool bias);
  void tensor(const std::string& canonical, const std::string& file);
  void rows(const std::string& canonical, const std::string& file, size_t first);
  Recipes recipes;

 private:
  const NameReader& names_;
};

// Facts from the shapes of timm-like tensors and the common end of every image dialect: heads,
// input size, stated_facts.
size_t guess_heads(const NameReader& names, size_t width);
void set_square_grid(const NameReader& names, Architecture& a, size_t grid_positions);
void apply_stated_facts(const NameReader& names, Architecture& a);
void check(const NameReader& names, const Architecture& a);

inline constexpr std::array<float, 3> kClipMean{0.48145466f, 0.4578275f, 0.40821073f};
inline constexpr std::array<float, 3> kClipDeviation{0.26862954f, 0.26130258f, 0.27577711f};

// The dialects; each gives nothing when the names are not its own.
std::optional<Reading> read_timm_names(const Checkpoint&, const StatedFacts&);
std::optional<Reading> read_eva_names(const Checkpoint&, const StatedFacts&);
std::optional<Reading> read_torchvision_names(const Checkpoint&, const StatedFacts&);
std::optional<Reading> read_clip_names(const Checkpoint&, const StatedFacts&);  // OpenAI, open_clip
std::optional<Reading> read_huggingface_clip_names(const Checkpoint&, const StatedFacts&);
std::optional<Reading> read_huggingface_vit_names(const Checkpoint&,
                                                  const StatedFacts&);  // ViT, DINOv2, AST
std::optional<Reading> read_augreg_names(const Checkpoint&, const StatedFacts&);
std::optional<Reading> read_bert_names(const Checkpoint&, const StatedFacts&);
std::optional<Reading> read_t5_names(const Checkpoint&, const StatedFacts&);

}  // namespace fungi
