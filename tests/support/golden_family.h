// SPDX-License-Identifier: Apache-2.0
// A folder of tests/golden/backbone: a tiny model, what its user would state of it, and its inputs.
#pragma once

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "fungi/backbone/backbone.h"
#include "tests/support/golden.h"

namespace fungi::golden {

struct Family {
  std::filesystem::path folder;
  nlohmann::json facts;
  Array input;
  std::vector<float> pixels, token_seed;
  std::vector<uint8_t> hidden;   // patches, [samples, patches]
  std::vector<uint32_t> frames;  // that hold sound
  std::vector<std::vector<int32_t>> ids;
  std::vector<std::vector<uint8_t>> masks;
  std::vector<Inputs::Text> texts;

  explicit Family(const std::string& name)
      : folder(std::filesystem::path(FUNGI_GOLDEN_DIR) / "backbone" / name) {
    facts = nlohmann::json::parse(std::ifstream(folder / "facts.json"));
    input = array("input");
    if (input.shape.size() > 2) {
      pixels = input.floats();
      if (std::filesystem::exists(folder / "masked.npy")) {
        const Array masked = array("masked");
        hidden.assign(masked.values.begin(), masked.values.end());
      }
      if (std::filesystem::exists(folder / "frames.npy")) {
        const Array sound = array("frames");
        frames.assign(sound.values.begin(), sound.values.end());
      }
      if (std::filesystem::exists(folder / "token_seed.npy"))
        token_seed = array("token_seed").floats();
      return;
    }
    const Array mask = array("mask");
    for (size_t i = 0; i < input.rows(); ++i) {
      const double *id = input.values.data() + i * input.cols(),
                   *kept = mask.values.data() + i * input.cols();
      ids.emplace_back(id, id + input.cols());
      masks.emplace_back(kept, kept + input.cols());
    }
    for (size_t i = 0; i < ids.size(); ++i) texts.push_back({ids[i], masks[i]});
  }

  Array array(const std::string& name) const { return load((folder / (name + ".npy")).string()); }

  std::filesystem::path checkpoint() const {
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      if (entry.path().extension() != ".npy" && entry.path().extension() != ".json")
        return entry.path();
    throw std::runtime_error("no model in " + folder.string());
  }

  StatedFacts stated_facts() const {  // what the tiny files cannot tell, as a user would state it
    const std::string name = folder.filename();
    StatedFacts o{{"heads", std::to_string(facts.at("heads").get<int>())}};
    const auto size = [&](size_t h, size_t w) {
      o["size"] = std::to_string(h) + "x" + std::to_string(w);
    };
    if (input.shape.size() == 4) size(input.shape[2], input.shape[3]);
    if (input.shape.size() == 3)
      size(input.shape[2], input.shape[1]);  // [time, bins] is read as bins × time
    if (name.starts_with("open")) o["activation"] = facts.at("activation").get<std::string>();
    if (name.starts_with("dino_"))
      o["family"] = "dino";  // the names are timm's, the position resize is not
    if (name == "bert_mean") o["pooling"] = "mean_all";
    const std::string pooling = facts.at("pooling").get<std::string>();
    if (!texts.empty() && pooling.find(' ') == std::string::npos) o["pooling"] = pooling;
    return o;
  }

  Inputs inputs() const {
    if (!texts.empty()) return Inputs::text(texts);
    Inputs inputs = Inputs::images({pixels.data(), input.rows(), pixels.size() / input.rows()});
    inputs.frames = frames;
    if (!hidden.empty())
      inputs.masked = {hidden.data(), input.rows(), hidden.size() / input.rows()};
    return inputs;
  }
};

// Without these, a file is another one that exists: only hidden patches need a mask token, and
// DINOv2 comes with and without registers.
inline bool may_go(const std::string& folder, const std::string& tensor) {
  return tensor.ends_with("mask_token") ||
         (folder == "dinov2_registers" && tensor == "register_tokens");
}

}  // namespace fungi::golden
