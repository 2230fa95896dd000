// SPDX-License-Identifier: Apache-2.0
#include "fungi/prompt/score.h"

#include <fmt/format.h>

#include <map>
#include <unordered_map>

#include "fungi/base/error.h"
#include "fungi/evaluate/metrics.h"
#include "fungi/evaluate/pair.h"
#include "fungi/prompt/replies.h"

namespace fungi {
namespace {

constexpr size_t kStraysShown = 3;

std::string name_of(const LabelNames& names, int64_t label) {
  const bool known = size_t(label) < names.names.size() && !names.names[size_t(label)].empty();
  return known ? names.names[size_t(label)] : std::to_string(label);
}

}  // namespace

PromptScore score_replies(const Store& train, const Store& test, const LabelNames& names,
                          const std::filesystem::path& file, size_t limit) {
  PairLabels labels = pair_labels(train, test);
  if (limit && limit < labels.test.size()) labels.test.resize(limit);
  const ReplyList list = read_replies(file);
  std::unordered_map<std::string_view, size_t> rows;
  for (size_t row = 0; row < test.rows(); ++row) rows.emplace(test.ids()[row], row);
  std::vector<const PromptReply*> reply_of(test.rows());
  for (const PromptReply& reply : list.replies) {
    const auto at = rows.find(reply.id);
    if (at == rows.end())
      fail(fmt::format("a reply to '{}', which is no row of {}", reply.id, test.folder().string()),
           fmt::format("{}, line {}", file.string(), reply.line),
           "give the stores that the requests were made of");
    reply_of[at->second] = &reply;
  }

  PromptScore score;
  if (const std::string note = note_unknown_classes(labels.train, labels.test); !note.empty())
    score.notes.push_back(note);
  if (list.cut)
    score.notes.push_back(
        fmt::format("{}: the last line is half a line and was left out", file.string()));
  std::map<int64_t, PromptCounts> by_class;
  for (size_t row = 0; row < labels.test.size(); ++row) {
    const int64_t target = labels.test[row];
    const PromptReply* reply = reply_of[row];
    for (PromptCounts* counts : {&score.all, &by_class[target]}) {
      ++counts->rows;
      if (!reply)
        ++counts->missing;
      else if (!reply->text)
        ++counts->failed;
      else if (const int64_t said = names.find(*reply->text); said < 0)
        ++counts->no_label;
      else
        counts->right += said == target;
    }
    if (reply && reply->text && names.find(*reply->text) < 0 &&
        score.first_strays.size() < kStraysShown)
      score.first_strays.push_back({reply->id, *reply->text});
  }
  for (const auto& [label, counts] : by_class)
    score.classes.push_back({label, name_of(names, label), counts});
  score.accuracy = double(score.all.right) / double(score.all.rows);
  score.standard_error = standard_error(score.accuracy, score.all.rows);
  return score;
}

}  // namespace fungi
