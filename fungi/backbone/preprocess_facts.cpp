// SPDX-License-Identifier: Apache-2.0
// The evaluation transform, which stands in no tensor: from timm's config.json, from the file that
// Hugging Face's image processors leave beside the weights, and in the user's words (--set mean=0.5
// std=0.5 resize=248 interpolation=bilinear squash=no).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "fungi/backbone/names.h"
#include "fungi/base/largest_side.h"

namespace fungi {
namespace {

using json = nlohmann::json;

// The image processors that resize, crop, scale and normalise and do nothing else, and whether a
// bare number as their size is that of a square, or of the shorter side.
const std::map<std::string, bool> kProcessors{
    {"Beit", true},   {"Bit", false}, {"CLIP", false},    {"ChineseCLIP", false},
    {"DPT", true},    {"DeiT", true}, {"Flava", true},    {"Pvt", true},
    {"Siglip", true}, {"ViT", true},  {"DINOv3ViT", true}};

// What some of them do besides, and the values with which they do not.
struct Extra {
  const char* key;
  json harmless;
};
const Extra kExtras[] = {{"crop_pct", nullptr},
                         {"rescale_offset", false},
                         {"keep_aspect_ratio", false},
                         {"ensure_multiple_of", 1},
                         {"do_pad", false},
                         {"do_flip_channel_order", false},
                         {"do_color_quantize", false},
                         {"do_image_splitting", false},
                         {"include_top", false},
                         {"do_grayscale", false}};

// preprocessor_config.json, in which Hugging Face keeps the evaluation transform, or where there is
// none processor_config.json, which transformers 5 writes. Read strictly: to go on without a fact
// in it would be a guess.
class Processor {
 public:
  explicit Processor(const Checkpoint& checkpoint)
      : place_(checkpoint.path()), all_(json_beside(checkpoint, file_)) {
    if (!all_.is_null()) return;
    file_ = "processor_config.json";
    all_ = json_beside(checkpoint, file_);
    if (all_.is_null()) return;
    json part = has("image_processor") ? all_["image_processor"] : json::object();
    if (!part.is_object()) mistyped("an object", "image_processor");
    all_ = std::move(part);
  }

  bool empty() const { return all_.empty(); }
  const std::string& place() const { return place_; }
  const char* file() const { return file_; }
  // Refuses what does more than is done here. Gives whether a bare size is that of a square, if
  // the file tells whose it is.
  std::optional<bool> check_kind() const {
    for (const Extra& extra : kExtras)
      if (has(extra.key) && all_[extra.key] != extra.harmless)
        refuse(fmt::format("{} is {}, which is not known here", extra.key, text(extra.key)));
    const char* key =
        has("image_processor_type") ? "image_processor_type" : "feature_extractor_type";
    if (!has(key)) return {};
    std::string kind = all_[key].is_string() ? all_[key].get<std::string>() : "";
    for (const std::string_view end : {"Fast", "Pil", "ImageProcessor", "FeatureExtractor"})
      if (kind.ends_with(end)) kind.erase(kind.size() - end.size());
    const auto known = kProcessors.find(kind);
    if (known == kProcessors.end()) {
      std::vector<std::string> kinds;
      for (const auto& [name, square] : kProcessors) kinds.push_back(name);
      refuse(fmt::format("{} is {}, expected the image processor of one of {}", key, text(key),
                         fmt::join(kinds, ", ")));
    }
    return known->second;
  }

