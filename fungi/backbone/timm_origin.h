// SPDX-License-Identifier: Apache-2.0
// Where a file with timm's names comes from, and what that tells of it. Internal to this room.
#pragma once

#include <cctype>
#include <filesystem>
#include <string>
#include <string_view>

#include "fungi/backbone/timm_architectures.h"
#include "fungi/base/text.h"

namespace fungi {

// Where a file with these names may come from: the user's word, timm's config.json, the prefix that
// a training script left, or the file's own name.
class Origin {
 public:
  explicit Origin(const NameReader& names) {
    text_ = names.architecture().value_or("") + "." +
            names.config_text("/pretrained_cfg/tag").value_or("");
    if (text_ == ".") text_ = std::filesystem::path(names.checkpoint().path()).filename().string();
    if (names.full("").find("base_encoder.") != std::string::npos) text_ += ".moco";
    if (names.full("").find("teacher.backbone.") != std::string::npos) text_ += ".dino";
    if (const auto family = names.stated("family")) text_ = *family, stated_ = true;
    text_ = lower(text_);
    named_ = names.architecture().has_value();
  }
  // As a whole word: "dino" is none of "dinosaur".
  bool mentions(std::string_view word) const {
    const auto letter = [&](size_t i) {
      return i < text_.size() && std::isalnum(static_cast<unsigned char>(text_[i]));
    };
    for (size_t at = 0; (at = text_.find(word, at)) != std::string::npos; ++at)
      if (!letter(at - 1) && !letter(at + word.size())) return true;
    return false;
  }
  bool stated() const { return stated_; }
  bool fine_tuned() const { return text_.find("_ft_") != std::string::npos; }
  // As in vit_small_patch14_reg4_dinov2 and dinov2_vits14_reg4_pretrain.pth; in the names of other
  // files it may mean anything.
  bool has_registers() const {
    const size_t at = text_.find("_reg");
    return (named_ || mentions("dinov2")) && at != std::string::npos &&
           std::isdigit(static_cast<unsigned char>(text_[at + 4]));
  }
  // Whether anything says if this is one of DINO's files or one of those that timm resizes.
  bool known() const {
    if (named_) return true;
    for (const char* word :
         {"dino", "vit", "deit", "mae", "moco", "mocov3", "augreg", "augreg2", "timm"})
      if (mentions(word)) return true;
    return false;
  }

 private:
  std::string text_;
  bool named_ = false;   // by timm's config.json, or by the user
  bool stated_ = false;  // by the user
};

// What differs between networks with the same tensors, in timm_family.cpp: family, activation and
// epsilon; how tokens are pooled; and the projection of a tower.
void set_family(const NameReader& names, const Origin& origin, const TimmArchitecture* known,
                Architecture& a);
// The angles of queries and keys, which stand in no tensor, and whether there is a table of
// positions. Needs the prefix tokens' names alone.
void set_rotary(const NameReader& names, const TimmArchitecture* known, Architecture& a);
void set_pooling(const NameReader& names, const TimmArchitecture* known, Architecture& a);
void set_head(const NameReader& names, const Origin& origin, Architecture& a);

}  // namespace fungi
