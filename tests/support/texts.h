// SPDX-License-Identifier: Apache-2.0
// Questions with labels, and a model of texts small enough to read them at once.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <string>

#include "tests/support/command.h"

namespace fungi::test {

inline constexpr std::array kQuestionWords{"card", "letter", "money", "bank",  "phone", "account",
                                           "old",  "new",    "lost",  "first", "other"};

// BERT's golden weights beside a vocabulary that holds the words of the questions.
inline std::filesystem::path write_text_model(const TemporaryFolder& folder) {
  const std::filesystem::path golden = FUNGI_GOLDEN_DIR "/backbone/bert", model = folder / "model";
  std::filesystem::create_directories(model);
  for (const char* name : {"model.safetensors", "config.json"})
    std::filesystem::copy_file(golden / name, model / name);
  std::string words = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
  for (const char* word : {"where", "is", "my", "who", "has", "the", "when", "comes", "a", "?"})
    words += std::string(word) + "\n";
  for (const char* word : kQuestionWords) words += std::string(word) + "\n";
  folder.write("model/vocab.txt", words);
  return model;
}

// A table of `count` questions, no two alike (of fewer than 300), in three classes.
inline std::string questions(size_t count, size_t first = 0) {
  constexpr std::array kClasses{"place", "person", "time"};
  constexpr std::array kBegins{"where is my", "who has the", "when comes a"};
  std::string out;
  for (size_t i = first; i < first + count; ++i)
    out += std::string(kClasses[i % 3]) + "\t" + kBegins[i % 3] + " " +
           kQuestionWords[i / 3 % kQuestionWords.size()] + " " +
           kQuestionWords[i / 33 % kQuestionWords.size()] + " ?\n";
  return out;
}

// Lists train.tsv and test.tsv and a store of each, of `objectives`.
inline void extract_questions(const TemporaryFolder& folder, size_t train, size_t test,
                              const std::string& objectives = "kl") {
  const std::string model = write_text_model(folder).string(), at = folder.path().string() + "/";
  folder.write("train.tsv", questions(train));
  folder.write("test.tsv", questions(test, train));
  ASSERT_EQ(run_fungi("extract -q " + at + "train.tsv -m " + model + " -o " + at +
                      "train --objectives " + objectives + " -j 2")
                .status,
            0);
  ASSERT_EQ(run_fungi("extract -q " + at + "test.tsv -o " + at + "test -j 2 --like " + at + "train")
                .status,
            0);
}

}  // namespace fungi::test
