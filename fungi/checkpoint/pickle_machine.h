// SPDX-License-Identifier: Apache-2.0
// The state of the pickle machine, shared by its two halves: opcodes (pickle.cpp) and calls
// (pickle_calls.cpp). Internal to this room.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "fungi/checkpoint/pickle.h"

namespace fungi {

// Values, container items, dimensions and memo slots of one pickle, together. A state dict with the
// optimiser of a giant model needs some ten thousand.
inline constexpr size_t kPickleBudget = size_t{1} << 22;

class PickleMachine {
 public:
  PickleMachine(std::string_view bytes, const std::string& place) : bytes_(bytes), place_(place) {}
  Pickle run();

 private:
  using Kind = PickleValue::Kind;

  [[noreturn]] void broken(const std::string& why) const;
  [[noreturn]] void unknown(unsigned char code) const;
  void charge(size_t items);

  // bytes
  std::string_view take(uint64_t count);
  uint64_t take_number(size_t width);  // little-endian
  std::string_view take_line();
  uint64_t take_slot();

  // stack and memo
  uint32_t add(PickleValue value);
  void push(uint32_t index);
  uint32_t pop();
  uint32_t top();
  std::vector<uint32_t> pop_to_mark();
  void put(uint64_t slot);
  void get(uint64_t slot);

  // values
  void push_text(std::string_view text);
  void push_quoted(std::string_view line);
  void push_integer(int64_t integer);
  void push_decimal(std::string_view line);
  void push_long(uint64_t width);
  void push_items(Kind kind, std::vector<uint32_t> items);
  void push_tuple(size_t count);
  void push_global(std::string_view module, std::string_view name);
  void extend(Kind kind, const std::vector<uint32_t>& items);
  void put_item(uint32_t container, std::string_view key, uint32_t value);
  bool may_hold(uint32_t index) const;  // whether tensors may lie in the value

  // opcodes; false after STOP
  bool step();
  void step_text(unsigned char code);
  void step_stack_global();
  void step_call();
  void step_keyword_call();
  void step_inst();
  void step_obj();
  void step_build();
  void step_storage();

  // calls of globals
  uint32_t call(uint32_t function, const std::vector<uint32_t>& arguments);
  uint32_t make_dict(const std::vector<uint32_t>& arguments);
  uint32_t make_object(const PickleGlobal& of_class, const std::vector<uint32_t>& arguments);
  void read_metadata(uint32_t index, PickleTensor& tensor) const;
  uint32_t make_tensor(const PickleGlobal& function, const std::vector<uint32_t>& arguments);
  uint32_t argument(const std::vector<uint32_t>& arguments, size_t index, Kind kind) const;
  size_t size_argument(uint32_t index) const;
  std::vector<size_t> sizes_argument(uint32_t index);

  std::string_view bytes_;
  const std::string& place_;
  size_t position_ = 0;
  size_t budget_ = kPickleBudget;
  std::vector<uint32_t> stack_;
  std::vector<size_t> marks_;
  std::unordered_map<uint64_t, uint32_t> memo_;
  std::unordered_map<std::string_view, size_t> storage_of_key_;
  Pickle pickle_;
};

}  // namespace fungi
