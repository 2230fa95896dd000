// SPDX-License-Identifier: Apache-2.0
// Version 1 told the architecture in the words that `inspect` prints, left out what had its usual
// value, and said nothing of the layer's shape. What it did not say of the architecture is null.
#include "fungi/store/upgrade.h"

#include <fmt/format.h>

#include <cstdlib>
#include <regex>
#include <vector>

#include "fungi/base/error.h"

namespace fungi::store {
namespace {

constexpr const char* kNumber = "(\\d{1,9})";  // few enough digits for products of three
constexpr const char* kPair = "(\\d{1,9})x(\\d{1,9})";

const Json& field(const Json& object, const char* name, const std::string& place) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  if (found == object.end()) fail(fmt::format("the field '{}' is missing", name), place);
  return *found;
}

// An object of version 1 whose values are text.
class Words {
 public:
  Words(const Json& words, std::string place) : words_(words), place_(std::move(place)) {}

  bool has(const char* name) const { return words_.contains(name); }
  std::string text(const char* name) const {
    const Json& value = field(words_, name, place_);
    if (!value.is_string()) fail(fmt::format("the field '{}' should be text", name), place_);
    return value.get<std::string>();
  }
  // The groups of a pattern that the text has to fit.
  std::vector<std::string> parts(const char* name, const char* pattern) const {
    const std::string whole = text(name);
    std::smatch found;  // of a text that no version wrote, a long one would cost the stack
    if (whole.size() > 500 || !std::regex_match(whole, found, std::regex(pattern)))
      fail(fmt::format("the field '{}' holds {}, which no version wrote", name, dump(whole)),
           place_);
    return {found.begin() + 1, found.end()};
  }
  size_t number(const char* name) const { return std::stoul(parts(name, kNumber)[0]); }
  const std::string& place() const { return place_; }

