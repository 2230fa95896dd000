// SPDX-License-Identifier: Apache-2.0
// Stores of texts in memory, whose neighbours are told by one number, and prompts of them.
#pragma once

#include "fungi/prompt/ask.h"
#include "fungi/prompt/score.h"
#include "tests/support/errors.h"
#include "tests/support/folder.h"
#include "tests/support/made_store.h"

namespace fungi::test {

// A row at a place of a circle.
struct MadeText {
  std::string id, text;
  int label = -1;
  float angle = 0;
};

inline std::unique_ptr<Dataset> texts_of(const std::vector<MadeText>& rows,
                                         const std::vector<std::string>& classes) {
  std::vector<std::string> ids;
  std::vector<Text> texts;
  std::vector<int> labels;
  for (const MadeText& row : rows)
    ids.push_back(row.id), texts.push_back({row.text}), labels.push_back(row.label);
  return memory_dataset(ids, texts, labels, classes);
}

class MadeTexts {
 public:
  explicit MadeTexts(std::vector<MadeText> train = usual_train(),
                     std::vector<MadeText> test = usual_test(),
                     std::vector<std::string> classes = {"cold", "mild", "hot"})
      : train_rows_(std::move(train)), test_rows_(std::move(test)), classes_(std::move(classes)) {
    write("train", train_rows_);
    write("test", test_rows_);
    train_ = std::make_unique<Store>(Store::open(folder_ / "train"));
    test_ = std::make_unique<Store>(Store::open(folder_ / "test"));
  }
  static std::vector<MadeText> usual_train() {
    return {{"a", "snow", 0, 0.1f},   {"b", "ice", 0, 0.3f},    {"c", "spring", 1, 0.6f},
            {"d", "autumn", 1, 0.8f}, {"e", "desert", 2, 1.2f}, {"f", "oven", 2, 1.4f}};
  }
  static std::vector<MadeText> usual_test() {
    return {{"1", "frost", 0, 0.11f},
            {"2", "april", 1, 0.7f},
            {"3", "fire", 2, 1.39f},
            {"4", "rain", 1, 0.81f}};
  }
  const Store& train() const { return *train_; }
  const Store& test() const { return *test_; }
  PromptTexts texts() const {
    return {texts_of(train_rows_, classes_), texts_of(test_rows_, classes_)};
  }
  Prompts prompts(PromptOptions o = {.k = 2}) {
    return Prompts(train(), test(), texts(), label_names(train()), o, pool_);
  }
  const TemporaryFolder& folder() const { return folder_; }
  Pool& pool() { return pool_; }

 private:
  void write(const char* name, const std::vector<MadeText>& rows) {
    std::vector<MadeRow> made;
    for (const MadeText& row : rows)
      made.push_back({row.id, row.label, {{std::cos(row.angle), std::sin(row.angle)}}});
    write_made_store(folder_ / name, made, classes_);
  }
  TemporaryFolder folder_;
  Pool pool_{2};
  std::vector<MadeText> train_rows_, test_rows_;
  std::vector<std::string> classes_;
  std::unique_ptr<Store> train_, test_;
};

inline std::string completion(const std::string& text) {
  return nlohmann::json{{"choices", {{{"message", {{"role", "assistant"}, {"content", text}}}}}}}
      .dump();
}

}  // namespace fungi::test