  bool has(const char* key) const { return all_.contains(key) && !all_[key].is_null(); }
  bool flag(const char* key, bool otherwise) const {
    if (!has(key)) return otherwise;
    if (!all_[key].is_boolean()) mistyped("true or false", key);
    return all_[key].get<bool>();
  }
  std::array<float, 3> colours(const char* key) const {
    std::array<float, 3> out{};
    const json& list = all_[key];
    if (!list.is_array() || list.size() != 3) mistyped("three numbers", key);
    for (size_t i = 0; i < 3; ++i) {
      if (!list[i].is_number()) mistyped("three numbers", key);
      out[i] = list[i].get<float>();
    }
    return out;
  }
  int whole_number(const char* key) const {
    if (!all_[key].is_number_integer()) mistyped("a whole number", key);
    return all_[key].get<int>();
  }
  double positive(const char* key) const {
    if (!all_[key].is_number() || !(all_[key].get<double>() > 0))
      mistyped("a positive number", key);
    return all_[key].get<double>();
  }
  // 224, {"shortest_edge": 224}, or {"height": 224, "width": 224}, of which `square` tells the last
  // (and leaves the first as it is).
  size_t side(const char* key, bool& square) const {
    const json& value = all_[key];
    const auto named = [&](const char* name) {
      return value.is_object() && value.contains(name) ? value[name] : json();
    };
    if (value.is_object()) square = !value.contains("shortest_edge");
    if (value.is_object() && square && named("height") != named("width")) mistyped("a square", key);
    const json side = value.is_object() ? named(square ? "height" : "shortest_edge") : value;
    if (!side.is_number_integer() || side < 1 || side > kLargestSide)
      mistyped("a number of pixels", key);
    return side.get<size_t>();
  }
  [[noreturn]] void refuse(const std::string& message) const {
    fail(fmt::format("{}: {}", file_, message), place_,
         "correct it, or move it away and state mean, std, resize and interpolation with "
         "`stated_facts`");
  }

