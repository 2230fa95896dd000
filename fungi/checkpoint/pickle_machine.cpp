// SPDX-License-Identifier: Apache-2.0
// The parts of the pickle machine: its bytes, its stack and memo, and the making of values. Every
// kind of growth is charged to one budget, so a bomb ends in an Error, not in swapping.
#include "fungi/checkpoint/pickle_machine.h"

#include <fmt/format.h>

#include <charconv>
#include <cstring>

#include "fungi/checkpoint/tensor_type.h"

namespace fungi {

using Kind = PickleValue::Kind;

void PickleMachine::broken(const std::string& why) const {
  fail(fmt::format("its pickle {} (byte {})", why, position_), place_,
       "the file is damaged, or no checkpoint: fetch it again or save the state dict alone");
}

void PickleMachine::charge(size_t items) {
  if (items > budget_) broken("grows beyond all measure");
  budget_ -= items;
}

std::string_view PickleMachine::take(uint64_t count) {
  if (count > bytes_.size() - position_) broken("ends too early");
  const std::string_view taken = bytes_.substr(position_, count);
  position_ += count;
  return taken;
}

uint64_t PickleMachine::take_number(size_t width) {
  uint64_t number = 0;
  std::memcpy(&number, take(width).data(), width);
  return number;
}

std::string_view PickleMachine::take_line() {
  const size_t end = bytes_.find('\n', position_);
  if (end == bytes_.npos) broken("ends inside a line");
  const std::string_view line = take(end - position_);
  ++position_;
  return line;
}

uint32_t PickleMachine::add(PickleValue value) {
  charge(1 + value.items.size());
  pickle_.values.push_back(std::move(value));
  return static_cast<uint32_t>(pickle_.values.size() - 1);
}

void PickleMachine::push(uint32_t index) {
  if (stack_.size() >= kPickleBudget) broken("piles up too many values");
  stack_.push_back(index);
}

void PickleMachine::push_text(std::string_view text) {
  PickleValue value{.kind = Kind::text};
  value.text = text;
  push(add(std::move(value)));
}

void PickleMachine::push_integer(int64_t integer) {
  PickleValue value{.kind = Kind::integer};
  value.integer = integer;
  push(add(std::move(value)));
}

uint32_t PickleMachine::pop() {
  // A value below the last mark belongs to what the mark began.
  if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) broken("takes from an empty stack");
  const uint32_t index = stack_.back();
  stack_.pop_back();
  return index;
}

uint32_t PickleMachine::top() {
  const uint32_t index = pop();
  stack_.push_back(index);
  return index;
}

std::vector<uint32_t> PickleMachine::pop_to_mark() {
  if (marks_.empty()) broken("misses a mark");
  const auto begin = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
  std::vector<uint32_t> items(begin, stack_.end());
  stack_.erase(begin, stack_.end());
  marks_.pop_back();
  return items;
}

void PickleMachine::push_items(Kind kind, std::vector<uint32_t> items) {
  if (kind == Kind::dict && items.size() % 2 != 0) broken("has a key without value");
  PickleValue value{.kind = kind};
  value.items = std::move(items);
  push(add(std::move(value)));
}

void PickleMachine::push_tuple(size_t count) {
  std::vector<uint32_t> items(count);
  for (size_t i = count; i-- > 0;) items[i] = pop();
  push_items(Kind::sequence, std::move(items));
}

// APPEND, APPENDS, SETITEM, SETITEMS, ADDITEMS.
void PickleMachine::extend(Kind kind, const std::vector<uint32_t>& items) {
  const uint32_t index = top();
  if (kind == Kind::dict && items.size() % 2 != 0) broken("has a key without value");
  const bool harmless = pickle_[index].kind == Kind::object && pickle_[index].global;
  if (harmless && kind == Kind::sequence) {  // a list of a class of its own
    for (uint32_t item : items)
      if (may_hold(item)) put_item(index, "", item);
    return;
  }
  if (pickle_[index].kind != kind && !harmless) broken("adds items to what holds none");
  PickleValue& target = pickle_.values[index];
  charge(items.size());
  target.items.insert(target.items.end(), items.begin(), items.end());
}

bool PickleMachine::may_hold(uint32_t index) const {
  const Kind kind = pickle_[index].kind;
  return kind == Kind::tensor || kind == Kind::dict || kind == Kind::object ||
         kind == Kind::sequence;
}

// Without a key: the number of those before it.
void PickleMachine::put_item(uint32_t container, std::string_view key, uint32_t value) {
  PickleValue name{.kind = Kind::text};
  name.text = key;
  if (key.empty()) {
    name.kind = Kind::integer;
    name.integer = static_cast<int64_t>(pickle_[container].items.size() / 2);
  }
  const uint32_t at = add(std::move(name));
  charge(2);
  auto& items = pickle_.values[container].items;
  items.insert(items.end(), {at, value});
}

void PickleMachine::put(uint64_t slot) {
  charge(1);
  memo_[slot] = top();
}

void PickleMachine::get(uint64_t slot) {
  const auto found = memo_.find(slot);
  if (found == memo_.end()) broken(fmt::format("asks for memo {}, which was never set", slot));
  push(found->second);
}

uint64_t PickleMachine::take_slot() {
  const std::string_view line = take_line();
  uint64_t slot = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), slot);
  if (error != std::errc() || end != line.data() + line.size())
    broken("has a malformed memo number");
  return slot;
}

void PickleMachine::push_decimal(std::string_view line) {
  if (line.ends_with('L')) line.remove_suffix(1);
  int64_t integer = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), integer);
  if (error == std::errc() && end == line.data() + line.size()) return push_integer(integer);
  if (line.find_first_not_of("-0123456789") != line.npos) broken("has a malformed number");
  push_text(line);  // beyond 64 bits: only the magic number of the legacy layout is ever looked at
}

void PickleMachine::push_long(uint64_t width) {
  const std::string_view digits = take(width);
  if (width > 8) return push_text(digits);
  uint64_t bits = width > 0 && (digits.back() & 0x80) != 0 ? ~uint64_t{0} : 0;
  std::memcpy(&bits, digits.data(), width);
  push_integer(static_cast<int64_t>(bits));
}

// STRING: a Python literal in quotes. Names of tensors need no escapes, so a text with some is kept
// as it stands.
void PickleMachine::push_quoted(std::string_view line) {
  const bool quoted = line.size() >= 2 && line.front() == line.back() &&
                      (line.front() == '\'' || line.front() == '"');
  if (!quoted) broken("has a text without quotes");
  push_text(line.substr(1, line.size() - 2));
}

void PickleMachine::push_global(std::string_view module, std::string_view name) {
  const PickleGlobal* global = find_global(module, name);
  if (const UnreadTensors* known = global ? nullptr : find_unread(module, name))
    fail(fmt::format("holds {} ('{}.{}'), which are not read", known->what, printable(module),
                     printable(name)),
         place_, known->hint);
  if (global == nullptr)
    fail(
        fmt::format("refuses the global '{}.{}': weights need no such thing, and nothing in a file "
                    "is executed",
                    printable(module), printable(name)),
        place_, "save the weights alone: torch.save(model.state_dict(), path), or as safetensors");
  PickleValue value{.kind = Kind::global};
  value.global = global;
  push(add(std::move(value)));
}

}  // namespace fungi
