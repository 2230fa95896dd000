// SPDX-License-Identifier: Apache-2.0
// What every *_names.cpp file uses to read a checkpoint: where its block tensors lie, what its
// config.json says and what the user stated. Each dialect is one record: the tensors that it is
// known by, and one function from names to facts and recipes. Internal to this room.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fungi/backbone/recipes.h"

namespace fungi {

// The two tensors that a dialect is known by, and two more without which a file that lacks one of
// them is something else; all lie under one prefix.
struct Anchors {
  std::string_view first, second, third, fourth;
};

struct Dialect;

class NameReader {
 public:
  NameReader(const Checkpoint& checkpoint, const StatedFacts& stated_facts);

  // Whether the file holds a network in this dialect; all names below are then meant without its
  // prefix. Of several, the trained teacher or encoder is preferred, also when one of its anchors
  // is missing: that is an Error. Otherwise Error naming them (override: prefix).
  bool find_network(const Dialect& dialect);

  const Checkpoint& checkpoint() const { return checkpoint_; }
  std::string full(std::string_view name) const { return prefix_ + std::string(name); }
  std::string tower() const { return tower_; }  // the dialect's, or "" where this file has none
  bool has(std::string_view name) const { return checkpoint_.find(full(name)) != nullptr; }
  // Either of name.weight and name.bias: which of two variants a file is must not hang on one
  // tensor, or its absence would be blamed on those of the other variant.
  bool has_affine(const std::string& name) const {
    return has(name + ".weight") || has(name + ".bias");
  }
  size_t dimension(std::string_view name,
                   size_t axis) const;  // Error when there is no such tensor or axis
  size_t count(std::string_view name) const;
  // How many blocks there are: tensors before + N + ... for N = 0, 1, ... Error naming the tensor
  // when one of them has no before + N + after.
  size_t count_blocks(std::string_view before, std::string_view after) const;

  std::optional<std::string> stated(const std::string& key) const;  // by the user
  bool ignored(const std::string& name) const;                      // stated to be without effect
  const std::vector<std::string>& other_networks() const { return others_; }  // their prefixes
  void check_ignored_exist() const;  // Error naming what is stated and not there
  // Whether the tensor lies under the prefix of a network that this one was preferred to.
  bool of_another_network(const std::string& name) const;
  bool has_config() const;  // a config.json
  // JSON pointers into config.json: into that part of it which describes this network, e.g.
  // vision_config, where there is one; otherwise from its top.
  std::optional<std::string> config_text(const char* pointer) const;
  // Error when there is something else than a number: a fact must not be lost.
  std::optional<double> config_number(const char* pointer) const;
  std::optional<size_t> config_size(const char* pointer) const;  // whole, 1 to 2^20; else Error
  std::optional<bool> config_flag(const char* pointer) const;
  bool config_has(const char* pointer) const { return config_value(pointer) != nullptr; }
  // Error naming the file when it is none that is known here.
  std::optional<kernel::Activation> config_activation(const char* pointer) const;
  std::vector<std::string> config_keys(const char* pointer) const;   // of an object; else none
  std::vector<std::string> config_texts(const char* pointer) const;  // of a list of them; else none
  std::string config_dump(const char* pointer) const;  // as it stands there, for messages
  std::string config_root() const { return root_; }    // "" or "/vision_config", ...
  // timm's name of it, perhaps with a tag behind a dot: stated, or that in config.json.
  std::optional<std::string> architecture() const;
  // The model_type at the top of config.json: that of the whole file.
  std::optional<std::string> config_whole_type() const;

