// SPDX-License-Identifier: Apache-2.0
#include "fungi/service/samples.h"

#include <fmt/format.h>

#include <algorithm>

#include "fungi/base/utf8.h"
#include "fungi/feature/modality.h"
#include "fungi/input/shown.h"
#include "fungi/report/thumbnail.h"
#include "fungi/service/refused.h"

namespace fungi::service {
namespace {

namespace fs = std::filesystem;

constexpr size_t kDecodedAtOnce = 4;
constexpr size_t kLongestPicture = 1024;              // pixels
constexpr size_t kLongestClip = 30 * 32000 + 44;      // bytes: 30 s of 16 bits at 16 kHz
constexpr size_t kLongestText = size_t{64} << 10;     // bytes

// The file that is nothing but one sample; empty: the sample is a part of another.
fs::path file_of(const Dataset& data, size_t i) {
  struct Within : Dataset {
    using Dataset::file;
  };
  return (data.*&Within::file)(i);
}

WebAnswer shown(const std::vector<uint8_t>& bytes, const char* type) {
  return {.content_type = type,
          .body = std::string(bytes.begin(), bytes.end()),
          .headers = {{"Cache-Control", "private, max-age=60"}}};
}

[[noreturn]] void missing(const std::string& why) {
  throw Refused(404, why, "look at /v1/stores for what is shown", 0, "row");
}

}  // namespace

Samples::Samples(const ServedStore& source, const StoreManifest& manifest)
    : path_(source.data), places_(kDecodedAtOnce) {
  options_ = source.data_options;
  const std::string split = options_.split;
  if (has_settings(manifest.spec)) {
    const InputSettings input = read_settings(manifest.spec, source.name).input;
    const DatasetOptions looks = data_options(input);
    options_.samples = looks.samples, options_.seconds = looks.seconds;
    decode_ = decode_options(input);
  }
  decode_.max_pixels = std::min(decode_.max_pixels, source.most_pixels);
  root_ = fs::canonical(fs::is_directory(path_) ? path_ : fs::absolute(path_).parent_path());
  open();
}

std::shared_ptr<const Samples::Open> Samples::open() const {
  auto fresh = std::make_shared<Open>();
  fresh->data = open_dataset(path_, options_);
  for (size_t i = 0; i < fresh->data->size(); ++i) fresh->place.emplace(fresh->data->id(i), i);
  const std::lock_guard lock(mutex_);
  opened_ = std::chrono::steady_clock::now();
  return open_ = fresh;
}

std::pair<std::shared_ptr<const Samples::Open>, size_t> Samples::find(const std::string& id) const {
  constexpr auto kPatience = std::chrono::seconds(10);
  std::shared_ptr<const Open> open;
  bool late = false;
  {
    const std::lock_guard lock(mutex_);
    open = open_;
    late = std::chrono::steady_clock::now() - opened_ > kPatience;
    if (late && !open->place.contains(id)) opened_ = std::chrono::steady_clock::now();
  }
  auto at = open->place.find(id);
  if (at == open->place.end() && late) {
    open = this->open();
    at = open->place.find(id);
  }
  if (at == open->place.end()) missing("the data set that is served has no sample of this row");
  return {open, at->second};
}

Sample Samples::read(const std::string& id) const {
  const auto [open, place] = find(id);
  if (const fs::path file = file_of(*open->data, place); !file.empty()) {
    std::error_code why;
    const fs::path whole = fs::canonical(file, why);
    if (why) missing("the sample of this row has gone");
    // A link may lead anywhere, and a list may name anything.
    if (std::mismatch(root_.begin(), root_.end(), whole.begin(), whole.end()).first != root_.end())
      missing("the sample of this row lies outside of the folder of the data set");
  }
  try {
    return open->data->decode(place, open->data->read(place), decode_);
  } catch (const Exhausted&) {
    throw Refused(503, "the data set cannot be read now", "come back later", 5);
  } catch (const Error& e) {
    missing("the sample of this row cannot be read: " + e.message());
  }
}

WebAnswer Samples::thumbnail(const std::string& id, size_t side) const {
  if (texts()) missing("a text has no picture: /v1/rows/{row}/sample has its text");
  places_.acquire();
  const std::unique_ptr<Samples const, void (*)(const Samples*)> place(
      this, [](const Samples* s) { s->places_.release(); });
  return shown(fungi::thumbnail(picture_of(read(id), side), side), "image/webp");
}

WebAnswer Samples::sample(const std::string& id) const {
  places_.acquire();
  const std::unique_ptr<Samples const, void (*)(const Samples*)> place(
      this, [](const Samples* s) { s->places_.release(); });
  const Sample sample = read(id);
  if (std::holds_alternative<Text>(sample)) {
    const std::string& text = std::get<Text>(sample).utf8;
    return shown({text.begin(), text.end()}, "text/plain; charset=utf-8");
  }
  if (const auto clip = clip_of(sample, kLongestClip); !clip.empty()) return shown(clip, "audio/wav");
  return shown(small_picture(picture_of(sample, kLongestPicture), kLongestPicture), "image/webp");
}

std::optional<std::string> Samples::text(const std::string& id) const {
  if (!texts()) return {};
  try {
    std::string text = text_of(read(id)).utf8;
    if (text.size() > kLongestText) {
      size_t end = kLongestText;
      while (end > 0 && (text[end] & 0xC0) == 0x80) --end;
      text.resize(end);
    }
    return text;
  } catch (const Error&) {
    return {};
  }
}

}  // namespace fungi::service
