// SPDX-License-Identifier: Apache-2.0
#include "fungi/hub/listing.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>

#include "fungi/base/error.h"
#include "fungi/base/json.h"
#include "fungi/base/text.h"
#include "fungi/hub/model_name.h"

namespace fungi {
namespace {

using nlohmann::json;

// In the order in which they are preferred.
constexpr std::array<std::string_view, 6> kUsualWeights{
    "model.safetensors", "model.safetensors.index.json", "open_clip_model.safetensors",
    "pytorch_model.bin", "pytorch_model.bin.index.json", "open_clip_pytorch_model.bin"};
constexpr std::array<std::string_view, 5> kWeightEndings{".safetensors", ".bin", ".pth", ".pt",
                                                         ".npz"};
// What lies beside the weights and is read by us, or by whoever uses the folder after us.
const std::set<std::string_view> kBeside{"config.json",
                                         "open_clip_config.json",
                                         "preprocessor_config.json",
                                         "processor_config.json",
                                         "feature_extractor_config.json",
                                         "tokenizer.json",
                                         "tokenizer_config.json",
                                         "special_tokens_map.json",
                                         "added_tokens.json",
                                         "vocab.txt",
                                         "vocab.json",
                                         "merges.txt",
                                         "bpe.codes",
                                         "spiece.model",
                                         "sentencepiece.bpe.model",
                                         "tokenizer.model",
                                         "modules.json",
                                         "sentence_bert_config.json",
                                         "config_sentence_transformers.json",
                                         "LICENSE",
                                         "LICENSE.txt",
                                         "LICENSE.md"};

// 1_Pooling/config.json and its like, which modules.json of a sentence encoder speaks of.
bool is_module_config(std::string_view name) {
  const size_t slash = name.find('/');
  return slash != std::string_view::npos && name.substr(slash) == "/config.json" &&
         name[0] >= '0' && name[0] <= '9';
}

bool is_index(std::string_view name) { return name.ends_with(".index.json"); }

bool ends_as_weights(std::string_view name) {
  const auto ends = [&](std::string_view ending) { return name.ends_with(ending); };
  return std::any_of(kWeightEndings.begin(), kWeightEndings.end(), ends) ||
         name.ends_with(".safetensors.index.json") || name.ends_with(".bin.index.json");
}

std::string text_of(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

std::string checksum_of(const json& file) {
  std::string sum;
  if (const auto lfs = file.find("lfs"); lfs != file.end() && lfs->is_object()) {
    sum = text_of(*lfs, "sha256");
    if (sum.empty()) sum = text_of(*lfs, "oid");
    if (sum.starts_with("sha256:")) sum.erase(0, 7);
  } else {
    sum = text_of(file, "blobId");
  }
  const bool known = (sum.size() == 40 || sum.size() == 64) &&
                     sum.find_first_not_of("0123456789abcdef") == std::string::npos;
  return known ? sum : "";
}

}  // namespace

bool is_weights(std::string_view name) {
  // Shards of a whole are wanted only through their index.
  return ends_as_weights(name) && (is_index(name) || name.find("-of-") == std::string_view::npos);
}

const HubFile* HubListing::find(std::string_view name) const {
  const auto same = [&](const HubFile& file) { return file.name == name; };
  const auto found = std::find_if(files.begin(), files.end(), same);
  return found == files.end() ? nullptr : &*found;
}

HubListing parse_listing(std::string_view text, const std::string& place) {
  const json answer = parse_json(text);
  const auto refuse = [&](const std::string& what) {
    fail(fmt::format("expected what a hub says of a model, {}", what), place,
         "is `endpoint` the address of a hub, or of a mirror of one?");
  };
  if (!answer.is_object()) refuse("found no JSON object");
  HubListing listing{text_of(answer, "sha"), {}};
  if (!is_commit(listing.commit)) refuse("found no commit");
  const auto siblings = answer.find("siblings");
  if (siblings == answer.end() || !siblings->is_array()) refuse("found no list of files");
  for (const json& one : *siblings) {
    if (!one.is_object()) refuse("found a file that is no object");
    HubFile file{.name = text_of(one, "rfilename"), .checksum = checksum_of(one)};
    if (!is_safe_file_name(file.name))
      fail(
          "a listed file would be written outside the folder of the model, or has a name that no "
          "file has here",
          fmt::format("{}: {}", place,
                      json(file.name).dump(-1, ' ', true, json::error_handler_t::replace)),
          "do not use this model: its names are made to harm");
    if (const auto size = one.find("size"); size != one.end() && size->is_number_unsigned())
      file.bytes = size->get<uint64_t>();
    listing.files.push_back(std::move(file));
  }
  return listing;
}

HubChoice choose_files(const HubListing& listing, const std::string& weights,
                       const std::string& place) {
  HubChoice choice;
  std::vector<std::string> there;
  for (const HubFile& file : listing.files) {
    if (kBeside.contains(file.name) || is_module_config(file.name)) choice.beside.push_back(file);
    if (is_weights(file.name)) there.push_back(file.name);
  }
  const auto found = [&]() -> const HubFile* {
    if (!weights.empty()) return listing.find(weights);
    for (const std::string_view usual : kUsualWeights)
      if (const HubFile* file = listing.find(usual)) return file;
    for (const std::string_view ending : kWeightEndings) {  // one alone needs no usual name
      const HubFile* only = nullptr;
      size_t count = 0;
      for (const HubFile& file : listing.files)
        if (file.name.ends_with(ending) && is_weights(file.name) &&
            file.name.find('/') == std::string::npos)
          only = &file, ++count;
      if (count == 1) return only;
    }
    return nullptr;
  }();
  if (!found || !is_weights(found->name))
    fail(
        weights.empty() ? "expected model.safetensors or other weights, found none that is to be "
                          "preferred"
                        : fmt::format("there are no weights '{}'", weights),
        place,
        there.empty()
            ? "this model has no weights that can be read: safetensors, PyTorch or npz"
            : fmt::format("choose with `weights`: {}",
                          fmt::join(there.begin(),
                                    there.begin() + std::min<std::ptrdiff_t>(12, std::ssize(there)),
                                    ", ")));
  choice.weights = *found;
  choice.sharded = is_index(found->name);
  return choice;
}

std::vector<HubFile> shards_of(std::string_view index, const HubChoice& choice,
                               const HubListing& listing, const std::string& place) {
  const json content = parse_json(index);
  const auto map = content.is_object() ? content.find("weight_map") : content.end();
  if (!content.is_object() || map == content.end() || !map->is_object())
    fail("expected an index with a weight_map, found none", place + "/" + choice.weights.name,
         "choose other weights with `weights`");
  const size_t slash = choice.weights.name.rfind('/');
  const std::string folder =
      slash == std::string::npos ? "" : choice.weights.name.substr(0, slash + 1);
  std::set<std::string> names;
  for (const auto& [tensor, file] : map->items())
    names.insert(file.is_string() ? folder + file.get<std::string>() : "");
  std::vector<HubFile> shards;
  for (const std::string& name : names) {
    const HubFile* file = listing.find(name);
    if (!file)
      fail("the index of the shards names a file that the model does not have",
           fmt::format("{}/{}: {}", place, choice.weights.name,
                       json(name).dump(-1, ' ', true, json::error_handler_t::replace)),
           "choose other weights with `weights`");
    shards.push_back(*file);
  }
  return shards;
}

}  // namespace fungi
