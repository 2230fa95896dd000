// SPDX-License-Identifier: Apache-2.0
#include "fungi/service/state.h"

#include <fmt/format.h>

#include <algorithm>

#include "fungi/input/image.h"
#include "fungi/input/sound.h"
#include "fungi/retrieve/search_store.h"
#include "fungi/service/refused.h"

namespace fungi {
namespace {

using service::Job;
using service::Jobs;
using service::Refused;

constexpr double kLongestSound = 3600;  // seconds
constexpr size_t kPart = 8192;          // rows of some classes that are compared at once
constexpr size_t kRemembered = 32, kMostMaking = 8;

struct SampleJob final : Job {
  Service::State::Snapshot opened;
  std::vector<Question> samples;
  std::vector<StoreBlock> blocks;
  Matrix<float> rows;
  std::vector<StoreFailure> failures;
};

struct SearchJob final : Job {
  Service::State::Snapshot opened;  // the database lives as long
  std::shared_ptr<const Database> database;
  Service::State::Target target;
  size_t k = 0;
  std::vector<size_t> classes;
  SearchOptions options;
  Neighbours found;
};

// Samples of questions, in memory.
class Questions final : public Dataset {
 public:
  Questions(std::vector<const Question*> list, const DatasetOptions& looks, size_t most_pixels)
      : list_(std::move(list)), most_pixels_(most_pixels) {
    samples_ = looks.samples, seconds_ = looks.seconds;
    for (const Question* q : list_) ids_.push_back(q->id), labels_.push_back(-1);
  }
  std::vector<uint8_t> read(size_t i) const override {
    return {list_[i]->bytes.begin(), list_[i]->bytes.end()};
  }
  Sample decode(size_t i, std::span<const uint8_t> bytes,
                const DecodeOptions& options) const override {
    if (samples_ == SampleKind::text) return Text{list_[i]->bytes};
    if (samples_ == SampleKind::sound && sound_seconds(bytes, id(i)) > kLongestSound)
      fail(fmt::format("the sound is longer than {} s", kLongestSound), id(i), "send a part of it");
    DecodeOptions own = options;
    own.max_pixels = std::min(own.max_pixels, most_pixels_);
    return Dataset::decode(i, bytes, own);
  }

