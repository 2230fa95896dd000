// SPDX-License-Identifier: Apache-2.0
// In-context examples (SPEC 5.8, 10.4): one request to a language model for each test text, with
// the label names, the training texts that are nearest to it, and the text itself, in the shape of
// OpenAI's batch files.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fungi/base/parallel.h"
#include "fungi/evaluate/pair.h"
#include "fungi/input/dataset.h"
#include "fungi/prompt/label_names.h"
#include "fungi/prompt/template.h"
#include "fungi/search/metric.h"
#include "fungi/store/store.h"

namespace fungi {

struct PromptOptions {
  std::string features = {};     // "embedding+kl"; empty: every block that is a feature
  std::optional<size_t> k = {};  // examples; none: 20 as in the paper, or all rows where fewer
  Metric metric = Metric::euclidean;
  RowOptions rows = {};
  bool nearest_last = false;  // the nearest example stands just above the text
  bool random = false;        // any training rows instead of the nearest, drawn from the seed
  uint64_t seed = 42;
  size_t limit = 0;                   // the first so many test rows; 0: all
  std::string model = "gpt-4o-mini";  // the language model, as its server calls it
  PromptTemplate layout = PromptTemplate::usual();
};

// Where the texts of both stores lie: they hold none. Each is gone after the construction of a
// Prompts.
struct PromptTexts {
  std::unique_ptr<Dataset> train, test;
};

struct PromptRequest {
  std::string id;    // of the test row
  std::string body;  // JSON: model, messages, temperature
};

// Const after construction, safe to share between threads; needs the stores no more. A request is
// written when it is asked for, whatever others are.
class Prompts {
 public:
  // Errors: stores that are not of texts or cannot be compared, training rows without labels, a
  // class that the training store lacks, texts that are not those of the rows, more examples than
  // rows. A store that is its own test never gives a text as its own example.
  Prompts(const Store& train, const Store& test, PromptTexts texts, const LabelNames& names,
          const PromptOptions& options, Pool& pool);
  Prompts(Prompts&&) noexcept;
  ~Prompts();

  size_t size() const;
  size_t examples() const;                                   // in each
  const std::vector<uint32_t>& examples_of(size_t i) const;  // training rows as they stand there
  PromptRequest request(size_t i) const;
  const std::vector<std::string>& notes() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// A line of a batch file, without its end.
std::string batch_line(const PromptRequest& request);
// All of them; the file is whole or not there. Its size in bytes.
uintmax_t write_batch(const Prompts& prompts, const std::filesystem::path& file);

}  // namespace fungi