 private:
  // Finds the one prefix P for which both P + tower + anchor are tensors.
  bool find_prefix(const Anchors& anchors, std::string_view tower);
  bool is_meant(const std::string& entry, const std::string& name) const;
  void take(const std::string& prefix, const std::vector<std::string>& found);
  const nlohmann::json* config_value(std::string_view pointer) const;  // null: not there
  const nlohmann::json& config() const;
  std::string find_config_root() const;
  const Checkpoint& checkpoint_;
  const StatedFacts& overrides_;
  std::string prefix_, tower_, root_;
  std::vector<std::string> ignored_;  // names, or starts of names
  std::vector<std::string> others_;   // prefixes of the networks in this dialect not taken
  mutable std::shared_ptr<const nlohmann::json> config_;  // read when first asked for
};

// Canonical name → tensor of the file, one line each.
class RecipeWriter {
 public:
  explicit RecipeWriter(const NameReader& names) : names_(names) {}
  // canonical.weight and, where the file has one, canonical.bias
  void affine(const std::string& canonical, const std::string& file);
  // All of them have a bias, or none; `unbiased`: this one may have none all the same, for zeros.
  void stacked(const std::string& canonical, const std::vector<std::string>& files, bool bias,
               const std::string& unbiased = "");
  void tensor(const std::string& canonical, const std::string& file);
  void rows(const std::string& canonical, const std::string& file, size_t first);
  // Of most ViTs: patches, a class token and one table of positions, of which it has the first.
  void embedding(const std::string& patch, const std::string& token, const std::string& positions);
  // A block as in Hugging Face's CLIP and SigLIP: layer_norm1, self_attn.q_proj, ..., mlp.fc2.
  void clip_block(const std::string& block, const std::string& folder);
  Recipes recipes;