 private:
  std::vector<const Question*> list_;
  size_t most_pixels_;
};

// What the parts of several requests have in common: the blocks of all, each once.
void join(std::vector<StoreBlock>& to, const std::vector<StoreBlock>& more) {
  for (const StoreBlock& b : more)
    if (std::find(to.begin(), to.end(), b) == to.end()) to.push_back(b);
}

void copy_blocks(const std::vector<StoreBlock>& from, const float* row,
                 const std::vector<StoreBlock>& to, float* out) {
  for (const StoreBlock& b : to) {
    size_t column = 0;
    for (auto at = from.begin(); !(*at == b); ++at) column += at->width;
    out = std::copy_n(row + column, b.width, out);
  }
}

}  // namespace

Service::State::State(ServiceOptions from)
    : options(std::move(from)),
      computing(options.threads),
      searching(options.threads),
      drawing(options.threads),
      samples(
          {options.waiting, options.batch},
          [](const Job& a, const Job& b) {
            return &static_cast<const SampleJob&>(a).opened->extractor() ==
                   &static_cast<const SampleJob&>(b).opened->extractor();
          },
          [this](const Jobs& jobs) { run_samples(jobs); }),
      searches(
          {1024, 64},
          [](const Job& a, const Job& b) {
            const auto &x = static_cast<const SearchJob&>(a), &y = static_cast<const SearchJob&>(b);
            return x.database == y.database && x.k == y.k && x.classes == y.classes &&
                   x.target.row.has_value() == y.target.row.has_value() &&
                   x.options.effort == y.options.effort && x.options.probes == y.options.probes;
          },
          [this](const Jobs& jobs) { run_searches(jobs); }) {}

service::Holding& Service::State::holding(const std::string& name) const {
  if (name.empty()) return *holdings.front();
  for (const auto& h : holdings)
    if (h->name() == name) return *h;
  throw Refused(404, fmt::format("there is no store '{}' here", name),
                "/v1/stores lists those there are", 0, "store");
}

Matrix<float> Service::State::compute(const Snapshot& opened, std::vector<Question> asked,
                                      const std::vector<StoreBlock>& blocks, const Gone& gone) {
  const auto job = std::make_shared<SampleJob>();
  job->opened = opened;
  job->weight = asked.size();
  job->samples = std::move(asked);
  join(job->blocks, blocks);
  if (!samples.ask(job, gone)) throw Refused(499, "whoever asked has left");
  if (!job->failures.empty()) {
    const StoreFailure& f = job->failures.front();
    throw Refused(422,
                  job->samples.size() == 1
                      ? f.reason
                      : fmt::format("input {} cannot be used: {}", f.position, f.reason),
                  f.hint.empty() ? "send a whole file of a format that this build reads" : f.hint,
                  0, "input");
  }
  Matrix<float> out(job->samples.size(), total_width(blocks));
  for (size_t i = 0; i < out.rows(); ++i)
    copy_blocks(job->blocks, job->rows.row(i), blocks, out.row(i));
  return out;
}

void Service::State::run_samples(const Jobs& jobs) {
  std::vector<const Question*> list;
  std::vector<StoreBlock> blocks;
  for (const auto& job : jobs) {
    const auto& j = static_cast<const SampleJob&>(*job);
    for (const Question& q : j.samples) list.push_back(&q);
    join(blocks, j.blocks);
  }
  const auto& first = static_cast<const SampleJob&>(*jobs.front());
  Reopened* extractor = nullptr;
  try {
    extractor = &first.opened->extractor().get(computing);
  } catch (const Error& e) {
    throw Refused(503, "the model of this store cannot be used: " + e.message(),
                  e.hint().empty() ? "rows can be searched without" : e.hint(), 30);
  }
  std::vector<StoreFailure> failures;
  const Questions samples_of(std::move(list), extractor->extractor().data(), options.most_pixels);
  const Matrix<float> rows = extractor->rows(samples_of, blocks, &failures);
  computed += rows.rows(), ++passes;
  size_t at = 0;
  for (const auto& job : jobs) {
    auto& j = static_cast<SampleJob&>(*job);
    j.rows = Matrix<float>(j.samples.size(), total_width(j.blocks));
    for (size_t i = 0; i < j.samples.size(); ++i)
      copy_blocks(blocks, rows.row(at + i), j.blocks, j.rows.row(i));
    for (StoreFailure f : failures)
      if (f.position >= at && f.position < at + j.samples.size()) {
        f.position -= at;
        j.failures.push_back(std::move(f));
      }
    at += j.samples.size();
  }
}

Neighbours Service::State::search(const Snapshot& opened, std::shared_ptr<const Database> database,
                                  Target target, size_t k, const std::vector<size_t>& classes,
                                  const SearchOptions& how, const Gone& gone) {
  const auto job = std::make_shared<SearchJob>();
  job->opened = opened;
  job->database = std::move(database);
  job->target = std::move(target);
  job->classes = classes;
  size_t rows = classes.empty() ? job->database->rows() : 0;
  for (const size_t c : classes) rows += opened->rows_by_class()[c].size();
  job->k = std::min(k, rows);
  job->options = how;
  if (job->k == 0) return {};
  if (!searches.ask(job, gone)) throw Refused(499, "whoever asked has left");
  return std::move(job->found);
}

void Service::State::run_searches(const Jobs& jobs) {
  const auto& first = static_cast<const SearchJob&>(*jobs.front());
  const Database& database = *first.database;
  const size_t k = first.k, width = database.reduction().output_width();
  std::vector<size_t> rows;
  Matrix<float> queries(jobs.size(), width);
  for (size_t q = 0; q < jobs.size(); ++q) {
    const auto& j = static_cast<const SearchJob&>(*jobs[q]);
    if (j.target.row) rows.push_back(*j.target.row);
    const Matrix<float> vector =
        j.target.row && !j.classes.empty() ? database.vector(*j.target.row) : Matrix<float>();
    const Matrix<float>& from = j.target.row ? vector : j.target.vector;
    if (!from.empty()) std::copy_n(from.data(), width, queries.row(q));
  }
  Neighbours found;
  if (!first.classes.empty()) {
    std::vector<uint32_t> among;
    for (const size_t c : first.classes) {
      const auto& more = first.opened->rows_by_class()[c];
      among.insert(among.end(), more.begin(), more.end());
    }
    std::sort(among.begin(), among.end());
    const auto each_part = [&](const auto& visit) {
      for (size_t begin = 0; begin < among.size(); begin += kPart) {
        Matrix<float> part(std::min(kPart, among.size() - begin), width);
        for (size_t i = 0; i < part.rows(); ++i)
          std::copy_n(database.vector(among[begin + i]).data(), width, part.row(i));
        visit(begin, part);
      }
    };
    found = search_parts(each_part, queries, k, database.metric(), searching);
    for (size_t i = 0; i < found.index.rows() * k; ++i)
      found.index.data()[i] = among[found.index.data()[i]];
  } else if (!rows.empty()) {
    found = database.search_rows(rows, k, searching, first.options);
  } else {
    found = database.search(queries, k, searching, first.options);
  }
  for (size_t q = 0; q < jobs.size(); ++q) {
    auto& j = static_cast<SearchJob&>(*jobs[q]);
    j.found = Neighbours{Matrix<uint32_t>(1, k), Matrix<double>(1, k)};
    std::copy_n(found.index.row(q), k, j.found.index.row(0));
    std::copy_n(found.value.row(q), k, j.found.value.row(0));
  }
}

std::string Service::State::remembered(const std::string& key,
                                       const std::function<std::string()>& make) {
  const auto look = [&]() -> std::optional<std::string> {
    const std::lock_guard lock(answers_mutex_);
    const auto at = std::find_if(answers_.begin(), answers_.end(),
                                 [&](const auto& a) { return a.first == key; });
    if (at == answers_.end()) return {};
    answers_.splice(answers_.begin(), answers_, at);
    return at->second;
  };
  if (auto known = look()) return *known;
  struct Counted {
    std::atomic<size_t>& count;
    explicit Counted(std::atomic<size_t>& c) : count(c) { ++count; }
    ~Counted() { --count; }
  } counted(making_count_);
  if (making_count_ > kMostMaking)
    throw Refused(429, "too many maps and gains are being computed", "come back later", 10);
  const std::lock_guard one(making_);
  if (auto known = look()) return *known;  // another thread has made it meanwhile
  std::string made = make();
  const std::lock_guard lock(answers_mutex_);
  answers_.emplace_front(key, made);
  if (answers_.size() > kRemembered) answers_.pop_back();
  return made;
}

}  // namespace fungi