 private:
  const Json& words_;
  std::string place_;
};

Json architecture(const Words& words) {
  Json a;
  for (const char* name : {"family", "dialect", "input"}) a[name] = words.text(name);
  for (const char* name :
       {"width", "depth", "heads", "head_dim", "mlp_hidden", "embedding_width", "prefix_tokens"})
    a[name] = words.number(name);
  a["heads_assumed"] = words.has("heads_from");
  const auto put = [&](const std::vector<std::string>& parts,
                       const std::vector<const char*>& names) {
    for (size_t i = 0; i < names.size(); ++i) a[names[i]] = std::stoul(parts[i]);
  };
  put(words.parts("input_size", "(\\d{1,9})x(\\d{1,9})x(\\d{1,9})"),
      {"channels", "input_h", "input_w"});
  put(words.parts("patch", kPair), {"patch_h", "patch_w"});
  put(words.parts(words.has("stride") ? "stride" : "patch", kPair), {"stride_h", "stride_w"});
  if (words.has("positions")) {
    const auto parts = words.parts("positions", "(\\d{1,9})x(\\d{1,9}) resized to .* by (\\w+)");
    put(parts, {"stored_grid_h", "stored_grid_w"});
    a["position_resize"] = parts[2];
  } else {
    for (const std::string axis : {"h", "w"}) {
      const size_t input = a["input_" + axis], patch = a["patch_" + axis],
                   stride = a["stride_" + axis];
      if (stride == 0 || input < patch)
        fail(fmt::format("patches of {} pixels, {} apart, in {} are impossible", patch, stride,
                         input),
             words.place());
      a["stored_grid_" + axis] = (input - patch) / stride + 1;
    }
    a["position_resize"] = nullptr;
  }
  a["registers"] = words.has("registers") ? words.number("registers") : 0;
  const auto norm =
      words.parts("norm", "(rms|layer), (after|before), epsilon ([0-9.]{1,12}(e-?\\d{1,2})?)");
  a["rms_norm"] = norm[0] == "rms", a["post_norm"] = norm[1] == "after";
  a["norm_epsilon"] = std::strtod(norm[2].c_str(), nullptr);
  a["norm_pre"] = words.has("embedding_norm");
  for (const char* name : {"layer_scale", "attention_norm", "mlp_norm", "head"})
    a[name] = words.has(name);
  a["linear_bias"] = !words.has("linear_bias");  // stated only where there is none
  const auto activation = words.parts("activation", "(\\w+)(, gated)?");
  a["activation"] = activation[0], a["gated_mlp"] = !activation[1].empty();
  a["rotary"] = words.has("rotary");
  a["rotary_grid"] = nullptr;
  if (words.has("rotary")) put(words.parts("rotary", "reference grid (\\d{1,9})"), {"rotary_grid"});
  const auto pooling = words.parts("pooling", "(\\w+)(, then norm)?");
  a["pooling"] = pooling[0], a["norm_after_pooling"] = !pooling[1].empty();
  for (const char* name : {"position_on_prefix", "patch_bias", "mask_token", "vocabulary",
                           "max_positions", "padding_id", "relative_buckets", "relative_distance",
                           "qkv_bias", "scale_attention", "final_norm", "head_bias"})
    a[name] = nullptr;
  for (const char* name :
       {"resize", "resize_size", "filter", "floor_crop", "augreg", "mean", "std", "assumed",
        "stated_colours", "stated_resize", "stated_crop"})
    a["preprocess"][name] = nullptr;
  a["preprocess"]["source"] = words.parts("preprocess", "[^(]*\\((.*)\\)")[0];
  a["tokens"] = words.number("tokens");
  a["parameters"] = std::stoul(words.parts("parameters", "(\\d{1,18})")[0]);
  return a;
}

// The layer whose gradient was taken, with its shape.
Json gradient(const Json& settings, const Json& a, const std::string& place) {
  const std::string layer = Words(settings, place).text("layer");
  const size_t width = a["width"], hidden = a["mlp_hidden"],
               inner = a["heads"].get<size_t>() * a["head_dim"].get<size_t>();
  Json g{{"layer", layer},
         {"norm1_as_input", settings.contains("layer_input")},
         {"bias", a["linear_bias"]}};
  const auto shape = [&](size_t outputs, size_t inputs) {
    g["outputs"] = outputs, g["inputs"] = inputs;
  };
  if (layer.ends_with(".attn.qkv"))
    shape(3 * inner, width), g["bias"] = true;
  else if (layer.ends_with(".mlp.fc1"))
    shape(a["gated_mlp"].get<bool>() ? 2 * hidden : hidden, width);
  else if (layer.ends_with(".mlp.fc2"))
    shape(width, hidden);
  else
    shape(width, inner);
  g["projection"] = field(settings, "projection", place);
  return g;
}

Json image(const Json& settings, const std::string& place) {
  const Json& old = field(settings, "preprocess", place);
  if (!old.is_object()) fail("the field 'settings.preprocess' should be an object", place);
  Json preprocess{{"resize", old.value("squash", Json(false)) == true ? "squash" : "short_side"},
                  {"floor_crop", old.contains("crop")}};
  for (const auto& [name, before] : {std::pair("resize_size", "resize"),
                                     {"filter", "filter"},
                                     {"input_size", "size"},
                                     {"mean", "mean"},
                                     {"std", "std"}})
    preprocess[name] = field(old, before, place);
  return {{"exif_orientation", field(settings, "exif_orientation", place)},
          {"allow_truncated", field(settings, "allow_truncated", place)},
          {"preprocess", std::move(preprocess)}};
}

// A sample's factors were told as one long row; the file is the same.
void split_factors(Json& block, const Json& gradient, const std::string& place) {
  const Json& name = field(block, "name", place);
  for (const auto& [end, length] : {std::pair("_factors_b", "outputs"), {"_factors_a", "inputs"}}) {
    if (!name.is_string() || !name.get<std::string>().ends_with(end)) continue;
    const Json whole = field(block, "width", place);
    const size_t width = gradient[length];
    if (!whole.is_number_unsigned() || width == 0 || whole.get<size_t>() % width != 0)
      fail(fmt::format("the block '{}' has {} columns, but the layer has {} {}",
                       name.get<std::string>(), dump(whole), width, length),
           place);
    block["rows"] = whole.get<size_t>() / width;
    block["width"] = width;
  }
}

}  // namespace

Json upgrade_from_1(Json manifest, const std::string& place) {
  manifest["format_version"] = 2;
  Json& blocks = manifest["blocks"];
  if (!blocks.is_array()) fail("the field 'blocks' should be a list", place);
  for (Json& block : blocks) {
    if (!block.is_object()) fail("a block should be an object", place);
    block["rows"] = size_t{1};
  }
  const Json old = field(manifest, "settings", place);
  if (!old.is_object() || !old.contains("preset")) return manifest;  // of another program
  Json& model = manifest["model"];
  const Json words = field(model, "architecture", place);
  model["architecture"] = architecture({words, place + ", architecture"});
  Json settings{{"preset", old["preset"]},
                {"seed", field(old, "seed", place)},
                {"objectives", old.value("objectives", Json::object())},
                {"stated", old.value("stated", Json::object())},
                {"image", image(old, place)}};
  if (old.contains("objectives")) {
    settings["gradient"] = gradient(old, model["architecture"], place);
    for (Json& block : blocks) split_factors(block, settings["gradient"], place);
  }
  manifest["settings"] = std::move(settings);
  return manifest;
}

}  // namespace fungi::store
