// SPDX-License-Identifier: Apache-2.0
// safetensors: 8 bytes of header length, a JSON header, then the tensors without holes. The header
// is read as a stream of events, so a hostile one costs no more memory than its tensors' names and
// shapes.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_set>

#include "fungi/checkpoint/source.h"
#include "fungi/checkpoint/tensor_type.h"

namespace fungi {
namespace {

constexpr uint64_t kLongestHeader = 100'000'000;  // the limit of the format's own library

struct Entry {
  std::string name, type;
  std::vector<size_t> shape;
  std::vector<size_t> offsets;
  bool has_type = false, has_shape = false, has_offsets = false;
};

// Follows {"name": {"dtype": "...", "shape": [...], "data_offsets": [begin, end]}, "__metadata__":
// {"": ""}}.
class HeaderEvents : public nlohmann::json_sax<nlohmann::json> {
 public:
  std::vector<Entry> entries;
  std::string problem;  // set as soon as an event function returns false

  bool start_object(size_t) override {
    ++depth_;
    if (in_array_) return wrong("an object inside an array");
    if (depth_ == 3) return wrong("an object nested too deep");
    if (depth_ == 2 && !metadata_) entries.emplace_back().name = name_;
    return true;
  }
  bool end_object() override {
    --depth_;
    metadata_ = metadata_ && depth_ > 1;
    return true;
  }
  bool key(std::string& text) override {
    if (depth_ == 2) {
      field_ = metadata_ ? "" : text;
      return true;
    }
    metadata_ = text == "__metadata__";
    if (!names_.insert(text).second)
      return wrong(fmt::format("the name '{}' twice", printable(text)));
    name_ = std::move(text);
    return true;
  }
  bool string(std::string& text) override {
    if (metadata_ && depth_ == 2) return true;
    if (depth_ != 2 || in_array_ || field_ != "dtype") return wrong("a text where none belongs");
    entries.back().type = std::move(text);
    return once(entries.back().has_type);
  }
  bool start_array(size_t) override {
    if (depth_ != 2 || metadata_ || in_array_) return wrong("an array where none belongs");
    in_array_ = true;
    if (field_ == "shape") return once(entries.back().has_shape);
    if (field_ == "data_offsets") return once(entries.back().has_offsets);
    return wrong(fmt::format("an array in the unknown field '{}'", printable(field_)));
  }
  bool end_array() override {
    in_array_ = false;
    return true;
  }
  bool number_unsigned(uint64_t value) override {
    if (!in_array_) return wrong("a number where none belongs");
    auto& list = field_ == "shape" ? entries.back().shape : entries.back().offsets;
    if (list.size() == kMostDimensions) return wrong("more than 64 dimensions");
    list.push_back(value);
    return true;
  }
  bool null() override { return wrong("a null"); }
  bool boolean(bool) override { return wrong("a truth value"); }
  bool number_integer(int64_t) override { return wrong("a negative number"); }
  bool number_float(double, const std::string&) override {
    return wrong("a number that is not a whole one below 2^64");
  }
  bool binary(nlohmann::json::binary_t&) override { return wrong("binary data"); }
  bool parse_error(size_t position, const std::string&, const nlohmann::json::exception&) override {
    return wrong(fmt::format("no valid JSON at byte {}", position + 8));
  }

 private:
  bool wrong(std::string what) {
    problem = fmt::format("its header holds {}", what);
    if (depth_ >= 2 && !metadata_) problem += fmt::format(", at tensor '{}'", printable(name_));
    return false;
  }
  bool once(bool& seen) {
    if (seen) return wrong(fmt::format("the field '{}' twice", field_));
    return seen = true;
  }