 private:
  const NameReader& names_;
};

struct Dialect {
  std::string_view whose;  // names they are; for messages
  Anchors anchors;
  // Fills the facts, settles them and writes a recipe per canonical tensor. What it does not
  // understand it must refuse.
  void (*read)(const NameReader& names, Architecture& a, RecipeWriter& w);
  std::string_view tower = "";  // a folder that the anchors may lie in, below the prefix
  bool text = false;            // and not images: no part of config.json but its top is meant
};

// Error where config.json says another one; nothing where it says none.
void require_model_type(const NameReader& names, const std::set<std::string>& known);

// A file that lies beside the weights, as an object; null when there is none.
nlohmann::json json_beside(const Checkpoint& checkpoint, const char* name);

// The number of heads: stated, that of config.json, or by the width. otherwise: what is known where
// config.json is silent (0: nothing).
void set_heads(const NameReader& names, Architecture& a, size_t otherwise = 0);
// The grid of a position table of so many rows (without those of prefix tokens), and the input
// size: the one stated, or that of the table. Before the preprocessing, which follows the size.
// token: what may be missing when there is one row too many.
void set_grid(const NameReader& names, Architecture& a, size_t grid_positions,
              const std::string& token = "");
// The input size of a model without a table of positions: stated, that of config.json, or as usual.
void set_input(const NameReader& names, Architecture& a, size_t usual);
// Whether the size of config.json, or the stated one, has so many patches.
bool config_size_has(const NameReader& names, const Architecture& a, size_t positions);
bool stated_size_has(const NameReader& names, const Architecture& a, size_t positions);
bool is_square(size_t positions);
// h x w of a stored table: as config.json has it, or else a square, or else as stated; last, since
// a stated size may as well be one to resize to.
std::optional<std::pair<size_t, size_t>> find_grid(const NameReader& names, const Architecture& a,
                                                   size_t positions);
// The stated size, height first; a lone number is a square or, of sounds, the frames of so many
// bins.
std::optional<std::pair<size_t, size_t>> stated_size(const NameReader& names, size_t bins = 0);
// AST and SSAST in timm's names, in ast_names.cpp: whether it is a pre-trained SSAST; and the
// facts of either.
bool is_pretrained_ssast(const NameReader& names);
void set_sound(const NameReader& names, Architecture& a);
// The front end of a model of sounds, in sound_facts.cpp: that of its family, what a
// preprocessor_config.json beside the file says of it, and what the user says.
void set_front_end(Architecture& a, SoundFrontEnd front_end, const std::string& source,
                   bool assumed);
void read_feature_extractor(const Checkpoint& checkpoint, const StatedFacts& facts,
                            Architecture& a);
void state_front_end(const StatedFacts& facts, Architecture& a);
// The end of every dialect's facts: what the user stated has the last word, and what cannot be run
// is an Error.
void settle_facts(const NameReader& names, Architecture& a);

// Whether the file is what was read into it: every tensor that a recipe names is there, blocks are
// alike, nothing inside a block is left over, config.json speaks of the same network, and all
// shapes are those of the architecture. A variant whose names look familiar must not be run as
// something else.
void check_reading(const NameReader& names, const Reading& reading);

// Error naming a tensor of the file that no recipe uses and that is not known to be without effect
// on the embedding: a norm, prompt or scale that would be left out. fits: without all of them the
// file could be read, so that the user may say that they do not matter.
void check_nothing_left(const NameReader& names, const Reading& reading, bool fits);
// The starts of the names of a decoder that the type in config.json has, of those in the file. It
// is left aside, and said so.
std::vector<std::string> decoder_of(const NameReader& names, const Architecture& a);
// What the tensors of each block have in common in the file, by canonical block:
// "visual.transformer.resblocks.3."
std::map<std::string, std::string> block_folders(const Recipes& recipes);

// How the encoder's vectors are pooled, where sentence-transformers' files beside it say so, and
// notes on that. Error where they ask for what is not known here.
void read_sentence_modules(const NameReader& names, Architecture& a,
                           std::vector<std::string>& notes);

// For the user: which of several networks this is, and what nothing tells about it.
std::vector<std::string> notes_on(const NameReader& names, const Architecture& a);

// read_names() without a look at whether its suggestions help.
Reading read_stated(const Checkpoint& checkpoint, const StatedFacts& stated_facts);

// Error where config.json asks for code that is published with the model, which is not run here: it
// may compute anything under familiar names.
void refuse_own_code(const Checkpoint& checkpoint);
[[noreturn]] void refuse_missing(const NameReader& names, const std::string& tensor);
// For a file that no dialect knows: names the anchor that the nearest of them misses.
[[noreturn]] void refuse_unknown(const Checkpoint& checkpoint);
// A CLIP tower without its projection (`file`) while the text tower beside it has one: incomplete.
void check_projection(const NameReader& names, const Architecture& a, const std::string& file);

// The evaluation transform, which no tensor tells: what timm's config.json says of it (false: there
// is none), or a preprocessor_config.json beside the file; then what the user says.
bool read_timm_transform(const NameReader& names, Architecture& a);
// Refuses what its config.json says in model_args and nothing here does.
void check_timm_args(const NameReader& names, const Architecture& a);
// What open_clip_config.json says of the tower, and of its transform (false: there is none, or it
// is not about this file). And a timm trunk of open_clip's: refuses a head after it, which nothing
// here runs, and another pooling.
bool read_open_clip_config(const NameReader& names, Architecture& a);
bool read_open_clip_transform(const NameReader& names, Architecture& a);
void check_trunk(const NameReader& names, const Architecture& a);
size_t augreg_resize(const Architecture& a);  // what its pictures are resized to before the crop
void read_image_processor(const Checkpoint& checkpoint, const StatedFacts& facts, Architecture& a);
void state_preprocess(const StatedFacts& facts, Architecture& a);
void check_preprocess(const Architecture& a, const std::string& place);

inline constexpr std::array<float, 3> kClipMean{0.48145466f, 0.4578275f, 0.40821073f};
inline constexpr std::array<float, 3> kClipDeviation{0.26862954f, 0.26130258f, 0.27577711f};

extern const Dialect kTimmNames, kEvaNames, kTorchvisionNames, kClipNames, kHuggingfaceClipNames,
    kHuggingfaceVitNames, kBertNames, kDistilbertNames, kMpnetNames, kAlbertNames, kModernbertNames,
    kT5Names, kAugregNames, kWhisperNames, kKwtNames, kDinov3Names, kSiglipNames, kAimv2Names,
    kTimmRotaryNames, kTimmAimv2Names, kDinov3AuthorsNames;
// All of them, in the order in which they are tried.
std::span<const Dialect* const> dialects();

}  // namespace fungi
