// SPDX-License-Identifier: Apache-2.0
#include "python/samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "fungi/base/random.h"
#include "fungi/input/image.h"
#include "fungi/input/sound.h"

namespace fungi::python {
namespace {

// Four sums side by side over eight bytes each: pictures are large, and this is done once for each.
uint64_t sum_of(std::span<const uint8_t> bytes) {
  constexpr size_t kLanes = 4, kStep = 8 * kLanes;
  uint64_t lanes[kLanes] = {1, 2, 3, 4};
  size_t at = 0;
  for (; at + kStep <= bytes.size(); at += kStep)
    for (size_t l = 0; l < kLanes; ++l) {
      uint64_t word;
      std::memcpy(&word, bytes.data() + at + 8 * l, 8);
      lanes[l] = (lanes[l] ^ word) * 0x9E3779B97F4A7C15ull;
      lanes[l] ^= lanes[l] >> 29;
    }
  uint64_t sum = fnv1a64({reinterpret_cast<const char*>(bytes.data()) + at, bytes.size() - at});
  for (const uint64_t lane : lanes) sum = mix64(sum ^ lane);
  return mix64(sum ^ bytes.size());
}

std::span<const uint8_t> pixels_of(const Samples::Pixels& p) {
  return {p.rgb, p.width * p.height * 3};
}

struct NameOf {
  std::string operator()(const Samples::File& f) const { return f.path.filename().string(); }
  std::string operator()(const Samples::Encoded& e) const {
    return fmt::format("bytes-{:016x}", sum_of(e.bytes));
  }
  std::string operator()(const Samples::Pixels& p) const {
    return fmt::format("{}x{}-{:016x}", p.width, p.height, sum_of(pixels_of(p)));
  }
  std::string operator()(const Text& t) const { return t.utf8; }
  std::string operator()(const Samples::Wave& w) const {
    const auto bytes = std::as_bytes(w.samples);
    return fmt::format("sound-{:016x}",
                       sum_of({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}));
  }
};

using PixelArray = nb::ndarray<const uint8_t, nb::shape<-1, -1, 3>, nb::c_contig, nb::device::cpu>;
using WaveArray = nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

constexpr bool kAsItIs = false;  // a converted copy would be gone before it is read

// What python/fungi/_inputs.py made of a user's sample.
Samples::Item item_of(nb::handle given, SampleKind kind) {
  if (nb::isinstance<nb::str>(given)) {
    if (kind == SampleKind::text) return Text{from_str(given)};
    return Samples::File{from_str(given)};
  }
  if (PyBytes_Check(given.ptr()))
    return Samples::Encoded{{reinterpret_cast<const uint8_t*>(PyBytes_AsString(given.ptr())),
                             size_t(PyBytes_Size(given.ptr()))}};
  if (nb::isinstance<nb::tuple>(given)) {
    const auto samples = nb::cast<WaveArray>(given[0], kAsItIs);
    return Samples::Wave{{samples.data(), samples.size()}, nb::cast<double>(given[1])};
  }
  const auto pixels = nb::cast<PixelArray>(given, kAsItIs);
  return Samples::Pixels{pixels.data(), pixels.shape(1), pixels.shape(0)};
}

}  // namespace

Samples::Samples(std::shared_ptr<const std::vector<Item>> items, std::vector<std::string> ids,
                 SampleKind kind, double seconds)
    : items_(std::move(items)) {
  ids_ = std::move(ids);
  seconds_ = seconds;
  labels_.assign(ids_.size(), -1);
  samples_ = kind;
}

Samples::Samples(nb::list items, nb::list ids, SampleKind kind) {
  std::vector<Item> made;
  made.reserve(items.size());
  for (nb::handle item : items) made.push_back(item_of(item, kind));
  for (nb::handle id : ids) ids_.push_back(from_str(id));
  if (ids_.empty())
    for (const Item& item : made) ids_.push_back(std::visit(NameOf{}, item));
  if (ids_.size() != made.size())
    raise("InputError",
          fmt::format("expected an id for each of {} samples, found {}", made.size(), ids_.size()),
          "ids", "give one for each, or leave them out");
  labels_.assign(ids_.size(), -1);
  samples_ = kind;
  items_ = std::make_shared<const std::vector<Item>>(std::move(made));
}

void Samples::set_labels(std::vector<int> labels, std::vector<std::string> classes) {
  for (const int label : labels)
    if (label < -1 || label >= int(classes.size()))
      raise("InputError",
            fmt::format("the label {} has no class: there are {} classes", label, classes.size()),
            "labels", "number the classes from 0; -1 is no label");
  if (!labels.empty()) labels_ = std::move(labels);
  class_names_ = std::move(classes);
  finish(DatasetKind::flat, "samples");
}

Samples Samples::as_queries(const KnowsId& known) const {
  std::vector<std::string> ids;
  for (size_t i = 0; i < items_->size(); ++i) {
    const auto* file = std::get_if<File>(&(*items_)[i]);
    ids.push_back(file ? query_id(file->path, known) : ids_[i]);
  }
  return Samples(items_, std::move(ids), samples(), seconds_);
}

std::vector<uint8_t> Samples::read(size_t i) const {
  const Item& item = items_->at(i);
  if (const auto* file = std::get_if<File>(&item)) return read_file_bytes(file->path);
  if (const auto* encoded = std::get_if<Encoded>(&item))
    return {encoded->bytes.begin(), encoded->bytes.end()};
  return {};
}

Sample Samples::decode(size_t i, std::span<const uint8_t> bytes,
                       const DecodeOptions& options) const {
  const Item& item = items_->at(i);
  if (const auto* text = std::get_if<Text>(&item)) {
    check(*text, id(i));
    return *text;
  }
  if (const auto* wave = std::get_if<Wave>(&item)) {
    auto heard = wave->samples;  // as much as of a file
    if (const double most = seconds_ * wave->rate; most >= 0.5 && most < double(heard.size()))
      heard = heard.first(std::min(size_t(std::llround(most)), heard.size()));
    Sound sound{{heard.begin(), heard.end()}, wave->rate};
    check(sound, id(i));
    return sound;
  }
  if (const auto* pixels = std::get_if<Pixels>(&item)) {
    const auto rgb = pixels_of(*pixels);
    return Image{pixels->width, pixels->height, {rgb.begin(), rgb.end()}};
  }
  return Dataset::decode(i, bytes, options);
}

std::string Samples::key(size_t i) const {
  const auto* file = std::get_if<File>(&items_->at(i));
  if (!file) return std::visit(NameOf{}, items_->at(i));
  std::error_code ignored;  // then nothing is known
  const auto bytes = std::filesystem::file_size(file->path, ignored);
  return ignored ? "" : std::to_string(bytes);
}

}  // namespace fungi::python