 private:
  [[noreturn]] void mistyped(const char* expected, const char* key) const {
    refuse(fmt::format("expected {} as {}, found {}", expected, key, text(key)));
  }
  std::string text(const char* key) const {
    return all_[key].dump(-1, ' ', true, json::error_handler_t::replace);
  }
  std::string place_;
  const char* file_ = "preprocessor_config.json";
  json all_;
};

const std::string* find(const StatedFacts& facts, const char* key) {
  const auto at = facts.find(key);
  return at == facts.end() ? nullptr : &at->second;
}

// One number for all colours, or three with commas between them.
std::array<float, 3> parse_colours(const std::string& text, const char* key) {
  std::array<float, 3> out{};
  const char *at = text.data(), *end = at + text.size();
  size_t count = 0;
  while (count < 3) {
    const auto [next, error] = std::from_chars(at, end, out[count]);
    if (error != std::errc() || !std::isfinite(out[count])) break;
    ++count;
    at = next;
    if (at == end || *at != ',' || count == 3 || at + 1 == end) break;
    ++at;
  }
  if (at != end || (count != 1 && count != 3))
    fail(fmt::format("expected a number, or three with commas between them, found '{}'", text),
         fmt::format("`stated_facts[{}]`", key),
         fmt::format("e.g. {}=0.5 or {}=0.48,0.46,0.41", key, key));
  if (count == 1) out[1] = out[2] = out[0];
  return out;
}

bool parse_choice(const std::string& text, const char* key, const char* yes, const char* no) {
  if (text != yes && text != no)
    fail(fmt::format("expected {} or {}, found '{}'", yes, no, text),
         fmt::format("`stated_facts[{}]`", key));
  return text == yes;
}

// DINOv2 and DINOv3 take any size, in Hugging Face's hands that of its processor: its published
// files have positions for 518 and a crop of 224.
void follow_crop(const Processor& file, const StatedFacts& facts, size_t crop, Architecture& a) {
  const bool any = a.family == "dinov2" || a.family == "dinov3";
  if (!any || a.dialect != "huggingface" || find(facts, "size") ||
      (a.input_h == crop && a.input_w == crop))
    return;
  const size_t side = std::lcm(a.patch_h, a.patch_w);
  if (crop % side)
    fail(fmt::format("{}: a crop of {} is not a multiple of the patch {}x{}", file.file(), crop,
                     a.patch_h, a.patch_w),
         file.place(),
         fmt::format("state the input size: `stated_facts[size]={}`",
                     std::max(crop / side * side, side)));
  a.input_h = a.input_w = crop;
}

}  // namespace

size_t augreg_resize(const Architecture& a) {
  const size_t input = std::min(a.input_h, a.input_w), native = a.stored_grid_h * a.patch_h;
  return native > 224 ? input : size_t(double(input) / 0.9);  // the larger ones crop nothing
}

bool read_timm_transform(const NameReader& names, Architecture& a) {
  const auto has = [&](const char* key) {
    return names.config_has(fmt::format("/pretrained_cfg/{}", key).c_str());
  };
  if (!has("mean") && !has("std") && !has("crop_pct") && !has("crop_mode") && !has("interpolation"))
    return false;
  const auto refuse = [&](const char* key, const char* expected, const auto& found) {
    fail(fmt::format("config.json: expected {} as {}, found {}", expected, key, found),
         names.checkpoint().path(),
         "correct config.json, or move it away and state the facts with `stated_facts`");
  };
  PreprocessFacts& p = a.preprocess;  // what is left out is ImageNet's, as timm has it
  for (const auto& [key, colours] :
       {std::pair("mean", &p.transform.mean), std::pair("std", &p.transform.std)}) {
    if (!has(key)) continue;
    const bool list = has(fmt::format("{}/0", key).c_str());  // else one for all, as of audio
    for (size_t i = 0; i < 3; ++i) {
      const std::string place = list ? fmt::format("/pretrained_cfg/{}/{}", key, i)
                                     : fmt::format("/pretrained_cfg/{}", key);
      const auto value = names.config_number(place.c_str());
      if (!value) refuse(key, "three numbers", "something else");
      (*colours)[i] = float(*value);
    }
    if (has(fmt::format("{}/3", key).c_str())) refuse(key, "three numbers", "more");
  }
  const double crop = names.config_number("/pretrained_cfg/crop_pct").value_or(0.875);
  if (!(crop > 0.01 && crop <= 1)) refuse("crop_pct", "a number from 0.01 to 1", crop);
  p.transform.resize_size = size_t(double(std::min(a.input_h, a.input_w)) / crop);
  const auto word = [&](const char* key, const char* otherwise) {
    const std::string place = fmt::format("/pretrained_cfg/{}", key);
    if (has(key) && !names.config_text(place.c_str())) refuse(key, "a word", "something else");
    return names.config_text(place.c_str()).value_or(otherwise);
  };
  const std::string mode = word("crop_mode", "center");
  if (mode != "center" && mode != "squash") refuse("crop_mode", "center or squash", mode);
  p.transform.set_squash(mode == "squash");
  const std::string filter = word("interpolation", "bicubic");
  if (filter != "bicubic" && filter != "bilinear")
    refuse("interpolation", "bicubic or bilinear", filter);
  p.transform.set_bilinear(filter == "bilinear");
  p.source = "config.json";
  p.assumed = false;
  return true;
}

void read_image_processor(const Checkpoint& checkpoint, const StatedFacts& facts, Architecture& a) {
  PreprocessFacts& p = a.preprocess;
  if (a.input != InputKind::image || p.source == "config.json" ||
      p.source == "open_clip_config.json")
    return;
  const Processor file(checkpoint);
  if (file.empty()) return;
  const std::optional<bool> bare_size_squares = file.check_kind();
  if (!file.flag("do_rescale", true) || !file.flag("do_resize", true))
    file.refuse("expected do_rescale and do_resize to be true: pictures are always scaled here");
  if (file.has("image_mean") != file.has("image_std"))
    file.refuse("expected image_mean and image_std together, found one of them");
  const bool normalise = file.flag("do_normalize", true);
  // Pixels are divided by 255 here; another factor goes into the statistics.
  const double scale = file.has("rescale_factor") ? 255 * file.positive("rescale_factor") : 1;
  const bool scaled = std::abs(scale - 1) > 1e-6;  // 1/255 in decimals is not quite 1/255
  if (normalise && !scaled && !file.has("image_mean") && !file.has("size") && !file.has("resample"))
    return;
  if (!normalise)
    p.transform.mean = {0, 0, 0}, p.transform.std = {1, 1, 1};
  else if (file.has("image_mean"))
    p.transform.mean = file.colours("image_mean"), p.transform.std = file.colours("image_std");
  if (scaled)
    for (size_t i = 0; i < 3; ++i) {
      p.transform.mean[i] = float(p.transform.mean[i] / scale);
      p.transform.std[i] = float(p.transform.std[i] / scale);
    }
  if (file.has("size")) {
    bool squash = bare_size_squares.value_or(a.family != "clip");
    const size_t size = file.side("size", squash);
    p.transform.set_squash(squash);
    const bool cropped = file.flag("do_center_crop", file.has("crop_size"));
    if (!p.transform.squashes() && file.has("do_center_crop") && !cropped)
      file.refuse(
          "do_center_crop is false, but the shorter side alone has a size: expected square "
          "pictures");
    bool square = true;
    const size_t crop = cropped && file.has("crop_size") ? file.side("crop_size", square) : size;
    if (crop > size) file.refuse(fmt::format("a crop of {} is larger than size {}", crop, size));
    follow_crop(file, facts, crop, a);
    // The same share of the image at any input size.
    p.transform.resize_size = size * std::min(a.input_h, a.input_w) / crop;
    if (p.transform.resize_size > kLargestSide)
      file.refuse(fmt::format("a crop of {} from {} is too small", crop, size));
  }
  if (file.has("resample") && !find(facts, "interpolation")) {
    constexpr int kBilinear = 2, kBicubic = 3;  // Pillow's numbers
    const int filter = file.whole_number("resample");
    if (filter != kBilinear && filter != kBicubic)
      file.refuse(fmt::format("expected resample 2 (bilinear) or 3 (bicubic), found {}", filter));
    p.transform.set_bilinear(filter == kBilinear);
  }
  p.transform.floor_crop = true;
  p.source = file.file();
  p.assumed = false;
}

void state_preprocess(const StatedFacts& facts, Architecture& a) {
  const std::string *mean = find(facts, "mean"), *deviation = find(facts, "std"),
                    *resize = find(facts, "resize"), *squash = find(facts, "squash"),
                    *interpolation = find(facts, "interpolation"), *crop = find(facts, "crop");
  if (!mean && !deviation && !resize && !squash && !interpolation && !crop) return;
  if (a.input == InputKind::filter_bank) return;  // state_front_end()
  if (a.input != InputKind::image)
    fail("only images have an evaluation transform", "`stated_facts`",
         "leave out mean, std, resize, squash, crop and interpolation");
  PreprocessFacts& p = a.preprocess;
  if (mean) p.transform.mean = parse_colours(*mean, "mean");
  if (deviation) p.transform.std = parse_colours(*deviation, "std");
  if (deviation && *std::min_element(p.transform.std.begin(), p.transform.std.end()) <= 0)
    fail(fmt::format("expected numbers above 0, by which colours are divided, found '{}'",
                     *deviation),
         "`stated_facts[std]`");
  p.stated_colours = mean || deviation, p.stated_resize = resize || squash;
  p.stated_crop = crop != nullptr;
  if (resize) {
    const char* end = resize->data() + resize->size();
    const size_t least = std::min(a.input_h, a.input_w);
    const auto [last, error] = std::from_chars(resize->data(), end, p.transform.resize_size);
    if (error != std::errc() || last != end || p.transform.resize_size < least ||
        p.transform.resize_size > kLargestSide)
      fail(fmt::format("expected the shorter side before the crop, {} to {}, found '{}'", least,
                       kLargestSide, *resize),
           "`stated_facts[resize]`");
  }
  if (squash) p.transform.set_squash(parse_choice(*squash, "squash", "yes", "no"));
  if (crop) p.transform.floor_crop = parse_choice(*crop, "crop", "floor", "even");
  if (interpolation)
    p.transform.set_bilinear(parse_choice(*interpolation, "interpolation", "bilinear", "bicubic"));
  if (mean && deviation && resize)
    p.source = "stated", p.assumed = false;
  else
    p.source += ", in part stated";
}

void check_preprocess(const Architecture& a, const std::string& place) {
  const char* hint =
      "correct config.json or preprocessor_config.json, or state it with `stated_facts`";
  for (const float x : a.preprocess.transform.std)
    if (!std::isnormal(x) || x < 0)
      fail(fmt::format("expected positive deviations of the colours (std), found {}", x), place,
           hint);
  for (const float x : a.preprocess.transform.mean)
    if (!std::isfinite(x))
      fail(fmt::format("expected finite means of the colours, found {}", x), place, hint);
}

}  // namespace fungi
