// SPDX-License-Identifier: Apache-2.0
// Samples that Python holds, as a data set: names of files, encoded pictures, pixels, texts and
// sounds. Pixels and bytes stay where they are until a sample's turn comes.
#pragma once

#include <memory>
#include <variant>

#include "fungi/feature/reopen.h"
#include "fungi/input/dataset.h"
#include "python/bind.h"

namespace fungi::python {

class Samples final : public Dataset {
 public:
  struct File {
    std::filesystem::path path;
  };
  struct Encoded {
    std::span<const uint8_t> bytes;
  };
  struct Pixels {
    const uint8_t* rgb;  // [height, width, 3]
    size_t width, height;
  };
  struct Wave {
    std::span<const float> samples;
    double rate;
  };
  using Item = std::variant<File, Encoded, Pixels, Text, Wave>;

  // Of a list of str, bytes, uint8 arrays [h, w, 3] and (float32 array, rate), which must outlive
  // it; str are texts for a model of texts, else names of files. ids: one for each, or empty: the
  // file's name, the text, or a sum of the bytes, so that a sample's features never depend on
  // where it stands.
  Samples(nb::list items, nb::list ids, SampleKind kind);

  // For a store: a number for each sample, -1 for none, and the names of the classes. Then ids must
  // be unique.
  void set_labels(std::vector<int> labels, std::vector<std::string> classes);
  // Of sounds: how much of each is looked at, as DatasetOptions::seconds.
  void listen(double seconds) { seconds_ = seconds; }
  // Files under the ids that a store knows them by, as `search` asks for them.
  Samples as_queries(const KnowsId& known) const;

  std::vector<uint8_t> read(size_t i) const override;
  Sample decode(size_t i, std::span<const uint8_t> bytes,
                const DecodeOptions& options) const override;
  std::string key(size_t i) const override;

 private:
  Samples(std::shared_ptr<const std::vector<Item>> items, std::vector<std::string> ids,
          SampleKind kind, double seconds);
  std::shared_ptr<const std::vector<Item>> items_;
};

}  // namespace fungi::python
