// SPDX-License-Identifier: Apache-2.0
// How a prompt is laid out: words with placeholders. {labels} is the list of all label names and
// {text} the text that is asked about; the lines between a line {examples} and a line {end} are
// repeated for each example, where {text} and {label} are those of the example. {{ and }} are
// braces.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fungi {

struct PromptExample {
  std::string text, label;
};

class PromptTemplate {
 public:
  // `place` is the file, for messages; lines count from 1. Errors: a placeholder that there is
  // not, or not there, braces that are no placeholder, a block without end, one that is missing.
  static PromptTemplate parse(std::string_view text, const std::string& place = "template");
  static PromptTemplate read(const std::filesystem::path& file);
  // In our own words; its parts stand in the order of the paper's.
  static std::string_view usual_text();
  static PromptTemplate usual() { return parse(usual_text()); }

  // What is filled in is not looked at for placeholders.
  std::string fill(std::string_view labels, std::span<const PromptExample> examples,
                   std::string_view text) const;

 private:
  enum class Part { words, labels, text, label };
  struct Piece {
    Part part = Part::words;
    std::string words;
  };
  class Reader;
  std::vector<Piece> before_, example_, after_;
};

}  // namespace fungi