  int depth_ = 0;
  bool metadata_ = false, in_array_ = false;
  std::string name_, field_;
  std::unordered_set<std::string> names_;
};

struct FileType {
  std::optional<DType> type;  // none: known, but never a weight
  size_t size;
};

FileType parse_type(const std::string& name, const std::string& place) {
  static const std::pair<const char*, DType> kListed[] = {
      {"F32", DType::f32}, {"F16", DType::f16},     {"BF16", DType::bf16}, {"F64", DType::f64},
      {"I64", DType::i64}, {"I32", DType::i32},     {"I16", DType::i16},   {"I8", DType::i8},
      {"U8", DType::u8},   {"BOOL", DType::boolean}};
  for (const auto& [text, type] : kListed)
    if (name == text) return {type, size_of(type)};
  static const std::pair<const char*, size_t> kUnlisted[] = {
      {"U16", 2}, {"U32", 4}, {"U64", 8}, {"C64", 8}};
  for (const auto& [text, size] : kUnlisted)
    if (name == text) return {std::nullopt, size};
  fail(
      fmt::format("has the element type '{}'; F32, F16, BF16 and F64 can be read", printable(name)),
      place, "save the model in one of these types");
}

class SafetensorsSource : public Checkpoint::Source {
 public:
  explicit SafetensorsSource(FilePointer file) {
    format = "safetensors";
    const auto bytes = file->bytes();
    const std::string& path = file->path();
    files.push_back(file);
    if (bytes.size() < 8)
      fail(fmt::format("{} bytes are too few for a safetensors file", bytes.size()), path,
           kFetchAgain);
    uint64_t length;
    std::memcpy(&length, bytes.data(), 8);
    if (length > kLongestHeader || length > bytes.size() - 8)
      fail(fmt::format("its header should be {} bytes long, but {} bytes follow (at most {} are "
                       "allowed)",
                       length, bytes.size() - 8, kLongestHeader),
           path, kFetchAgain);
    const char* text = reinterpret_cast<const char*>(bytes.data()) + 8;
    HeaderEvents header;
    const size_t brace = file->text().substr(8, length).find_first_not_of(kJsonBlanks);
    if (brace == std::string_view::npos || text[brace] != '{')
      fail("its header is not a JSON object", path, kFetchAgain);
    if (!nlohmann::json::sax_parse(text, text + length, &header))
      fail(header.problem, path, kFetchAgain);
    place_tensors(std::move(header.entries), bytes.subspan(8 + length), path);
  }

  void read(size_t index, float* out) const override {
    const TensorInfo& t = tensors[index];
    to_floats(t.type, starts_[index], t.count(), out);
    files.front()->release({starts_[index], t.count() * size_of(t.type)});
  }

 private:
  void place_tensors(std::vector<Entry> entries, std::span<const std::byte> data,
                     const std::string& path) {
    for (const Entry& entry : entries) {
      if (!entry.has_type || !entry.has_shape || entry.offsets.size() != 2)
        fail("needs dtype, shape and two data_offsets in the header",
             tensor_place(path, entry.name), kFetchAgain);
    }
    std::sort(entries.begin(), entries.end(),
              [](const Entry& a, const Entry& b) { return a.offsets < b.offsets; });
    size_t filled = 0;
    for (Entry& entry : entries) {
      const std::string place = tensor_place(path, entry.name);
      const FileType type = parse_type(entry.type, place);
      const size_t needed = checked_count(entry.shape, place) * type.size;
      const size_t begin = entry.offsets[0], end = entry.offsets[1];
      if (begin > end || end > data.size())
        fail(fmt::format("lies at bytes {} to {} of {} bytes of data", begin, end, data.size()),
             place, kFetchAgain);
      if (end - begin != needed)
        fail(fmt::format("shape {} of {} needs {} bytes, but the header gives it {}",
                         shape_text(entry.shape), entry.type, needed, end - begin),
             place, kFetchAgain);
      if (begin != filled)
        fail(fmt::format("begins at byte {} of the data, but the tensor before it ends at {}",
                         begin, filled),
             place, "tensors must follow each other: fetch the file again");
      filled = end;
      unlisted += !type.type;
      if (!type.type) continue;
      tensors.push_back({std::move(entry.name), *type.type, std::move(entry.shape)});
      starts_.push_back(data.data() + begin);
    }
    if (filled != data.size())
      fail(fmt::format("its tensors end at byte {} of {} bytes of data", filled, data.size()), path,
           kFetchAgain);
  }

  std::vector<const std::byte*> starts_;  // beside tensors
};

}  // namespace

SourcePointer open_safetensors(FilePointer file) {
  return std::make_unique<SafetensorsSource>(std::move(file));
}

}  // namespace fungi
