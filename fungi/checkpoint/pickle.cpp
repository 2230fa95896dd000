// SPDX-License-Identifier: Apache-2.0
// The opcodes of pickle protocols 0 to 5, one switch. What a call of a global means is in
// pickle_calls.cpp.
#include "fungi/checkpoint/pickle.h"

#include <fmt/format.h>

#include "fungi/checkpoint/pickle_machine.h"

namespace fungi {

void PickleMachine::step_text(unsigned char code) {
  switch (code) {
    case 'S':
      return push_quoted(take_line());
    case 'V':
      return push_text(take_line());
    case 'T':
    case 'X':
    case 'B':
      return push_text(take(take_number(4)));
    case 'U':
    case 'C':
    case 0x8c:
      return push_text(take(take_number(1)));
    case 0x8d:
    case 0x8e:
    case 0x96:
      return push_text(take(take_number(8)));
    default:
      unknown(code);
  }
}

void PickleMachine::unknown(unsigned char code) const {
  broken(code == 'P' ? "was written with protocol 0, which cannot hold tensors"
                     : fmt::format("uses opcode 0x{:02x}, which no checkpoint needs", code));
}

bool PickleMachine::step() {
  const auto code = static_cast<unsigned char>(take(1)[0]);
  switch (code) {
    case '.':
      return false;
    case 0x80:
      if (take_number(1) > 5) broken("has an unknown protocol");
      break;
    case 0x95:
      if (take_number(8) > bytes_.size() - position_) broken("ends inside a frame");
      break;
    // stack and memo
    case '(':
      charge(1);
      marks_.push_back(stack_.size());
      break;
    case '0':
      pop();
      break;
    case '1':
      pop_to_mark();
      break;
    case '2':
      push(top());
      break;
    case 'p':
      put(take_slot());
      break;
    case 'q':
      put(take_number(1));
      break;
    case 'r':
      put(take_number(4));
      break;
    case 0x94:
      put(memo_.size());
      break;
    case 'g':
      get(take_slot());
      break;
    case 'h':
      get(take_number(1));
      break;
    case 'j':
      get(take_number(4));
      break;
    // leaves
    case 'N':
    case 0x88:
    case 0x89:
      push(add({}));
      break;
    case 'F':
      take_line();
      push(add({}));
      break;
    case 'G':
      take(8);
      push(add({}));
      break;
    case 'I':
    case 'L':
      push_decimal(take_line());
      break;
    case 'J':
      push_integer(static_cast<int32_t>(take_number(4)));
      break;
    case 'K':
      push_integer(static_cast<int64_t>(take_number(1)));
      break;
    case 'M':
      push_integer(static_cast<int64_t>(take_number(2)));
      break;
    case 0x8a:
      push_long(take_number(1));
      break;
    case 0x8b:
      push_long(take_number(4));
      break;
    // containers
    case ')':
      push_items(Kind::sequence, {});
      break;
    case ']':
      push_items(Kind::sequence, {});
      break;
    case '}':
      push_items(Kind::dict, {});
      break;
    case 't':
    case 'l':
      push_items(Kind::sequence, pop_to_mark());
      break;
    case 'd':
      push_items(Kind::dict, pop_to_mark());
      break;
    case 0x85:
      push_tuple(1);
      break;
    case 0x86:
      push_tuple(2);
      break;
    case 0x87:
      push_tuple(3);
      break;
    case 'a':
      extend(Kind::sequence, {pop()});
      break;
    case 'e':
      extend(Kind::sequence, pop_to_mark());
      break;
    case 's': {
      const uint32_t value = pop(), key = pop();
      extend(Kind::dict, {key, value});
      break;
    }
    case 'u':
      extend(Kind::dict, pop_to_mark());
      break;
    case 0x8f:
      push_items(Kind::sequence, {});
      break;  // empty set
    case 0x90:
      extend(Kind::sequence, pop_to_mark());
      break;  // add to a set
    case 0x91:
      push_items(Kind::sequence, pop_to_mark());
      break;  // frozen set
    // globals and what is made of them
    case 'c': {
      const std::string_view module = take_line();
      push_global(module, take_line());
      break;
    }
    case 0x93:
      step_stack_global();
      break;
    case 'R':
    case 0x81:
      step_call();
      break;
    case 0x92:
      step_keyword_call();
      break;
    case 'i':
      step_inst();
      break;
    case 'o':
      step_obj();
      break;
    case 'b':
      step_build();
      break;
    case 'Q':
      step_storage();
      break;
    default:
      step_text(code);
  }
  return true;
}

Pickle PickleMachine::run() {
  while (step()) {
  }
  pickle_.root = pop();
  pickle_.length = position_;
  return std::move(pickle_);
}

Pickle unpickle(std::string_view bytes, const std::string& place) {
  return PickleMachine(bytes, place).run();
}

}  // namespace fungi
