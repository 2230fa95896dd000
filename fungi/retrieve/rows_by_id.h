// SPDX-License-Identifier: Apache-2.0
// Which row has an id; of equal ids the first. Ids are gone through when the first one is asked
// for. Safe to share between threads.
// Internal to this room.
#pragma once

#include <mutex>
#include <optional>
#include <string_view>
#include <unordered_map>

namespace fungi {

class RowsById {
 public:
  // id_of(row) gives views that live as long as this, the same ones every time. What it throws is
  // thrown here, and the next call tries again.
  template <class IdOf>
  std::optional<size_t> find(std::string_view id, size_t rows, const IdOf& id_of) const {
    const std::lock_guard lock(mutex_);
    if (!read_) {
      rows_.reserve(rows);
      for (size_t row = 0; row < rows; ++row) rows_.emplace(id_of(row), row);
      read_ = true;
    }
    const auto at = rows_.find(id);
    return at == rows_.end() ? std::nullopt : std::optional(at->second);
  }

 private:
  mutable std::mutex mutex_;  // std::call_once hangs on some systems after an exception
  mutable bool read_ = false;
  mutable std::unordered_map<std::string_view, size_t> rows_;
};

}  // namespace fungi
