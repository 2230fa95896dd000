// SPDX-License-Identifier: Apache-2.0
// Where the time goes: nested named stages with own and inclusive seconds. One object per worker,
// merged afterwards.
#pragma once

#include <chrono>
#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

namespace fungi {

class Stages {
 public:
  struct Row {
    std::string_view name;  // string literals only
    double own = 0, inclusive = 0;
    size_t calls = 0;
  };

  // Counts the enclosing scope as `name`, inside whatever scope is open.
  class Scope {
   public:
    Scope(Stages& stages, std::string_view name)
        : stages_(stages), index_(stages.index(name)), outer_(stages.open_) {
      stages_.open_ = this;
    }
    ~Scope() {
      const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
      Row& row = stages_.rows_[index_];
      row.inclusive += seconds, row.own += seconds - inner_, ++row.calls;
      if (outer_) outer_->inner_ += seconds;
      stages_.open_ = outer_;
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    using Clock = std::chrono::steady_clock;
    Stages& stages_;
    size_t index_;
    Scope* outer_;
    double inner_ = 0;
    Clock::time_point start_ = Clock::now();
  };

  const std::vector<Row>& rows() const& { return rows_; }
  std::vector<Row> rows() && { return std::move(rows_); }  // for (auto& row : x.stages().rows())
  void clear() { rows_.clear(); }
  void add(const Stages& other) {
    for (const Row& r : other.rows_) {
      Row& mine = rows_[index(r.name)];
      mine.own += r.own, mine.inclusive += r.inclusive, mine.calls += r.calls;
    }
  }

 private:
  size_t index(std::string_view name) {
    for (size_t i = 0; i < rows_.size(); ++i)
      if (rows_[i].name == name) return i;
    rows_.push_back({name});
    return rows_.size() - 1;
  }
  std::vector<Row> rows_;
  Scope* open_ = nullptr;
};

}  // namespace fungi
