// SPDX-License-Identifier: Apache-2.0
// How many replies are right: the name of the label, in exactly these letters, white space around
// it aside.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "fungi/prompt/label_names.h"

namespace fungi {

struct PromptCounts {
  size_t rows = 0, right = 0;
  size_t no_label = 0;  // replies that are the name of none
  size_t failed = 0;    // requests that the server did not answer, as the file says
  size_t missing = 0;   // rows that the file does not know
  size_t answered() const { return rows - failed - missing; }
};

struct PromptScore {
  PromptCounts all;
  double accuracy = 0;        // of all rows; those without an answer count as errors
  double standard_error = 0;  // of it
  struct OfClass {
    int64_t label = 0;
    std::string name;
    PromptCounts counts;
  };
  std::vector<OfClass> classes;  // those of the rows, by number
  struct Stray {
    std::string id, reply;
  };
  std::vector<Stray> first_strays;  // replies that are no label, the first few
  std::vector<std::string> notes;
};

// `limit`: the first so many test rows; 0: all. Errors: rows without labels, a class that the
// training store lacks, a reply to what is no row, those of read_replies().
PromptScore score_replies(const Store& train, const Store& test, const LabelNames& names,
                          const std::filesystem::path& replies, size_t limit = 0);

}  // namespace fungi
