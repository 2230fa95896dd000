// SPDX-License-Identifier: Apache-2.0
// Which files of a folder make a tokenizer.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "fungi/base/error.h"
#include "fungi/base/json.h"
#include "fungi/checkpoint/sha256.h"
#include "fungi/token/tokenizer_parts.h"

namespace fungi {
namespace token {
namespace {

namespace fs = std::filesystem;

// Numbers beyond this are what people write who mean that there is no limit.
constexpr double kLongestModel = 1e7;

fs::path find_file(const fs::path& place) {
  std::error_code ignored;
  if (!fs::is_directory(place, ignored)) return place;
  for (const char* name :
       {"tokenizer.json", "vocab.txt", "spiece.model", "sentencepiece.bpe.model"})
    if (fs::exists(place / name, ignored)) return place / name;
  if (fs::exists(place / "vocab.json", ignored) && fs::exists(place / "merges.txt", ignored))
    return place / "vocab.json";
  fail(
      "expected the files of a tokenizer, found none of tokenizer.json, vocab.txt, spiece.model, "
      "sentencepiece.bpe.model, vocab.json beside merges.txt",
      place.string(),
      "fetch the whole folder of the model from its hub, or copy these files from the model it "
      "was made of");
}

std::string sum_of(std::initializer_list<const FileBytes*> files) {
  Sha256 sum;
  for (const FileBytes* file : files) {
    const uint64_t size = file ? file->bytes().size() : 0;  // where one ends and the next begins
    sum.add(std::as_bytes(std::span(&size, 1)));
    if (file) sum.add(file->bytes());
  }
  return sum.hex();
}

void find_mask(const Config& config, Tokenizer::Parts& parts) {
  std::vector<std::string> names{"[MASK]", "<mask>"};
  if (const auto said = config.word("mask_token")) names.insert(names.begin(), *said);
  for (const std::string& name : names) {
    int32_t id = parts.added.id_of(name);
    if (id < 0) id = parts.added_normalized.id_of(name);
    if (id < 0) id = parts.model->id_of(name);
    if (id >= 0) return void(parts.mask = id);
  }
}

}  // namespace

nlohmann::json parse_file(const FileBytes& file) {
  nlohmann::json json = parse_json(file.text());
  if (!json.is_object())
    fail("expected a JSON object, found something else", file.path(),
         "fetch the file again: the download or copy was interrupted");
  return json;
}

Config::Config(const fs::path& folder) : json_(std::make_unique<nlohmann::json>()) {
  const fs::path path = folder / "tokenizer_config.json";
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return;
  file = FileBytes::map(path);
  *json_ = parse_file(*file);
}
Config::~Config() = default;

std::optional<bool> Config::truth(const std::string& name) const {
  const auto found = json_->find(name);
  if (found == json_->end() || found->is_null()) return {};
  if (!found->is_boolean())
    fail(fmt::format("expected true or false as '{}', found something else", name), file->path(),
         "fetch the file again");
  return found->get<bool>();
}

std::optional<std::string> Config::word(const std::string& name) const {
  const auto found = json_->find(name);
  if (found == json_->end()) return {};
  if (found->is_string()) return found->get<std::string>();
  if (found->is_object() && found->contains("content") && found->at("content").is_string())
    return found->at("content").get<std::string>();
  return {};
}

std::optional<size_t> Config::model_max_length() const {
  const auto found = json_->find("model_max_length");
  if (found == json_->end() || !found->is_number()) return {};
  const double said = found->get<double>();
  if (!(said >= 1 && said <= kLongestModel)) return {};
  return size_t(said);
}

}  // namespace token

std::shared_ptr<const Tokenizer> Tokenizer::open(const std::filesystem::path& folder_or_file) {
  using namespace token;
  const fs::path path = find_file(folder_or_file), folder = path.parent_path();
  const std::string name = path.filename().string(), ending = path.extension().string();
  const auto file = FileBytes::map(path);
  const Config config(folder);
  auto parts = std::make_unique<Parts>();
  parts->file = name;
  parts->longest = config.model_max_length();
  if (name == "vocab.json") {
    const auto merges = FileBytes::map(folder / "merges.txt");
    read_vocab_json(*file, *merges, config, *parts);
    parts->fingerprint = sum_of({file.get(), merges.get(), config.file.get()});
  } else if (ending == ".json") {
    read_tokenizer_json(*file, *parts);
    parts->fingerprint = sum_of({file.get()});
  } else if (ending == ".txt") {
    read_vocab_txt(*file, config, *parts);
    parts->fingerprint = sum_of({file.get(), config.file.get()});
  } else if (ending == ".model") {
    read_sentencepiece(*file, *parts);
    parts->fingerprint = sum_of({file.get()});
  } else {
    fail(
        "expected the folder of a model or one of tokenizer.json, vocab.txt, vocab.json, "
        "spiece.model, sentencepiece.bpe.model",
        path.string(), "give the folder of the model");
  }
  parts->largest_id = std::max(parts->largest_id, parts->model->largest_id());
  for (const auto* ids : {&parts->around.before, &parts->around.behind})
    for (const int32_t id : *ids) {
      parts->largest_id = std::max(parts->largest_id, id);
      parts->special.insert(id);
    }
  find_mask(config, *parts);
  return std::make_shared<Tokenizer>(std::move(parts));
}

}  // namespace fungi
