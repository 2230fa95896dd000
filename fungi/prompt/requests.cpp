// SPDX-License-Identifier: Apache-2.0
#include "fungi/prompt/requests.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>

#include "fungi/base/atomic_file.h"
#include "fungi/base/error.h"
#include "fungi/base/random.h"
#include "fungi/prompt/store_texts.h"
#include "fungi/search/knn.h"
#include "fungi/store/text.h"

namespace fungi {
namespace {

using store::Json;

bool same_store(const Store& a, const Store& b) {
  std::error_code unknown;
  return std::filesystem::equivalent(a.folder(), b.folder(), unknown);
}

// Different rows below `rows`, but for `left_out`, in the order of their draw.
std::vector<uint32_t> draw(const RandomStream& random, size_t count, size_t rows,
                           std::optional<size_t> left_out) {
  std::vector<uint32_t> drawn;
  for (uint64_t i = 0; drawn.size() < count; ++i) {
    const auto row = uint32_t(random.uniform(i) * double(rows));
    if (row != left_out && std::find(drawn.begin(), drawn.end(), row) == drawn.end())
      drawn.push_back(row);
  }
  return drawn;
}

}  // namespace

struct Prompts::State {
  StoreTexts train_texts, test_texts;
  std::string label_list, model;
  std::vector<std::string> label_of_row;  // of the training store
  std::vector<std::string> ids;
  std::vector<std::vector<uint32_t>> chosen;
  PromptTemplate layout;
  std::vector<std::string> notes;
};

Prompts::Prompts(const Store& train, const Store& test, PromptTexts texts, const LabelNames& names,
                 const PromptOptions& o, Pool& pool)
    : state_(new State{{train, std::move(texts.train), "`train_data`"},
                       {test, std::move(texts.test), "`test_data`"}}) {
  State& s = *state_;
  s.label_list = names.list();
  s.model = o.model;
  s.layout = o.layout;
  require_labels(train);
  for (const int64_t label : train.labels())
    s.label_of_row.push_back(names.names.at(size_t(label)));
  align_labels(train.classes(), test);  // nobody should pay for answers that cannot be scored

  s.ids = test.ids();
  if (o.limit && o.limit < s.ids.size()) s.ids.resize(o.limit);
  const bool own = same_store(train, test);
  const size_t available = train.rows() - size_t(own);
  constexpr size_t kUsual = 20;
  size_t k = o.k.value_or(std::min(kUsual, available));
  if (!o.k && k < kUsual)
    s.notes.push_back(
        fmt::format("{} training rows are fewer than the usual {} examples: all of them are shown; "
                    "`k` says otherwise",
                    k, kUsual));
  if (k == 0 || k > available)
    fail(fmt::format("expected from 1 to {} examples, found {}", available, k),
         train.folder().string(), "choose another `k`");
  if (o.random) {
    for (size_t i = 0; i < s.ids.size(); ++i)
      s.chosen.push_back(draw(RandomStream(o.seed, "prompts/examples", fnv1a64(s.ids[i])), k,
                              train.rows(), own ? std::optional(i) : std::nullopt));
    return;
  }
  std::vector<size_t> asked(s.ids.size());
  for (size_t i = 0; i < asked.size(); ++i) asked[i] = i;
  const std::string features =
      o.features.empty() ? fmt::format("{}", fmt::join(feature_names(train.manifest().spec), "+"))
                         : o.features;
  const PairRows rows = load_pair(train, test, features, o.rows, pool, {}, asked);
  const Neighbours found =
      knn(rows.train, rows.test, k, pool, {.metric = o.metric, .skip_same_row = own});
  for (size_t i = 0; i < asked.size(); ++i) {
    std::vector<uint32_t> nearest(found.index.row(i), found.index.row(i) + k);
    if (o.nearest_last) std::reverse(nearest.begin(), nearest.end());
    s.chosen.push_back(std::move(nearest));
  }
}

Prompts::Prompts(Prompts&&) noexcept = default;
Prompts::~Prompts() = default;

size_t Prompts::size() const { return state_->ids.size(); }
size_t Prompts::examples() const { return state_->chosen.empty() ? 0 : state_->chosen[0].size(); }
const std::vector<uint32_t>& Prompts::examples_of(size_t i) const { return state_->chosen.at(i); }
const std::vector<std::string>& Prompts::notes() const { return state_->notes; }

PromptRequest Prompts::request(size_t i) const {
  const State& s = *state_;
  std::vector<PromptExample> examples;
  for (const uint32_t row : s.chosen.at(i))
    examples.push_back({s.train_texts.text(row), s.label_of_row[row]});
  const std::string prompt = s.layout.fill(s.label_list, examples, s.test_texts.text(i));
  const Json body{{"model", s.model},
                  {"messages", Json::array({Json{{"role", "user"}, {"content", prompt}}})},
                  {"temperature", 0}};
  return {s.ids[i], store::dump(body)};
}

std::string batch_line(const PromptRequest& request) {
  return store::dump(Json{{"custom_id", store::to_json_string(request.id)},
                          {"method", "POST"},
                          {"url", "/v1/chat/completions"},
                          {"body", Json::parse(request.body)}});
}

uintmax_t write_batch(const Prompts& prompts, const std::filesystem::path& file) {
  AtomicFile out(behind_links(file));
  uintmax_t bytes = 0;
  for (size_t i = 0; i < prompts.size(); ++i) {
    const std::string line = batch_line(prompts.request(i)) + "\n";
    out.write(std::as_bytes(std::span(line)));
    bytes += line.size();
  }
  out.finish();
  return bytes;
}

}  // namespace fungi
