// SPDX-License-Identifier: Apache-2.0
// What a refusal suggests to state is tried before it is said: a file that is refused all the same
// is refused at once for the reason that remains.
#include "fungi/backbone/names.h"
#include "fungi/base/words.h"

namespace fungi {
namespace {

constexpr size_t kMostSteps = 4;  // one suggestion may lead to another

// Every `stated_facts[key]=value` in the hint, once by itself. Of numbers that are left to the
// user, one that would do.
std::vector<std::pair<std::string, std::string>> suggestions(const Error& refusal) {
  std::vector<std::pair<std::string, std::string>> found;
  with_words(refusal.hint(), [&](const Word& word) -> std::optional<std::string> {
    const bool choice = word.key == "prefix" || word.key == "part";  // between whole networks
    if (word.name == "stated_facts" && !word.value.empty() && !choice)
      found.emplace_back(word.key, word.value == "N" ? "1" : word.value);
    return {};
  });
  return found;
}

// Nothing: with one of its suggestions, or with what they lead to, the file can be read. Otherwise
// what stands in the way.
std::optional<Error> obstacle(const Checkpoint& checkpoint, const StatedFacts& facts,
                              const Error& refusal, size_t steps) {
  std::optional<Error> first;
  for (const auto& [key, value] : suggestions(refusal)) {
    StatedFacts more = facts;
    more[key] = value;
    if (more == facts) continue;
    try {
      read_stated(checkpoint, more);
      return {};
    } catch (const Error& e) {
      const auto deeper =
          suggestions(e).empty() || steps == 0 ? e : obstacle(checkpoint, more, e, steps - 1);
      if (!deeper) return {};
      if (!first) first = deeper;
    }
  }
  if (first) return first;
  return Error(refusal.message(), refusal.place(),
               "this variant is not among those that `models` lists");
}

}  // namespace

Reading read_names(const Checkpoint& checkpoint, const StatedFacts& stated_facts) {
  try {
    return read_stated(checkpoint, stated_facts);
  } catch (const Error& refusal) {
    if (suggestions(refusal).empty()) throw;
    if (const auto reason = obstacle(checkpoint, stated_facts, refusal, kMostSteps)) throw *reason;
    throw;
  }
}

}  // namespace fungi
