// SPDX-License-Identifier: Apache-2.0
#include "app/words.h"

#include <algorithm>
#include <map>

#include "fungi/base/words.h"

namespace fungi::app {
namespace {

// tools/check_words.py looks after this table: a word that the library uses has to stand here.
const std::map<std::string_view, std::string_view> kWords{
    {"all_combinations", "--all-combinations"},
    {"allow_mixed", "--allow-mixed"},
    {"allow_truncated", "--allow-truncated"},
    {"apply", "--apply"},
    {"bank", "--bank"},
    {"certificate", "--certificate"},
    {"class_names", "--class-names"},
    {"classes", "--classes"},
    {"draw", "--draw"},
    {"dry_run", "--dry-run"},
    {"effort", "--effort"},
    {"endpoint", "--endpoint"},
    {"extract", "'fungi extract'"},
    {"features", "--features"},
    {"fold", "--fold"},
    {"folds", "--folds"},
    {"gather", "--gather"},
    {"given", "--given"},
    {"hop", "--hop"},
    {"id_column", "--id-column"},
    {"ignore", "--ignore"},
    {"images", "--images"},
    {"index", "'fungi index'"},
    {"inspect", "'fungi inspect'"},
    {"k", "-k"},
    {"keep_factors", "--keep-factors"},
    {"key", "--key"},
    {"key_over_http", "--key-over-http"},
    {"key_variable", "--key-variable"},
    {"kind", "--kind"},
    {"label_column", "--label-column"},
    {"label_names", "--label-names"},
    {"lambda", "--lambda"},
    {"layers", "--layers"},
    {"layout", "--layout"},
    {"like", "--like"},
    {"listen", "--listen"},
    {"merge", "'fungi merge'"},
    {"metric", "--metric"},
    {"model", "-m"},
    {"models", "'fungi models'"},
    {"most_rows", "--most-rows"},
    {"objectives", "--objectives"},
    {"offline", "--offline"},
    {"overwrite", "--overwrite"},
    {"pca", "'fungi pca'"},
    {"part", "--part"},
    {"port", "--port"},
    {"precision", "--precision"},
    {"prefix", "--prefix"},
    {"probes", "--probes"},
    {"project", "'fungi project'"},
    {"prune", "--prune"},
    {"pull", "'fungi pull'"},
    {"reduce", "--reduce"},
    {"replies", "--replies"},
    {"retry_failed", "--retry-failed"},
    {"sampling", "--sampling"},
    {"seed", "--seed"},
    {"seeds", "--seeds"},
    {"segment", "'fungi segment'"},
    {"split", "--split"},
    {"stated_facts", "--set"},
    {"statistics", "--statistics"},
    {"storage", "--storage"},
    {"strict", "--strict"},
    {"tensors", "--tensors"},
    {"test_data", "--test-data"},
    {"test_pictures", "--test-pictures"},
    {"text_column", "--text-column"},
    {"threads", "-j"},
    {"token_file", "--token-file"},
    {"train_data", "--train-data"},
    {"train_pictures", "--train-pictures"},
    {"truth", "--truth"},
    {"validation", "--validation"},
    {"weight", "--weight"},
    {"weights", "--weights"},
    {"window", "--window"},
};

}  // namespace

std::string worded(std::string_view text) {
  return with_words(text, [](const Word& word) -> std::optional<std::string> {
    const auto own = kWords.find(word.name);
    if (own == kWords.end()) return {};
    std::string said(own->second);
    if (said.ends_with('\'') && word.key.empty() && !word.value.empty())  // a whole command
      return said.insert(said.size() - 1, " " + std::string(word.value));
    if (!word.key.empty()) said.append(" ").append(word.key);
    if (!word.value.empty()) said.append(word.key.empty() ? " " : "=").append(word.value);
    return said;
  });
}

Error worded(const Error& error) {
  const std::string& place = error.place();  // a word alone, or the name of a file as it is
  const bool word = place.starts_with('`') && place.find('`', 1) + 1 == place.size();
  return Error(worded(error.message()), word ? worded(place) : place, worded(error.hint()));
}

}  // namespace fungi::app
